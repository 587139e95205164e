from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Episode
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, EmbeddingTrack, WindowGrid
from signspot.embedding.model import Reading
from signspot.embedding.pictures import (
    ColourModel,
    _chosen_windows,
    embed_near,
    embed_video,
    nearest_of,
    starts_near,
)
from signspot.media.writer import VideoWriter
from signspot.spotting.peaks import find_peaks

COLOUR, HERE = ColourModel().network, Reading(isolated=False)


def colourful(path: Path, n_frames: int = 150) -> Episode:
    """A slow drift from red to green with a blue flash of 10 frames at 90."""
    with VideoWriter(path, width=64, height=64) as writer:
        for number in range(n_frames):
            share = number / n_frames
            colour = (0, 0, 255) if 90 <= number < 100 else (255 * (1 - share), 255 * share, 0)
            writer.write(np.full((64, 64, 3), colour).astype(np.uint8), number * FRAME_MS)
    return Episode(video_id="drift", video=path)


def test_what_is_looked_at_closely_equals_the_full_track_and_holds_its_peak(tmp_path: Path) -> None:
    episode = colourful(tmp_path / "drift.mp4")
    full = embed_video(episode, COLOUR, HERE).track
    blue = np.array([[0, 0, 1]], np.float32)
    near = embed_near(episode, COLOUR, blue, HERE, candidates=1).track
    is_exact = (near.vectors == full.vectors).all(axis=1)
    assert near.grid == full.grid and near.axis.times_ms.tolist() == full.axis.times_ms.tolist()
    assert is_exact[::4].all() and is_exact.sum() < len(full.grid) / 2
    peak = int((full.vectors @ blue[0]).argmax())
    assert int((near.vectors @ blue[0]).argmax()) == peak
    assert is_exact[peak - 3 : peak + 4].all()
    for window in np.flatnonzero(~is_exact).tolist():  # what was not looked at repeats its nearest neighbour
        around = full.vectors[max(0, window - 2) : window + 3]
        assert (near.vectors[window] == around).all(axis=1).any()


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(1, 70))
@settings(max_examples=100)
def test_every_window_has_its_nearest_start(chosen: set[int], n_windows: int) -> None:
    starts = sorted(chosen)
    got = nearest_of(np.array(starts), n_windows).tolist()
    by_hand = [min(range(len(starts)), key=lambda i: (abs(starts[i] - window), i)) for window in range(n_windows)]
    assert got == by_hand


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_a_slope_that_was_not_looked_at_closely_has_no_peaks_beside_its_top(stride: int) -> None:
    """Findings lie exactly where a window was computed, and only at tops: copies make no false ones."""
    starts = np.arange(0, 80, stride)
    curve = -np.abs(starts - starts[len(starts) // 2]).astype(np.float32)[nearest_of(starts, 80)]
    assert find_peaks(curve, np.arange(80), -np.inf, 16).tolist() == [starts[len(starts) // 2]]


def test_progress_never_goes_back(tmp_path: Path) -> None:
    seen: list[tuple[float, float | None]] = []
    queries = np.eye(3, dtype=np.float32)
    embed_near(
        colourful(tmp_path / "drift.mp4"),
        COLOUR,
        queries,
        HERE,
        progress=lambda done, expected: seen.append((done, expected)),
    )
    done = [one for one, _ in seen]
    assert done == sorted(done)
    assert all(expected is None or one <= expected for one, expected in seen)


@pytest.mark.parametrize("n_frames", [1, 15, 16, 17, 21])
def test_short_videos_are_seen_whole(tmp_path: Path, n_frames: int) -> None:
    episode = colourful(tmp_path / "short.mp4", n_frames)
    full = embed_video(episode, COLOUR, HERE).track
    queries = np.eye(3, dtype=np.float32)
    near = embed_near(episode, COLOUR, queries, HERE).track
    np.testing.assert_array_equal(near.vectors, full.vectors)


def coarse_track(cosines: list[float], stride: int) -> EmbeddingTrack:
    n_frames = (len(cosines) - 1) * stride + CLIP_LENGTH
    axis = TimeAxis(np.arange(n_frames) * FRAME_MS)
    return EmbeddingTrack("v", WindowGrid(n_frames, stride=stride), axis, np.array(cosines, np.float32)[:, None], "f")


def test_a_broad_peak_counts_once() -> None:
    track = coarse_track([0.1, 0.8, 0.9, 0.8, 0.1, 0.2, 0.1], stride=4)
    query = np.ones((1, 1), np.float32)
    assert starts_near(track, query, candidates=2).tolist() == [*range(5, 12), *range(17, 24)]


@given(st.lists(st.floats(-1, 1, width=32) | st.just(float("nan")), min_size=1, max_size=30), st.integers(1, 5))
@settings(max_examples=100)
def test_the_best_coarse_window_is_always_looked_at(cosines: list[float], stride: int) -> None:
    track = coarse_track(cosines, stride)
    starts = starts_near(track, np.ones((1, 1), np.float32), candidates=1)
    if not np.isnan(cosines).all():
        assert stride * int(np.nanargmax(cosines)) in starts
    assert all(0 <= start < len(WindowGrid(track.grid.n_frames)) for start in starts.tolist())


@given(st.integers(16, 60), st.data())
@settings(max_examples=100)
def test_chosen_windows_are_the_ones_asked_for(n_frames: int, data: st.DataObject) -> None:
    starts = sorted(data.draw(st.sets(st.integers(0, n_frames - 16), min_size=1)))
    frames = [np.full((1, 1, 3), number, np.uint8) for number in range(n_frames)]
    batches = list(_chosen_windows(iter(frames), np.array(starts)))
    windows = [clip[:, 0, 0, 0].tolist() for batch in batches for clip in batch]
    assert windows == [list(range(start, start + 16)) for start in starts]


@pytest.mark.parametrize("senseless", [{"stride": 0}, {"stride": 17}, {"candidates": 0}])
def test_senseless_options_are_refused(tmp_path: Path, senseless: dict[str, int]) -> None:
    episode = Episode(video_id="x", video=tmp_path / "not looked at.mp4")
    with pytest.raises(ValueError, match="nothing can be found with"):
        embed_near(episode, COLOUR, np.eye(3, dtype=np.float32), HERE, **senseless)  # type: ignore[arg-type]
