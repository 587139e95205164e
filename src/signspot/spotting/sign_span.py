"""Which frames of a clip of one sign show the sign: without the hands' way up and down, and without their rest.

Dictionaries show people who rest before and after the sign, with their arms hanging or their hands before the belly.
Positions are counted in shoulder widths below the shoulders, so the unit of the landmarks does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import LANDMARK_DIM, FloatArray
from signspot.spotting.multi_rate import window_at

_PARTS = (slice(0, 132), slice(132, 195), slice(195, LANDMARK_DIM))  # pose, left hand, right hand
_SHOULDERS, _WRISTS = (11, 12), (15, 16)  # of the pose
_RAISED_HAND, _RAISED_WRIST = 1.35, 0.8  # shoulder widths below the shoulders: what is lower hangs
_LOW = 0.75  # shoulder widths below the shoulders: hands may rest there, before the belly
_NEAR = 0.25  # shoulder widths from where they rest: what goes further does not rest
_STEP = 0.06  # shoulder widths: hands that rest tremble by less
_WAY, _TO_AND_FRO = 0.6, 2.0  # shoulder widths; times as far as its ends are apart: the way of a hand that signs
_PAUSE = 10  # frames: hands that are still for less before a low sign have not rested
_SEEN = 0.5  # visibility
_DIRECTIONS = np.stack(
    [np.cos(np.arange(16) * np.pi / 16), np.sin(np.arange(16) * np.pi / 16)]
)  # (2, 16), of a half turn
_FEWEST = 5  # frames: fewer are a mistake of the detector

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def sign_window(points: FloatArray) -> FloatArray:
    """The sign in a clip of landmarks (n, 258), in any unit, brought to the 16 frames that a model takes: (16, 258)."""
    span = sign_span(points)
    return window_at(points, span.start, len(span))


def sign_span(points: FloatArray) -> FrameSpan:
    """The frames of the sign in a clip of landmarks (n, 258): a hand is raised, and has left its rest before the belly.

    Hands rest while they are low and where they were at first; looked at from the end, where they are at last. Hands
    that go to and fro down there do not rest but sign. How fast they move does not matter.
    experiments/landmark_model/resting.py says what that brings.
    """
    raised, signer = signing_span(points), _Signer.of(points)
    if signer is None:
        return raised
    hands = [signer.place(side)[raised.start : raised.stop] for side in (0, 1)]
    n_before, n_after = _rests(hands)
    if len(raised) - n_before - n_after < _FEWEST:
        return raised
    return FrameSpan(raised.start + n_before, raised.stop - n_after)


def has_raised_hand(points: FloatArray) -> bool:
    """Whether a hand is found above where hands rest, for some frames: even if it is held still, it shows something."""
    signer = _Signer.of(points)
    return signer is not None and _is_above([signer.hand(side) for side in (0, 1)])


def _is_above(hands: list[Floats]) -> bool:
    """Whether one of the hands (n, 2) is higher than hands rest, for some frames."""
    with np.errstate(invalid="ignore"):  # comparisons with what is not found
        return any(int((hand[:, 1] < _LOW).sum()) >= _FEWEST for hand in hands)


def _rests(hands: list[Floats]) -> tuple[int, int]:
    """The number of frames for which both hands (n, 2) rest, from the first on and up to the last."""
    n = len(hands[0])
    n_before, n_after = _resting(hands), _resting([hand[::-1] for hand in hands])
    parts = [(0, n_before), (n - n_after, n)] if _is_above(hands) else [(0, n)]
    signs = [sign for part in parts if (sign := _low_sign([hand[slice(*part)] for hand in hands], part[0]))]
    if not signs or n - n_before - n_after < _FEWEST:  # then the frames with a raised hand count
        return n_before, n_after
    n_first, n_last = min(sign.start for sign in signs), n - max(sign.stop for sign in signs)
    return _rest_before_low_sign(n_before, n_first), _rest_before_low_sign(n_after, n_last)


def _rest_before_low_sign(n_near: int, n_still: int) -> int:
    """The frames of rest, by how long low hands stay near where they were, and how long they are still, from one end.

    Hands that were still for a while leave their rest: that way is no part of the sign. Others sign at once.
    """
    leaves_rest = n_still >= _PAUSE and n_near - n_still <= _PAUSE
    if leaves_rest or n_near < _FEWEST:
        return n_near
    return min(n_still, n_near) if n_still >= _PAUSE else 0


def _low_sign(hands: list[Floats], first: int) -> FrameSpan | None:
    """From the first to the last step of low hands (n, 2) which all go to and fro; None if one of them does not."""
    spans = [_to_and_fro(hand) for hand in hands if np.isfinite(hand[:, 1]).any()]
    moved = [span for span in spans if span is not None]
    if not moved or len(moved) < len(spans):
        return None
    return FrameSpan(first + min(span.start for span in moved), first + max(span.stop for span in moved))


def _to_and_fro(hand: Floats) -> FrameSpan | None:
    """From the first to the last step of a hand (n, 2) that goes far without getting far; None if it does not."""
    frames = np.flatnonzero(np.isfinite(hand[:, 1]))
    around = np.pad(hand[frames], ((1, 1), (0, 0)), mode="edge")
    path = np.median([around[:-2], around[1:-1], around[2:]], axis=0)  # single leaps of the detector taken out
    steps = [0]
    for number, place in enumerate(path):
        if np.linalg.norm(place - path[steps[-1]]) >= _STEP:
            steps.append(number)
    stops = path[steps]
    way = float(np.linalg.norm(np.diff(stops, axis=0), axis=1).sum())
    farthest = float(np.ptp(stops @ _DIRECTIONS, axis=0).max())
    if way < max(_WAY, _TO_AND_FRO * farthest):
        return None
    return FrameSpan(int(frames[steps[1]]), int(frames[steps[-1]]) + 1)


def _resting(hands: list[Floats]) -> int:
    """The number of frames for which both hands (n, 2) are low and near where they were, from the first on."""
    resting = np.ones(len(hands[0]), dtype=bool)
    for hand in hands:
        seen = np.isfinite(hand[:, 1])
        if seen.any():
            left = np.linalg.norm(hand - hand[seen.argmax()], axis=1)
            with np.errstate(invalid="ignore"):  # comparisons with what is not seen
                resting &= ~seen | ((hand[:, 1] > _LOW) & (left < _NEAR))
    return int(resting.argmin()) if not resting.all() else len(resting)


def signing_span(points: FloatArray) -> FrameSpan:
    """The frames of landmarks (n, 258) from the first raised hand to the last; all if none is."""
    whole, signer = FrameSpan(0, len(points)), _Signer.of(points)
    if signer is None:
        return whole
    raised = np.zeros(len(points), dtype=bool)
    for side in (0, 1):
        hand, wrist = signer.hand(side), signer.wrist(side)
        with np.errstate(invalid="ignore"):
            raised |= (hand[:, 1] < _RAISED_HAND) | (wrist[:, 1] < _RAISED_WRIST)
    frames = np.flatnonzero(raised)
    return FrameSpan(int(frames[0]), int(frames[-1]) + 1) if len(frames) >= _FEWEST else whole


def _is_found(part: FloatArray) -> Bools:
    """In which frames a part (n, points, numbers) was detected: what is not a number was not."""
    return np.asarray(part.any(axis=(1, 2)) & np.isfinite(part).all(axis=(1, 2)))


@dataclass(frozen=True, slots=True, eq=False)
class _Signer:
    """Where the hands are, in shoulder widths from between the shoulders; NaN where they are not found."""

    points: FloatArray  # (n, 258)
    found: Bools  # (n,) the body
    origin: Floats  # (2,)
    width: float

    @classmethod
    def of(cls, points: FloatArray) -> _Signer | None:
        """None where nobody is found."""
        pose = points[:, _PARTS[0]].reshape(-1, 33, 4)
        found = _is_found(pose)
        if not found.any():
            return None
        shoulders = pose[found][:, _SHOULDERS, :2].astype(np.float64)
        width = max(float(np.median(np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1))), 1e-4)
        return cls(points, found, np.median(shoulders.mean(axis=1), axis=0), width)

    def hand(self, side: int) -> Floats:
        """(n, 2) the middle of the left (0) or right (1) hand."""
        hand = self.points[:, _PARTS[1 + side]].reshape(-1, 21, 3)
        return self._where(_is_found(hand), hand[..., :2].mean(axis=1))

    def wrist(self, side: int) -> Floats:
        """(n, 2) the wrist that belongs to the body."""
        wrist = self.points[:, _PARTS[0]].reshape(-1, 33, 4)[:, _WRISTS[side]]
        return self._where(self.found & (wrist[:, 3] > _SEEN), wrist[:, :2])

    def place(self, side: int) -> Floats:
        """(n, 2) the hand, or the wrist where the hand is not found."""
        hand = self.hand(side)
        return np.where(np.isfinite(hand), hand, self.wrist(side))

    def _where(self, seen: Bools, place: FloatArray) -> Floats:
        return np.where(seen[:, None], (place.astype(np.float64) - self.origin) / self.width, np.nan)
