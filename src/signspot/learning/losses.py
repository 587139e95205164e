"""The losses the paper compares: MIL-NCE of Eq. 1 over two formulations of the bags, InfoNCE, classification.

Every loss takes a minibatch of embeddings and gives one number with a gradient; a minibatch without any bag gives 0.
Nothing here is larger than the one matrix of entries by segments; experiments/lib/bags.py has the bags as masks.

A segment *shows* a word when it carries that label, or when it is unlabelled and the word is a background word of its
subtitle: it may be there. Pairs that may match but are not known to, and pairs of words to discard (synonyms), are
neither positive nor negative. A bag without positives does not count. A bag without negatives costs nothing and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy, softplus

from signspot.learning.batches import Minibatch, on_device
from signspot.learning.config import EmbeddingConfig
from signspot.learning.runs import Team, mixed_precision
from signspot.models.embedders import CONTINUOUS, DICTIONARY
from signspot.models.head import Head, HeadOutput, unit_rows

TEMPERATURE = 0.07  # Paper 4.3
Anchor = Literal["segment-foreground", "dictionary-foreground", "segment-background", "dictionary-background"]
_ANCHORS: tuple[Anchor, ...] = get_args(Anchor)
_BY_SIDE = {"both": _ANCHORS[:2], "segment": _ANCHORS[:1], "dictionary": _ANCHORS[1:2]}  # the foreground ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """The bags of Paper App. C.2, its contradictions resolved as its figures do (deviations D1 to D3)."""

    anchors: tuple[Anchor, ...] = _ANCHORS
    # Deviation D1. each-segment: a background segment with the entries of all background words of its subtitle.
    # each-word: all background segments of an item with the entries of one of them, the other words in neither set.
    segment_background: Literal["each-segment", "each-word"] = "each-segment"
    average: Literal["bags", "anchors"] = "bags"  # over all bags, or over the means of the anchors (deviation D12)
    repeats: Literal["rows", "entries"] = "rows"  # an entry of several items counts for each, or once (deviation D13)

    def __post_init__(self) -> None:
        if not self.anchors or not set(self.anchors) <= set(_ANCHORS) or len(set(self.anchors)) < len(self.anchors):
            raise ValueError(f"anchors are some of {', '.join(_ANCHORS)}, not {self.anchors}")
        _check_choices(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The bags of the released loss: one per run of a word, anchored at both its segments and its entries (D14)."""

    # Pairs of a segment and an entry of its word from different items: in the numerator only, as released (so that a
    # bag can cost less than 0), in neither sum, or in both.
    cross_item: Literal["numerator", "nowhere", "both"] = "numerator"
    same_subtitle: Literal["negative", "neither"] = "negative"  # the other background words of a segment's subtitle
    count: Literal["runs", "words"] = "runs"  # a word counts once for each run of its rows, or once

    def __post_init__(self) -> None:
        _check_choices(self)


Formulation = Literal["paper", "released"] | Paper | Released


def watch_read_lookup(
    batch: Minibatch,
    formulation: Formulation = "paper",
    temperature: float = TEMPERATURE,
    discard: Tensor | None = None,
) -> Tensor:
    """Learn from labels, subtitles and the dictionary: Eq. 1 over the bags of App. C.2.

    `discard` names pairs of words, such as synonyms, that are no negatives of each other: (V, V) bool or (n, 2) int64.
    """
    chosen = _formulation(formulation)
    if isinstance(chosen, Released):
        return _mean(_released_terms(_BagSums.of(batch, temperature, discard), chosen))
    sums = _BagSums.of(batch, temperature, discard, once=chosen.repeats == "entries")
    by_word = chosen.segment_background == "each-word"
    totals: dict[Anchor, Callable[[], _Totals]] = {
        "segment-foreground": sums.segment_foreground,
        "dictionary-foreground": sums.dictionary_foreground,
        "segment-background": sums.segment_background_each_word if by_word else sums.segment_background,
        "dictionary-background": sums.dictionary_background,
    }
    terms = [_terms(*totals[anchor]()) for anchor in chosen.anchors]
    if chosen.average == "anchors":
        terms = [costs.mean(dim=0, keepdim=True) for costs in terms if len(costs)] or terms
    return _mean(torch.cat(terms))


