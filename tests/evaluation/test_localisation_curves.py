from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve

from signspot.domain.time import Tolerance
from signspot.domain.tracks import Bools
from signspot.errors import InputError
from signspot.evaluation.localisation import Footage, _detection_curve, spotting_benchmark

detections = st.lists(st.tuples(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 0.75, 1.0]), st.booleans()), max_size=15)


@given(detections, st.integers(0, 4))
def test_the_counts_at_a_threshold_are_the_detections_at_or_above_it(
    judged: list[tuple[float, bool]], n_missed: int
) -> None:
    n_positives = sum(right for _, right in judged) + n_missed
    curve = _detection_curve([s for s, _ in judged], [r for _, r in judged], n_positives)
    assert curve.thresholds.tolist() == sorted({s for s, _ in judged}, reverse=True)
    for threshold, n_right, n_wrong in zip(curve.thresholds, curve.n_right, curve.n_wrong, strict=True):
        assert n_right == sum(right and score >= threshold for score, right in judged)
        assert n_wrong == sum(not right and score >= threshold for score, right in judged)


@pytest.mark.parametrize("decimals", [1, 15])  # with many ties, and without
@pytest.mark.parametrize("seed", range(5))
def test_precision_recall_and_ap_agree_with_scikit_learn_ties_included(seed: int, decimals: int) -> None:
    rng = np.random.default_rng(seed)
    scores, right = rng.normal(size=300).round(decimals), rng.random(300) < 0.2
    curve = _detection_curve(scores, right)
    precision, recall, thresholds = precision_recall_curve(right, scores)
    assert curve.thresholds == pytest.approx(thresholds[::-1])
    assert curve.precision == pytest.approx(precision[-2::-1], abs=1e-9)
    assert curve.recall == pytest.approx(recall[-2::-1], abs=1e-9)
    assert curve.average_precision == pytest.approx(average_precision_score(right, scores), abs=1e-9)


def test_a_curve_computed_by_hand() -> None:
    curve = _detection_curve([0.9, 0.8, 0.8, 0.3], [True, True, False, False], n_positives=4)
    assert curve.thresholds.tolist() == [0.9, 0.8, 0.3]
    assert curve.precision == pytest.approx([1, 2 / 3, 1 / 2])
    assert curve.recall == pytest.approx([1 / 4, 1 / 2, 1 / 2])
    assert curve.f1 == pytest.approx([2 / 5, 4 / 7, 4 / 8])
    assert curve.average_precision == pytest.approx(1 / 4 + 1 / 4 * 2 / 3)
    assert curve.false_alarms_per_hour(hours=0.5).tolist() == [0, 2, 4]
    assert curve.recall_at_false_alarms(0, hours=0.5) == 0.25
    assert curve.recall_at_false_alarms(2, hours=0.5) == 0.5
    assert (curve.recall_at_precision(0.6), curve.recall_at_precision(0.99)) == (0.5, 0.25)


def test_nothing_detected_finds_nothing() -> None:
    curve = _detection_curve([], [], n_positives=3)
    assert (len(curve.thresholds), curve.average_precision, curve.recall_at_precision(0.5)) == (0, 0.0, 0.0)
    assert _detection_curve([0.5], [False]).average_precision == 0.0


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(InputError, match="2 right detections of 1 signs"):
        _detection_curve([0.1, 0.2], [True, True], n_positives=1)
    with pytest.raises(InputError, match="one number and one truth"):
        _detection_curve([np.nan], [True])
    with pytest.raises(InputError, match="0 hours"):
        _detection_curve([0.5], [True]).false_alarms_per_hour(0)


def footage(rng: np.random.Generator, n_windows: int = 200, n_classes: int = 70) -> Footage:
    labels = rng.integers(0, n_classes - 5, size=20)  # the last 5 classes are never signed
    return Footage(
        centres=np.arange(8, 8 + n_windows),
        cosine=rng.normal(size=(n_windows, n_classes)).astype(np.float32),
        label_class=labels,
        label_frame=rng.integers(0, n_windows, size=20),
    )


def right_windows(one: Footage, number: int, tolerance: Tolerance) -> Bools:
    frames = [f for c, f in zip(one.label_class, one.label_frame, strict=True) if c == number]
    return np.array([any(centre in tolerance.around(int(f)) for f in frames) for centre in one.centres])


def test_the_spotting_benchmark_is_the_ap_of_scikit_learn_for_each_class_over_all_windows() -> None:
    rng = np.random.default_rng(0)
    parts = [footage(rng), footage(rng, n_windows=37)]
    scores = spotting_benchmark(parts)
    shown = [c for c in range(70) if any(right_windows(one, c, Tolerance()).any() for one in parts)]
    assert scores.classes.tolist() == shown
    for number, ap, count in zip(scores.classes, scores.values, scores.counts, strict=True):
        truth = np.concatenate([right_windows(one, int(number), Tolerance()) for one in parts])
        heights = np.concatenate([one.cosine[:, number] for one in parts])
        assert count == truth.sum()
        assert ap == pytest.approx(average_precision_score(truth, heights), abs=1e-9)
    assert scores.mean == pytest.approx(scores.values.mean())


def test_the_spotting_benchmark_gives_truth_one_hundred_per_cent_and_leaves_out_classes_never_signed() -> None:
    rng = np.random.default_rng(1)
    drawn = footage(rng)
    truth = np.stack([right_windows(drawn, c, Tolerance()) for c in range(70)], axis=1).astype(np.float32)
    scores = spotting_benchmark([Footage(drawn.centres, truth, drawn.label_class, drawn.label_frame)])
    assert (scores.mean, scores.classes.max() < 65) == (1.0, True)


def test_footage_that_does_not_fit_is_refused() -> None:
    rng = np.random.default_rng(2)
    with pytest.raises(InputError, match="same classes"):
        spotting_benchmark([footage(rng), footage(rng, n_classes=71)])
    with pytest.raises(InputError, match="same classes"):
        spotting_benchmark([])
    with pytest.raises(InputError, match="do not fit the classes"):
        Footage(np.arange(3), np.zeros((3, 2), np.float32), np.array([2]), np.array([0]))
    with pytest.raises(InputError, match="one row and one centre"):
        Footage(np.arange(4), np.zeros((3, 2), np.float32), np.array([1]), np.array([0]))
