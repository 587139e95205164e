from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.tracks import FloatArray
from signspot.evaluation.localisation import Curve, Footage, _peak_windows, claimed

CURVES = st.lists(st.sampled_from([-np.inf, -0.5, 0.0, 0.25, 0.5, 1.0]), max_size=30)


@given(CURVES, st.integers(0, 6))
def test_peaks_are_those_a_loop_finds(values: list[float], reach: int) -> None:
    curve = np.array(values, np.float32)
    expected = [
        value > -np.inf
        and all(value > other for other in values[max(0, place - reach) : place])
        and all(value >= other for other in values[place + 1 : place + 1 + reach])
        for place, value in enumerate(values)
    ]
    assert _peak_windows(curve[:, None], reach)[:, 0].tolist() == expected


@given(CURVES, st.integers(1, 6))
def test_peaks_are_never_nearer_than_the_reach(values: list[float], reach: int) -> None:
    peaks = np.flatnonzero(_peak_windows(np.array(values, np.float32)[:, None], reach)[:, 0])
    assert (np.diff(peaks) > reach).all()


def test_each_annotation_is_claimed_once_by_the_highest_detection_near_it() -> None:
    frames, scores = np.array([95, 100, 105, 106, 300]), np.array([0.5, 0.9, 0.7, 0.8, 0.95], np.float32)
    assert claimed(frames, scores, np.array([100])).tolist() == [False, True, False, False, False]
    # A second sign at frame 110: the next highest that is near it is the detection at 106.
    assert claimed(frames, scores, np.array([100, 110])).tolist() == [False, True, False, True, False]
    assert claimed(frames, scores, np.empty(0, np.int64)).tolist() == [False] * 5


def footage(cosine: FloatArray, classes: list[int], frames: list[int], stride: int = 1) -> Footage:
    centres = 8 + stride * np.arange(len(cosine))
    return Footage(centres, cosine, np.array(classes, np.int64), np.array(frames, np.int64))


def test_a_search_computed_by_hand() -> None:
    cosine = np.zeros((200, 2), np.float32)
    cosine[50, 0], cosine[120, 0], cosine[90, 1] = 0.9, 0.8, 0.7  # frames 58, 128 and 98
    curve = Curve.of([footage(cosine, [0, 1, 1], [60, 100, 180])])
    # The strictest is right, then a false alarm, then right; the flat rest has its first window as a peak.
    assert curve.thresholds[:3].tolist() == pytest.approx([0.9, 0.8, 0.7])
    assert (curve.n_right[:3].tolist(), curve.n_wrong[:3].tolist(), curve.n_positives) == ([1, 1, 2], [0, 1, 1], 3)
    assert curve.recall_at_false_alarms(0.0, hours=1.0) == pytest.approx(1 / 3)


@pytest.mark.parametrize("stride", [1, 8])
def test_truth_finds_every_sign_without_a_false_alarm(stride: int) -> None:
    frames = np.arange(40, 1900, 60)
    classes = np.arange(len(frames)) % 40
    centres = 8 + stride * np.arange(2000 // stride)
    cosine = np.zeros((len(centres), 40), np.float32)
    for frame, number in zip(frames, classes, strict=True):
        cosine[(centres >= frame - 20) & (centres <= frame + 5), number] = 1
    curve = Curve.of([footage(cosine, classes.tolist(), frames.tolist(), stride)])
    assert (curve.thresholds[0], curve.n_right[0], curve.n_wrong[0], curve.n_positives) == (1.0, 31, 0, 31)


def test_classes_are_compared_in_blocks_as_well_as_at_once() -> None:
    rng = np.random.default_rng(0)
    cosine = rng.random((120, 70)).astype(np.float32)
    whole = Curve.of([footage(cosine, [1, 69], [50, 60])])
    parts = [Curve.of([footage(cosine[:, [number]], [], [])]) for number in range(70)]
    assert len(whole.thresholds) == sum(len(part.thresholds) for part in parts)


def test_nothing_to_search_finds_nothing() -> None:
    curve = Curve.of([footage(np.empty((0, 3), np.float32), [], [])])
    assert (len(curve.thresholds), curve.n_positives) == (0, 0)
