"""Bags: which pairs of a segment and a dictionary row are positive, negative, or neither (Paper 3.1, App. C.2).

This is the readable form of what signspot.learning.losses sums up, one function per superscript of the appendix: masks
over every (segment, dictionary row) pair for every bag, which only small minibatches can afford. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from signspot.learning.batches import Minibatch
from signspot.learning.losses import (
    NONE,
    TEMPERATURE,
    Anchor,
    Paper,
    Released,
    discard_relation,
    distinct_words,
    is_empty,
)


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """P(i) and N(i) of Eq. 1 for every bag i."""

    positive: Tensor  # (B, S, R) bool
    negative: Tensor  # (B, S, R) bool, disjoint from positive
    unpaid: Tensor | None = None  # (B, S, R) bool: positives the released loss leaves out of its denominator

    def with_positives(self) -> Bags:
        """Only the bags that hold a positive pair."""
        held = self.positive.flatten(1).any(dim=1)
        return Bags(self.positive[held], self.negative[held], None if self.unpaid is None else self.unpaid[held])


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What is known about every pair of a segment and a dictionary row."""

    is_foreground: Tensor  # (S,) bool
    same_item: Tensor  # (S, R) bool
    shows: Tensor  # (S, R) bool: the segment shows, or may show, the word of the row
    discarded: Tensor  # (S, R) bool: another word the segment shows is to be discarded with the word of the row
    mentioned: Tensor  # (S, R) bool: so is the row's word, or one to be discarded with it, by the segment's whole item
    same_word: Tensor  # (R, R) bool
    row_item: Tensor  # (R,) int64
    row_is_background: Tensor  # (R,) bool: the word of the row is a background word of its item
    counts_in_item: Tensor  # (R,) bool: rows to count among those of one item
    counts_in_batch: Tensor  # (R,) bool: rows to count among all


def paper_bags(batch: Minibatch, paper: Paper, discard: Tensor | None = None) -> dict[Anchor, Bags]:
    """All bags of App. C.2, by their anchor."""
    known = knowledge(batch, discard, paper.repeats)
    each_segment = paper.segment_background == "each-segment"
    makers: dict[Anchor, Callable[[Knowledge], Bags]] = {
        "segment-foreground": segment_foreground,
        "dictionary-foreground": dictionary_foreground,
        "segment-background": segment_background if each_segment else segment_background_each_word,
        "dictionary-background": dictionary_background,
    }
    return {anchor: makers[anchor](known).with_positives() for anchor in paper.anchors}


def segment_foreground(known: Knowledge) -> Bags:
    """(seg-fore): a labelled segment with its word's entries, against the entries of all other words."""
    return _segment_anchored(known, known.is_foreground)


def segment_background(known: Knowledge) -> Bags:
    """(seg-back): an unlabelled segment with the entries of its background words, against those of all other words."""
    return _segment_anchored(known, ~known.is_foreground)


def segment_background_each_word(known: Knowledge) -> Bags:
    """(seg-back) one word at a time: the unlabelled segments of an item with the entries of one background word."""
    segments, rows = _background_anchors(known)
    positive = segments[:, :, None] & rows[:, None, :]
    negative = segments[:, :, None] & (_unlike(known) & known.counts_in_batch)
    return Bags(positive, negative)


def dictionary_foreground(known: Knowledge) -> Bags:
    """(dict-fore): the entries of a labelled segment's word with it, against segments that cannot show the word."""
    anchors = _one_hot(known.is_foreground)
    rows = (known.same_item & known.shows & known.counts_in_item)[known.is_foreground]
    return Bags(anchors[:, :, None] & rows[:, None, :], rows[:, None, :] & _elsewhere(known))


def dictionary_background(known: Knowledge) -> Bags:
    """(dict-back): the entries of a background word with its item's unlabelled segments, against the labelled one and
    the segments of items that do not mention the word."""
    segments, rows = _background_anchors(known)
    return Bags(segments[:, :, None] & rows[:, None, :], rows[:, None, :] & _elsewhere(known))


def released_bags(batch: Minibatch, released: Released, discard: Tensor | None = None) -> Bags:
    """A word's segments and a word's entries, whatever their items, against all others of either."""
    known = knowledge(batch, discard)
    words = distinct_words(batch.row_word, released)
    rows = words[:, None] == batch.row_word  # (B, R)
    segments = known.shows.T[rows.int().argmax(dim=1)] if len(words) else known.shows.new_zeros(0, len(known.shows))
    segments, rows = segments[:, :, None], rows[:, None, :]
    positive = segments & rows
    negative = (segments | rows) & _unlike(known)
    if released.cross_item == "nowhere":
        positive = positive & known.same_item
    if released.same_subtitle == "negative":
        negative = negative | (segments & ~rows & known.same_item & known.shows & ~known.discarded)
    unpaid = positive & ~known.same_item if released.cross_item == "numerator" else None
    return Bags(positive, negative, unpaid).with_positives()


