"""Landmarks at several speeds, against what linear interpolation says and against the usual windows."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.lib.landmark_model import at_house_rate, best_over_rates, multi_rate_windows, sign_window
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.tracks import WindowGrid, in_picture_heights
from signspot.embedding.landmarks import Rates, points_at, window_at

LEFT, RIGHT = slice(132, 195), slice(195, 258)


def ramp(n_frames: int) -> np.ndarray:
    """Every number rises by 1 a frame, from 1."""
    return np.repeat(np.arange(1, n_frames + 1, dtype=np.float32)[:, None], 258, axis=1)


@given(st.lists(st.floats(-3, 30), min_size=1, max_size=20))
def test_between_frames_every_number_lies_on_a_straight_line(positions: list[float]) -> None:
    found = points_at(ramp(12), np.array(positions))
    expected = np.interp(positions, np.arange(12), np.arange(1, 13))
    np.testing.assert_allclose(found, np.repeat(expected[:, None], 258, axis=1), rtol=1e-5)


def test_at_whole_positions_the_frames_come_back() -> None:
    points = np.random.default_rng(0).normal(size=(9, 258)).astype(np.float32)
    assert np.array_equal(points_at(points, np.arange(9.0)), points)


def test_a_hand_that_one_frame_lacks_is_taken_from_the_nearer_frame_and_never_halved() -> None:
    points = ramp(3)
    points[1, RIGHT] = 0
    found = points_at(points, np.array([0.4, 0.6, 1.4, 1.6]))
    assert np.array_equal(found[:, RIGHT][:, 0], [1, 0, 0, 3])
    np.testing.assert_allclose(found[:, LEFT][:, 0], [1.4, 1.6, 2.4, 2.6], rtol=1e-6)


def test_the_input_stays_as_it_is() -> None:
    points = ramp(5)
    points.flags.writeable = False
    points_at(points, np.array([0.5]))
    in_picture_heights(points, 1.5)
    sign_window(points)
    assert np.array_equal(points, ramp(5))


def test_a_window_of_16_frames_is_those_frames() -> None:
    points = ramp(40)
    np.testing.assert_allclose(window_at(points, 7, 16), points[7:23], rtol=1e-6)


def test_a_longer_window_spans_its_length() -> None:
    window = window_at(ramp(100), 10, 32)[:, 0]
    np.testing.assert_allclose(np.diff(window), 2, rtol=1e-5)
    np.testing.assert_allclose(window.mean(), 1 + 10 + 15.5)  # centred on the frames 10 to 41


def test_thirty_frames_a_second_become_twenty_five() -> None:
    seconds = np.arange(31) / 30
    found = at_house_rate(ramp(31), seconds)
    assert len(found) == 26
    np.testing.assert_allclose(found[:, 0], 1 + np.arange(26) / 25 * 30, rtol=1e-5)


def test_a_single_frame_has_a_rate_too() -> None:
    assert np.array_equal(at_house_rate(ramp(1), np.zeros(1)), ramp(1))


@pytest.mark.parametrize("n_frames", [1, 15, 16, 40])
@pytest.mark.parametrize("stride", [1, 3])
def test_windows_of_every_length_stand_around_the_frames_of_the_usual_grid(n_frames: int, stride: int) -> None:
    points, grid = ramp(n_frames), WindowGrid(n_frames, stride=stride)
    found = list(multi_rate_windows(points, Rates((8, 16, 24), stride)))
    assert [windows.shape for windows in found] == [(len(grid), 16, 258)] * 3
    for window, start in enumerate(grid.starts()):
        usual = points[np.minimum(np.arange(start, start + 16), n_frames - 1)]
        np.testing.assert_allclose(found[1][window], usual, rtol=1e-6)
    if n_frames == 40:  # away from the ends, all lengths have the same middle
        middle = len(grid) // 2
        np.testing.assert_allclose([windows[middle].mean() for windows in found], found[1][middle].mean(), rtol=1e-5)


def test_the_best_length_counts_at_each_place() -> None:
    rng = np.random.default_rng(0)
    windows = [rng.normal(size=(5, 4)).astype(np.float32) for _ in range(3)]
    entries = rng.normal(size=(2, 4)).astype(np.float32)
    expected = [[max(float(rows[i] @ entry) for rows in windows) for entry in entries] for i in range(5)]
    np.testing.assert_allclose(best_over_rates(windows, entries), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="no windows"):
        best_over_rates([], entries)


def test_fractions_of_a_picture_become_picture_heights() -> None:
    points = np.ones((2, 258), np.float32)
    scaled = in_picture_heights(points, 1.5)
    assert scaled[0, :4].tolist() == [1.5, 1.0, 1.5, 1.0]  # x, y, z, visibility
    assert scaled[0, 132:135].tolist() == [1.5, 1.0, 1.5]


@pytest.mark.parametrize("rates", [{"lengths": ()}, {"lengths": (0,)}, {"stride": 0}])
def test_senseless_rates_are_refused(rates: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no windows"):
        Rates(**rates)  # type: ignore[arg-type]
