"""One decoding process for many videos: the same frames, and still no video harms another."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.tracks import FrameShape
from signspot.errors import VideoError
from signspot.media.reader import VideoReader, shared_decoding
from signspot.media.video import Limits
from tests.media.test_child import children, nothing_left_behind, only_child
from tests.media.videos import Recipe, cut, make_video

__all__ = ["nothing_left_behind"]  # a fixture that every test here uses


@pytest.fixture
def videos(tmp_path: Path) -> list[Path]:
    """Of different lengths and sizes; the last is larger than what fits into the pipe."""
    recipes = (Recipe(count=20), Recipe(count=7, width=96, height=64), Recipe(count=60, width=640, height=480))
    return [make_video(tmp_path / f"{number}.mp4", recipe) for number, recipe in enumerate(recipes)]


def pixels(path: Path, **options: object) -> np.ndarray:
    with VideoReader(path, **options) as reader:  # type: ignore[arg-type]
        return np.stack([frame.pixels for frame in reader])


def test_videos_in_a_row_share_a_process_and_have_the_frames_they_have_alone(videos: list[Path]) -> None:
    before, seen = children(), set()
    with shared_decoding():
        for path in (*videos, videos[0]):
            shape = FrameShape(48, 32, keep_aspect=True) if path == videos[1] else None
            np.testing.assert_array_equal(pixels(path, shape=shape), pixels(path, shape=shape, isolated=False))
            seen.add(only_child(before))
    assert len(seen) == 1
    assert children() == before


@pytest.mark.parametrize("blow", [signal.SIGSEGV, signal.SIGKILL, signal.SIGSTOP])
def test_a_video_that_ends_the_process_costs_only_itself(videos: list[Path], blow: signal.Signals) -> None:
    before, limits = children(), Limits(stall_seconds=6.0) if blow == signal.SIGSTOP else Limits()
    with shared_decoding():
        pixels(videos[0], limits=limits)
        first = only_child(before)
        with VideoReader(videos[2], limits=limits) as reader:
            frames = iter(reader)
            next(frames)
            assert only_child(before) == first
            os.kill(first, blow)
            with pytest.raises(VideoError, match=r"crashed after|stopped by the system after|no progress for 6"):
                list(frames)
        assert children() == before, "it is not used again"
        assert len(pixels(videos[1], limits=limits)) == 7
        assert only_child(before) != first


def test_a_video_that_cannot_be_read_costs_only_itself(videos: list[Path], tmp_path: Path) -> None:
    broken = cut(videos[0], tmp_path / "broken.mp4", videos[0].stat().st_size // 2)
    with shared_decoding():
        assert len(pixels(videos[0])) == 20
        with pytest.raises(VideoError, match=r"broken.mp4: is an incomplete recording"):
            VideoReader(broken)
        assert len(pixels(videos[1])) == 7


def test_an_idle_process_that_was_ended_is_replaced_without_a_word(videos: list[Path]) -> None:
    before = children()
    with shared_decoding():
        pixels(videos[0])
        first = only_child(before)
        os.kill(first, signal.SIGKILL)
        assert len(pixels(videos[1])) == 7
        assert only_child(before) != first


def test_a_video_left_in_the_middle_leaves_nothing_to_the_next(videos: list[Path]) -> None:
    with shared_decoding():
        for _ in VideoReader(videos[2]):
            break
        assert pixels(videos[1]).shape == (7, 64, 96, 3)


def test_two_videos_at_once_have_a_process_each(videos: list[Path]) -> None:
    before = children()
    with shared_decoding():
        with VideoReader(videos[0]) as one, VideoReader(videos[1]) as other:
            pairs = zip(one, other, strict=False)
            assert next(pairs)[1].pixels.shape == (64, 96, 3)
            assert len(children() - before) == 2
        assert len(pixels(videos[0])) == 20


def test_other_limits_are_another_process(videos: list[Path]) -> None:
    before = children()
    with shared_decoding():
        pixels(videos[0])
        first = only_child(before)
        with pytest.raises(VideoError, match="no readable picture"):
            VideoReader(videos[2], limits=Limits(max_side=150))
        assert first not in children()
