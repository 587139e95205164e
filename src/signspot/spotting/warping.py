"""Dynamic time warping of windows against entries: a baseline that knows of speed and of nothing else.

A path leads from the first frames of both to their last ones, in steps of one frame on either side or on both; a step
on both counts twice (Sakoe and Chiba's symmetric form), so that every path has the weight T + S and no path gains by
being short. It keeps within `band` frames of the diagonal.
"""

from __future__ import annotations

import math

import numpy as np

from signspot.domain.tracks import FloatArray

_PAIRS_AT_ONCE = 500_000  # a row of cells of as many pairs is in memory at once


def warped_distances(windows: FloatArray, entries: FloatArray, band: int = 4) -> FloatArray:
    """The mean squared distance along the best path: windows (n, T, d), entries (m, S, d) -> (n, m) from 0.

    With `band` 0 and T = S the frames are compared one by one. Rows of numbers that are not finite give infinity.
    """
    if windows.ndim != 3 or entries.ndim != 3 or windows.shape[2] != entries.shape[2]:
        raise ValueError(f"cannot warp windows of shape {windows.shape} to entries of shape {entries.shape}")
    if band < 0 or not windows.shape[1] or not entries.shape[1]:
        raise ValueError(f"no path of band {band} between {windows.shape[1]} and {entries.shape[1]} frames")
    distances = np.empty((len(windows), len(entries)), np.float32)
    n_rows = max(1, _PAIRS_AT_ONCE // max(1, len(entries)))
    for first in range(0, len(windows), n_rows):
        distances[first : first + n_rows] = _block(windows[first : first + n_rows], entries, band)
    return distances


def _block(windows: FloatArray, entries: FloatArray, band: int) -> FloatArray:
    """The dynamic programme of all pairs together, one cell at a time."""
    n_frames, n_entry_frames = windows.shape[1], entries.shape[1]
    nowhere = np.full((len(windows), len(entries)), np.inf, np.float32)
    before: dict[int, FloatArray] = {}
    for i in range(n_frames):
        row: dict[int, FloatArray] = {}
        for j in _columns(i, n_frames, n_entry_frames, band):
            cost = _squared_distances(windows[:, i], entries[:, j])
            if i == j == 0:
                row[j] = 2 * cost
                continue
            one_side = np.minimum(before.get(j, nowhere), row.get(j - 1, nowhere))
            row[j] = np.minimum(one_side + cost, before.get(j - 1, nowhere) + 2 * cost)
        before = row
    return before[n_entry_frames - 1] / np.float32(n_frames + n_entry_frames)


def _columns(i: int, n_frames: int, n_entry_frames: int, band: int) -> range:
    """The frames of an entry within the band around the diagonal at frame i of a window."""
    if n_frames == 1:
        return range(n_entry_frames)
    slope = (n_entry_frames - 1) / (n_frames - 1)
    centre = round(i * slope)
    reach = band + math.ceil(slope) // 2  # on a steep diagonal, neighbouring rows touch only so
    return range(max(0, centre - reach), min(n_entry_frames, centre + reach + 1))


def _squared_distances(frames: FloatArray, others: FloatArray) -> FloatArray:
    """(n, d) and (m, d) -> (n, m); infinity where a number is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        squares = np.einsum("nd,nd->n", frames, frames)[:, None] + np.einsum("md,md->m", others, others)
        distances: FloatArray = np.maximum(squares - 2 * (frames @ others.T), 0)
    distances[~np.isfinite(distances)] = np.inf
    return distances
