"""Calibration on tracks whose truth is planted: probabilities hold for videos that were not fitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import Annotation, Dictionary, Entry, Subtitle, Word
from signspot.domain.time import MillisSpan, TimeAxis
from signspot.domain.tracks import EmbeddingTrack, EntryVectors, WindowGrid
from signspot.embedding.pictures import ColourModel
from signspot.errors import InputError
from signspot.evaluation.calibration import reliability
from signspot.workflows.calibrate import (
    RATES,
    SHOWN,
    CalibrateRequest,
    CalibrationReport,
    Examples,
    LabelledVideo,
    _fitted,
    _held_out,
    _plot_held_out,
    cohort_of,
    searched_examples,
)
from signspot.workflows.spot import Query

WORDS = tuple(Word(f"word{number:02}") for number in range(12))
DIM = 24
MODEL = ColourModel()
REQUEST = CalibrateRequest(corpus=Path(), dictionary=Path(), complete=True)


def unit(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def query() -> Query:
    rng = np.random.default_rng(7)
    entries = {word: (Entry(entry_id=f"{word}_1", word=word),) for word in WORDS}
    vectors = tuple(
        EntryVectors(word, entries[word], unit(rng.normal(size=(1, DIM))), MODEL.fingerprint) for word in WORDS
    )
    return Query(vectors, Dictionary("planted", entries))


def video(seed: int, query: Query, n_frames: int = 1500) -> LabelledVideo:
    """Smooth noise, and every 60 frames a sign, blurred more or less, annotated where it ends and subtitled."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_frames, DIM))
    for _ in range(4):
        noise = (noise + np.roll(noise, 1, axis=0) + np.roll(noise, -1, axis=0)) / 3
    rows = noise / noise.std() / DIM**0.5
    annotations, subtitles = [], []
    for centre in range(40, n_frames - 40, 60):
        number = int(rng.integers(len(WORDS)))
        near = np.exp(-(((np.arange(n_frames) - centre) / 4) ** 2))[:, None]
        rows += near * query.words[number].vectors[0] * rng.uniform(0.3, 2.5)
        annotations.append(Annotation(f"v{seed}", WORDS[number], centre + 12))
        named = {WORDS[number], *(WORDS[i] for i in rng.integers(len(WORDS), size=2))}
        subtitles.append(Subtitle(MillisSpan.of(centre * 40 - 800, centre * 40 + 1200), " ".join(sorted(named))))
    grid = WindowGrid(n_frames + 15)
    axis = TimeAxis(np.arange(n_frames + 15) * 40.0)
    track = EmbeddingTrack(f"v{seed}", grid, axis, unit(rows), MODEL.fingerprint)
    return LabelledVideo(track, tuple(annotations), tuple(subtitles), seed)


@pytest.fixture(scope="module")
def videos(query: Query) -> list[LabelledVideo]:
    return [video(seed, query) for seed in range(4)]


@pytest.fixture(scope="module")
def report(query: Query, videos: list[LabelledVideo]) -> CalibrationReport:
    return _fitted(videos, query, MODEL, REQUEST)


def test_the_report_says_what_was_held_out(report: CalibrationReport) -> None:
    assert report.n_groups == 4
    assert report.n_right >= 50
    assert report.n_wrong > 5 * report.n_right  # of those that keep their moment
    assert report.expected_error is not None
    assert report.expected_error < 0.15  # of some hundred findings
    assert report.expected_error_read is not None


def test_a_sign_is_likelier_the_more_it_looks_like_its_word_and_the_less_like_others(query: Query) -> None:
    many = [video(seed, query) for seed in range(16)]  # of four, what the competition leaves of margins is chance
    weights = dict(_fitted(many, query, MODEL, REQUEST).as_json()["weights"])  # type: ignore[call-overload]
    assert weights["cosine"] > 0
    assert weights["margin to other words"] > 0


def test_promises_and_false_alarms_hold_for_videos_that_were_not_fitted(
    report: CalibrationReport, query: Query
) -> None:
    fit = report.calibration.plain
    others = [video(seed, query) for seed in range(10, 16)]
    examples = searched_examples(others, query, cohort_of(query.words), REQUEST, is_read=False)
    probability = fit.probability(examples.evidence)
    shown = probability >= SHOWN
    assert reliability(probability[shown], examples.right[shown]).expected_error < 0.1
    rate = 30.0
    alarms = (probability[~examples.right] >= fit.least_presence(rate)).sum() / examples.word_hours.sum()
    assert rate / 2 < alarms < rate * 2


