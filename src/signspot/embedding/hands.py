"""Which hand is it: hands found without a body are given to the arm that lacks one.

MediaPipe Holistic looks for a hand only where it takes the wrist to be, and loses hands that the hands-only detector
sees. That one knows no body and no sides. Here its hands are matched to the sides that Holistic left empty. Distances
are measured in shoulder widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from signspot.domain.tracks import HAND_NUMBERS, POSE_NUMBERS, FloatArray

SIDES = (0, 1)  # left and right, of the signer
_SHOULDERS, _WRISTS = (11, 12), (15, 16)  # of the pose
_NEAR = 0.25  # from the wrist of the pose, or from where the hand was
_OTHER_SIDE = 0.2  # what it counts against a hand that it looks like one of the other side
_MEMORY = 3  # pictures for which a hand that is lost is looked for where it was
_SAME = 0.5  # mean distance of the 21 points, in sizes of the hand: below, two findings are one hand
_SIZES = (0.1, 1.2)  # of a hand, stretched or closed, near or far


@dataclass(frozen=True, slots=True, eq=False)
class Hand:
    """A hand that was found without a body."""

    points: FloatArray  # (21, 3) in fractions of the picture
    side: int  # which side it looks like


class MissingHands:
    """Follows the hands of one signer through a video, picture by picture, and fills in those that are missing."""

    def __init__(self) -> None:
        self._last: list[FloatArray | None] = [None, None]  # (21, 3), where each hand was seen last
        self._age = [0, 0]  # pictures since then

    def wanted(self, numbers: FloatArray) -> bool:
        """Whether a hand is missing in the landmarks (258,) of a picture, though it should be in the picture."""
        pose = _pose(numbers)
        return bool(pose.any()) and any(
            not _hand(numbers, side).any() and (_is_inside(pose[_WRISTS[side]]) or self._remembered(side) is not None)
            for side in SIDES
        )

    def filled(self, numbers: FloatArray, hands: Sequence[Hand], width: int, height: int) -> FloatArray:
        """The landmarks (258,) of the next picture, with those of the hands that fit a side that has none."""
        filled = numbers.copy()
        pose, scale = _pose(numbers), np.array((width, height), np.float32)
        unit = float(np.linalg.norm((pose[_SHOULDERS[0], :2] - pose[_SHOULDERS[1], :2]) * scale))
        if unit > 0:
            for side, hand in self._matched(numbers, hands, scale / unit).items():
                _hand(filled, side)[:] = hand.points
        self._remember(filled)
        return filled

    def _matched(self, numbers: FloatArray, hands: Sequence[Hand], scale: FloatArray) -> dict[int, Hand]:
        """The hand of each side that has none: as many as possible, then the nearest."""
        missing = [side for side in SIDES if not _hand(numbers, side).any()]
        known = [_hand(numbers, side) for side in SIDES if side not in missing]
        free: list[Hand] = []
        for hand in hands:
            others = [*known, *(one.points for one in free)]
            if _is_hand(hand.points, scale) and not any(_are_one(hand.points, other, scale) for other in others):
                free.append(hand)
        best: dict[int, Hand] = {}
        least = (0, 0.0)
        for order in permutations([*free, *[None] * len(missing)], len(missing)):
            pairs = {side: hand for side, hand in zip(missing, order, strict=True) if hand is not None}
            costs = [self._cost(numbers, side, hand, scale) for side, hand in pairs.items()]
            if np.isfinite(costs).all() and (-len(pairs), sum(costs)) < least:
                best, least = pairs, (-len(pairs), sum(costs))
        return best

    def _cost(self, numbers: FloatArray, side: int, hand: Hand, scale: FloatArray) -> float:
        """How badly a hand fits a side; infinite where it cannot be the hand of this side."""
        pose, wrist = _pose(numbers), hand.points[0]
        own, other = (_distance(wrist, pose[_WRISTS[each]], scale) for each in (side, 1 - side))
        before = self._remembered(side)
        near = own if before is None else min(own, _distance(wrist, before[0], scale))
        is_doubtful = hand.side != side
        if near > _NEAR or (is_doubtful and other < own):
            return np.inf
        return near + _OTHER_SIDE * is_doubtful

    def _remembered(self, side: int) -> FloatArray | None:
        return self._last[side] if self._age[side] < _MEMORY else None

    def _remember(self, numbers: FloatArray) -> None:
        for side in SIDES:
            hand = _hand(numbers, side)
            if hand.any():
                self._last[side], self._age[side] = hand.copy(), 0
            else:
                self._age[side] += 1


def _pose(numbers: FloatArray) -> FloatArray:
    return numbers[:POSE_NUMBERS].reshape(-1, 4)


def _hand(numbers: FloatArray, side: int) -> FloatArray:
    first = POSE_NUMBERS + side * HAND_NUMBERS
    return numbers[first : first + HAND_NUMBERS].reshape(-1, 3)


def _is_inside(point: FloatArray) -> bool:
    return bool(((point[:2] >= 0) & (point[:2] <= 1)).all())


def _distance(first: FloatArray, second: FloatArray, scale: FloatArray) -> float:
    return float(np.linalg.norm((first[:2] - second[:2]) * scale))


def _size(hand: FloatArray, scale: FloatArray) -> float:
    return float((np.ptp(hand[:, :2], axis=0) * scale).max())


def _is_hand(points: FloatArray, scale: FloatArray) -> bool:
    return bool(np.isfinite(points).all()) and _SIZES[0] <= _size(points, scale) <= _SIZES[1]


def _are_one(first: FloatArray, second: FloatArray, scale: FloatArray) -> bool:
    apart = np.linalg.norm((first[:, :2] - second[:, :2]) * scale, axis=1).mean()
    return bool(apart < _SAME * max(_size(first, scale), _size(second, scale)))
