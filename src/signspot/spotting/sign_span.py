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
_SEEN = 0.5  # visibility
_FEWEST = 5  # frames: fewer are a mistake of the detector

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def sign_window(points: FloatArray) -> FloatArray:
    """The sign in a clip of landmarks (n, 258), in any unit, brought to the 16 frames that a model takes: (16, 258)."""
    span = sign_span(points)
    return window_at(points, span.start, len(span))


def sign_span(points: FloatArray) -> FrameSpan:
    """The frames of the sign in a clip of landmarks (n, 258): a hand is raised, and has left its rest before the belly.

    Hands rest while they are low and where they were at first; looked at from the end, where they are at last. How fast
    they move does not matter. experiments/landmark_model/resting.py says what that brings.
    """
    raised, signer = signing_span(points), _Signer.of(points)
    if signer is None:
        return raised
    hands = [signer.place(side)[raised.start : raised.stop] for side in (0, 1)]
    n_before, n_after = _resting(hands), _resting([hand[::-1] for hand in hands])
    if len(raised) - n_before - n_after < _FEWEST:
        return raised
    return FrameSpan(raised.start + n_before, raised.stop - n_after)


def _resting(hands: list[Floats]) -> int:
    """The number of frames for which both hands (n, 2) rest, from the first on."""
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
        found = np.asarray(pose.any(axis=(1, 2)))
        if not found.any():
            return None
        shoulders = pose[found][:, _SHOULDERS, :2].astype(np.float64)
        width = max(float(np.median(np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1))), 1e-4)
        return cls(points, found, np.median(shoulders.mean(axis=1), axis=0), width)

    def hand(self, side: int) -> Floats:
        """(n, 2) the middle of the left (0) or right (1) hand."""
        hand = self.points[:, _PARTS[1 + side]].reshape(-1, 21, 3)
        return self._where(np.asarray(hand.any(axis=(1, 2))), hand[..., :2].mean(axis=1))

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
