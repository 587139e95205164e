"""Landmarks as small pictures: a drawn skeleton shows how somebody signs without showing the face."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PIL import Image, ImageDraw

from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import FloatArray, Pixels
from signspot.media.landmark_layout import HAND_LIMBS, HAND_POINTS, POSE_LIMBS, POSE_NUMBERS, SignerLandmarks
from signspot.media.thumbnails import TILE_HEIGHT, spread

Limb = tuple[int, int]  # the points at its ends

_PAPER, _BODY, _LEFT, _RIGHT = (250, 250, 248), (90, 90, 90), (0, 114, 178), (213, 94, 0)
_FINE = 4  # drawn so many times as large, then scaled down: smooth lines
_HIP = 23  # of the pose: what comes after it is legs
_LEAST_VISIBILITY = 0.3
_WIDEST = 4  # times its height


def skeletons(landmarks: SignerLandmarks, kept: FrameSpan | None = None, height: int = TILE_HEIGHT) -> list[Pixels]:
    """The pictures (height, W, 3) uint8 of a strip: at most six frames of a part, blank where nobody was found."""
    width = max(1, round(height * min(landmarks.aspect, _WIDEST)))
    part = landmarks.track.points if kept is None else landmarks.track.points[kept.start : kept.stop]
    return [_drawn(part[frame], width, height) for frame in spread(len(part))] if len(part) else []


def _drawn(points: FloatArray, width: int, height: int) -> Pixels:
    image = Image.new("RGB", (_FINE * width, _FINE * height), _PAPER)
    pen = ImageDraw.Draw(image)
    size = np.array((_FINE * width, _FINE * height), np.float32)
    pose = points[:POSE_NUMBERS].reshape(-1, 4)
    seen = (pose[:, 3] >= _LEAST_VISIBILITY) & (np.arange(len(pose)) <= _HIP + 1)
    _limbs(pen, pose[:, :2] * size, [ends for ends in POSE_LIMBS if seen[list(ends)].all()], _BODY)
    for hand, colour in zip(points[POSE_NUMBERS:].reshape(2, len(HAND_POINTS), 3), (_LEFT, _RIGHT), strict=True):
        if hand.any():
            _limbs(pen, hand[:, :2] * size, HAND_LIMBS, colour)
    return np.asarray(image.resize((width, height), Image.Resampling.BOX))


def _limbs(pen: ImageDraw.ImageDraw, places: FloatArray, limbs: Iterable[Limb], colour: tuple[int, int, int]) -> None:
    # A point far outside is a mistake of the detector, and too large a number for the pen.
    inside = np.clip(np.nan_to_num(places), -1e4, 1e4)
    for first, second in limbs:
        pen.line([tuple(inside[first].tolist()), tuple(inside[second].tolist())], fill=colour, width=_FINE)
