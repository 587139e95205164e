"""A judge that learned from other forms tells one form from two, and dictionaries are compared by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.lib.forms import (
    PARTS,
    PATH,
    PLACE,
    RAISED,
    ROW,
    SEEN,
    SHAPE,
    SIDE,
    TURN,
    FormFriends,
    FormJudge,
    agreement,
    as_right_handers,
    evidence,
    fit_judge,
    form_friends,
    read_judge,
    variants_of,
    write_judge,
)
from safetensors.numpy import load_file, save_file

from signspot.domain.recordings import Entry, Signer, normalise
from signspot.domain.tracks import FloatArray
from signspot.errors import FormatError
from signspot.spotting.friends import Gallery, Relation

NOISE = 0.03


def forms(n: int, rng: np.random.Generator) -> FloatArray:
    """(n, 782) made-up forms of one hand: a place, a path, a turn of the palm, a shape."""
    rows = np.zeros((n, ROW), np.float32)
    rows[:, PLACE] = rng.normal(0, 0.5, (n, 18))
    rows[:, PATH] = np.cumsum(rng.normal(0, 0.08, (n, 32, 3)), axis=1).reshape(n, -1)
    rows[:, TURN] = np.tile(rng.normal(0, 0.6, (n, 9)), 4)
    rows[:, SHAPE] = np.tile(rng.normal(0, 0.4, (n, 60)), 4)
    rows[:, RAISED] = 1
    return rows


def clips(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The same by people, who differ a little."""
    noise = rng.normal(0, NOISE, rows.shape).astype(np.float32)
    noise[..., RAISED:] = 0
    return rows + noise


def changed(rows: FloatArray, part: slice, rng: np.random.Generator) -> FloatArray:
    """Minimal pairs: the same forms with one part of other ones."""
    other = rows.copy()
    other[:, part] = forms(len(rows), rng)[:, part]
    return other


@pytest.fixture(scope="module")
def judge() -> FormJudge:
    rng = np.random.default_rng(0)
    half = forms(60, rng)
    known = half.copy()
    for start, part in zip(range(0, 60, 15), (PLACE, PATH, TURN, SHAPE), strict=True):
        known[start : start + 15] = changed(half[start : start + 15], part, rng)
    rows = clips(np.repeat(np.concatenate([half, known])[:, None], 8, axis=1), rng)
    return fit_judge(rows, np.c_[np.arange(60), np.arange(60) + 60], rng)


def seen(rows: FloatArray) -> FloatArray:
    """Rows as `form_row` gives them, of right-handers."""
    return np.concatenate([rows, np.full_like(rows, 7.0), np.ones((len(rows), 1), np.float32)], axis=1)


def gallery(words: str, rows: FloatArray, language: str) -> Gallery:
    entries = tuple(
        Entry(entry_id=f"{language}-{word}-{number}", word=normalise(word), language=language)
        for number, word in enumerate(words)
    )
    return Gallery(entries, seen(rows))


def relations(pairs: tuple[FormFriends, ...]) -> dict[tuple[str, str], Relation]:
    return {(pair.entry.word, pair.other.word): pair.relation for pair in pairs}


def test_planted_pairs_are_told_from_minimal_pairs_and_the_part_that_differs_is_named(judge: FormJudge) -> None:
    rng = np.random.default_rng(1)
    known = forms(5, rng)
    first = gallery("abcde", clips(known, rng), "qaa")
    # a is a cognate; b is another word there; c has a minimal pair; d and e are in both, and differ in one part.
    theirs = known.copy()
    for row, part in ((2, PATH), (3, PLACE), (4, SHAPE)):
        theirs[row : row + 1] = changed(known[row : row + 1], part, rng)
    pairs = form_friends(first, gallery("axyde", clips(theirs, rng), "qab"), judge, 0.0)
    assert relations(pairs) == {
        ("a", "a"): Relation.COGNATE,
        ("b", "x"): Relation.FALSE_FRIEND,
        ("d", "d"): Relation.DIFFERENT_FORM,
        ("e", "e"): Relation.DIFFERENT_FORM,
    }
    differ = {pair.entry.word: pair.differ for pair in pairs}
    assert differ["d"] == ("place",) and differ["e"] == ("hand shape",)
    (d,) = (pair for pair in pairs if pair.entry.word == "d")
    assert d.likeness.startswith("same movement, palm, hand shape and other hand; place differs; log odds -")


def test_all_clips_of_a_variant_speak_for_it_and_the_closest_two_are_shown(judge: FormJudge) -> None:
    rng = np.random.default_rng(2)
    known = forms(1, rng)
    own = clips(np.repeat(known, 3, axis=0), rng)
    own[0, PLACE] += 0.12  # one signer signs it aside
    first, second = gallery("bbb", own, "qaa"), gallery("x", clips(known, rng), "qab")
    (pair,) = form_friends(first, second, judge, -30)
    assert pair.entry.entry_id != "qaa-b-0"
    (alone,) = form_friends(Gallery(first.entries[:1], first.vectors[:1]), second, judge, -30)
    assert alone.closeness < pair.closeness


