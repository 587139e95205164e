"""Made-up signs: what tells them apart is motion alone, in pixels and in landmarks alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from signspot.domain.recordings import Vocabulary, Word
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray, Pixels
from signspot.learning.clips import ClipPlace, Frames, RecordedClips

# Up and down show the same pictures in opposite order; the mirror image of each sign is the same sign.
WORDS = Vocabulary((Word("up"), Word("down"), Word("across")))


def path_of(label: int, n_frames: int, rng: np.random.Generator) -> FloatArray:
    """(n_frames, 2) from 0 to 1: where the hand is, x and y."""
    along = np.linspace(0.15, 0.85, n_frames)
    still = np.full(n_frames, rng.uniform(0.3, 0.7))
    x, y = {0: (still, along[::-1]), 1: (still, along), 2: (along if rng.random() < 0.5 else along[::-1], still)}[label]
    return np.stack([x, y], axis=1).astype(np.float32)


def moving_hand(label: int, rng: np.random.Generator, n_frames: int = 20, side: int = 32) -> Pixels:
    """(n_frames, side, side, 3): a bright square that moves over noise."""
    frames = rng.integers(0, 60, (n_frames, side, side, 3), dtype=np.uint8)
    colour, half = rng.integers(150, 256, 3), side // 8
    for frame, place in zip(frames, path_of(label, n_frames, rng), strict=True):
        x, y = (place * (side - 1)).astype(int)
        frame[max(0, y - half) : y + half, max(0, x - half) : x + half] = colour
    return frames


def signing_hand(label: int, rng: np.random.Generator, n_frames: int = 20) -> FloatArray:
    """(n_frames, 258): a still body whose right hand moves."""
    points = np.zeros((n_frames, 258), np.float32)
    pose = points[:, :132].reshape(n_frames, 33, 4)
    pose[...] = rng.uniform(0.4, 0.6, (33, 4))
    pose[:, 11, :2], pose[:, 12, :2] = (0.62, 0.5), (0.38, 0.5)
    hand = points[:, 195:].reshape(n_frames, 21, 3)
    hand[...] = rng.uniform(-0.03, 0.03, (21, 3))
    hand[..., :2] += path_of(label, n_frames, rng)[:, None]
    return points + rng.normal(0, 0.003, points.shape).astype(np.float32) * (points != 0)


def whole_clips(recordings: Sequence[Frames], labels: Sequence[int], *, max_speed: float = 1.0) -> RecordedClips:
    """Every recording as one labelled clip."""
    spans = [FrameSpan(0, len(recording)) for recording in recordings]
    places = (ClipPlace(f"recording {i}", label, i, spans[i]) for i, label in enumerate(labels))
    return RecordedClips(recordings, tuple(places), max_speed)