def _watch_lookup(
    batch: Minibatch,
    formulation: Formulation = "paper",
    temperature: float = TEMPERATURE,
    anchors: Literal["both", "segment", "dictionary"] = "both",
    discard: Tensor | None = None,
) -> Tensor:
    """Learn from labels and the dictionary alone: labelled segments and the entries of their words."""
    if anchors not in _BY_SIDE:
        raise ValueError(f"anchors are 'both', 'segment' or 'dictionary', not {anchors!r}")
    chosen = _formulation(formulation)
    if isinstance(chosen, Paper):
        chosen = replace(chosen, anchors=_BY_SIDE[anchors])
    elif anchors != "both":
        raise ValueError("the anchors of the released formulation cannot be separated")
    return watch_read_lookup(_foreground_only(batch), chosen, temperature, discard)


def _infonce(
    batch: Minibatch, generator: torch.Generator, temperature: float = TEMPERATURE, discard: Tensor | None = None
) -> Tensor:
    """Compare each labelled segment with one entry of its word, drawn, and with the entries of all other labels."""
    batch = _foreground_only(batch)
    drawn = _draw_positives(batch, generator)
    sums = _BagSums.of(batch, temperature, discard)
    paired = (drawn >= 0).nonzero().squeeze(1)
    place = batch.row_entry[drawn[paired]] * len(batch.segments) + paired
    positive = sums.logits.flatten().index_select(0, place)
    return _mean(_terms(positive, sums.segment_negative.index_select(0, paired)))


def _classification(batch: Minibatch, segment_logits: Tensor, entry_logits: Tensor) -> Tensor:
    """Cross-entropy of the classifier's logits (S, C) and (E, C), labelled segments and entries weighing alike."""
    losses = []
    for logits, target in ((segment_logits, batch.segment_word), (entry_logits, batch.entry_word)):
        if len(target) and int(target.max()) >= logits.shape[1]:
            raise ValueError(f"a word of class {int(target.max())} for a classifier of {logits.shape[1]} classes")
        known = target >= 0
        if known.any():
            losses.append(cross_entropy(logits[known], target[known]))
    nothing = (segment_logits.sum() + entry_logits.sum()) * 0.0
    return torch.stack(losses).mean() if losses else nothing


def _foreground_only(batch: Minibatch) -> Minibatch:
    """What is left of a minibatch without its subtitles: labelled segments and the entries of their words."""
    kept = batch.segment_is_foreground.nonzero().squeeze(1)
    used, row_entry = torch.unique(batch.row_entry[batch.row_is_foreground], return_inverse=True)
    return replace(
        batch,
        segments=batch.segments.index_select(0, kept),
        segment_item=batch.segment_item[kept],
        segment_word=batch.segment_word[kept],
        entries=batch.entries.index_select(0, used),
        entry_word=batch.entry_word[used],
        row_entry=row_entry,
        row_item=batch.row_item[batch.row_is_foreground],
        row_is_foreground=batch.row_is_foreground[batch.row_is_foreground],
    )


def _draw_positives(batch: Minibatch, generator: torch.Generator) -> Tensor:
    """(S,) int64: for each labelled segment one dictionary row of its item and word, all alike likely; -1 for none."""
    own = batch.segment_item[:, None] == batch.row_item
    segment, row = (own & (batch.segment_word[:, None] == batch.row_word)).nonzero().unbind(1)
    counts = torch.bincount(segment, minlength=len(batch.segments))
    chance = torch.rand(len(counts), generator=generator, dtype=torch.float64, device=generator.device)
    place = counts.cumsum(0) - counts + (chance.to(counts.device) * counts).long()
    drawn = torch.full_like(counts, -1)
    drawn[counts > 0] = row[place[counts > 0]]
    return drawn


def _formulation(formulation: Formulation) -> Paper | Released:
    if not isinstance(formulation, str):
        return formulation
    if formulation not in ("paper", "released"):
        raise ValueError(f"a formulation is 'paper' or 'released', not {formulation!r}")
    return Paper() if formulation == "paper" else Released()


def _check_choices(options: Paper | Released) -> None:
    for name, hint in get_type_hints(type(options)).items():
        choices, value = get_args(hint), getattr(options, name)
        if get_origin(hint) is Literal and value not in choices:
            raise ValueError(f"{name} is one of {', '.join(choices)}, not {value!r}")


def _mean(terms: Tensor) -> Tensor:
    """The mean over bags; 0, still with a gradient of 0, where there is none."""
    return terms.sum() / max(len(terms), 1)


