"""Every pair of a passage and an entry that somebody may want to look at, and the passages most worth a look.

Listed are all entries of the annotated word, and whatever else ranks among the first. The margin of a passage is the
highest cosine of its own word minus the highest of any other word: positive where the right word comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from signspot.domain.tracks import FloatArray
from signspot.errors import InputError
from signspot.evaluation.ranking import Bools, Floats, Ints

CaseKind = Literal["clear", "just beaten", "wrong time", "missed"]


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """D pairs, passage by passage, entries in gallery order."""

    passage: Ints  # (D,) the place of the passage among those scored
    entry_row: Ints  # (D,) the place of the entry in the gallery
    rank: Ints  # (D,) of the entry among all, from 1
    cosine: FloatArray  # (D,) the highest over the windows; -inf where nothing could be compared
    found_frame: Ints  # (D,) of that window; -1 where nothing could be compared
    is_relevant: Bools  # (D,) whether the entry's word is the annotated one
    is_right: Bools  # (D,) relevant, and found at the right time

    def __len__(self) -> int:
        return len(self.passage)

    @classmethod
    def joined(cls, parts: Sequence[Decisions]) -> Decisions:
        """Several, one after the other, each about the passage of its place in `parts`."""
        columns = {one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)}
        columns["passage"] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return cls(**columns)


@dataclass(frozen=True, slots=True)
class Case:
    """A passage worth a look, with the best entry of its word and the best of any other."""

    kind: CaseKind
    passage: int  # its place among those scored
    own_row: int  # of the gallery
    other_row: int | None  # None: the gallery has no other word
    margin: float


def margins(cosine: FloatArray, passage_words: Ints, gallery_words: Ints) -> tuple[Floats, Ints, Ints]:
    """Of every passage the margin (P,), and the gallery rows of its word's best entry and of the best other (-1: none).

    `cosine` (P, E) is the highest of each passage and entry. What could not be compared counts as -2, below every
    cosine.
    """
    if cosine.shape != (len(passage_words), len(gallery_words)) or not cosine.size:
        raise InputError("margins", f"cosines of shape {cosine.shape}", "give one row a passage, one column an entry")
    comparable = np.maximum(cosine, np.float32(-2)).astype(np.float64)
    is_own = passage_words[:, None] == gallery_words
    own = np.where(is_own, comparable, -np.inf)
    other = np.where(is_own, -np.inf, comparable)
    has_other = ~is_own.all(axis=1)
    highest_other = np.where(has_other, other.max(axis=1), -2.0)
    return own.max(axis=1) - highest_other, own.argmax(axis=1), np.where(has_other, other.argmax(axis=1), -1)


def choose_cases(
    cosine: FloatArray, passage_words: Ints, gallery_words: Ints, is_localised: Bools, each: int = 2
) -> tuple[Case, ...]:
    """The passages most worth a look, at most `each` of every kind and one of every word and kind.

    clear: the right word first, at the right time, by the largest margin. just beaten: found at the right time, but
    another word scores a little higher. wrong time: the right word first, yet surest elsewhere. missed: neither word
    nor time, by the largest margin.
    """
    margin, own_row, other_row = margins(cosine, passage_words, gallery_words)
    is_first = margin > 0
    kinds: tuple[tuple[CaseKind, Bools, Floats], ...] = (
        ("clear", is_first & is_localised, -margin),
        ("just beaten", ~is_first & is_localised, -margin),
        ("wrong time", is_first & ~is_localised, -margin),
        ("missed", ~is_first & ~is_localised, margin),
    )
    cases: list[Case] = []
    for kind, belongs, order in kinds:
        shown: set[int] = set()
        for place in np.argsort(order, kind="stable"):
            word = int(passage_words[place])
            if belongs[place] and word not in shown and len(shown) < each:
                shown.add(word)
                other = int(other_row[place])
                one = Case(kind, int(place), int(own_row[place]), None if other < 0 else other, float(margin[place]))
                cases.append(one)
    return tuple(cases)
