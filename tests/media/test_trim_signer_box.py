from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from signspot.domain.recordings import SignerBox
from signspot.domain.tracks import Pixels
from signspot.media.trim import _box_of_motion, _MotionEnergy
from signspot.world.people import Appearance
from signspot.world.render import Studio, _Placement, render_frames
from tests.world.figures import signed_clip

LOOK = Appearance(skin=(230, 185, 150), hair=(50, 35, 25), top=(30, 40, 70), background=(150, 170, 190))


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


def test_nobody_has_no_box() -> None:
    assert _box_of_motion(_MotionEnergy.of([np.zeros((40, 40, 3), np.uint8)] * 9)) is None
    assert _box_of_motion(_MotionEnergy.of([])) is None


def test_the_box_of_motion_lies_around_what_moves() -> None:
    box = in_pixels(_box_of_motion(_MotionEnergy.of(moving_square(30, 200, 60))), 320, 180)
    assert box.right - box.left == box.bottom - box.top
    assert 150 <= box.left <= 205 and 245 <= box.right <= 300
    assert box.top <= 65 and box.bottom >= 105


def test_the_box_of_motion_holds_the_hands_of_a_drawn_signer() -> None:
    points = signed_clip(np.random.default_rng(2)).points
    placement = _Placement(0.45, 0.4, 0.55)
    scene = Studio(LOOK.background, placement)
    frames = render_frames(points, np.zeros(len(points), np.float32), LOOK, scene, side=128)
    box = in_pixels(_box_of_motion(_MotionEnergy.of(frames)), 128, 128)
    wrists = placement.apply(points)[:, 64:66] * 128  # the right one
    inside = (wrists[:, 0] >= box.left) & (wrists[:, 0] < box.right) & (wrists[:, 1] >= box.top)
    assert inside.mean() > 0.95
    assert box.left > 30
