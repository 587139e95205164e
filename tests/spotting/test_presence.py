from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from signspot.domain.recordings import Entry, Word
from signspot.domain.results import Provenance
from signspot.domain.time import TimeAxis
from signspot.domain.tracks import EmbeddingTrack, EntryVectors, FloatArray, Floats, WindowGrid
from signspot.evaluation.calibration import Calibration, Logistic, PresenceFit
from signspot.spotting.peaks import limited_to
from signspot.spotting.presence import Candidates, Cohort, Judge, Rivals, candidates_of, evidence_of, standing
from signspot.spotting.search import similarity

APPLE, TREE, HOUSE = Word("apple"), Word("tree"), Word("house")
COHORT = Cohort(np.eye(3, dtype=np.float32), (APPLE, TREE, HOUSE))


def track(n_windows: int = 200, planted: int = 100) -> EmbeddingTrack:
    """Random directions, and an apple (the first axis) around one window."""
    rng = np.random.default_rng(0)
    rows: FloatArray = rng.normal(size=(n_windows, 3)).astype(np.float32)
    near = np.exp(-(((np.arange(n_windows) - planted) / 3) ** 2))[:, None]
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True) * (1 - near) + near * [[1, 0, 0]]).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    grid = WindowGrid(n_windows + 15)
    return EmbeddingTrack("v", grid, TimeAxis(np.arange(n_windows + 15) * 40.0), rows, "f")


def query(word: Word, vector: tuple[float, float, float]) -> EntryVectors:
    entries = (Entry(entry_id=f"{word}_1", word=word),)
    return EntryVectors(word, entries, np.array([vector], np.float32), "f")


def calibration(weights: tuple[float, ...] = (5.0, 5.0, 0.0, 0.0, 0.0, 0.0)) -> Calibration:
    logistic = Logistic((0.0,) * 6, (1.0,) * 6, weights, -4.0)
    fit = PresenceFit(logistic, None, np.array([0.9, 0.1]), 1.0)
    return Calibration(
        model="m", fingerprint="f", plain=fit, read=None, cohort=COHORT.vectors, cohort_words=COHORT.words, fitted_on=""
    )


def evidence(footage: EmbeddingTrack, word: EntryVectors, cohort: Cohort = COHORT) -> Floats:
    return evidence_of(candidates_of(similarity(footage, word)), word, Rivals.of(footage, [word], cohort), 1)


