"""Raw landmarks as vectors: the baseline."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.lib.baselines import raw_rows


def windows(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.2, 0.8, size=(3, 16, 258)).astype(np.float32)


def test_rows_have_length_one_and_do_not_depend_on_place_and_size() -> None:
    points = windows()
    moved = points.copy()
    for first, step in ((0, 4), (132, 3)):
        stop = 132 if first == 0 else 258
        moved[..., first:stop:step] = 2 * points[..., first:stop:step] + 0.3
        moved[..., first + 1 : stop : step] = 2 * points[..., first + 1 : stop : step] - 0.1
    np.testing.assert_allclose(np.linalg.norm(raw_rows(points), axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(raw_rows(moved), raw_rows(points), atol=1e-5)


def test_a_missing_hand_is_zero_and_an_empty_window_has_a_finite_row() -> None:
    points = windows()
    points[0, :, 132:195] = 0
    rows = raw_rows(points)
    assert not rows[0, 16 * 14 : 16 * 14 + 16 * 42].any() and rows[1].all()
    assert np.isfinite(raw_rows(np.zeros((1, 16, 258), np.float32))).all()


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="instead of"):
        raw_rows(np.zeros((2, 15, 258), np.float32))
