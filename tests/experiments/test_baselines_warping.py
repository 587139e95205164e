"""Dynamic time warping against a slow programme over single cells, and the properties that it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from experiments.lib.baselines import warped_distances
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from signspot.domain.tracks import FloatArray


def _slow(window: FloatArray, entry: FloatArray, band: int) -> float:
    """Sakoe and Chiba's symmetric form from its definition, for T = S, one pair and one cell at a time."""
    n = len(window)
    best = np.full((n, n), math.inf)
    for i in range(n):
        for j in range(n):
            if abs(i - j) > band:
                continue
            cost = float(((window[i].astype(np.float64) - entry[j]) ** 2).sum())
            ways = [2 * cost] if i == j == 0 else []
            ways += [best[i - 1, j] + cost] if i else []
            ways += [best[i, j - 1] + cost] if j else []
            ways += [best[i - 1, j - 1] + 2 * cost] if i and j else []
            best[i, j] = min(ways)
    return float(best[-1, -1] / (2 * n))


def _motions(n_motions: int, n_frames: int) -> st.SearchStrategy[FloatArray]:
    return arrays(np.float32, (n_motions, n_frames, 2), elements=st.floats(-4, 4, width=32))


@settings(max_examples=25, deadline=None)
@given(_motions(3, 6), _motions(2, 6), st.integers(0, 6))
def test_distances_are_those_of_the_slow_programme(windows: FloatArray, entries: FloatArray, band: int) -> None:
    expected = [[_slow(window, entry, band) for entry in entries] for window in windows]
    np.testing.assert_allclose(warped_distances(windows, entries, band), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(_motions(2, 5), _motions(3, 7), st.integers(0, 7))
def test_a_wider_band_never_makes_two_motions_less_alike(windows: FloatArray, entries: FloatArray, band: int) -> None:
    narrow, wide = warped_distances(windows, entries, band), warped_distances(windows, entries, band + 1)
    assert np.isfinite(narrow).all()
    assert (wide <= narrow + 1e-4).all()


@given(_motions(2, 6), _motions(2, 6))
def test_without_a_band_frames_are_compared_one_by_one(windows: FloatArray, entries: FloatArray) -> None:
    expected = ((windows[:, None] - entries[None]) ** 2).sum(axis=-1).mean(axis=-1)
    np.testing.assert_allclose(warped_distances(windows, entries, band=0), expected, rtol=1e-4, atol=1e-4)


def test_the_same_motion_at_another_speed_is_near_only_when_time_may_warp() -> None:
    time = np.linspace(0, 1, 16)
    even = np.stack([np.sin(6 * time), np.cos(6 * time)], axis=1).astype(np.float32)[None]
    warped = np.stack([np.sin(6 * time**1.5), np.cos(6 * time**1.5)], axis=1).astype(np.float32)[None]
    assert warped_distances(even, warped, band=5)[0, 0] < 0.1 * warped_distances(even, warped, band=0)[0, 0]


@pytest.mark.parametrize(("n_frames", "n_entry_frames"), [(1, 1), (1, 9), (9, 1), (4, 30), (30, 4), (2, 17)])
def test_motions_of_any_lengths_have_a_path_even_in_the_narrowest_band(n_frames: int, n_entry_frames: int) -> None:
    windows, entries = np.zeros((1, n_frames, 3), np.float32), np.ones((1, n_entry_frames, 3), np.float32)
    assert warped_distances(windows, entries, band=0)[0, 0] == pytest.approx(3.0)


def test_blocks_of_windows_do_not_change_a_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    windows, entries = rng.normal(size=(11, 8, 3)).astype(np.float32), rng.normal(size=(5, 8, 3)).astype(np.float32)
    whole = warped_distances(windows, entries)
    monkeypatch.setattr("experiments.lib.baselines._PAIRS_AT_ONCE", 12)
    np.testing.assert_allclose(warped_distances(windows, entries), whole, rtol=1e-5)


def test_what_is_no_number_is_infinitely_far_and_touches_no_other_pair() -> None:
    windows = np.zeros((2, 4, 2), np.float32)
    windows[0, 1, 0] = np.nan
    distances = warped_distances(windows, np.zeros((3, 4, 2), np.float32), band=1)
    assert np.isinf(distances[0]).all()
    assert (distances[1] == 0).all()


def test_nothing_to_compare_gives_an_empty_table() -> None:
    assert warped_distances(np.zeros((0, 4, 2), np.float32), np.zeros((3, 4, 2), np.float32)).shape == (0, 3)
    assert warped_distances(np.zeros((3, 4, 2), np.float32), np.zeros((0, 4, 2), np.float32)).shape == (3, 0)


def test_motions_of_other_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot warp windows of shape"):
        warped_distances(np.zeros((1, 4, 2), np.float32), np.zeros((1, 4, 3), np.float32))
    with pytest.raises(ValueError, match="no path of band -1"):
        warped_distances(np.zeros((1, 4, 2), np.float32), np.zeros((1, 4, 2), np.float32), band=-1)
