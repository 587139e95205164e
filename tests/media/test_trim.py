"""Still ends are found on rendered signing with noise, through a real codec, and on landmarks with faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.time import FrameSpan, TimeAxis
from signspot.domain.tracks import LandmarkTrack, Pixels
from signspot.media.trim import NO_WRISTS, NOTHING_MOVES, TrimOptions, trim_by_landmarks, trim_by_motion, trim_clip
from signspot.media.writer import VideoWriter
from signspot.world.people import _random_appearance
from signspot.world.render import render_frames
from tests.world.figures import Hand, SignedClip, landmarks, signed_clip

Points = npt.NDArray[np.float32]


def track(points: Points) -> LandmarkTrack:
    return LandmarkTrack("clip", TimeAxis(np.arange(len(points)) * 40.0), points)


def detected(points: Points, pixels: float, rng: np.random.Generator) -> Points:
    """As a detector gives them: with jitter in pixels at 360 high."""
    jitter = rng.normal(0, pixels / 360, points.shape)
    jitter[:, 3:132:4] = 0
    return (points + jitter).astype(np.float32)


def filmed(points: Points, rng: np.random.Generator, noise: float = 0.0, side: int = 96) -> list[Pixels]:
    frames = render_frames(points, np.zeros(len(points), np.float32), _random_appearance(rng), side=side)
    return [np.clip(f + rng.normal(0, noise, f.shape), 0, 255).astype(np.uint8) if noise else f for f in frames]


def stored(path: Path, frames: list[Pixels]) -> Path:
    with VideoWriter(path, width=frames[0].shape[1], height=frames[0].shape[0]) as writer:
        for number, pixels in enumerate(frames):
            writer.write(pixels, 40 * number)
    return path


def errors(found: FrameSpan, clip: SignedClip) -> tuple[int, int]:
    return abs(found.start - clip.start), abs(found.stop - clip.stop)


@pytest.mark.parametrize("pixels", [0.0, 1.0, 2.0])
def test_wrists_give_the_true_ends_within_two_frames(pixels: float) -> None:
    rng = np.random.default_rng(5)
    clips = [signed_clip(rng) for _ in range(30)]
    found = [errors(trim_by_landmarks(track(detected(c.points, pixels, rng)), 1.0).kept, c) for c in clips]
    assert np.median(found, axis=0).max() <= 1
    assert np.quantile(found, 0.9, axis=0).max() <= 2


def motion_errors(folder: Path, count: int, noise: float) -> list[tuple[int, int]]:
    rng = np.random.default_rng(6)
    found = []
    for number in range(count):
        clip = signed_clip(rng)
        path = stored(folder / f"{noise}-{number}.mp4", filmed(clip.points, rng, noise))
        found.append(errors(trim_clip(path, isolated=False).kept, clip))
    return found


@pytest.mark.parametrize("noise", [0.0, 6.0])
def test_motion_gives_the_true_ends_within_two_frames_through_noise_and_a_codec(tmp_path: Path, noise: float) -> None:
    assert np.median(motion_errors(tmp_path, 5, noise), axis=0).max() <= 2


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("noise", [0.0, 3.0, 10.0])
def test_motion_gives_the_true_ends_of_500_clips(tmp_path: Path, noise: float) -> None:
    found = motion_errors(tmp_path, 500, noise)
    assert np.median(found, axis=0).max() <= 2
    assert np.quantile(found, 0.9, axis=0).max() <= 5


def test_a_clip_that_never_moves_is_kept_whole_with_a_remark() -> None:
    points = np.repeat(landmarks(Hand((0.4, 0.5, -0.2)))[None], 50, axis=0)
    rng = np.random.default_rng(0)
    for trim in (
        trim_by_landmarks(track(detected(points, 1.0, rng)), 1.0),
        trim_by_motion(filmed(points, rng, 5.0)),
        trim_by_motion(filmed(points, rng)),
    ):
        assert (trim.kept, trim.remark) == (FrameSpan(0, 50), NOTHING_MOVES)
        assert str(trim) == "50 -> 50 frames (0 before, 0 after): nothing moves, so the clip is kept whole"


def test_a_clip_that_moves_all_the_time_is_kept_whole_without_a_remark() -> None:
    turns = np.linspace(0, 6 * np.pi, 60)
    points = np.stack([landmarks(Hand((0.4 + 0.08 * np.cos(a), 0.5 + 0.08 * np.sin(a), -0.2))) for a in turns])
    for trim in (trim_by_landmarks(track(points), 1.0), trim_by_motion(filmed(points, np.random.default_rng(1)))):
        assert trim.remark == ""
        assert trim.kept.start <= 2 and trim.n_frames - trim.kept.stop <= 2


def test_wrists_that_drop_out_of_detection_do_not_count_as_motion() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        clip = signed_clip(rng)
        points = detected(clip.points, 0.5, rng)
        points[rng.integers(0, len(points), 6)] = 0  # nobody found
        points[2, 63], points[1, 64:66] = 0.0, np.nan
        assert max(errors(trim_by_landmarks(track(points), 1.0).kept, clip)) <= 5


def test_a_leap_of_the_detector_is_no_motion() -> None:
    points = np.repeat(landmarks(Hand((0.4, 0.5, -0.2)))[None], 40, axis=0)
    points[20, 60:66] += 0.3
    assert trim_by_landmarks(track(points), 1.0).remark == NOTHING_MOVES


def test_a_clip_without_wrists_is_kept_whole_with_a_remark() -> None:
    trim = trim_by_landmarks(track(np.zeros((30, 258), np.float32)), 1.0)
    assert (trim.kept, trim.remark) == (FrameSpan(0, 30), NO_WRISTS)


def test_a_wrist_that_the_body_never_shows_is_that_of_its_hand() -> None:
    clip = signed_clip(np.random.default_rng(5))
    points = clip.points.copy()
    for wrist, hand in ((60, 132), (64, 195)):
        points[:, hand : hand + 2] = points[:, wrist : wrist + 2]
        points[:, wrist + 3] = 0.1
    assert trim_by_landmarks(track(points), 1.0).kept == trim_by_landmarks(track(clip.points), 1.0).kept


@pytest.mark.parametrize("black", [0, 3])
def test_a_fade_in_is_no_motion(black: int) -> None:
    rng = np.random.default_rng(3)
    rest = np.repeat(signed_clip(rng).points[:1], 14, axis=0)
    clip = signed_clip(rng)
    rest[:] = clip.points[0]
    frames = filmed(np.concatenate([rest, clip.points]), rng, 2.0)
    light = np.clip((np.arange(len(frames)) - black) / 9, 0, 1)
    faded = [np.rint(frame * share).astype(np.uint8) for frame, share in zip(frames, light, strict=True)]
    trim = trim_by_motion(faded)
    assert abs(trim.kept.start - 14 - clip.start) <= 3


def test_a_video_of_few_pictures_a_second_is_not_taken_for_still() -> None:
    rng = np.random.default_rng(4)
    clip = signed_clip(rng)
    frames = filmed(clip.points, rng)
    held = [frames[4 * (i // 4)] for i in range(len(frames))]
    assert max(errors(trim_by_motion(held).kept, clip)) <= 5


def test_the_same_motion_is_trimmed_the_same_at_any_size_of_the_picture() -> None:
    clip = signed_clip(np.random.default_rng(8))
    spans = [trim_by_motion(filmed(clip.points, np.random.default_rng(9), side=side)).kept for side in (96, 192)]
    assert abs(spans[0].start - spans[1].start) <= 2 and abs(spans[0].stop - spans[1].stop) <= 2


def test_a_wide_picture_counts_sideways_motion_in_its_own_pixels() -> None:
    """4 pixels in two frames of a square picture are 8 of one twice as wide."""
    points = np.repeat(landmarks(Hand((0.3, 0.5, -0.2)))[None], 40, axis=0)
    moved = np.clip(np.arange(40) - 10, 0, 20)[:, None] * (2.0 / 360)
    points[:, [60, 64]] += moved.astype(np.float32)
    assert trim_by_landmarks(track(points), 1.0).remark == NOTHING_MOVES
    assert abs(trim_by_landmarks(track(points), 2.0).kept.start - 10) <= 2
    assert trim_by_landmarks(track(points), 1.0, TrimOptions(wrist_pixels=3)).remark == ""


def test_a_margin_is_kept_inside_the_clip() -> None:
    clip = signed_clip(np.random.default_rng(10))
    plain = trim_by_landmarks(track(clip.points), 1.0).kept
    wide = trim_by_landmarks(track(clip.points), 1.0, TrimOptions(margin=3)).kept
    assert wide == FrameSpan(max(0, plain.start - 3), min(len(clip.points), plain.stop + 3))
    whole = trim_by_landmarks(track(clip.points), 1.0, TrimOptions(margin=1000)).kept
    assert whole == FrameSpan(0, len(clip.points))


@pytest.mark.parametrize("n_frames", [0, 1, 2, 3])
def test_the_shortest_clips_are_kept_whole(n_frames: int) -> None:
    points = np.repeat(landmarks(Hand((0.4, 0.5, -0.2)))[None], n_frames, axis=0)
    assert trim_by_landmarks(track(points), 1.0).kept == FrameSpan(0, n_frames)
    assert trim_by_motion(filmed(points, np.random.default_rng(0))).kept == FrameSpan(0, n_frames)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_any_numbers_give_a_span_inside_the_clip(n_frames: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(0, 10.0 ** rng.integers(-3, 4), (n_frames, 258)).astype(np.float32)
    points[rng.random(points.shape) < 0.1] = np.nan
    trim = trim_by_landmarks(track(points), 1.5)
    assert 0 <= trim.kept.start <= trim.kept.stop <= trim.n_frames == n_frames
    frames = [rng.integers(0, 256, (20, 30, 3), dtype=np.uint8) for _ in range(n_frames)]
    trim = trim_by_motion(frames)
    assert 0 <= trim.kept.start <= trim.kept.stop <= trim.n_frames == n_frames


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot trim"):
        TrimOptions(wrist_pixels=0)
    with pytest.raises(ValueError, match="aspect"):
        trim_by_landmarks(track(np.zeros((3, 258), np.float32)), 0.0)
