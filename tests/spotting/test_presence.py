from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from signspot.domain.recordings import Entry, Word
from signspot.domain.results import Provenance
from signspot.domain.time import TimeAxis
from signspot.domain.tracks import EmbeddingTrack, EntryVectors, FloatArray, WindowGrid
from signspot.evaluation.calibration import Calibration, Logistic, PresenceFit
from signspot.spotting.peaks import limited_to
from signspot.spotting.presence import Cohort, Judge, candidates_of
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


def calibration(weights: tuple[float, ...] = (5.0, 5.0, 0.0, 0.0)) -> Calibration:
    logistic = Logistic((0.0,) * 4, (1.0,) * 4, weights, -4.0)
    fit = PresenceFit(logistic, None, np.array([0.9, 0.1]), 1.0)
    return Calibration(
        model="m", fingerprint="f", plain=fit, read=None, cohort=COHORT.vectors, cohort_words=COHORT.words, fitted_on=""
    )


def test_evidence_is_what_a_slow_count_gives() -> None:
    footage = track()
    compared = similarity(footage, query(APPLE, (1, 0, 0)))
    found = candidates_of(compared, footage, COHORT)
    assert 100 in found.windows.tolist()
    for window, (cosine, margin, n_windows, n_entries) in zip(found.windows.tolist(), found.evidence, strict=True):
        row = footage.vectors[window].astype(np.float64)
        assert cosine == pytest.approx(row[0], abs=1e-5)
        assert margin == pytest.approx(row[0] - max(row[1], row[2]), abs=2e-5)  # its own word is no rival
        assert (n_windows, n_entries) == (np.log(200 // 16), 0)


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
        found = candidates_of(compared, own, COHORT)
        assert len(found) and set(found.evidence[:, 2]) == {np.log(n_searched)}


def test_more_clips_of_a_word_are_more_chances_to_resemble_one() -> None:
    footage, word = track(), query(APPLE, (1, 0, 0))
    twice = replace(word, entries=word.entries * 2, vectors=np.repeat(word.vectors, 2, axis=0))
    found = candidates_of(similarity(footage, twice), footage, COHORT)
    assert set(found.evidence[:, 3]) == {np.log(2)}


def test_a_search_around_subtitles_is_judged_by_the_fit_for_it() -> None:
    footage, known = track(), calibration()
    read = replace(known.plain, logistic=replace(known.plain.logistic, bias=-2.0))
    both = replace(known, read=read)
    assert Judge.of(both, footage, is_read=True).fit is read
    assert Judge.of(both, footage, is_read=False).fit is known.plain
    assert Judge.of(known, footage, is_read=True).fit is known.plain, "nothing else is known"


@pytest.mark.parametrize("level", [0.5, 0.123455, 0.999995])  # the last two lie between two decimals
@pytest.mark.parametrize("seed", range(5))
def test_where_nothing_moves_rounding_makes_no_peaks(level: float, seed: int) -> None:
    n, rng = 400, np.random.default_rng(seed)
    still = np.tile([level, (1 - level**2) ** 0.5, 0.0], (n, 1))
    sign = np.exp(-(((np.arange(n) - 200) / 6) ** 2))[:, None] * [[0.0, 0.0, 1.0]]
    footage = track(n)
    rows = (still + sign) / np.linalg.norm(still + sign, axis=1, keepdims=True)
    compared = similarity(footage, query(APPLE, (1, 0, 0)))
    ripple = rng.uniform(-3e-7, 3e-7, (n, 1))
    found = candidates_of(replace(compared, cosine=(rows[:, :1] + ripple).astype(np.float32)), footage, COHORT)
    # The curve dips at the sign, which shows something else, and is flat before and after it: two stretches, two tops.
    assert len(found) == 2


def test_a_word_without_rivals_is_held_against_the_lowest_cosine() -> None:
    footage = track()
    alone = Cohort(np.eye(3, dtype=np.float32)[:1], (APPLE,))
    found = candidates_of(similarity(footage, query(APPLE, (1, 0, 0))), footage, alone)
    assert found.evidence[:, 1] == pytest.approx(found.evidence[:, 0] + 1)


def test_the_planted_sign_is_the_surest_and_being_anywhere_is_at_least_as_sure() -> None:
    footage = track()
    judge = Judge.of(calibration(), footage, is_read=False)
    judged = judge(similarity(footage, query(APPLE, (1, 0, 0))))
    assert judged.windows[judged.probability.argmax()] == 100
    assert judged.anywhere.probability >= judged.probability.max()
    provenance = Provenance(media_sha256="0" * 64, model="m", fingerprint="f", dictionary="d")
    shown = judged.probability >= judged.probability.max()
    (found,) = judged.spottings(similarity(footage, query(APPLE, (1, 0, 0))), shown, provenance, None)
    assert found.frame == 108
    assert found.presence is not None
    assert found.presence.probability == judged.probability.max()
    assert found.presence.calibration == calibration().name


def test_a_calibration_of_another_model_is_not_used() -> None:
    footage = track()
    other = Calibration(
        model="m",
        fingerprint="g",
        plain=calibration().plain,
        read=None,
        cohort=COHORT.vectors,
        cohort_words=COHORT.words,
        fitted_on="",
    )
    with pytest.raises(ValueError, match="vectors by 'f', not 'g'"):
        Judge.of(other, footage, is_read=False)