# Sums over bags without masks: one matrix of entries by segments, then sums by word and by item.
#
# All sums are of exponentials and stay logarithms, each shifted by its own largest summand, so that float32 suffices
# at any temperature. An empty sum is NONE: so low that nothing remains of it, but finite, so that gradients are
# numbers. Gathering is by `index_select` only: its backward pass adds in a fixed order, so that runs repeat to the bit.

NONE = -1e30  # the logarithm of an empty sum


@dataclass(frozen=True, slots=True, eq=False)
class _WordTable:
    """Who shows and who mentions which word; words are numbered within the minibatch, 0 to W - 1."""

    of_entry: Tensor  # (E,) int64
    of_row: Tensor  # (R,) int64
    background: Tensor  # (n_items, W) bool: background words of an item
    shows: Tensor  # (S, W) bool: a segment shows, or may show, a word
    discarded: Tensor  # (S, W) bool: another word it shows is to be discarded with this one
    mentioned: Tensor  # (n_items, W) bool: as label or subtitle word, or one to be discarded with such a word

    @property
    def n_words(self) -> int:
        return self.shows.shape[1]

    def by_entry(self, by_word: Tensor) -> Tensor:
        """Segments by words (S, W) as entries by segments (E, S)."""
        return by_word.T.contiguous().index_select(0, self.of_entry)  # whole rows are copied fastest


@dataclass(frozen=True, slots=True, eq=False)
class _OwnRows:
    """The distinct dictionary rows of every item."""

    item: Tensor  # (U,) int64
    entry: Tensor  # (U,) int64
    word: Tensor  # (U,) int64, as in the word table
    count: Tensor  # (U,) int64: how often the item has it


@dataclass(frozen=True, slots=True, eq=False)
class _OwnPairs:
    """Segments with distinct rows of their own item."""

    segment: Tensor  # (P,) int64
    row: Tensor  # (P,) int64, of _OwnRows
    logit: Tensor  # (P,) psi / tau, plus the logarithm of the row's count

    def where(self, chosen: Tensor) -> _OwnPairs:
        kept = chosen.nonzero().squeeze(1)
        return _OwnPairs(self.segment[kept], self.row[kept], self.logit.index_select(0, kept))


@dataclass(frozen=True, slots=True, eq=False)
class _WordBags:
    """The bags that every background word of every item has."""

    item: Tensor  # (B,) int64
    word: Tensor  # (B,) int64, as in the word table
    of_row: Tensor  # (U,) int64: the bag of each of _OwnRows, -1 for none


_Totals = tuple[Tensor, Tensor]  # (B,), (B,): the logarithms of the positive and the negative sum of Eq. 1 of bags


def _terms(positive: Tensor, negative: Tensor) -> Tensor:
    """What every bag costs: -log(P / (P + N)) = log(1 + N / P), never below 0; without positives it is not a bag."""
    held = (~is_empty(positive)).nonzero().squeeze(1)
    # softplus is the identity above its threshold: what it leaves out there is nothing, in float64 too.
    return softplus((negative - positive).index_select(0, held), threshold=50)