def test_evidence_is_what_a_slow_count_gives() -> None:
    footage, apple, tree = track(), query(APPLE, (1, 0, 0)), query(TREE, (0, 0.6, 0.8))
    rivals = Rivals.of(footage, [apple, tree], COHORT)
    found = candidates_of(similarity(footage, apple))
    assert 100 in found.windows.tolist()
    rows = footage.vectors.astype(np.float64)
    for window, numbers in zip(found.windows.tolist(), evidence_of(found, apple, rivals, 2), strict=True):
        row = rows[window]
        cosine, margin, rise, *counts = numbers.tolist()
        assert cosine == pytest.approx(row[0], abs=1e-5)
        # Its own word is no rival; the cohort and the other words of the query are.
        assert margin == pytest.approx(row[0] - max(row[1], row[2], 0.6 * row[1] + 0.8 * row[2]), abs=2e-5)
        assert rise == pytest.approx(row[0] - np.median(rows[:, 0]), abs=2e-5)
        assert counts == [np.log(200 // 16), 0, np.log(2)]


@pytest.mark.parametrize(("angle", "is_rival"), [(0.4, False), (0.5, True)])  # cosines of 0.92 and 0.88
def test_what_shows_the_same_sign_under_another_name_is_no_rival(angle: float, is_rival: bool) -> None:
    footage, apple = track(), query(APPLE, (1, 0, 0))
    twin = query(TREE, (float(np.cos(angle)), float(np.sin(angle)), 0))
    alone = Cohort(np.zeros((0, 3), np.float32), ())
    found = candidates_of(similarity(footage, apple))
    highest = Rivals.of(footage, [apple, twin], alone).highest(found, apple)
    assert (highest.max() > -1) == is_rival


def test_of_many_rivals_each_window_keeps_those_that_count() -> None:
    """More than are kept: the highest that is no clip of the word and shows another sign, or a bound for it."""
    footage, apple = track(), query(APPLE, (1, 0, 0))
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(200, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cohort = Cohort(vectors, tuple(APPLE if number % 3 else HOUSE for number in range(200)))
    found = candidates_of(similarity(footage, apple))
    highest = Rivals.of(footage, [apple], cohort).highest(found, apple)
    others = vectors[::3][vectors[::3, 0] < 0.6]
    exact = (footage.vectors[found.windows] @ others.T).max(axis=1)
    assert (highest >= exact - 1e-6).all() and (np.abs(highest - exact) < 1e-6).mean() >= 0.5


def test_a_longer_search_counts_by_its_windows_that_share_no_frame() -> None:
    """Only what was searched: around subtitles it is less than the video, and every fourth window is as good as all."""
    footage, short = track(), track(9, planted=4)  # the last hardly lasts as long as a sign
    fourth = replace(footage, grid=WindowGrid(812, stride=4), axis=TimeAxis(np.arange(812) * 40.0))
    word = query(APPLE, (1, 0, 0))
    part = limited_to(similarity(footage, word), (np.arange(200) >= 80) & (np.arange(200) < 144))
    for compared, own, n_searched in (
        (part, footage, 64 // 16),
        (similarity(fourth, word), fourth, 800 // 16),
        (similarity(short, word), short, 1),
    ):
        found = evidence_of(candidates_of(compared), word, Rivals.of(own, [word], COHORT), 1)
        assert len(found) and set(found[:, 3]) == {np.log(n_searched)}


def test_more_clips_of_a_word_are_more_chances_to_resemble_one() -> None:
    word = query(APPLE, (1, 0, 0))
    twice = replace(word, entries=word.entries * 2, vectors=np.repeat(word.vectors, 2, axis=0))
    assert set(evidence(track(), twice)[:, 4]) == {np.log(2)}


def test_a_search_around_subtitles_is_judged_by_the_fit_for_it() -> None:
    footage, known = track(), calibration()
    read = replace(known.plain, logistic=replace(known.plain.logistic, bias=-2.0))
    both = replace(known, read=read)
    words = (query(APPLE, (1, 0, 0)), query(TREE, (0, 1, 0)))
    judge = Judge.of(both, footage, words, is_read=True)
    assert judge.fit is read and judge.n_words == 1, "how many words the subtitles have says nothing about one of them"
    judge = Judge.of(both, footage, words, is_read=False)
    assert judge.fit is known.plain and judge.n_words == 2
    assert Judge.of(known, footage, words, is_read=True).fit is known.plain, "nothing else is known"


@pytest.mark.parametrize("level", [0.5, 0.123455, 0.999995])  # the last two lie between two decimals
@pytest.mark.parametrize("seed", range(5))
def test_where_nothing_moves_rounding_makes_no_peaks(level: float, seed: int) -> None:
    n, rng = 400, np.random.default_rng(seed)
    still = np.tile([level, (1 - level**2) ** 0.5, 0.0], (n, 1))
    sign = np.exp(-(((np.arange(n) - 200) / 6) ** 2))[:, None] * [[0.0, 0.0, 1.0]]
    rows = (still + sign) / np.linalg.norm(still + sign, axis=1, keepdims=True)
    compared = similarity(track(n), query(APPLE, (1, 0, 0)))
    ripple = rng.uniform(-3e-7, 3e-7, (n, 1))
    found = candidates_of(replace(compared, cosine=(rows[:, :1] + ripple).astype(np.float32)))
    # The curve dips at the sign, which shows something else, and is flat before and after it: two stretches, two tops.
    assert len(found) == 2


def test_a_word_without_rivals_is_held_against_the_lowest_cosine() -> None:
    alone = Cohort(np.eye(3, dtype=np.float32)[:1], (APPLE,))
    found = evidence(track(), query(APPLE, (1, 0, 0)), alone)
    assert found[:, 1] == pytest.approx(found[:, 0] + 1)


def test_the_planted_sign_is_the_surest_and_being_anywhere_is_at_least_as_sure() -> None:
    footage, apple = track(), query(APPLE, (1, 0, 0))
    judge = Judge.of(calibration(), footage, [apple], is_read=False)
    judged = judge(candidates_of(similarity(footage, apple)), apple)
    assert judged.candidates.windows[judged.probability.argmax()] == 100
    assert judged.anywhere.probability >= judged.probability.max()
    provenance = Provenance(media_sha256="0" * 64, model="m", fingerprint="f", dictionary="d")
    (found,) = judged.spottings(judged.probability >= judged.probability.max(), provenance, None)
    assert found.frame == 108
    assert found.presence is not None
    assert found.presence.probability == judged.probability.max()
    assert found.presence.calibration == calibration().name


def test_a_calibration_of_another_model_is_not_used() -> None:
    other = replace(calibration(), fingerprint="g")
    with pytest.raises(ValueError, match="vectors by 'f', not 'g'"):
        Judge.of(other, track(), [query(APPLE, (1, 0, 0))], is_read=False)


def planted(**signs: tuple[int, float]) -> tuple[Candidates, ...]:
    """One candidate of each word: at a window, with a cosine."""
    made = []
    for word, (window, cosine) in signs.items():
        curve = np.full((200, 1), -np.inf, np.float32)
        curve[window] = cosine
        made.append(candidates_of(replace(similarity(track(), query(Word(word), (1, 0, 0))), cosine=curve)))
    return tuple(made)


@pytest.mark.parametrize(
    ("apart", "n_standing"),
    [(0, 1), (4, 1), (5, 2), (40, 2)],  # of ten frames, five apart share five, which is not over half
)
def test_a_moment_is_given_to_the_stronger_of_two_words(apart: int, n_standing: int) -> None:
    found = planted(apple=(100, 0.7), tree=(100 + apart, 0.8))
    apple, tree = standing(found, (query(APPLE, (1, 0, 0)), query(TREE, (0, 1, 0))))
    assert (len(apple), len(tree)) == (n_standing - 1, 1)


def test_equally_strong_words_are_told_apart_by_their_order() -> None:
    words = (query(APPLE, (1, 0, 0)), query(TREE, (0, 1, 0)))
    assert [len(one) for one in standing(planted(apple=(100, 0.7), tree=(100, 0.7)), words)] == [1, 0]


def test_two_names_of_one_sign_leave_each_other_alone() -> None:
    words = (query(APPLE, (1, 0, 0)), query(TREE, (0.95, float(np.sqrt(1 - 0.95**2)), 0)))
    assert [len(one) for one in standing(planted(apple=(100, 0.7), tree=(102, 0.8)), words)] == [1, 1]


def test_who_lost_its_own_moment_takes_none_from_others() -> None:
    """house beats tree, which would have beaten apple; house is too far from apple to do so itself."""
    words = (query(APPLE, (1, 0, 0)), query(TREE, (0, 1, 0)), query(HOUSE, (0, 0, 1)))
    found = standing(planted(apple=(100, 0.6), tree=(104, 0.7), house=(108, 0.8)), words)
    assert [len(one) for one in found] == [1, 0, 1]


def test_a_word_does_not_compete_with_itself() -> None:
    footage, apple = track(), query(APPLE, (1, 0, 0))
    found = candidates_of(similarity(footage, apple))
    assert len(standing((found,), (apple,))[0]) == len(found) > 1