def test_exchanging_the_dictionaries_exchanges_the_pairs(judge: FormJudge) -> None:
    rng = np.random.default_rng(3)
    known = forms(5, rng)
    first, second = gallery("abcde", clips(known, rng), "qaa"), gallery("avwxy", clips(known[::-1], rng), "qab")
    there = form_friends(first, second, judge, 0.0)
    back = relations(form_friends(second, first, judge, 0.0))
    assert relations(there) == {(word, other): relation for (other, word), relation in back.items()}
    assert len([pair for pair in there if pair.relation is Relation.FALSE_FRIEND]) == 5


def test_a_second_hand_that_only_one_sign_has_makes_two_forms(judge: FormJudge) -> None:
    rng = np.random.default_rng(4)
    known = forms(1, rng)
    both = known.copy()
    both[:, SIDE:] = known[:, :SIDE]
    assert form_friends(gallery("a", known, "qaa"), gallery("a", known, "qab"), judge)[0].differ == ()
    (pair,) = form_friends(gallery("a", known, "qaa"), gallery("a", both, "qab"), judge)
    assert pair.differ == ("other hand",)


def test_who_leads_with_which_hand_is_taken_from_the_dictionary_or_from_all_clips_of_a_signer() -> None:
    rows = np.zeros((6, SEEN), np.float32)
    rows[:, ROW : 2 * ROW] = 1  # the mirror image
    rows[:, -1] = (-2, 0.1, 2, -2, -0.1, -2)
    people = (Signer("left"), Signer("left"), Signer("said", True), Signer("said", False), None, None)
    entries = tuple(
        Entry(entry_id=str(number), word=normalise("a"), signer=signer) for number, signer in enumerate(people)
    )
    assert as_right_handers(Gallery(entries, rows))[:, 0].tolist() == [1, 1, 1, 0, 0, 1]
    with pytest.raises(ValueError, match="no parts of signs"):
        as_right_handers(Gallery(entries, rows[:, 1:]))


def test_more_difference_in_any_part_is_less_likely_one_form(judge: FormJudge) -> None:
    rng = np.random.default_rng(5)
    known = forms(1, rng)
    for part in (PLACE, PATH, TURN, SHAPE):
        other = changed(known, part, rng)
        steps = [variants_of([known + np.float32(share) * (other - known)]) for share in (0, 0.5, 1)]
        odds = [float(judge.log_odds(judge.differences(variants_of([known]), step))[0, 0]) for step in steps]
        assert odds[0] > odds[1] > odds[2], part


def test_agreement_names_every_part_once() -> None:
    agree, differ = agreement(np.array([0.5, 2.0, 1.0, 7.0, 0.0], np.float32))
    assert differ == ("movement", "hand shape") and set(agree) | set(differ) == set(PARTS)


def test_a_judge_survives_its_file(judge: FormJudge, tmp_path: Path) -> None:
    write_judge(judge, tmp_path / "judge.safetensors")
    again = read_judge(tmp_path / "judge.safetensors")
    rng = np.random.default_rng(6)
    one, other = (variants_of([clips(forms(2, rng), rng) for _ in range(3)]) for _ in range(2))
    np.testing.assert_array_equal(
        again.log_odds(again.differences(one, other)), judge.log_odds(judge.differences(one, other))
    )
    assert evidence(judge.differences(one, other)).shape == (3, 3, len(again.logistic.weights))


def test_a_damaged_judge_is_refused_in_one_line(judge: FormJudge, tmp_path: Path) -> None:
    path = tmp_path / "judge.safetensors"
    write_judge(judge, path)
    whole = load_file(path)
    for name in whole:
        save_file({key: values for key, values in whole.items() if key != name}, path)
        with pytest.raises(FormatError, match="is damaged or no judge of forms"):
            read_judge(path)
    for name, values in (("usual", -whole["usual"]), ("axes.place", whole["axes.place"][1:])):
        save_file(whole | {name: np.ascontiguousarray(values)}, path)
        with pytest.raises(FormatError, match=r"is a judge of (other|impossible)"):
            read_judge(path)
    path.write_bytes(b"nothing")
    with pytest.raises(FormatError, match="is damaged or no judge of forms"):
        read_judge(path)
    with pytest.raises(FormatError, match="no such file"):
        read_judge(tmp_path / "gone")


def test_an_empty_dictionary_has_no_friends_and_a_judge_needs_pairs(judge: FormJudge) -> None:
    empty = Gallery((), np.zeros((0, SEEN), np.float32))
    assert form_friends(empty, gallery("a", forms(1, np.random.default_rng(0)), ""), judge) == ()
    with pytest.raises(ValueError, match="cannot learn"):
        fit_judge(np.zeros((3, 4, ROW), np.float32), np.zeros((0, 2), np.int64), np.random.default_rng(0))
