"""Dynamic time warping of windows against entries: a baseline that knows of speed and of nothing else.

A path leads from the first frames of both to their last ones, in steps of one frame on either side or on both; a step
on both counts twice (Sakoe and Chiba's symmetric form), so that every path has the weight T + S and no path gains by
being short. It keeps within `band` frames of the diagonal.
"""

from __future__ import annotations

import math

import numpy as np

from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, FloatArray

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


# Landmarks compared as they are, without a network: the baseline that a trained model has to beat.


_POSE = (0, 11, 12, 13, 14, 15, 16)  # nose, shoulders, elbows, wrists
_SHOULDERS = [11, 12]
_HAND_WEIGHT = 0.7  # of each of the 42 points of the hands against the 7 of the body


def raw_rows(windows: FloatArray) -> FloatArray:
    """Windows (n, 16, 258) -> unit rows: places in shoulder widths, zero where a part was not found."""
    if windows.shape[1:] != (CLIP_LENGTH, LANDMARK_DIM):
        raise ValueError(f"landmarks of shape {windows.shape} instead of (n, {CLIP_LENGTH}, {LANDMARK_DIM})")
    n = len(windows)
    pose = windows[..., :132].reshape(n, CLIP_LENGTH, 33, 4)
    hands = windows[..., 132:].reshape(n, CLIP_LENGTH, 2, 21, 3)
    shoulders = pose[:, :, _SHOULDERS, :2]
    centre = shoulders.mean(axis=(1, 2))[:, None, None]
    width = (
        np.linalg.norm(shoulders[:, :, 0] - shoulders[:, :, 1], axis=-1).mean(axis=1).clip(1e-4)[:, None, None, None]
    )
    parts = [(1.0, pose[:, :, _POSE, :2]), *((_HAND_WEIGHT, hands[:, :, side, :, :2]) for side in (0, 1))]
    placed = [
        np.where((part != 0).any(axis=(2, 3), keepdims=True), weight * (part - centre) / width, 0).reshape(n, -1)
        for weight, part in parts
    ]
    rows = np.concatenate(placed, axis=1)
    unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-12)
    return unit.astype(np.float32)
