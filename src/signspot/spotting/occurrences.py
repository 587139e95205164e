"""Findings that remember what they look like, so that they can be compared with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from signspot.domain.corpus import Episode
from signspot.domain.results import Spotting
from signspot.domain.tracks import EmbeddingTrack, FloatArray, WindowGrid


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """A finding, the video it is in, and the vector of its window."""

    spotting: Spotting
    episode: Episode
    vector: FloatArray  # (d,) of length 1


def window_near(grid: WindowGrid, frame: int) -> int:
    """The window whose centre lies closest to a frame.

    >>> window_near(WindowGrid(100), 30), window_near(WindowGrid(100), 0)
    (22, 0)
    """
    if not len(grid):
        raise ValueError("a grid without windows")
    centres = np.minimum(grid.starts() + grid.length // 2, grid.n_frames - 1)
    return int(np.abs(centres - frame).argmin())


def occurrence(spotting: Spotting, episode: Episode, track: EmbeddingTrack) -> Occurrence:
    """A finding together with what it looks like."""
    vector = np.asarray(track.vectors[window_near(track.grid, spotting.frame)], np.float32)
    return Occurrence(spotting, episode, unit(vector))


def unit(vectors: FloatArray) -> FloatArray:
    """Rows (..., d) brought to length 1; a row of zeros, or of what is no number, becomes zeros."""
    finite = np.where(np.isfinite(vectors).all(axis=-1, keepdims=True), vectors, 0).astype(np.float32)
    length = np.linalg.norm(finite, axis=-1, keepdims=True)
    return (finite / np.where(length > 0, length, 1)).astype(np.float32)
