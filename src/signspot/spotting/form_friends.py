"""Two dictionaries side by side, their signs compared part by part: what differs in no part is the same form.

All clips of a variant speak for it together: what one signer does in an own way, others do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from signspot.domain.dictionary import Entry
from signspot.domain.tracks import FloatArray
from signspot.domain.words import Word
from signspot.evaluation.ranking import Ints
from signspot.spotting.false_friends import Relation, Shelf, words_of, worth_showing
from signspot.spotting.form_judge import PARTS, FormJudge, Variants, agreement, variants_of
from signspot.spotting.form_parts import ROW, SEEN

LEAST_LOG_ODDS = 1.5  # of one form; see experiments/friends
_VARIANTS_AT_ONCE = 64
_SURELY_LEFT = -0.3  # most people sign with the right hand: a little more motion of the left one says nothing


@dataclass(frozen=True, slots=True)
class FormFriends:
    """Two words of two languages, by the two clips that differ least."""

    relation: Relation
    entry: Entry  # of the first dictionary
    other: Entry  # of the second
    closeness: float  # log odds that the form is one; called as in `Friends`, so that both are measured alike
    agree: tuple[str, ...]  # the parts in which the two agree
    differ: tuple[str, ...]

    @property
    def likeness(self) -> str:
        """How alike the two are, for people."""
        return f"{_agreement(self.agree, self.differ)}; log odds {self.closeness:.1f}"


def _agreement(agree: tuple[str, ...], differ: tuple[str, ...]) -> str:
    """Which parts agree, for people.

    >>> _agreement(("place", "movement", "palm"), ("hand shape",))
    'same place, movement and palm; hand shape differs'
    """
    if not differ:
        return "all parts agree"
    names, verb = _listed(differ), "differs" if len(differ) == 1 else "differ"
    return f"same {_listed(agree)}; {names} {verb}" if agree else f"{names} differ"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def form_friends(
    first: Shelf, second: Shelf, judge: FormJudge, least_log_odds: float = LEAST_LOG_ODDS
) -> tuple[FormFriends, ...]:
    """All pairs worth showing, as `friends` gives them; the vectors of the shelves are those of `form_row`."""
    if not first.entries or not second.entries:
        return ()
    one, other = _Forms.of(first), _Forms.of(second)
    shape = len(one.words), len(other.words)
    odds = np.full(shape, -np.inf, np.float32)
    best = np.zeros((*shape, 2), np.int64)  # the variants that are most likely one form
    parts = np.zeros((*shape, len(PARTS)), np.float32)
    for start in range(0, len(one.word), _VARIANTS_AT_ONCE):
        chosen = range(start, min(start + _VARIANTS_AT_ONCE, len(one.word)))
        found = judge.differences(variants_of([one.rows[number] for number in chosen]), variants_of(other.rows))
        likely, apart = judge.log_odds(found), judge.parts(found)
        for i, number in enumerate(chosen):
            for j in range(len(other.word)):
                at = one.word[number], other.word[j]
                if likely[i, j] > odds[at]:
                    odds[at], best[at] = likely[i, j], (number, j)
                    parts[at] = apart[i, j]
    same_form = odds >= least_log_odds
    pairs: list[FormFriends] = []
    for i, j in worth_showing(one.words, other.words, same_form):
        relation = Relation.of(same_word=one.words[i] == other.words[j], same_form=bool(same_form[i, j]))
        entry_at, other_at = _closest(judge, one, other, best[i, j])
        shown = first.entries[entry_at], second.entries[other_at]
        pairs.append(FormFriends(relation, *shown, float(odds[i, j]), *agreement(parts[i, j])))
    order = list(Relation)
    return tuple(
        sorted(pairs, key=lambda one: (order.index(one.relation), -one.closeness, one.entry.word, one.other.word))
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Forms:
    """A dictionary by its variants."""

    words: list[Word]
    word: list[int]  # of each variant
    places: list[Ints]  # of its entries
    rows: list[FloatArray]  # (n, 782) of its clips, told as by right-handers

    @classmethod
    def of(cls, shelf: Shelf) -> _Forms:
        words, rows = words_of(shelf.entries), as_right_handers(shelf)
        number = {word: place for place, word in enumerate(words)}
        places: dict[tuple[int, str], list[int]] = {}
        for place, entry in enumerate(shelf.entries):
            places.setdefault((number[entry.word], entry.variant), []).append(place)
        own = [np.array(found) for found in places.values()]
        return cls(words, [word for word, _ in places], own, [rows[found] for found in own])


def as_right_handers(shelf: Shelf) -> FloatArray:
    """(n, 782): every clip, or its mirror image, by which hand its signer leads with.

    Where the dictionary does not say it, the hand that moves more leads, in all clips of a signer together.
    """
    if shelf.vectors.shape[1:] != (SEEN,):
        raise ValueError(f"vectors of shape {shelf.vectors.shape} are no parts of signs")
    leads: dict[str, float] = {}
    for place, entry in enumerate(shelf.entries):
        lead = float(np.clip(shelf.vectors[place, -1], -1, 1))
        leads[_person(entry)] = leads.get(_person(entry), 0.0) + lead
    left = np.array([_is_left_handed(entry, leads) for entry in shelf.entries])
    rows: FloatArray = np.where(left[:, None], shelf.vectors[:, ROW : 2 * ROW], shelf.vectors[:, :ROW])
    return rows


def _person(entry: Entry) -> str:
    """Who signs; where that is not known, everybody is somebody else."""
    return entry.signer.signer_id if entry.signer and entry.signer.signer_id else f"\0{entry.entry_id}"


def _is_left_handed(entry: Entry, leads: dict[str, float]) -> bool:
    if entry.signer is not None and entry.signer.left_handed is not None:
        return entry.signer.left_handed
    return leads[_person(entry)] < _SURELY_LEFT


def _closest(judge: FormJudge, one: _Forms, other: _Forms, variants: Sequence[int]) -> tuple[int, int]:
    """The two clips of two variants that differ least, to be shown."""
    own, theirs = one.places[variants[0]], other.places[variants[1]]
    sides = (one.rows[variants[0]], other.rows[variants[1]])
    apart = judge.differences(*(Variants(rows, tuple(np.arange(len(rows))[:, None])) for rows in sides)).largest
    row, column = np.unravel_index(int(apart.max(axis=2).argmin()), apart.shape[:2])
    return int(own[row]), int(theirs[column])
