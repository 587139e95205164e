"""Landmarks at several speeds: windows of 10 to 34 frames, each brought to the 16 frames that a model takes.

Isolated signs are slow and running ones are fast, so a query is compared with windows of several lengths around one
frame. Positions in a recording are real numbers: 2.5 lies half way between the frames 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from signspot.domain.spans import FRAME_RATE
from signspot.domain.tracks import (
    CLIP_LENGTH,
    LANDMARK_DIM,
    FloatArray,
    WindowGrid,
)

Positions = npt.NDArray[np.floating[Any]]

LENGTHS = (10, 16, 24, 34)  # frames at 25 a second: from hasty signing to a sign shown by itself


@dataclass(frozen=True, slots=True)
class Rates:
    """Which windows a recording is cut into: of each length, around every `stride`-th frame of the usual grid."""

    lengths: tuple[int, ...] = LENGTHS
    stride: int = 1

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1 or self.stride < 1:
            raise ValueError(f"no windows of {self.lengths} frames, stride {self.stride}")


def points_at(points: FloatArray, positions: Positions) -> FloatArray:
    """Landmarks (n, 258) at any positions (m,) -> (m, 258), held still before the first and after the last frame.

    Between two frames a part lies on a straight line; where only one of them shows the part, the nearer frame counts.
    """
    at = np.clip(positions, 0, len(points) - 1)
    before = np.floor(at).astype(np.int64)
    after = np.minimum(before + 1, len(points) - 1)
    share = (at - before).astype(np.float32)[:, None]
    first, second = np.asarray(points[before], np.float32), np.asarray(points[after], np.float32)
    nearest = np.where(share < 0.5, first, second)
    # Number by number, which is fast: a coordinate of a found part that is exactly zero loses half a frame at most.
    between: FloatArray = np.where((first == 0) | (second == 0), nearest, first * (1 - share) + second * share)
    return between


def at_house_rate(points: FloatArray, seconds: Positions) -> FloatArray:
    """Landmarks (n, 258) at the times (n,), ascending -> the same motion at 25 frames a second."""
    n_frames = round((seconds[-1] - seconds[0]) * FRAME_RATE) + 1
    times = seconds[0] + np.arange(n_frames) / FRAME_RATE
    return points_at(points, np.interp(times, seconds, np.arange(len(seconds), dtype=np.float64)))


def window_at(points: FloatArray, start: float, length: float) -> FloatArray:
    """The landmarks from position `start` on, `length` frames brought to 16: (16, 258)."""
    return points_at(points, start + (np.arange(CLIP_LENGTH) + 0.5) * (length / CLIP_LENGTH) - 0.5)


def multi_rate_windows(points: FloatArray, rates: Rates = Rates()) -> Iterator[FloatArray]:
    """For each length the windows (n_windows, 16, 258) around the same frames: those of the usual 16-frame grid."""
    starts = WindowGrid(len(points), stride=rates.stride).starts()
    for length in rates.lengths:
        yield windows_around(points, starts, length)


def windows_around(points: FloatArray, starts: npt.NDArray[np.int64], length: int) -> FloatArray:
    """Windows of `length` frames brought to 16, with the middle of the usual windows at `starts`: (n, 16, 258)."""
    offsets = (np.arange(CLIP_LENGTH) + 0.5) * (length / CLIP_LENGTH) - 0.5 + (CLIP_LENGTH - length) / 2
    windows = points_at(points, (starts[:, None] + offsets).ravel())
    return windows.reshape(len(starts), CLIP_LENGTH, LANDMARK_DIM)


def best_over_rates(windows: Sequence[FloatArray], entries: FloatArray) -> FloatArray:
    """The highest cosine of each place with each entry over the lengths.

    `windows` has unit rows (n_windows, d) for each length, `entries` unit rows (n_entries, d): (n_windows, n_entries).
    """
    if not windows:
        raise ValueError("no windows of any length")
    best: FloatArray = np.max([vectors @ entries.T for vectors in windows], axis=0)
    return best
