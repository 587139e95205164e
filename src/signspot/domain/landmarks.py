"""The points of a body and of a hand, by the names that MediaPipe gives them, and landmarks that know their picture.

A frame is 258 numbers: pose 33 x (x, y, z, visibility), left hand 21 x (x, y, z), right hand 21 x (x, y, z). x and y
are fractions of the picture's width and height, z is in picture widths. What was not found is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from signspot.domain.tracks import LANDMARK_DIM, FloatArray, LandmarkTrack

POSE_POINTS = (
    "NOSE", "LEFT_EYE_INNER", "LEFT_EYE", "LEFT_EYE_OUTER", "RIGHT_EYE_INNER", "RIGHT_EYE", "RIGHT_EYE_OUTER",
    "LEFT_EAR", "RIGHT_EAR", "MOUTH_LEFT", "MOUTH_RIGHT", "LEFT_SHOULDER", "RIGHT_SHOULDER", "LEFT_ELBOW",
    "RIGHT_ELBOW", "LEFT_WRIST", "RIGHT_WRIST", "LEFT_PINKY", "RIGHT_PINKY", "LEFT_INDEX", "RIGHT_INDEX",
    "LEFT_THUMB", "RIGHT_THUMB", "LEFT_HIP", "RIGHT_HIP", "LEFT_KNEE", "RIGHT_KNEE", "LEFT_ANKLE", "RIGHT_ANKLE",
    "LEFT_HEEL", "RIGHT_HEEL", "LEFT_FOOT_INDEX", "RIGHT_FOOT_INDEX",
)  # fmt: skip
_FINGERS = ("INDEX_FINGER", "MIDDLE_FINGER", "RING_FINGER", "PINKY")
HAND_POINTS = (
    "WRIST",
    *(f"THUMB_{joint}" for joint in ("CMC", "MCP", "IP", "TIP")),
    *(f"{finger}_{joint}" for finger in _FINGERS for joint in ("MCP", "PIP", "DIP", "TIP")),
)
POSE_LIMBS = (
    (0, 1), (0, 4), (1, 2), (2, 3), (3, 7), (4, 5), (5, 6), (6, 8), (9, 10), (11, 12), (11, 13), (11, 23), (12, 14),
    (12, 24), (13, 15), (14, 16), (15, 17), (15, 19), (15, 21), (16, 18), (16, 20), (16, 22), (17, 19), (18, 20),
    (23, 24), (23, 25), (24, 26), (25, 27), (26, 28), (27, 29), (27, 31), (28, 30), (28, 32), (29, 31), (30, 32),
)  # fmt: skip
HAND_LIMBS = (
    (0, 1), (0, 5), (0, 17), (1, 2), (2, 3), (3, 4), (5, 6), (5, 9), (6, 7), (7, 8), (9, 10), (9, 13), (10, 11),
    (11, 12), (13, 14), (13, 17), (14, 15), (15, 16), (17, 18), (18, 19), (19, 20),
)  # fmt: skip
POSE_NUMBERS = 4 * len(POSE_POINTS)
HAND_NUMBERS = 3 * len(HAND_POINTS)
# Where the x of each point lies in the 258 numbers; y and z follow it.
X_PLACES = np.r_[np.arange(0, POSE_NUMBERS, 4), np.arange(POSE_NUMBERS, LANDMARK_DIM, 3)]


@dataclass(frozen=True, slots=True, eq=False)
class SignerLandmarks:
    """The landmarks of a signer and the size of the picture, in pixels, that they are fractions of."""

    track: LandmarkTrack
    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise ValueError(f"{self.track.video_id}: a picture of {self.width} x {self.height} pixels")

    @property
    def aspect(self) -> float:
        return self.width / self.height


def in_picture_heights(points: FloatArray, aspect: float) -> FloatArray:
    """Landmarks (n, 258) in fractions of a picture -> x, y, z all in picture heights; `aspect` is width / height."""
    scaled = np.array(points, dtype=np.float32)
    scaled[:, X_PLACES] *= aspect
    scaled[:, X_PLACES + 2] *= aspect  # z has the unit of x
    return scaled
