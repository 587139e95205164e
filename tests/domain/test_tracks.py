from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.time import TimeAxis
from signspot.domain.tracks import EmbeddingTrack, WindowGrid


@given(st.integers(0, 300), st.integers(1, 40), st.integers(1, 40))
def test_windows_tile_the_video(n_frames: int, length: int, stride: int) -> None:
    grid = WindowGrid(n_frames, length, stride)
    spans = [grid.span(i) for i in range(len(grid))]
    assert [span.start for span in spans] == grid.starts().tolist()
    # The definition read aloud: every stride until a window reaches the end; that one is pulled back to fit.
    starts, start = [], 0
    while n_frames:
        starts.append(max(0, min(start, n_frames - length)))
        if start + length >= n_frames:
            break
        start += stride
    assert [span.start for span in spans] == starts
    if n_frames:
        assert spans[-1].stop == n_frames
    if stride <= length:
        assert {frame for span in spans for frame in range(span.start, span.stop)} == set(range(n_frames))
    assert all(grid.centre(i) in grid.span(i) for i in range(len(grid)))


def test_the_centre_of_a_window_is_its_start_plus_eight() -> None:
    assert WindowGrid(100).centre(10) == 18
    assert WindowGrid(5).centre(0) == 4


@pytest.mark.parametrize("window", [-1, 85])
def test_a_window_outside_the_grid_is_refused(window: int) -> None:
    with pytest.raises(IndexError, match="of 85"):
        WindowGrid(100).span(window)


def test_a_track_whose_parts_disagree_is_refused() -> None:
    axis = TimeAxis(np.arange(20.0))
    with pytest.raises(ValueError, match="5 windows but vectors of shape"):
        EmbeddingTrack("v", WindowGrid(20), axis, np.zeros((4, 3), np.float32), "f")
    with pytest.raises(ValueError, match="21 frames but 20 times"):
        EmbeddingTrack("v", WindowGrid(21), axis, np.zeros((6, 3), np.float32), "f")
