"""A sign as its parts: where the hand is, how it moves, how the palm is turned, its shape; the same of the other hand.

Signs that differ in one part only (minimal pairs) look alike to a single vector: everything else agrees. So a sign is
kept as a row of its parts, which are compared one by one (see `form_judge`). Rows are told as if by right-handers, in
shoulder widths from between the shoulders; depth counts from the shoulders. Time is 32 frames from where the hands
begin to move to where they rest again; the sign itself, without the way up and down, lies in the middle of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import LANDMARK_DIM, FloatArray
from signspot.evaluation.ranking import Bools, Floats

N_FRAMES = 32  # of a whole sign with its way up and down
_PLACED = slice(6, 26)  # of them: the sign itself
CORE = slice(8, 25)  # of them: surely the sign, whoever signs it
_QUARTERS = (slice(5, 11), slice(11, 16), slice(16, 21), slice(21, 27))  # a shape and a palm may change

_SHOULDERS = (11, 12)  # of the pose
_ARMS = ((14, 16, 18, 20, 22), (13, 15, 17, 19, 21))  # elbow, wrist, little finger, index, thumb: right, left
_HANDS = (slice(195, 258), slice(132, 195))  # right, left
_PALM, _KNUCKLES = [0, 5, 9, 13, 17], [5, 9, 13, 17]
_INDEX, _LITTLE = 5, 17
_SMALLEST_HAND, _SMALLEST_BODY = 0.05, 1e-4
_AT_REST, _RAISED = 0.1, 0.35  # shoulder widths from where a hand was at first
_JITTER, _SWAY = 1.0, 4.0  # frames over which detected points, and the body, are smoothed

PLACE = slice(0, 18)  # palm, and the five points of the arm
PATH = slice(18, 114)  # of the palm, from its middle: (32, 3)
TURN = slice(114, 150)  # of the palm: across, along and out of it, by quarters (4, 3, 3)
SHAPE = slice(150, 390)  # joints as the palm sees them, by quarters (4, 20, 3)
RAISED = 390  # 0..1: a hand at rest is no part of a sign
SIDE = 391  # numbers of one hand
ROW = 2 * SIDE  # the hand that leads, then the other
SEEN = 2 * ROW + 1  # as a right-hander, as a left-hander, and which of the two is likelier


@dataclass(frozen=True, slots=True, eq=False)
class _Hand:
    """One hand over the frames of a sign; zeros where it is never found."""

    joints: Floats  # (32, 21, 3), depth from the wrist
    arm: Floats  # (32, 5, 3)


def form_row(points: FloatArray, moving: FrameSpan) -> FloatArray:
    """The parts of a sign (1565,), seen both ways, from landmarks (n, 258); ValueError where no body or hand is found.

    x and y are in one unit, as everywhere where bodies are measured. `moving` is the part between the rests.
    """
    if points.ndim != 2 or points.shape[1] != LANDMARK_DIM or not 0 <= moving.start < moving.stop <= len(points):
        raise ValueError(f"no sign in the frames {moving.start} to {moving.stop} of landmarks of shape {points.shape}")
    hands = _hands(points.astype(np.float64), moving)
    lead = np.log((_motion(hands[0]) + 0.02) / (_motion(hands[1]) + 0.02))
    mirror = np.array([-1.0, 1.0, 1.0])
    mirrored = [_Hand(hand.joints * mirror, hand.arm * mirror) for hand in hands[::-1]]
    row: FloatArray = np.concatenate([*map(_side, hands), *map(_side, mirrored), [lead]]).astype(np.float32)
    return row


def _hands(points: Floats, moving: FrameSpan) -> list[_Hand]:
    """The right hand and the left in body coordinates, brought to 32 frames."""
    pose = points[:, :132].reshape(-1, 33, 4)[..., :3]
    found = _found(pose)
    if not found[moving.start : moving.stop].any():
        raise ValueError("no body is found in it")
    pose = _bridged(pose, found)
    shoulders = pose[:, _SHOULDERS]
    width = max(float(np.linalg.norm((shoulders[:, 0] - shoulders[:, 1])[:, :2], axis=-1).mean()), _SMALLEST_BODY)
    centre = _smoothed(shoulders.mean(axis=1), _SWAY)
    hands, n_found = [], 0
    for arm, numbers in zip(_ARMS, _HANDS, strict=True):
        joints = points[:, numbers].reshape(-1, 21, 3)
        found = _found(joints)
        n_found += int(found[moving.start : moving.stop].sum())
        if found.any():
            # A lost hand is still at its wrist, which the pose rarely loses.
            at_wrist = np.concatenate([pose[:, arm[1:2], :2], joints[:, :1, 2:]], axis=-1)
            joints = _bridged(joints - at_wrist, found)
            joints[..., :2] += pose[:, arm[1:2], :2] - centre[:, None, :2]
        else:
            joints = np.zeros_like(joints)
        ways = (_smoothed(one / width, _JITTER) for one in (joints, pose[:, arm] - centre[:, None]))
        hands.append(_Hand(*(_brought(way, moving) for way in ways)))
    if not n_found:
        raise ValueError("no hand is found in it")
    return hands


def _side(hand: _Hand) -> Floats:
    """(391,) the parts of one hand."""
    palm = _palm(hand)
    place = np.concatenate([palm[_PLACED].mean(axis=0), hand.arm[_PLACED].mean(axis=0).ravel()])
    joints = hand.joints - hand.joints[:, :1]
    size = np.linalg.norm(joints[4:28, _KNUCKLES].mean(axis=1), axis=-1).max()
    quarters = np.stack([joints[part].mean(axis=0) for part in _QUARTERS]) / max(float(size), _SMALLEST_HAND)
    turn = _turn(quarters)
    shape = np.einsum("qij,qkj->qki", turn, quarters)[:, 1:]
    away = float(np.linalg.norm((place[:3] - palm[:2].mean(axis=0))[:2]))
    raised = np.clip((away - _AT_REST) / (_RAISED - _AT_REST), 0, 1)
    path = palm - palm[CORE].mean(axis=0)
    return np.concatenate([place, path.ravel(), turn.ravel(), shape.ravel(), [raised]])


def _palm(hand: _Hand) -> Floats:
    """(32, 3) where the palm is: as the hand says, where it is found; in depth as the pose says."""
    palm: Floats = hand.arm[:, 1:].mean(axis=1)
    if hand.joints.any():
        palm[:, :2] = hand.joints[:, _PALM, :2].mean(axis=1)
    return palm


def _turn(hand: Floats) -> Floats:
    """(n, 21, 3) -> (n, 3, 3): unit vectors across the palm, along it, and out of it."""
    along = _unit(hand[:, _KNUCKLES].mean(axis=1) - hand[:, 0])
    across = hand[:, _INDEX] - hand[:, _LITTLE]
    across = _unit(across - (across * along).sum(axis=-1, keepdims=True) * along)
    return np.stack([across, along, np.cross(across, along)], axis=-2)


def _motion(hand: _Hand) -> float:
    """How far a hand travels, in shoulder widths: the hand that leads travels more."""
    return float(np.linalg.norm(np.diff(_palm(hand)[:, :2], axis=0), axis=-1).sum())


def _found(points: Floats) -> Bools:
    """(n,) the frames in which some points (n, k, 3) are known."""
    return np.asarray(points.any(axis=(1, 2)) & np.isfinite(points).all(axis=(1, 2)))


def _bridged(points: Floats, found: Bools) -> Floats:
    """Points (n, k, 3) with straight lines where they are not found, and held still before and after."""
    known, frames = np.flatnonzero(found), np.arange(len(points))
    after = np.clip(np.searchsorted(known, frames), 0, len(known) - 1)
    before = np.maximum(after - (known[after] > frames), 0)
    gap = np.maximum(known[after] - known[before], 1)
    share = np.clip((frames - known[before]) / gap, 0, 1)[:, None, None]
    return np.asarray(points[known[before]] * (1 - share) + points[known[after]] * share)


def _smoothed(points: Floats, frames: float) -> Floats:
    """A Gaussian over time; the ends are held still."""
    reach = int(np.ceil(3 * frames))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / frames) ** 2)
    padded = np.concatenate([points[:1].repeat(reach, axis=0), points, points[-1:].repeat(reach, axis=0)])
    shifted = (weight * padded[by : by + len(points)] for by, weight in enumerate(weights / weights.sum()))
    return np.asarray(sum(shifted))


def _brought(points: Floats, moving: FrameSpan) -> Floats:
    """The frames of `moving`, brought to 32."""
    at = moving.start + (np.arange(N_FRAMES) + 0.5) * (len(moving) / N_FRAMES) - 0.5
    at = np.clip(at, 0, len(points) - 1)
    before = np.floor(at).astype(np.int64)
    after = np.minimum(before + 1, len(points) - 1)
    share = (at - before)[:, None, None]
    return np.asarray(points[before] * (1 - share) + points[after] * share)


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-6))
