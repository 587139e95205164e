from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.media.frames import MAX_SPEED, random_clips

lengths = st.integers(1, 400)
seeds = st.integers(0, 2**32 - 1)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(lengths, seeds, st.floats(1, 8))
def test_clips_stay_within_the_video_and_never_run_backwards(n_frames: int, seed: int, max_speed: float) -> None:
    clips = random_clips(n_frames, rng(seed), max_speed=max_speed)
    assert clips.shape == (max(1, round(n_frames / 16)), 16)
    assert clips.min() >= 0 and clips.max() < n_frames
    assert (np.diff(clips, axis=1) >= 0).all()


@given(st.integers(16, 400), seeds)
def test_long_videos_never_repeat_a_frame_within_a_clip(n_frames: int, seed: int) -> None:
    assert (np.diff(random_clips(n_frames, rng(seed)), axis=1) >= 1).all()


@given(st.integers(16, 400), seeds)
def test_speed_is_at_most_four_and_at_most_what_fits(n_frames: int, seed: int) -> None:
    clips = random_clips(n_frames, rng(seed))
    fastest = min(MAX_SPEED, n_frames / 16)
    assert ((clips[:, -1] - clips[:, 0]) <= 15 * fastest + 1).all()


@given(lengths, seeds)
def test_same_seed_gives_the_same_clips(n_frames: int, seed: int) -> None:
    assert (random_clips(n_frames, rng(seed)) == random_clips(n_frames, rng(seed))).all()
    assert (random_clips(n_frames, rng(seed), max_speed=1) == random_clips(n_frames, rng(seed), max_speed=1)).all()


@given(st.integers(16, 400), seeds)
def test_consecutive_clips_are_neighbouring_frames(n_frames: int, seed: int) -> None:
    assert (np.diff(random_clips(n_frames, rng(seed), max_speed=1), axis=1) == 1).all()


@given(st.integers(1, 15), seeds)
def test_short_videos_repeat_their_last_frame(n_frames: int, seed: int) -> None:
    expected = [*range(n_frames), *[n_frames - 1] * (16 - n_frames)]
    assert random_clips(n_frames, rng(seed)).tolist() == [expected]
    assert random_clips(n_frames, rng(seed), max_speed=1).tolist() == [expected]


def test_every_start_is_equally_likely() -> None:
    chance = rng(0)
    starts = np.concatenate([random_clips(20, chance, max_speed=1)[:, 0] for _ in range(5000)])
    counts = np.bincount(starts)
    assert len(counts) == 5
    assert abs(counts - 1000).max() < 120


def test_speeds_are_uniform_between_one_and_the_fastest() -> None:
    chance = rng(0)
    extents = np.concatenate([np.ptp(random_clips(200, chance), axis=1) for _ in range(500)]) / 15
    quarters = np.histogram(extents, bins=np.linspace(1, 4, 5))[0] / len(extents)
    assert abs(quarters - 0.25).max() < 0.03


def test_clips_of_one_video_differ_in_speed_and_shift() -> None:
    clips = random_clips(160, rng(1))
    assert len(clips) == 10
    assert len({tuple(clip) for clip in clips.tolist()}) == 10
    assert len(set((clips[:, -1] - clips[:, 0]).tolist())) > 5


def test_a_video_without_frames_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 frames"):
        random_clips(0, rng(0))


@pytest.mark.parametrize("speed", [0.5, 0.0, -1.0, float("nan")])
def test_a_speed_below_one_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="use 1 or more"):
        random_clips(30, rng(0), max_speed=speed)
