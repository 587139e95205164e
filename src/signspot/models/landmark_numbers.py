"""What the landmark encoder is told about each frame: hand shapes, hand places, the body, and how they relate.

Everything is in body coordinates (see `body`). A hand is described as a right hand, so that one network reads both: the
left hand arrives mirrored. Gaps of a hand are bridged; where it was not found, the wrist of the pose stands in.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from signspot.models.body import WRIST, Body, Part, bridged

_POSE = (0, 2, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)  # nose, eyes, ears, mouth, shoulders, elbows, wrists
_ELBOWS_AND_WRISTS = (13, 14, 15, 16)
_MOUTH = (9, 10)
_LEFT_WRIST, _RIGHT_WRIST = 15, 16  # of the pose
_TIPS = (4, 8, 12, 16, 20)
_INDEX_KNUCKLE, _MIDDLE_KNUCKLE, _LITTLE_KNUCKLE = 5, 9, 17
# Distances tell hand shapes apart however the hand is turned: tips to tips, to the wrist, and to the knuckles.
_NEAR = (
    *((first, second) for number, first in enumerate(_TIPS) for second in _TIPS[number + 1 :]),
    *((tip, WRIST) for tip in _TIPS),
    *((4, 5), (4, 9), (4, 6), (8, 5), (12, 9), (16, 13), (20, 17)),
)
_STEPS = 5.0  # brings motion from one frame to the next to the size of places
_SMALLEST_HAND = 0.05  # shoulder widths: what is smaller is a mistake of the detector
_TINY = 1e-6  # keeps the gradient of a length finite at zero

BODY_NUMBERS = 4 * len(_POSE) + len(_ELBOWS_AND_WRISTS)
SHAPE_NUMBERS = 20 * 3 + len(_NEAR) + 3 + 3 * len(_TIPS)
PLACE_NUMBERS = 4 * (2 + len(_TIPS)) + 4 + 3
RELATION_NUMBERS = 12 + 9


@dataclass(frozen=True, slots=True, eq=False)
class HandNumbers:
    """A hand over the frames of windows."""

    shape: Tensor  # (B, T, SHAPE_NUMBERS)
    place: Tensor  # (B, T, PLACE_NUMBERS)
    is_known: Tensor  # (B, T) bool: whether the shape means anything
    wrist: Tensor  # (B, T, 2) in body coordinates, mirrored as the hand is


@dataclass(frozen=True, slots=True, eq=False)
class FrameNumbers:
    """All that the encoder is told."""

    body: Tensor  # (B, T, BODY_NUMBERS)
    left: HandNumbers
    right: HandNumbers
    relation: Tensor  # (B, T, RELATION_NUMBERS)


def frame_numbers(body: Body) -> FrameNumbers:
    """Describe windows (B, T, ...) in body coordinates."""
    pose = body.pose.points
    mirror = pose.new_tensor([-1.0, 1.0, 1.0])
    left = _hand_numbers(
        Part(body.left.points * mirror, body.left.found), pose[:, :, _LEFT_WRIST] * pose.new_tensor([-1.0, 1, 1, 1])
    )
    right = _hand_numbers(body.right, pose[:, :, _RIGHT_WRIST])
    place = pose[:, :, _POSE, :2].flatten(2)
    seen = pose[:, :, _ELBOWS_AND_WRISTS, 3]
    relation = _relation(left.wrist * mirror[:2], right.wrist, pose)
    return FrameNumbers(torch.cat([place, motion(place), seen], dim=-1), left, right, relation)


def motion(numbers: Tensor) -> Tensor:
    """How far (B, T, n) moved since the frame before, in fifths; zero for the first frame."""
    return F.pad(_STEPS * (numbers[:, 1:] - numbers[:, :-1]), (0, 0, 1, 0))


def _hand_numbers(hand: Part, pose_wrist: Tensor) -> HandNumbers:
    """A right hand (B, T, 21, 3) and the same wrist (B, T, 4) as the pose sees it."""
    whole = bridged(hand)
    points = whole.points
    size = torch.linalg.vector_norm(points[:, :, _MIDDLE_KNUCKLE] - points[:, :, WRIST], dim=-1).mean(1)
    shape = (points - points[:, :, WRIST : WRIST + 1]) / size.clamp_min(_SMALLEST_HAND)[:, None, None, None]
    first, second = (list(ends) for ends in zip(*_NEAR, strict=True))
    normal = F.normalize(torch.linalg.cross(shape[:, :, _INDEX_KNUCKLE], shape[:, :, _LITTLE_KNUCKLE]), dim=-1)
    near, bending = _length(shape[:, :, first] - shape[:, :, second]), motion(shape[:, :, _TIPS].flatten(2))
    shape_numbers = torch.cat([shape[:, :, 1:].flatten(2), near, normal, bending], dim=-1)
    place = points[:, :, (WRIST, _MIDDLE_KNUCKLE, *_TIPS), :2].flatten(2)
    wrist = torch.where(hand.found[..., None], points[:, :, WRIST, :2], pose_wrist[..., :2])
    nearness = torch.exp(-whole.distance)[..., None]  # 1 where the hand was found
    known = whole.is_known[..., None].to(points.dtype)
    place_numbers = torch.cat([place, motion(place), wrist, motion(wrist), pose_wrist[..., 3:], nearness, known], -1)
    return HandNumbers(shape_numbers, place_numbers, whole.is_known, wrist)


def _relation(left: Tensor, right: Tensor, pose: Tensor) -> Tensor:
    """Where the wrists (B, T, 2) are from each other and from the face, and how fast they move."""
    mouth, nose = pose[:, :, _MOUTH, :2].mean(2), pose[:, :, 0, :2]
    apart, both = left - right, left + right
    offsets = torch.stack([apart, left - mouth, right - mouth, left - nose, right - nose], dim=2)
    speeds = torch.stack([motion(left), motion(right), motion(apart), motion(both / 2)], dim=2)
    places = torch.cat([apart, left - mouth, right - mouth, motion(apart), motion(both), both], dim=-1)
    return torch.cat([places, _length(offsets), _length(speeds)], dim=-1)


def _length(vectors: Tensor) -> Tensor:
    """(..., n, d) -> (..., n)."""
    length: Tensor = torch.linalg.vector_norm(vectors + _TINY, dim=-1)
    return length
