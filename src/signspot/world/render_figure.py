"""Frames of landmarks as joints of figures to draw, and the sizes that hold for a whole clip."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import LANDMARK_DIM, FloatArray
from signspot.world.render_shapes import Frames, Points

N_POSE, N_HAND = 33, 21
NOSE, LEFT_EYE, RIGHT_EYE, LEFT_EAR, RIGHT_EAR, LEFT_MOUTH, RIGHT_MOUTH = 0, 2, 5, 7, 8, 9, 10
LEFT_SHOULDER, RIGHT_SHOULDER, LEFT_ELBOW, RIGHT_ELBOW, LEFT_WRIST, RIGHT_WRIST = 11, 12, 13, 14, 15, 16
LEFT_HIP, RIGHT_HIP = 23, 24
_LEFT_HAND = slice(4 * N_POSE, 4 * N_POSE + 3 * N_HAND)
_RIGHT_HAND = slice(4 * N_POSE + 3 * N_HAND, LANDMARK_DIM)


@dataclass(frozen=True, slots=True)
class Proportions:
    """Sizes in pixels of the canvas that do not change while a person turns head and hands."""

    shoulders: float  # width
    head: float  # width
    palms: tuple[float, float]  # length, left and right

    @classmethod
    def of(cls, points: FloatArray, scale: float) -> Proportions:
        """Measure a clip of landmarks (n_frames, 258); what is not there gets a usual size."""
        pose, left, right = split(points)
        shoulders = _typical(pose[:, LEFT_SHOULDER, :2] - pose[:, RIGHT_SHOULDER, :2]) or 0.33
        # A head that turns shows its ears closer together: the widest view is the head's width.
        head = _typical(pose[:, LEFT_EAR, :2] - pose[:, RIGHT_EAR, :2], share=0.9) or 0.4 * shoulders
        head = float(np.clip(head, 0.3 * shoulders, 0.62 * shoulders))
        palms = [_typical(hand[:, 9] - hand[:, 0], share=0.75) or 0.27 * shoulders for hand in (left, right)]
        return cls(scale * shoulders, scale * head, (scale * palms[0], scale * palms[1]))


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """The joints of some frames in pixels of the canvas; z on the same scale, negative toward the viewer."""

    pose: Points  # (n_frames, 33, 3)
    hands: tuple[Points, Points]  # left, right: (n_frames, 21, 3), zeros where not found
    mouth: Points  # (n_frames,) opening, 0..1
    eyes_closed: Frames
    proportions: Proportions

    def only(self, frames: Frames) -> Figures:
        """Those of some of the frames."""
        left, right = self.hands
        hands = (left[frames], right[frames])
        return replace(
            self, pose=self.pose[frames], hands=hands, mouth=self.mouth[frames], eyes_closed=self.eyes_closed[frames]
        )


def split(points: FloatArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(n, 258) -> pose (n, 33, 4), left hand (n, 21, 3), right hand (n, 21, 3)."""
    wide = points.astype(np.float64)
    n_frames = len(points)
    pose = wide[:, : 4 * N_POSE].reshape(n_frames, N_POSE, 4)
    left, right = (wide[:, part].reshape(n_frames, N_HAND, 3) for part in (_LEFT_HAND, _RIGHT_HAND))
    return pose, left, right


def _typical(vectors: npt.NDArray[np.float64], share: float = 0.5) -> float:
    """The length that a `share` of the vectors (n, 2 or 3) stay below, those of length zero left out."""
    lengths = np.linalg.norm(vectors, axis=1)
    found = lengths[lengths > 1e-6]
    return float(np.quantile(found, share)) if len(found) else 0.0
