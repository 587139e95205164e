"""Clips of a patch that moves over a still picture, with still ends, for tests that need something like a sign."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import Pixels
from signspot.media.writer import VideoWriter

SIDE, STILL, MOVING = 96, 10, 20


def moving_frames(seed: int, *, still: int = STILL, moving: int = MOVING) -> list[Pixels]:
    """Frames (96, 96, 3): still, then a bright patch on a path of its own, then still."""
    rng = np.random.default_rng(seed)
    wall = np.broadcast_to(np.linspace(40, 90, SIDE, dtype=np.uint8)[:, None, None], (SIDE, SIDE, 3)).copy()
    corners = rng.uniform(0, SIDE - 32, (4, 2))
    times = np.linspace(0, 3, moving)
    path = np.stack([np.interp(times, range(4), corners[:, axis]) for axis in range(2)], axis=1)
    path = np.concatenate([path[:1].repeat(still, 0), path, path[-1:].repeat(still, 0)]).astype(int)
    frames = []
    for x, y in path:
        frame = wall.copy()
        frame[y : y + 32, x : x + 32] = rng.bit_generator.random_raw() % 2 + np.array([220, 180, 150], np.uint8)
        frames.append(frame)
    return frames


def store(path: Path, frames: list[Pixels]) -> Path:
    """Write frames as a video at 25 a second."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with VideoWriter(path, width=frames[0].shape[1], height=frames[0].shape[0]) as writer:
        for number, pixels in enumerate(frames):
            writer.write(pixels, number * FRAME_MS)
    return path


def make_clip(path: Path, seed: int = 0) -> Path:
    """A clip of 40 frames of which the middle 20 move."""
    return store(path, moving_frames(seed))
