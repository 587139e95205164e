"""Two signs compared part by part: where the hand is, how it moves, and its shape; the same of the other hand.

Signs that differ in one part only (minimal pairs) look alike to a single vector: everything else agrees. So a sign is
kept as a row of its parts, two rows differ by six numbers, and a `FormJudge` says how likely so much difference is for
two clips of one form. Rows are told as if by right-handers, in shoulder widths from between the shoulders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from signspot.domain.tracks import LANDMARK_DIM, FloatArray
from signspot.evaluation.presence import Logistic
from signspot.evaluation.ranking import Bools, Floats
from signspot.spotting.multi_rate import points_at
from signspot.spotting.warping import warped_distances

PARTS = ("place", "path", "hand", "other place", "other path", "other hand")
N_FRAMES = 32  # of a whole sign with its way up and down
_STROKE = slice(8, 25)  # of them: the sign itself
_THIRDS = (slice(8, 14), slice(14, 19), slice(19, 25))  # of the stroke: a shape may change
_N_STROKE = _STROKE.stop - _STROKE.start
HAND_NUMBERS = len(_THIRDS) * 20 * 3
_SIDE = 3 + 3 * _N_STROKE + HAND_NUMBERS  # place, path, shape of one hand
ROW = 2 * _SIDE + 1  # both hands, and how far the other one is raised

_SHOULDERS, _WRISTS = [11, 12], (16, 15)  # of the pose; wrists right, left
_PALM = [0, 5, 9, 13, 17]  # wrist and knuckles
_KNUCKLE = 9
_DEPTH = 0.35  # a detector guesses depth about four times worse than what it sees
_SMALLEST_HAND, _SMALLEST_BODY = 0.05, 1e-4
_AT_REST, _RAISED = 0.1, 0.35  # shoulder widths from where a hand was at first
_ONLY_ONE = 0.3  # squared shoulder widths: one sign has a second hand and the other has not
_BAND = 2  # frames by which two paths may be apart
_STILL = 0.01  # squared shoulder widths: paths smaller than about this are compared by their size alone
_FARTHEST = 5.0  # usual distances: beyond it, more makes no difference


def whole_sign(points: FloatArray) -> FloatArray:
    """Landmarks (n, 258) of the part of a clip that moves -> (32, 258)."""
    return points_at(points, (np.arange(N_FRAMES) + 0.5) * (len(points) / N_FRAMES) - 0.5)


def form_row(sign: FloatArray, *, left_handed: bool = False) -> FloatArray:
    """The parts (469,) of a whole sign (32, 258); ValueError where no body, or nothing of a hand, was found.

    x and y are in one unit, as everywhere where bodies are measured.
    """
    if sign.shape != (N_FRAMES, LANDMARK_DIM):
        raise ValueError(f"landmarks of shape {sign.shape} instead of ({N_FRAMES}, {LANDMARK_DIM})")
    pose = sign[:, :132].reshape(N_FRAMES, 33, 4)
    found: Bools = np.asarray(pose[..., :3].any(axis=(1, 2)) & np.isfinite(pose).all(axis=(1, 2)))
    if not found.any():
        raise ValueError("no body is found in it")
    shoulders = pose[found][:, _SHOULDERS, :2]
    centre = shoulders.mean(axis=(0, 1))
    width = max(float(np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1).mean()), _SMALLEST_BODY)
    sides = []
    for number, wrist in enumerate(_WRISTS):
        hand = sign[:, 195 - 63 * number : 258 - 63 * number].reshape(N_FRAMES, 21, 3)
        sides.append(_side(_placed(hand, centre, width), _wrist(pose, found, wrist, centre, width)))
    if not any(hand.any() for hand, _ in sides):
        raise ValueError("no hand is found in it")
    mirror = np.array([-1, 1, 1], np.float32) if left_handed else np.ones(3, np.float32)
    rows = [_part_numbers(hand * mirror, palm * mirror) for hand, palm in (sides[::-1] if left_handed else sides)]
    row: FloatArray = np.r_[rows[0], rows[1], _raised(sides[0 if left_handed else 1][1])].astype(np.float32)
    return row


@dataclass(frozen=True, slots=True, eq=False)
class FormJudge:
    """How likely two clips show one form, by the six numbers in which they differ."""

    hand_axes: FloatArray  # (180, k) shapes of hands -> numbers in which clips of one form vary by 1
    usual: Floats  # (6,) what nine of ten pairs of one form stay below
    logistic: Logistic  # of `judged_columns`

    def distances(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Rows (n, 469) and (m, 469) -> (n, m, 6), from 0; in the order of PARTS."""
        apart = np.zeros((len(first), len(second), len(PARTS)), np.float32)
        raised, other_raised = first[:, -1:], second[:, -1:].T
        for side in (0, 1):
            one, other = (rows[:, side * _SIDE : (side + 1) * _SIDE] for rows in (first, second))
            apart[..., 3 * side] = _squared(one[:, :3], other[:, :3])
            apart[..., 3 * side + 1] = _path_distances(one[:, 3:-HAND_NUMBERS], other[:, 3:-HAND_NUMBERS])
            shapes = (rows[:, -HAND_NUMBERS:] @ self.hand_axes for rows in (one, other))
            apart[..., 3 * side + 2] = _squared(*shapes) / (2 * self.hand_axes.shape[1])
        apart[..., 3:] *= np.minimum(raised, other_raised)[..., None]
        apart[..., 3] += _ONLY_ONE * np.abs(raised - other_raised)
        return apart

    def log_odds(self, distances: FloatArray) -> Floats:
        """(..., 6) -> (...): above 0 where one form is likelier than two."""
        columns = judged_columns(distances / self.usual)
        odds: Floats = self.logistic.log_odds(columns.reshape(-1, columns.shape[-1])).reshape(distances.shape[:-1])
        return odds


