"""A judge that learned from other forms tells one form from two, and dictionaries are compared by it."""

from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.dictionary import Entry
from signspot.domain.tracks import FloatArray
from signspot.domain.words import normalise
from signspot.spotting.false_friends import Relation, Shelf
from signspot.spotting.form_fit import fit_judge
from signspot.spotting.form_friends import form_friends
from signspot.spotting.form_parts import HAND_NUMBERS, ROW, FormJudge

SIDE = (ROW - 1) // 2


def forms(n: int, rng: np.random.Generator) -> FloatArray:
    """(n, 469) made-up forms of one hand: a place, a path, a shape."""
    rows = np.zeros((n, ROW), np.float32)
    rows[:, :3] = rng.normal(0, 0.5, (n, 3))
    rows[:, 3 : SIDE - HAND_NUMBERS] = np.cumsum(rng.normal(0, 0.05, (n, SIDE - HAND_NUMBERS - 3)), axis=1)
    rows[:, SIDE - HAND_NUMBERS : SIDE] = np.tile(rng.normal(0, 0.4, (n, 60)), 3)
    return rows


def clips(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The same by people, who differ a little."""
    noise = rng.normal(0, 0.03, rows.shape).astype(np.float32)
    noise[..., SIDE:] = 0
    return rows + noise


def elsewhere(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Minimal pairs: the same forms at other places."""
    moved = rows.copy()
    moved[:, :3] += rng.choice([-0.4, 0.4], (len(rows), 3))
    return moved


@pytest.fixture(scope="module")
def judge() -> FormJudge:
    rng = np.random.default_rng(0)
    half = forms(40, rng)
    known = np.concatenate([half, elsewhere(half, rng)])
    rows = clips(np.repeat(known[:, None], 4, axis=1), rng)
    return fit_judge(rows, np.c_[np.arange(40), np.arange(40) + 40], rng)


def shelf(words: str, rows: FloatArray, language: str) -> Shelf:
    entries = tuple(
        Entry(entry_id=f"{language}-{word}-{number}", word=normalise(word), language=language)
        for number, word in enumerate(words)
    )
    return Shelf(entries, rows)


def test_planted_pairs_are_told_from_minimal_pairs(judge: FormJudge) -> None:
    rng = np.random.default_rng(1)
    known = forms(4, rng)
    first = shelf("abcd", clips(known, rng), "qaa")
    # a is a cognate; b is another word there; c has a minimal pair; d is in both, and signed elsewhere.
    theirs = np.concatenate([known[:2], elsewhere(known[2:], rng)])
    second = shelf("axyd", clips(theirs, rng), "qab")
    said = {(pair.entry.word, pair.other.word): pair.relation for pair in form_friends(first, second, judge, 0.0)}
    assert said == {
        ("a", "a"): Relation.COGNATE,
        ("b", "x"): Relation.FALSE_FRIEND,
        ("d", "d"): Relation.DIFFERENT_FORM,
    }


def test_all_clips_of_a_variant_speak_for_it_and_the_closest_two_are_shown(judge: FormJudge) -> None:
    rng = np.random.default_rng(2)
    known = forms(1, rng)
    own = clips(np.repeat(known, 3, axis=0), rng)
    own[0, :3] += 0.06  # one signer signs it aside
    first, second = shelf("bbb", own, "qaa"), shelf("x", clips(known, rng), "qab")
    (pair,) = form_friends(first, second, judge, 0.0)
    assert pair.entry.entry_id != "qaa-b-0"
    assert pair.cosine is None and pair.likeness.startswith("log odds")
    (alone,) = form_friends(Shelf(first.entries[1:], own[1:]), second, judge, 0.0)
    assert alone.closeness > pair.closeness


def test_exchanging_the_dictionaries_exchanges_the_pairs(judge: FormJudge) -> None:
    rng = np.random.default_rng(3)
    known = forms(5, rng)
    first, second = shelf("abcde", clips(known, rng), "qaa"), shelf("avwxy", clips(known[::-1], rng), "qab")
    there = {(p.entry.word, p.other.word, p.relation) for p in form_friends(first, second, judge, 0.0)}
    back = {(p.other.word, p.entry.word, p.relation) for p in form_friends(second, first, judge, 0.0)}
    assert there == back
    assert len([one for one in there if one[2] is Relation.FALSE_FRIEND]) == 5


def test_an_empty_dictionary_has_no_friends_and_a_judge_needs_pairs(judge: FormJudge) -> None:
    empty = Shelf((), np.zeros((0, ROW), np.float32))
    assert form_friends(empty, shelf("a", forms(1, np.random.default_rng(0)), ""), judge) == ()
    with pytest.raises(ValueError, match="cannot learn"):
        fit_judge(np.zeros((3, 4, ROW), np.float32), np.zeros((0, 2), np.int64), np.random.default_rng(0))
