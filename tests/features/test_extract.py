from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.corpus import Episode
from signspot.domain.dictionary import Entry
from signspot.domain.spans import FRAME_MS
from signspot.domain.tracks import CLIP_LENGTH, WindowGrid
from signspot.domain.words import Word
from signspot.errors import VideoError
from signspot.features.extract import ExtractOptions, embed_entry, embed_video, window_batches
from signspot.media.writer import VideoWriter
from signspot.models.colour import ColourEmbedder


def numbered(n_frames: int) -> list[np.ndarray]:
    return [np.full((2, 2, 3), number % 256, np.uint8) for number in range(n_frames)]


@given(st.integers(0, 120), st.integers(1, 20), st.integers(1, 9))
@settings(max_examples=200)
def test_windows_are_those_of_the_grid_whatever_the_batch(n_frames: int, stride: int, per_batch: int) -> None:
    batches = list(window_batches(numbered(n_frames), stride, per_batch))
    windows = [clip[:, 0, 0, 0].tolist() for batch in batches for clip in batch]
    grid = WindowGrid(n_frames, stride=stride)
    by_hand = [
        [min(frame, n_frames - 1) for frame in range(start, start + CLIP_LENGTH)] for start in grid.starts().tolist()
    ]
    assert windows == by_hand
    assert all(len(batch) <= per_batch + 1 for batch in batches)


def write_strip(path: Path, colours: list[tuple[int, int, int]], frames_each: int = 30) -> Path:
    with VideoWriter(path, width=64, height=64) as writer:
        for number in range(len(colours) * frames_each):
            pixels = np.full((64, 64, 3), colours[number // frames_each], np.uint8)
            writer.write(pixels, number * FRAME_MS)
    return path


@pytest.mark.parametrize("isolated", [True, False])
def test_a_red_then_green_video_has_the_vectors_computed_by_hand(tmp_path: Path, isolated: bool) -> None:
    video = write_strip(tmp_path / "strip.mp4", [(255, 0, 0), (0, 255, 0)])
    episode = Episode(video_id="strip", video=video)
    extraction = embed_video(episode, ColourEmbedder(), options=ExtractOptions(isolated=isolated))
    vectors = extraction.track.vectors
    assert vectors.shape == (60 - 15, 3)
    assert extraction.track.axis.times_ms.tolist() == pytest.approx([n * 40 for n in range(60)])
    assert vectors[0] == pytest.approx([1, 0, 0], abs=0.05)
    assert vectors[-1] == pytest.approx([0, 1, 0], abs=0.05)
    # Eight red and eight green frames.
    assert vectors[22] == pytest.approx([2**-0.5, 2**-0.5, 0], abs=0.05)


def test_an_entry_has_the_same_vector_in_every_run(tmp_path: Path) -> None:
    video = write_strip(tmp_path / "apple.mp4", [(255, 0, 0), (0, 0, 255), (255, 255, 0)])
    entry = Entry(entry_id="apple", word=Word("apple"), video=video)
    first, second = (embed_entry(entry, ColourEmbedder(), isolated=False) for _ in range(2))
    other_seed = embed_entry(entry, ColourEmbedder(), seed=1, isolated=False)
    assert first.tolist() == second.tolist()
    assert first.tolist() != other_seed.tolist()


def test_an_entry_without_a_video_says_so() -> None:
    with pytest.raises(VideoError, match="the dictionary has no video for this entry"):
        embed_entry(Entry(entry_id="a", word=Word("apple")), ColourEmbedder())


def test_a_dictionary_clip_of_minutes_is_refused(tmp_path: Path) -> None:
    video = write_strip(tmp_path / "long.mp4", [(9, 9, 9)], frames_each=25 * 121)
    with pytest.raises(VideoError, match="longer than two minutes"):
        embed_entry(Entry(entry_id="a", word=Word("apple"), video=video), ColourEmbedder(), isolated=False)
