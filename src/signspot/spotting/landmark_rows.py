"""Landmarks compared as they are, without a network: the baseline that a trained model has to beat."""

from __future__ import annotations

import numpy as np

from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, FloatArray

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
