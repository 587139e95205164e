"""The losses the paper compares: MIL-NCE of Eq. 1 over two formulations of the bags, InfoNCE, classification.

Every loss takes a minibatch of embeddings and gives one number with a gradient; a minibatch without any bag gives 0.
The bags are those of bags.py; nothing here is larger than the one matrix of entries by segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from signspot.learning.bag_sums import NONE, BagSums, BagTotals, is_empty, released_terms
from signspot.learning.bags import Anchor, Bags, Paper, Released
from signspot.learning.minibatch import Minibatch

TEMPERATURE = 0.07  # Paper 4.3
Formulation = Literal["paper", "released"] | Paper | Released
_BY_SIDE: dict[str, tuple[Anchor, ...]] = {
    "both": ("segment-foreground", "dictionary-foreground"),
    "segment": ("segment-foreground",),
    "dictionary": ("dictionary-foreground",),
}


def mil_nce(cosine: Tensor, bags: Bags, temperature: float = TEMPERATURE) -> Tensor:
    """-log(sum_P / (sum_P + sum_N)) of Paper Eq. 1 for every bag, (B,), from masks: the reference for small batches.

    `cosine` is (S, R), every segment with every dictionary row; every bag holds a positive pair.
    """
    logits = cosine / temperature
    paid = bags.positive if bags.unpaid is None else bags.positive & ~bags.unpaid
    above = logits.masked_fill(~bags.positive, NONE).flatten(1).logsumexp(1)
    below = logits.masked_fill(~(paid | bags.negative), NONE).flatten(1).logsumexp(1)
    return torch.where(is_empty(below), 0.0, below - above)


def watch_read_lookup(
    batch: Minibatch,
    formulation: Formulation = "paper",
    temperature: float = TEMPERATURE,
    discard: Tensor | None = None,
) -> Tensor:
    """Learn from labels, subtitles and the dictionary: Eq. 1 over the bags of App. C.2.

    `discard` names pairs of words, such as synonyms, that are no negatives of each other: (V, V) bool or (n, 2) int64.
    """
    _check_temperature(temperature)
    chosen = _formulation(formulation)
    if isinstance(chosen, Released):
        return _mean(released_terms(BagSums.of(batch, temperature, discard), chosen))
    sums = BagSums.of(batch, temperature, discard, once=chosen.repeats == "entries")
    by_word = chosen.segment_background == "each-word"
    totals: dict[Anchor, Callable[[], BagTotals]] = {
        "segment-foreground": sums.segment_foreground,
        "dictionary-foreground": sums.dictionary_foreground,
        "segment-background": sums.segment_background_each_word if by_word else sums.segment_background,
        "dictionary-background": sums.dictionary_background,
    }
    terms = [totals[anchor]().terms() for anchor in chosen.anchors]
    if chosen.average == "anchors":
        terms = [costs.mean(dim=0, keepdim=True) for costs in terms if len(costs)] or terms
    return _mean(torch.cat(terms))


def watch_lookup(
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
    return watch_read_lookup(foreground_only(batch), chosen, temperature, discard)


def infonce(
    batch: Minibatch, generator: torch.Generator, temperature: float = TEMPERATURE, discard: Tensor | None = None
) -> Tensor:
    """Compare each labelled segment with one entry of its word, drawn, and with the entries of all other labels."""
    _check_temperature(temperature)
    batch = foreground_only(batch)
    drawn = draw_positives(batch, generator)
    sums = BagSums.of(batch, temperature, discard)
    paired = (drawn >= 0).nonzero().squeeze(1)
    place = batch.row_entry[drawn[paired]] * len(batch.segments) + paired
    positive = sums.logits.flatten().index_select(0, place)
    return _mean(BagTotals(positive, sums.segment_negative.index_select(0, paired)).terms())


def classification(
    batch: Minibatch, segment_logits: Tensor, entry_logits: Tensor, class_of_word: Tensor | None = None
) -> Tensor:
    """Cross-entropy of the classifier's logits (S, C) and (E, C), labelled segments and entries weighing alike.

    `class_of_word` (V,) int64 gives the class of every word, negative for none; without it, word numbers are classes.
    """
    losses = []
    for logits, word in ((segment_logits, batch.segment_word), (entry_logits, batch.entry_word)):
        target = word if class_of_word is None else torch.where(word < 0, word, class_of_word[word.clamp_min(0)])
        if len(target) and int(target.max()) >= logits.shape[1]:
            raise ValueError(f"a word of class {int(target.max())} for a classifier of {logits.shape[1]} classes")
        known = target >= 0
        if known.any():
            losses.append(cross_entropy(logits[known], target[known]))
    nothing = (segment_logits.sum() + entry_logits.sum()) * 0.0
    return torch.stack(losses).mean() if losses else nothing


def foreground_only(batch: Minibatch) -> Minibatch:
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


def draw_positives(batch: Minibatch, generator: torch.Generator) -> Tensor:
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


def _mean(terms: Tensor) -> Tensor:
    """The mean over bags; 0, still with a gradient of 0, where there is none."""
    return terms.sum() / max(len(terms), 1)


def _check_temperature(temperature: float) -> None:
    if not 0 < temperature < float("inf"):
        raise ValueError(f"a temperature of {temperature} is not above 0")