def judged_columns(shares: Floats) -> Floats:
    """Distances (..., 6) over the usual ones -> (..., 13): each on two scales, and the largest.

    Two forms may differ in one part only, so the part that differs most says most.
    """
    largest = shares.max(axis=-1, keepdims=True)
    return np.concatenate(
        [np.log(shares + 0.05), np.log(largest + 0.05), np.minimum(shares, _FARTHEST)], axis=-1, dtype=np.float64
    )


def _placed(hand: FloatArray, centre: FloatArray, width: float) -> FloatArray:
    """A hand (32, 21, 3) in shoulder widths, without gaps; zeros where it is never found."""
    found = np.flatnonzero(hand.any(axis=(1, 2)) & np.isfinite(hand).all(axis=(1, 2)))
    if not len(found):
        return np.zeros_like(hand)
    flat = ((hand[found] - np.r_[centre, 0.0]) / width).reshape(len(found), -1)
    frames = np.arange(len(hand))
    after = np.clip(np.searchsorted(found, frames), 0, len(found) - 1)
    before = np.maximum(after - (found[after] > frames), 0)
    gap = np.maximum(found[after] - found[before], 1)
    share = np.clip((frames - found[before]) / gap, 0, 1)[:, None]
    return np.asarray(flat[before] * (1 - share) + flat[after] * share, np.float32).reshape(hand.shape)


def _wrist(pose: FloatArray, found: Bools, wrist: int, centre: FloatArray, width: float) -> FloatArray:
    """(32, 3) the wrist as the pose sees it; its depth is measured from the shoulders."""
    frames = np.arange(len(pose))
    place = (pose[:, wrist, :3] - np.r_[centre, 0.0]) / width
    place[:, 2] -= pose[:, _SHOULDERS, 2].mean(axis=1) / width
    seen = np.flatnonzero(found)
    return np.stack([np.interp(frames, seen, column[seen]) for column in place.T], axis=1).astype(np.float32)


def _side(hand: FloatArray, wrist: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A hand, and where its palm is (32, 3): as the hand says, in depth as the pose says."""
    palm = wrist.copy()
    if hand.any():
        palm[:, :2] = hand[:, _PALM, :2].mean(axis=1)
    return hand, palm


def _part_numbers(hand: FloatArray, palm: FloatArray) -> FloatArray:
    """(234,) place, path and shape of one hand."""
    moves = (palm * np.array([1, 1, _DEPTH], np.float32))[_STROKE]
    place = moves.mean(axis=0)
    size = np.linalg.norm(hand[4:28, _KNUCKLE] - hand[4:28, 0], axis=-1).max()
    shape = (hand[:, 1:] - hand[:, :1]) / max(float(size), _SMALLEST_HAND)
    shapes = np.stack([shape[third].mean(axis=0) for third in _THIRDS])
    numbers: FloatArray = np.r_[place, (moves - place).ravel(), shapes.ravel()]
    return numbers


def _raised(palm: FloatArray) -> float:
    """0..1 how far a hand has come from where it was at first: a hand at rest is no part of a sign."""
    away = float(np.linalg.norm((palm[_STROKE].mean(axis=0) - palm[:2].mean(axis=0))[:2]))
    return float(np.clip((away - _AT_REST) / (_RAISED - _AT_REST), 0, 1))


def _squared(one: FloatArray, other: FloatArray) -> FloatArray:
    """(n, d) and (m, d) -> (n, m) squared distances."""
    apart: FloatArray = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.maximum(apart, 0)


def _path_distances(one: FloatArray, other: FloatArray) -> FloatArray:
    """(n, 51) and (m, 51) -> (n, m): how far two paths are apart, as a share of their size."""
    size, other_size = ((rows**2).sum(axis=1) / _N_STROKE for rows in (one, other))
    apart = warped_distances(one.reshape(-1, _N_STROKE, 3), other.reshape(-1, _N_STROKE, 3), _BAND)
    share: FloatArray = apart / ((size[:, None] + other_size) / 2 + np.float32(_STILL))
    return share