@dataclass(frozen=True, eq=False)
class _BagSums:
    """The bags of one minibatch, one method per superscript of Paper App. C.2."""

    batch: Minibatch
    logits: Tensor  # (E, S): psi / tau of every entry with every segment
    words: _WordTable
    entry_count: Tensor  # (E,) int64: dictionary rows of every entry
    rows: _OwnRows
    pairs: _OwnPairs

    @classmethod
    def of(cls, batch: Minibatch, temperature: float, discard: Tensor | None, *, once: bool = False) -> _BagSums:
        """Compare all entries with all segments; with `once`, an entry counts once however often it is repeated."""
        if not 0 < temperature < float("inf"):
            raise ValueError(f"a temperature of {temperature} is not above 0")
        words = _word_table(batch, discard)
        with torch.autocast(batch.segments.device.type, enabled=False):  # half precision would blur psi by tau itself
            wide = (rows.float() if rows.itemsize < 4 else rows for rows in (batch.entries, batch.segments))
            entries, segments = map(unit_rows, wide)
            logits = (entries / temperature) @ segments.T
        n_entries = max(len(batch.entries), 1)
        entry_count = torch.bincount(batch.row_entry, minlength=len(batch.entries))
        # The repeated rows of an item become one.
        keys, counts = torch.unique(batch.row_item * n_entries + batch.row_entry, return_counts=True)
        if once:
            entry_count, counts = entry_count.clamp_max(1), counts.clamp_max(1)
        entry = keys % n_entries
        rows = _OwnRows(keys // n_entries, entry, words.of_entry[entry], counts)
        segment, row = (batch.segment_item[:, None] == rows.item).nonzero().unbind(1)
        logit = logits.flatten().index_select(0, entry[row] * logits.shape[1] + segment) + _log(counts[row], logits)
        return cls(batch, logits, words, entry_count, rows, _OwnPairs(segment, row, logit))

    def segment_foreground(self) -> _Totals:
        return self._segment_anchored(self.batch.segment_is_foreground)

    def segment_background(self) -> _Totals:
        return self._segment_anchored(~self.batch.segment_is_foreground)

    def segment_background_each_word(self) -> _Totals:
        """(seg-back), one bag for each background word of an item."""
        unlabelled = (~self.batch.segment_is_foreground).nonzero().squeeze(1)
        negative = self.segment_negative.index_select(0, unlabelled)
        of_item = _grouped_log_sums(negative, self.batch.segment_item[unlabelled], self.batch.n_items)
        return self.background_positive, of_item.index_select(0, self.word_bags.item)

    def dictionary_foreground(self) -> _Totals:
        """(dict-fore): the rows of a bag are those its segment matches."""
        matches = self.matches.where(self.batch.segment_is_foreground[self.matches.segment])
        n_segments = len(self.batch.segments)
        negative = self.row_negative.index_select(0, matches.row)
        positive = _grouped_log_sums(matches.logit, matches.segment, n_segments)
        return positive, _grouped_log_sums(negative, matches.segment, n_segments)

    def dictionary_background(self) -> _Totals:
        bags = self.word_bags
        in_bag = (bags.of_row >= 0).nonzero().squeeze(1)
        negative = self.row_negative.index_select(0, in_bag)
        return self.background_positive, _grouped_log_sums(negative, bags.of_row[in_bag], len(bags.item))

    @cached_property
    def matches(self) -> _OwnPairs:
        """The pairs of an item whose segment shows, or may show, the word of the row."""
        return self.pairs.where(self.words.shows[self.pairs.segment, self.rows.word[self.pairs.row]])

    @cached_property
    def word_bags(self) -> _WordBags:
        is_background = self.words.background[self.rows.item, self.rows.word]
        n_words = max(self.words.n_words, 1)
        keys, bag = torch.unique((self.rows.item * n_words + self.rows.word)[is_background], return_inverse=True)
        of_row = torch.full_like(self.rows.item, -1)
        of_row[is_background] = bag
        return _WordBags(keys // n_words, keys % n_words, of_row)

    @cached_property
    def background_positive(self) -> Tensor:
        """(B,): of all unlabelled segments of an item with all rows of one of its background words."""
        bags = self.word_bags
        matches = self.matches.where(~self.batch.segment_is_foreground[self.matches.segment])
        return _grouped_log_sums(matches.logit, bags.of_row[matches.row], len(bags.item))

    @cached_property
    def segment_negative(self) -> Tensor:
        """(S,): of a segment with the rows of all words it cannot show."""
        left_out = self.words.by_entry(self.words.shows | self.words.discarded)
        return _log_sums(self.logits + _log(self.entry_count, self.logits)[:, None], left_out, dim=0)

    @cached_property
    def row_negative(self) -> Tensor:
        """(U,): of an item's row with the segments that cannot show its word (of other items: all or none)."""
        left_out = self.words.by_entry(self.words.mentioned[self.batch.segment_item])
        elsewhere = _log_sums(self.logits, left_out, dim=1).index_select(0, self.rows.entry)
        word = self.rows.word[self.pairs.row]
        may_match = self.words.shows[self.pairs.segment, word] | self.words.discarded[self.pairs.segment, word]
        own = self.pairs.where(~may_match)
        in_item = _grouped_log_sums(own.logit, own.row, len(self.rows.item))
        return torch.logaddexp(elsewhere + _log(self.rows.count, self.logits), in_item)

    def _segment_anchored(self, is_anchor: Tensor) -> _Totals:
        anchors = is_anchor.nonzero().squeeze(1)
        positive = _grouped_log_sums(self.matches.logit, self.matches.segment, len(is_anchor))
        return positive.index_select(0, anchors), self.segment_negative.index_select(0, anchors)


def _released_terms(sums: _BagSums, released: Released) -> Tensor:
    """(B,): what every bag of the released formulation costs, which may be less than 0."""
    words, n_words = sums.words, sums.words.n_words
    own = positive = _grouped_log_sums(sums.matches.logit, sums.rows.word[sums.matches.row], n_words)
    if released.cross_item != "nowhere":  # the segments that may show a word with its rows of whatever item
        entry, segment = words.by_entry(words.shows).nonzero().unbind(1)
        logit = sums.logits.flatten().index_select(0, entry * sums.logits.shape[1] + segment)
        of_rows = logit + _log(sums.entry_count, sums.logits)[entry]
        positive = _grouped_log_sums(of_rows, words.of_entry[entry], n_words)
    cannot = _log_sums(sums.logits, words.by_entry(words.shows | words.discarded), dim=1)
    segment, word = words.shows.nonzero().unbind(1)
    below = [
        positive if released.cross_item == "both" else own,
        _grouped_log_sums(cannot + _log(sums.entry_count, sums.logits), words.of_entry, n_words),
        _grouped_log_sums(sums.segment_negative.index_select(0, segment), word, n_words),
    ]
    if released.same_subtitle == "negative":
        below.append(_other_words(sums))
    bag_word = distinct_words(words.of_row, released)
    bag_word = bag_word[~is_empty(positive[bag_word])]
    total, positive = torch.stack(below).logsumexp(0).index_select(0, bag_word), positive.index_select(0, bag_word)
    return torch.where(is_empty(total), 0.0, total - positive)


def _other_words(sums: _BagSums) -> Tensor:
    """(W,): of the unlabelled segments that may show a word with the other background words of their subtitles."""
    bags, matches = sums.word_bags, sums.matches
    is_kept = ~sums.words.discarded[matches.segment, sums.rows.word[matches.row]]
    matches = matches.where(is_kept & ~sums.batch.segment_is_foreground[matches.segment])
    of_bag = _grouped_log_sums(matches.logit, bags.of_row[matches.row], len(bags.item))
    is_other = (bags.item[:, None] == bags.item) & (bags.word[:, None] != bags.word)
    bag, other = is_other.nonzero().unbind(1)
    return _grouped_log_sums(of_bag.index_select(0, other), bags.word[bag], sums.words.n_words)


def _word_table(batch: Minibatch, discard: Tensor | None) -> _WordTable:
    """Number the words of a minibatch and note who shows and mentions them."""
    is_labelled = batch.segment_is_foreground
    words, numbers = torch.unique(torch.cat([batch.entry_word, batch.segment_word[is_labelled]]), return_inverse=True)
    of_entry, of_label = numbers[: len(batch.entries)], numbers[len(batch.entries) :]
    of_row = of_entry[batch.row_entry]
    background = is_labelled.new_zeros(batch.n_items, len(words))
    mentioned = background.clone()
    background[batch.row_item[~batch.row_is_foreground], of_row[~batch.row_is_foreground]] = True
    mentioned[batch.row_item, of_row] = True
    mentioned[batch.segment_item[is_labelled], of_label] = True
    shows = background[batch.segment_item] & ~is_labelled[:, None]
    shows[is_labelled.nonzero().squeeze(1), of_label] = True
    discarded = torch.zeros_like(shows)
    if discard is not None:
        related = discard_relation(words, discard).float()
        discarded = shows.float() @ related > 0
        mentioned |= mentioned.float() @ related > 0
    return _WordTable(of_entry, of_row, background, shows, discarded, mentioned)


def discard_relation(words: Tensor, discard: Tensor | None) -> Tensor:
    """(W, W) bool: which of `words` (W,), ascending, to discard with each other.

    `discard` is a relation between all words, (V, V) bool, or pairs of words, (n, 2) int64; either direction will do.
    """
    related = torch.zeros(len(words), len(words), dtype=torch.bool, device=words.device)
    if discard is None or not len(words):
        return related
    discard = discard.to(words.device)
    if discard.dtype == torch.bool:
        if discard.ndim != 2 or discard.shape[0] != discard.shape[1] or len(discard) <= words[-1]:
            raise ValueError(f"a discard relation of shape {tuple(discard.shape)} for a word {int(words[-1])}")
        known = words.clamp_min(0)
        related = discard[known][:, known] & ((words >= 0) & (words >= 0)[:, None])
    else:
        if discard.ndim != 2 or discard.shape[1] != 2 or (discard < 0).any():
            raise ValueError(f"words to discard are (n, 2) word numbers, not of shape {tuple(discard.shape)}")
        place = torch.searchsorted(words, discard).clamp_max(len(words) - 1)
        place = place[(words[place] == discard).all(dim=1)]
        related[place[:, 0], place[:, 1]] = True
    return (related | related.T).fill_diagonal_(False)


def distinct_words(row_word: Tensor, released: Released) -> Tensor:
    """(B,): the words that have a bag, as often as they have one."""
    words: Tensor = (torch.unique_consecutive if released.count == "runs" else torch.unique)(row_word)
    return words


def _log_sums(logits: Tensor, left_out: Tensor, dim: int) -> Tensor:
    """The logarithm of the sum of exp(logits) along `dim` of two, without the cells of `left_out`."""
    if not logits.shape[dim]:
        return logits.new_full((logits.shape[1 - dim],), NONE)
    result: Tensor = _LogSums.apply(logits, left_out, dim)  # type: ignore[no-untyped-call]
    return result


class _LogSums(torch.autograd.Function):
    """Takes half the time of masked_fill and logsumexp: one exponential serves both directions, most steps in place."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, logits: Tensor, left_out: Tensor, dim: int) -> Tensor:
        weights = logits.masked_fill(left_out, NONE)
        highest = weights.amax(dim, keepdim=True)
        weights.sub_(highest).exp_()
        sums = weights.sum(dim, keepdim=True)
        ctx.save_for_backward(weights, sums, highest <= NONE / 2)
        return (highest + sums.log()).squeeze(dim)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        weights, sums, empty = ctx.saved_tensors
        share = (gradient.reshape(sums.shape) / sums).masked_fill(empty, 0.0)
        return weights * share, None, None


def _grouped_log_sums(logits: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """(n_groups,): the logarithm of the sum of exp(logits) (n,) in each group; `group` is (n,) int64."""
    highest = logits.new_full((n_groups,), NONE).scatter_reduce(0, group, logits.detach(), "amax")
    shifted = (logits - highest[group]).exp()
    # The largest summand of a group is exactly 1, so that only empty groups are below it.
    return highest + torch.zeros_like(highest).index_add(0, group, shifted).clamp_min(1).log()


def is_empty(log_sum: Tensor) -> Tensor:
    """Whether nothing was summed. A sum that is not a number is not empty, so that training notices."""
    return log_sum <= NONE / 2


def _log(counts: Tensor, like: Tensor) -> Tensor:
    """The logarithm of whole numbers, NONE of 0, in the precision of `like`."""
    return torch.where(counts > 0, counts.clamp_min(1).to(like.dtype).log(), NONE)


_DRAWS = 2  # what this stream of random numbers is for; `batches` has its own


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """The loss that a config asks for."""

    config: EmbeddingConfig
    synonyms: Tensor | None = None  # (n, 2) int64: pairs of words that are neither positive nor negative

    def loss(self, head: Head, batch: Minibatch, team: Team, rng: torch.Generator) -> Tensor:
        """The loss of the joint batch; its gradient reaches the head through this process's rows alone."""
        if self.config.loss != "watch-read-lookup":
            batch = _foreground_only(batch)
        batch = on_device(batch, next(head.parameters()).device)
        segments = self._outputs(head, batch.segments, CONTINUOUS, team)
        entries = self._outputs(head, batch.entries, DICTIONARY, team)
        batch = batch.with_vectors(segments.embedding, entries.embedding)
        config, discard = self.config, self.synonyms
        bags: Paper | Released = Released()
        if config.formulation == "paper":
            names = ("segment_background", "average", "repeats")
            bags = Paper(**{name: getattr(config, name) for name in names})
        match config.loss:
            case "watch-read-lookup":
                return watch_read_lookup(batch, bags, config.temperature, discard)
            case "watch-lookup":
                return _watch_lookup(batch, bags, config.temperature, config.anchors, discard)
            case "infonce":
                return _infonce(batch, rng, config.temperature, discard)
            case "classification":
                if segments.logits is None or entries.logits is None:
                    raise ValueError("a head without a classifier cannot learn to classify")
                return _classification(batch, segments.logits, entries.logits)

    def _outputs(self, head: Head, rows: Tensor, domain: int, team: Team) -> HeadOutput:
        with mixed_precision(rows.device, self.config.precision):
            own = head(rows[team.share(len(rows))], domain if head.config.domains > 1 else 0)
        logits = None if own.logits is None else team.gathered(own.logits.float(), len(rows))
        return HeadOutput(team.gathered(own.embedding.float(), len(rows)), logits)


def step_generator(seed: int, epoch: int, step: int) -> torch.Generator:
    state = np.random.SeedSequence(seed, spawn_key=(_DRAWS, epoch, step)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]) >> 1)
