"""Which frames of a dictionary video make a clip: 16 of them, at a random speed and a random shift (Paper 3.2).

The paper gives neither the number of clips nor the ranges; ours are those of docs/deviations.md. A video shorter than
a clip is filled up with its last frame.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import CLIP_LENGTH

MAX_SPEED = 4.0  # a sign shown faster than this is no longer that sign

FrameNumbers = npt.NDArray[np.int64]


def clip_count(n_frames: int) -> int:
    """How many clips stand for a video: one for every 16 frames, at least one.

    >>> clip_count(5), clip_count(16), clip_count(56)
    (1, 1, 4)
    """
    _refuse_empty(n_frames)
    return max(1, round(n_frames / CLIP_LENGTH))


def random_clips(n_frames: int, rng: np.random.Generator, *, max_speed: float = MAX_SPEED) -> FrameNumbers:
    """Frame numbers of all clips of a video, each at its own speed and shift: (n_clips, 16), rows never decrease."""
    if not max_speed >= 1:
        raise ValueError(f"a clip cannot be sampled at a speed of {max_speed}: use 1 or more")
    n_clips = clip_count(n_frames)
    speed = rng.uniform(1, max(1.0, min(max_speed, n_frames / CLIP_LENGTH)), size=(n_clips, 1))
    # Up to a whole frame beyond the last start, because the fraction is cut off: so every start is equally likely.
    room = np.maximum(0, n_frames - speed * (CLIP_LENGTH - 1))
    shift = rng.random((n_clips, 1)) * room
    return _within(shift + speed * np.arange(CLIP_LENGTH), n_frames)


def consecutive_clips(n_frames: int, rng: np.random.Generator) -> FrameNumbers:
    """The ablation of Paper App. C.1: clips of neighbouring frames at a random shift: (n_clips, 16)."""
    return random_clips(n_frames, rng, max_speed=1)


def centred_clip(n_frames: int, *, max_speed: float = 1) -> FrameNumbers:
    """Frame numbers of one clip around the middle of a video, without chance: (16,), never decreasing.

    >>> centred_clip(18).tolist()[:3], centred_clip(48, max_speed=4).tolist()[:3]
    ([1, 2, 3], [1, 4, 7])
    """
    _refuse_empty(n_frames)
    speed = max(1.0, min(max_speed, n_frames / CLIP_LENGTH))
    start = max(0.0, (n_frames - speed * CLIP_LENGTH) / 2)
    return _within(start + speed * (np.arange(CLIP_LENGTH) + 0.5), n_frames)


def _within(positions: npt.NDArray[np.floating], n_frames: int) -> FrameNumbers:
    return np.minimum(positions.astype(np.int64), n_frames - 1)


def _refuse_empty(n_frames: int) -> None:
    if n_frames < 1:
        raise ValueError(f"no clip can be taken from {n_frames} frames")
