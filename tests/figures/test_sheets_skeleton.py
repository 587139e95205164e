from __future__ import annotations

import numpy as np

from signspot.domain.time import FrameSpan, TimeAxis
from signspot.domain.tracks import POSE_NUMBERS, LandmarkTrack, SignerLandmarks
from signspot.figures.sheets import skeletons

RIGHT_HAND = (213, 94, 0)


def landmarks(points: np.ndarray) -> SignerLandmarks:
    axis = TimeAxis(np.arange(len(points)) * 40.0)
    return SignerLandmarks(LandmarkTrack("v", axis, points.astype(np.float32)), 200, 100)


def test_a_hand_is_drawn_where_it_is_and_nobody_is_a_blank_page() -> None:
    points = np.zeros((2, 258))
    hand = points[1, POSE_NUMBERS + 63 :].reshape(21, 3)
    hand[:, 0], hand[:, 1] = np.linspace(0.7, 0.8, 21), 0.25
    blank, drawn = skeletons(landmarks(points), height=100)
    assert blank.shape == drawn.shape == (100, 200, 3) and blank.dtype == np.uint8
    assert (blank == blank[0, 0]).all()
    rows, columns = np.nonzero((drawn != blank).any(axis=2))
    assert rows.min() >= 24 and rows.max() <= 26 and columns.min() >= 138 and columns.max() <= 162
    assert np.abs(drawn[24:27, 150].astype(int) - RIGHT_HAND).max(axis=1).min() < 70


def test_a_strip_has_at_most_six_pictures_of_the_part_that_counts() -> None:
    points = np.zeros((40, 258))
    points[10:20, :POSE_NUMBERS] = np.random.default_rng(0).uniform(-5e8, 5e8, (10, POSE_NUMBERS))
    assert len(skeletons(landmarks(points))) == 6
    assert len(skeletons(landmarks(points), FrameSpan(10, 13))) == 3
    assert skeletons(landmarks(points[:0])) == []