def infonce_bags(batch: Minibatch, drawn: Tensor, discard: Tensor | None = None) -> Bags:
    """Every labelled segment with its row of `drawn` (S,), -1 for none, against the entries of all other words."""
    bags = segment_foreground(knowledge(batch, discard))
    is_drawn = drawn[:, None] == torch.arange(len(batch.row_entry), device=drawn.device)
    return replace(bags, positive=bags.positive & is_drawn).with_positives()


def knowledge(batch: Minibatch, discard: Tensor | None, repeats: Literal["rows", "entries"] = "rows") -> Knowledge:
    """What the labels and subtitles of a minibatch say about its pairs."""
    same_item = batch.segment_item[:, None] == batch.row_item  # (S, R)
    row_item, row_word = batch.row_item, batch.row_word
    foreground = batch.segment_is_foreground
    words, numbers = torch.unique(torch.cat([batch.segment_word, row_word]), return_inverse=True)
    related = discard_relation(words, discard)[numbers][:, numbers[len(foreground) :]]  # (S + R, R)
    same_word = row_word[:, None] == row_word  # (R, R)
    label_is_word = (batch.segment_word[:, None] == row_word) & foreground[:, None]  # (S, R)
    label_to_discard, row_related = related[: len(foreground)], related[len(foreground) :]
    own_background = same_item & ~batch.row_is_foreground & ~foreground[:, None]
    own_labels = batch.segment_item[:, None] == batch.segment_item  # (S, S)
    rows_of_entry = batch.row_entry[:, None] == batch.row_entry  # (R, R)
    earlier = torch.ones_like(rows_of_entry).tril(-1)
    again_in_batch = rows_of_entry & earlier
    every = torch.ones_like(batch.row_is_foreground)
    return Knowledge(
        is_foreground=foreground,
        same_item=same_item,
        shows=label_is_word | _joined(own_background, same_word),
        discarded=label_to_discard | _joined(own_background, row_related),
        mentioned=_joined(same_item, same_word | row_related) | _joined(own_labels, label_is_word | label_to_discard),
        same_word=same_word,
        row_item=row_item,
        row_is_background=_joined((row_item[:, None] == row_item) & ~batch.row_is_foreground, same_word).diagonal(),
        counts_in_item=~(again_in_batch & (row_item[:, None] == row_item)).any(1) if repeats == "entries" else every,
        counts_in_batch=~again_in_batch.any(1) if repeats == "entries" else every,
    )


def _segment_anchored(known: Knowledge, is_anchor: Tensor) -> Bags:
    anchors = _one_hot(is_anchor)[:, :, None]
    positive = known.same_item & known.shows & known.counts_in_item
    return Bags(anchors & positive, anchors & (_unlike(known) & known.counts_in_batch))


def _background_anchors(known: Knowledge) -> tuple[Tensor, Tensor]:
    """The unlabelled segments (B, S) and the entries (B, R) of every background word of every item."""
    same = known.same_word & (known.row_item[:, None] == known.row_item) & known.row_is_background[:, None]
    is_first = ~(same & torch.ones_like(same).tril(-1)).any(dim=1) & known.row_is_background
    rows = same[is_first] & known.counts_in_item
    return (known.same_item & ~known.is_foreground[:, None]).T[is_first], rows


def _unlike(known: Knowledge) -> Tensor:
    """(S, R): the segment does not show the row's word, nor one to be discarded with it."""
    return ~(known.shows | known.discarded)


def _elsewhere(known: Knowledge) -> Tensor:
    """(S, R): the segment cannot show the word; one of another item, only if all of that item is silent about it."""
    return torch.where(known.same_item, _unlike(known), ~known.mentioned)


def _one_hot(chosen: Tensor) -> Tensor:
    return torch.eye(len(chosen), dtype=torch.bool, device=chosen.device)[chosen]


def _joined(left: Tensor, right: Tensor) -> Tensor:
    """The composition of two relations (A, B) and (B, C), as (A, C)."""
    return (left.double() @ right.double()) > 0


def mil_nce(cosine: Tensor, bags: Bags, temperature: float = TEMPERATURE) -> Tensor:
    """-log(sum_P / (sum_P + sum_N)) of Paper Eq. 1 for every bag, (B,), from masks: the reference for small batches.

    `cosine` is (S, R), every segment with every dictionary row; every bag holds a positive pair.
    """
    logits = cosine / temperature
    paid = bags.positive if bags.unpaid is None else bags.positive & ~bags.unpaid
    above = logits.masked_fill(~bags.positive, NONE).flatten(1).logsumexp(1)
    below = logits.masked_fill(~(paid | bags.negative), NONE).flatten(1).logsumexp(1)
    return torch.where(is_empty(below), 0.0, below - above)
