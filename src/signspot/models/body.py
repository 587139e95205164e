"""Landmarks as a network wants them: the parts of a frame, the mirror image, and the body's own coordinates.

A frame is 258 numbers in the MediaPipe layout: pose 33 x (x, y, z, visibility), left hand 21 x (x, y, z), right hand
21 x (x, y, z). A part that was not detected is all zeros; a part that holds a number that is not finite counts as not
detected. x and y are expected in one unit: where y is in picture heights, x is in picture heights too.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from signspot.domain.tracks import LANDMARK_DIM

POSE_POINTS, POSE_NUMBERS = 33, 4
HAND_POINTS, HAND_NUMBERS = 21, 3
LEFT_SHOULDER, RIGHT_SHOULDER = 11, 12
WRIST = 0  # of a hand

_POSE_DIM = POSE_POINTS * POSE_NUMBERS
_HAND_DIM = HAND_POINTS * HAND_NUMBERS
# Eyes, then ears, mouth, arms, hips, legs, which alternate left and right; the nose (0) stays.
_POSE_PAIRS = ((1, 4), (2, 5), (3, 6), *((left, left + 1) for left in range(7, POSE_POINTS, 2)))
_SMALLEST_SCALE = 1e-4  # of a picture: a body this small carries nothing
_FARTHEST = 10.0  # shoulder widths: beyond it a landmark is a mistake of the detector


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of the body over some frames."""

    points: Tensor  # (..., n, 3 or 4) float32: x, y, z and for the pose visibility; zero where not found
    found: Tensor  # (...) bool


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """The parts of a signer over the same frames."""

    pose: Part  # 33 x 4
    left: Part  # 21 x 3
    right: Part  # 21 x 3


@dataclass(frozen=True, slots=True, eq=False)
class BridgedPart:
    """A part of the body without gaps."""

    points: Tensor  # (B, T, n, 3 or 4); zero where the part is never found in the window
    is_known: Tensor  # (B, T) bool: whether the part is found anywhere in the window
    distance: Tensor  # (B, T) float32: frames to the nearest in which it was found; T where there is none


def body_of(frames: Tensor) -> Body:
    """Split frames (..., 258) into pose and hands."""
    if frames.shape[-1:] != (LANDMARK_DIM,):
        raise ValueError(f"landmarks of shape {tuple(frames.shape)} instead of (..., {LANDMARK_DIM})")
    pose, left, right = torch.split(frames.float(), [_POSE_DIM, _HAND_DIM, _HAND_DIM], dim=-1)
    return Body(_part(pose, POSE_NUMBERS), _part(left, HAND_NUMBERS), _part(right, HAND_NUMBERS))


def mirrored(frames: Tensor) -> Tensor:
    """The same signing by the signer's mirror image: (..., 258) -> (..., 258), x -> 1 - x, left and right swapped.

    What was not detected stays so. Mirroring twice gives the landmarks back, up to rounding. The 1 is the width of a
    picture in MediaPipe's unit; in another unit the signer is only shifted, which body coordinates do not see.
    """
    body = body_of(frames)
    order = list(range(POSE_POINTS))
    for left, right in _POSE_PAIRS:
        order[left], order[right] = right, left
    pose = Part(body.pose.points[..., order, :], body.pose.found)
    return torch.cat([_flipped(part).flatten(-2) for part in (pose, body.right, body.left)], dim=-1).to(frames.dtype)


def in_body_coordinates(body: Body) -> Body:
    """Windows (B, T, ...) in shoulder widths from between the shoulders, limited to 10.

    Centre and width are averages over the frames of a window in which the body was found, so that a shaking detector
    does not shake the hands. Without a body in the whole window the hands stand in: their mean and their spread.
    Moving the signer in the picture or scaling the picture changes nothing. z is only scaled; visibility is kept.
    """
    centre, scale = _body_frame(body)

    def placed(part: Part) -> Part:
        plane = (part.points[..., :2] - centre[:, None, None]) / scale[:, None, None, None]
        depth = part.points[..., 2:3] / scale[:, None, None, None]
        place = torch.cat([plane, depth], dim=-1).clamp(-_FARTHEST, _FARTHEST)
        points = torch.cat([place, part.points[..., 3:]], dim=-1)
        return Part(torch.where(part.found[..., None, None], points, 0.0), part.found)

    return Body(placed(body.pose), placed(body.left), placed(body.right))