def test_near_a_subtitle_that_mentions_it_a_sign_is_likelier(report: CalibrationReport) -> None:
    calibration = report.calibration
    assert calibration.read is not None
    evidence = np.array([[0.6, 0.1, 0.5, np.log(30), 0.0, 0.0]])
    assert calibration.read.probability(evidence) > calibration.plain.probability(evidence)


def test_unclaimed_peaks_near_a_mention_are_left_out_unless_all_signs_are_annotated(
    query: Query, videos: list[LabelledVideo]
) -> None:
    cohort = cohort_of(query.words)
    sparse = CalibrateRequest(corpus=Path(), dictionary=Path())
    known = searched_examples(videos, query, cohort, sparse, is_read=False)
    everything = searched_examples(videos, query, cohort, REQUEST, is_read=False)
    assert known.right.sum() == everything.right.sum()
    assert len(known.right) < len(everything.right)
    assert known.word_hours.sum() < everything.word_hours.sum()
    assert _fitted(videos, query, MODEL, sparse).calibration.read is None


def test_a_held_out_video_is_judged_by_a_fit_that_never_saw_it(query: Query, videos: list[LabelledVideo]) -> None:
    examples = searched_examples(videos, query, cohort_of(query.words), REQUEST, is_read=False)
    judged = _held_out(examples, "logistic")
    assert judged is not None
    own = examples.group == 2
    by_hand = examples.of_groups(np.arange(4) != 2).fit("logistic").probability(examples.evidence[own])
    assert (judged.probability[own] == by_hand).all()
    alone = examples.of_groups(np.arange(4) == 2)
    assert _held_out(alone, "logistic") is None


def test_false_alarms_of_held_out_videos_are_those_a_slow_count_gives(
    query: Query, videos: list[LabelledVideo], report: CalibrationReport
) -> None:
    judged = report.held_out
    assert judged is not None
    examples = searched_examples(videos, query, cohort_of(query.words), REQUEST, is_read=False)
    fits = [examples.of_groups(np.arange(4) != group).fit("auto") for group in range(4)]
    countable = [rate for rate in RATES if rate >= max(fit.lowest_rate for fit in fits)]
    assert judged.asked.tolist() == countable
    assert 10.0 in countable
    for rate, counted in zip(countable, judged.counted.tolist(), strict=True):
        n = 0
        for row, right, group in zip(examples.evidence, examples.right, examples.group, strict=True):
            fit = fits[group]
            n += not right and fit.probability(row[None])[0] >= fit.least_presence(rate)
        assert counted == pytest.approx(n / examples.word_hours.sum())
    assert report.as_json()["false_alarms_held_out"] == judged.as_json()


def test_promises_are_drawn_where_something_was_held_out(report: CalibrationReport, tmp_path: Path) -> None:
    _plot_held_out(report, tmp_path / "held.png")
    assert (tmp_path / "held.png").read_bytes()[:4] == b"\x89PNG"
    alone = replace(report, held_out=None, held_out_read=None)
    with pytest.raises(InputError, match="nothing can be held out"):
        _plot_held_out(alone, tmp_path / "alone.png")


def test_pools_are_drawn_only_where_there_is_enough_to_pool(query: Query, videos: list[LabelledVideo]) -> None:
    few = searched_examples(videos, query, cohort_of(query.words), REQUEST, is_read=False)
    assert few.right.sum() < 1000
    assert few.fit("auto").isotonic is None
    many = Examples.joined([few] * (1000 // int(few.right.sum()) + 1))
    assert many.fit("auto").isotonic is not None
    assert many.fit("logistic").isotonic is None


def test_hours_are_counted_for_each_word(query: Query, videos: list[LabelledVideo]) -> None:
    examples = searched_examples(videos[:1], query, cohort_of(query.words), REQUEST, is_read=False)
    assert examples.word_hours.sum() == pytest.approx(len(WORDS) * 1500 * 40 / 3_600_000)


def test_a_corpus_without_enough_signs_is_refused(query: Query) -> None:
    with pytest.raises(InputError, match="too few to calibrate on"):
        _fitted([video(0, query, 200)], query, MODEL, REQUEST)
