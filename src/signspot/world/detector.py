"""Landmarks as a detector would give them: shaking, with hands lost where they are fast."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import FloatArray
from signspot.world.difficulty import Difficulty
from signspot.world.kinematics import HAND_NUMBERS, POSE_NUMBERS

_DEPTH = 4.0  # depth is guessed this much worse than the place in the picture
_SLOWNESS = 0.7  # share of the error that stays from frame to frame
_MEAN_LOSS = 5.0  # frames


def as_detected(points: FloatArray, difficulty: Difficulty, rng: np.random.Generator) -> FloatArray:
    """(n_frames, 258) clean landmarks -> the same with jitter; a lost hand is all zeros."""
    found = points.copy()
    n = len(points)
    pose = found[:, :POSE_NUMBERS].reshape(n, 33, 4)
    pose[..., :3] += _error((n, 33, 3), difficulty.jitter, rng)
    found[:, :POSE_NUMBERS] = pose.reshape(n, -1)
    for first in (POSE_NUMBERS, POSE_NUMBERS + HAND_NUMBERS):
        hand = found[:, first : first + HAND_NUMBERS]
        wrist = points[:, first : first + 2]
        hand += _error((n, 21, 3), difficulty.jitter, rng).reshape(n, -1)
        hand[_lost(wrist, difficulty.dropped_hands, rng)] = 0
    return found


def _error(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> FloatArray:
    """Slowly wandering errors of the same size at every frame."""
    fresh = rng.standard_normal(shape, dtype=np.float32)
    keep, add = np.float32(_SLOWNESS), np.float32(np.sqrt(1 - _SLOWNESS**2))
    for frame in range(1, shape[0]):
        fresh[frame] = keep * fresh[frame - 1] + add * fresh[frame]
    return fresh * np.array((scale, scale, scale * _DEPTH), dtype=np.float32)


def _lost(wrist: FloatArray, share: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """(n,) where a hand is lost: in runs that begin where it moves fast."""
    n = len(wrist)
    speed = np.linalg.norm(np.diff(wrist, axis=0, prepend=wrist[:1]), axis=1)
    odds = 0.3 + speed / max(float(speed.mean()), 1e-6)
    begins = rng.random(n) < odds * share / (_MEAN_LOSS * odds.mean())
    until = np.where(begins, np.arange(n) + rng.geometric(1 / _MEAN_LOSS, n), 0)
    lost: npt.NDArray[np.bool_] = np.maximum.accumulate(until) > np.arange(n)
    return lost
