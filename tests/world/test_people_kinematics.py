from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.tracks import Floats
from signspot.world.lexicon import LOCATIONS, ORIENTATIONS, SHAPES
from signspot.world.people import _arm_joints, _Camera, _Carriage, _hand_points, _landmarks, _Proportions, _turned
from signspot.world.settings import chance

BONES = [(0, 5), (0, 17), (5, 6), (6, 7), (7, 8), (9, 10), (13, 14), (17, 18), (19, 20), (1, 2), (2, 3), (3, 4)]


def postures(n: int) -> Floats:
    """Every location with random orientations and handshapes, for both hands."""
    rng = chance(0, "postures")
    rows = [
        np.concatenate(
            [
                list(LOCATIONS.values())[i % len(LOCATIONS)],
                list(ORIENTATIONS.values())[rng.integers(len(ORIENTATIONS))],
                list(SHAPES.values())[rng.integers(len(SHAPES))],
            ]
        )
        for i in range(2 * n)
    ]
    return np.stack(rows).reshape(n, 2, -1)


def still(n: int) -> _Carriage:
    return _Carriage(np.zeros((n, 3)), np.zeros(n), np.zeros((n, 3)))


def test_bones_of_the_hand_keep_their_length_in_every_handshape_and_orientation() -> None:
    angles = np.stack(list(SHAPES.values()))
    turns = np.stack([list(ORIENTATIONS.values())[i % len(ORIENTATIONS)] for i in range(len(SHAPES))])
    hands = _turned(_hand_points(angles), turns)
    for a, b in BONES:
        length = np.linalg.norm(hands[:, a] - hands[:, b], axis=-1)
        assert np.ptp(length) < 1e-9, (a, b)


def test_arms_keep_their_length_and_bend_at_the_elbow() -> None:
    body = _Proportions()
    shoulder, elbow, hand = _arm_joints(postures(200)[:, 0], body)
    assert np.linalg.norm(elbow - shoulder, axis=-1) == pytest.approx(body.upper_arm, abs=1e-9)
    assert np.linalg.norm(hand[:, 0] - elbow, axis=-1) == pytest.approx(body.forearm, abs=1e-6)


def test_the_palm_comes_to_its_place_where_the_arm_reaches() -> None:
    posture = postures(42)[:, 0]
    *_, hand = _arm_joints(posture, _Proportions())
    palm = hand[:, [0, 5, 9, 13, 17]].mean(axis=1)
    in_space = np.array([list(LOCATIONS)[2 * i % len(LOCATIONS)].endswith("space") for i in range(42)])
    assert np.linalg.norm(palm - posture[:, :3], axis=-1)[in_space].max() < 0.12


def test_an_open_hand_is_larger_than_a_fist_and_fingers_curl_to_the_palm() -> None:
    flat, fist = _hand_points(np.stack([SHAPES["flat"], SHAPES["fist"]]))
    assert flat[12, 1] > 0.95 and fist[12, 1] < 0.6
    assert fist[10, 2] > 0.1 > abs(flat[10, 2])


def test_fingers_point_up_with_the_palm_to_the_camera_when_nothing_is_turned() -> None:
    hand = _turned(_hand_points(SHAPES["flat"][None]), np.zeros((1, 3)))[0]
    assert hand[12, 1] < -0.9  # up is negative
    assert hand[4, 0] > hand[20, 0]  # the thumb of a right hand shows to the signer's left
    curled = _turned(_hand_points(SHAPES["bent"][None]), np.zeros((1, 3)))[0]
    assert curled[12, 2] < -0.2  # to the camera


def test_the_layout_is_that_of_mediapipe() -> None:
    points = _landmarks(postures(60), still(60), _Proportions(), _Camera())
    assert points.shape == (60, 258) and points.dtype == np.float32 and np.isfinite(points).all()
    pose = points[:, :132].reshape(60, 33, 4)
    left, right = points[:, 132:195].reshape(60, 21, 3), points[:, 195:].reshape(60, 21, 3)
    assert (pose[:, 11, 0] > pose[:, 12, 0]).all(), "the left shoulder is at the right of the picture"
    assert (pose[:, 0, 1] < pose[:, 11, 1]).all() and (pose[:, 23, 1] > pose[:, 11, 1]).all()
    assert pose[:, 15, :2] == pytest.approx(left[:, 0, :2]) and pose[:, 16, :2] == pytest.approx(right[:, 0, :2])
    assert left[:, 0, 2] == pytest.approx(0) and right[:, 0, 2] == pytest.approx(0)
    assert (pose[:, :25, :2] > 0).all() and (pose[:, :25, :2] < 1).all()


def test_swapping_the_hands_gives_the_mirror_image() -> None:
    both = postures(50)
    camera = _Camera(centre=(0.5, 0.4))
    one, other = (_landmarks(p, still(50), _Proportions(), camera) for p in (both, both[:, ::-1]))
    left, right = one[:, 132:195].reshape(50, 21, 3), other[:, 195:].reshape(50, 21, 3)
    assert left * (-1, 1, 1) + (1, 0, 0) == pytest.approx(right, abs=1e-5)


def test_elbows_do_not_jump_when_the_hand_moves_a_little() -> None:
    rng = chance(0, "elbows")
    posture = postures(400)[:, 0]
    nearby = posture.copy()
    nearby[:, :3] += rng.normal(0, 0.01, (400, 3))
    elbows = [_arm_joints(p, _Proportions())[1] for p in (posture, nearby)]
    assert np.linalg.norm(elbows[0] - elbows[1], axis=-1).max() < 0.15