def bridged(part: Part) -> BridgedPart:
    """Fill the gaps of windows (B, T, ...): on a straight line between two frames, at the ends as the nearest frame."""
    n_windows, n_frames = part.found.shape
    frame = torch.arange(n_frames, device=part.found.device).expand(n_windows, n_frames)
    before = torch.where(part.found, frame, -1).cummax(dim=1).values
    after = n_frames - 1 - torch.where(part.found.flip(1), frame, -1).cummax(dim=1).values.flip(1)
    has_before, has_after = before >= 0, after < n_frames
    first = torch.where(has_before, before, after).clamp(0, n_frames - 1)
    last = torch.where(has_after, after, before).clamp(0, n_frames - 1)
    share = torch.where(last > first, (frame - first) / (last - first).clamp_min(1), 0.0)[..., None, None]
    points = _frames(part.points, first) * (1 - share) + _frames(part.points, last) * share
    behind = torch.where(has_before, frame - before, n_frames)
    ahead = torch.where(has_after, after - frame, n_frames)
    return BridgedPart(points, has_before | has_after, torch.minimum(behind, ahead).float())


def _frames(points: Tensor, numbers: Tensor) -> Tensor:
    """The frames (B, T) of each window of (B, T, n, d)."""
    return points.gather(1, numbers[..., None, None].expand(-1, -1, *points.shape[2:]))


def _part(numbers: Tensor, per_point: int) -> Part:
    found = (numbers != 0).any(-1) & numbers.isfinite().all(-1)
    points = numbers.reshape(*numbers.shape[:-1], numbers.shape[-1] // per_point, per_point)
    return Part(torch.where(found[..., None, None], points, 0.0), found)


def _flipped(part: Part) -> Tensor:
    x = torch.where(part.found[..., None, None], 1 - part.points[..., :1], 0.0)
    return torch.cat([x, part.points[..., 1:]], dim=-1)


def _body_frame(body: Body) -> tuple[Tensor, Tensor]:
    """The origin (B, 2) and the unit (B,) of each window."""
    shoulders = body.pose.points[..., [LEFT_SHOULDER, RIGHT_SHOULDER], :2]  # (B, T, 2, 2)
    width = torch.linalg.vector_norm(shoulders[..., 0, :] - shoulders[..., 1, :], dim=-1, keepdim=True)
    found = body.pose.found
    by_shoulders = _mean_where(shoulders.mean(-2), found), _mean_where(width, found)[:, 0]

    hands = torch.cat([body.left.points, body.right.points], dim=1)[..., :2]  # (B, 2 T, 21, 2)
    hand_found = torch.cat([body.left.found, body.right.found], dim=1)
    middle = _mean_where(hands.mean(-2), hand_found)
    distance = torch.linalg.vector_norm(hands - middle[:, None, None], dim=-1).mean(-1, keepdim=True)
    by_hands = middle, _mean_where(distance, hand_found)[:, 0]

    has_body = found.any(-1)
    centre = torch.where(has_body[:, None], by_shoulders[0], by_hands[0])
    return centre, torch.where(has_body, by_shoulders[1], by_hands[1]).clamp_min(_SMALLEST_SCALE)


def _mean_where(values: Tensor, chosen: Tensor) -> Tensor:
    """The mean of the chosen rows of (B, n, d): (B, d), zero where none is chosen."""
    kept = torch.where(chosen[..., None], values, 0.0)
    return kept.sum(1) / chosen.sum(1).clamp_min(1)[:, None]
