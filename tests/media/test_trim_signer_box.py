from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import SignerBox
from signspot.domain.time import TimeAxis
from signspot.domain.tracks import LandmarkTrack, Pixels
from signspot.media.trim import MotionEnergy, box_of_landmarks, box_of_motion
from signspot.world.people import Appearance
from signspot.world.render import Placement, Studio, render_frames
from tests.world.figures import signed_clip

LOOK = Appearance(skin=(230, 185, 150), hair=(50, 35, 25), top=(30, 40, 70), background=(150, 170, 190))
Points = npt.NDArray[np.float32]


def track(points: Points) -> LandmarkTrack:
    return LandmarkTrack("clip", TimeAxis(np.arange(len(points)) * 40.0), points)


@dataclass(frozen=True)
class Edges:
    left: int
    top: int
    right: int
    bottom: int


def in_pixels(box: SignerBox | None, width: int, height: int) -> Edges:
    """The edges of a box that was found; they lie between two pixels."""
    assert box is not None
    edges = np.array([box.left * width, box.top * height, box.right * width, box.bottom * height])
    assert np.abs(edges - np.rint(edges)).max() < 1e-9
    return Edges(*np.rint(edges).astype(int).tolist())


def moving_square(n_frames: int, left: int, top: int) -> list[Pixels]:
    frames = []
    for i in range(n_frames):
        frame = np.full((180, 320, 3), 60, dtype=np.uint8)
        frame[top + i : top + 20 + i, left + i : left + 20 + i] = 220
        frames.append(frame)
    return frames


def test_the_box_of_landmarks_holds_the_signer_wherever_the_signer_stands() -> None:
    points = signed_clip(np.random.default_rng(0)).points
    for placement in (Placement(), Placement(0.5, 0.4, 0.5), Placement(0.0, 0.3, 0.6)):
        placed = placement.apply(points)
        box = in_pixels(box_of_landmarks(track(placed), 400, 400), 400, 400)
        assert box.right - box.left == box.bottom - box.top <= 400
        nose, wrist = (placed[len(placed) // 2, 4 * point : 4 * point + 2] * 400 for point in (0, 16))
        for x, y in (nose, wrist):
            assert box.left <= x < box.right and box.top <= y < box.bottom
        assert box.right - box.left <= 400 * placement.scale * 1.25 + 1


def test_a_few_wild_frames_do_not_move_the_box() -> None:
    points = Placement(0.3, 0.3, 0.4).apply(signed_clip(np.random.default_rng(1)).points)
    wild = points.copy()
    wild[::25] = 0.99
    wild[7::25] = 0
    calm_box, wild_box = (in_pixels(box_of_landmarks(track(some), 640, 480), 640, 480) for some in (points, wild))
    assert abs(calm_box.left - wild_box.left) <= 8 and abs(calm_box.right - wild_box.right) <= 8


def test_a_signer_at_the_edge_has_a_box_inside_the_picture() -> None:
    points = signed_clip(np.random.default_rng(4)).points
    for left, top in ((0.8, 0.7), (-0.3, -0.2), (0.8, -0.2), (-0.3, 0.7)):
        box = in_pixels(box_of_landmarks(track(Placement(left, top, 0.5).apply(points)), 300, 200), 300, 200)
        assert 0 <= box.left < box.right <= 300 and 0 <= box.top < box.bottom <= 200


def test_nobody_has_no_box() -> None:
    assert box_of_landmarks(track(np.zeros((20, 258), np.float32)), 64, 64) is None
    assert box_of_landmarks(track(np.zeros((0, 258), np.float32)), 64, 64) is None
    assert box_of_motion(MotionEnergy.of([np.zeros((40, 40, 3), np.uint8)] * 9)) is None
    assert box_of_motion(MotionEnergy.of([])) is None


def test_the_box_of_motion_lies_around_what_moves() -> None:
    box = in_pixels(box_of_motion(MotionEnergy.of(moving_square(30, 200, 60))), 320, 180)
    assert box.right - box.left == box.bottom - box.top
    assert 150 <= box.left <= 205 and 245 <= box.right <= 300
    assert box.top <= 65 and box.bottom >= 105


def test_the_box_of_motion_holds_the_hands_of_a_drawn_signer() -> None:
    points = signed_clip(np.random.default_rng(2)).points
    placement = Placement(0.45, 0.4, 0.55)
    scene = Studio(LOOK.background, placement)
    frames = render_frames(points, np.zeros(len(points), np.float32), LOOK, scene, side=128)
    box = in_pixels(box_of_motion(MotionEnergy.of(frames)), 128, 128)
    wrists = placement.apply(points)[:, 64:66] * 128  # the right one
    inside = (wrists[:, 0] >= box.left) & (wrists[:, 0] < box.right) & (wrists[:, 1] >= box.top)
    assert inside.mean() > 0.95
    assert box.left > 30


@settings(max_examples=30, deadline=None)
@given(st.integers(8, 500), st.integers(8, 500), st.integers(0, 2**32 - 1))
def test_every_box_is_square_and_inside_the_picture(width: int, height: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(0.5, rng.uniform(0, 2), (12, 258)).astype(np.float32)
    box = in_pixels(box_of_landmarks(track(points), width, height), width, height)
    assert box.right - box.left == box.bottom - box.top
    assert 0 <= box.left < box.right <= width and 0 <= box.top < box.bottom <= height
