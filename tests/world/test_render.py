from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import islice

import numpy as np
import numpy.typing as npt
import pytest

from signspot.domain.tracks import Pixels
from signspot.world.people import Appearance
from signspot.world.render import Broadcast, Scene, Studio, _Placement, render_frames
from tests.world.figures import HANDSHAPES, Hand, landmarks, signed_clip

LOOK = Appearance(skin=(230, 185, 150), hair=(50, 35, 25), top=(30, 40, 70), background=(150, 170, 190))
Points = npt.NDArray[np.float32]


def rendered(points: Points, mouth: float = 0.0, scene: Scene | None = None, side: int = 256) -> list[Pixels]:
    return list(render_frames(points, np.full(len(points), mouth, np.float32), LOOK, scene, side=side))


def one(hand: Hand | None, left: Hand | None = None, mouth: float = 0.0, side: int = 256) -> Pixels:
    return rendered(landmarks(hand, left)[None], mouth, side=side)[0]


def around(place: tuple[float, float, float], pixels: Pixels, reach: float = 0.1) -> npt.NDArray[np.int64]:
    side = len(pixels)
    x, y = (round(side * (edge - reach)) for edge in place[:2])
    return pixels[y : y + round(2 * reach * side), x : x + round(2 * reach * side)].astype(np.int64)


def skin_pixels(pixels: npt.NDArray[np.int64]) -> int:
    return int((pixels[..., 0] - pixels[..., 2] > 40).sum())


def test_frames_have_the_promised_size_and_differ_as_the_hands_move() -> None:
    frames = rendered(signed_clip(np.random.default_rng(0)).points)
    assert all(frame.shape == (256, 256, 3) and frame.dtype == np.uint8 for frame in frames)
    assert len({frame.tobytes() for frame in frames}) == len(frames)


def test_the_same_input_gives_the_same_bytes() -> None:
    points = signed_clip(np.random.default_rng(1)).points[:12]
    digests = {
        hashlib.sha256(b"".join(f.tobytes() for f in rendered(points, 0.4, Broadcast(3)))).hexdigest() for _ in range(2)
    }
    assert len(digests) == 1


def varied_clip() -> tuple[Points, Points]:
    """Landmarks and mouths of 70 frames in which hands cross, get lost and turn, eyes blink, and the mouth opens."""
    rng = np.random.default_rng(5)
    shapes = sorted(HANDSHAPES)
    points = np.stack(
        [
            landmarks(
                Hand((0.4, 0.6, -0.1 - 0.2 * rng.random()), shapes[frame % len(shapes)], turn=9.0 * frame),
                Hand((0.45, 0.58, -0.1 - 0.2 * rng.random()), shapes[frame % 4], tilt=5.0 * frame),
            )
            for frame in range(70)
        ]
    )
    points[10:20, 132 : 132 + 63] = 0
    points[15:25, 132 + 63 :] = 0
    return points, np.linspace(0, 1, 70, dtype=np.float32)


@pytest.mark.parametrize("look", [LOOK, replace(LOOK, long_hair=True, long_sleeves=False)])
def test_frames_drawn_together_are_those_drawn_one_by_one(look: Appearance, monkeypatch: pytest.MonkeyPatch) -> None:
    points, mouth = varied_clip()
    together = [frame.tobytes() for frame in render_frames(points, mouth, look, Broadcast(3), side=64)]
    monkeypatch.setattr("signspot.world.render._TOGETHER", 1)
    alone = [frame.tobytes() for frame in render_frames(points, mouth, look, Broadcast(3), side=64)]
    assert together == alone
    assert len(set(alone)) == len(alone)


def test_the_pictures_of_this_version_of_the_world_never_change() -> None:
    """Stored vectors and published figures belong to these pictures: others would be a new version of the presets."""
    points, mouth = varied_clip()
    drawn = b"".join(frame.tobytes() for frame in render_frames(points, mouth, LOOK, Broadcast(3), side=64))
    assert hashlib.sha256(drawn).hexdigest()[:16] == "6059c51c04173ea8"


def test_landmarks_are_not_changed_and_frames_are_made_as_they_are_taken() -> None:
    points = np.repeat(landmarks(Hand((0.4, 0.5, -0.2)))[None], 20_000, axis=0)
    points.setflags(write=False)
    assert len(list(islice(render_frames(points, np.zeros(len(points), np.float32), LOOK), 2))) == 2


def test_a_hand_is_painted_where_its_landmarks_are() -> None:
    for place in ((0.3, 0.55, -0.2), (0.55, 0.6, -0.2)):
        assert skin_pixels(around((place[0], place[1] - 0.06, 0), one(Hand(place)))) > 200
        assert skin_pixels(around((place[0], place[1] - 0.06, 0), one(Hand((0.4, 0.8, -0.2))))) == 0


@pytest.mark.parametrize("side", [256, 112])
@pytest.mark.parametrize("turn", [0, 180])
def test_any_two_handshapes_look_different(side: int, turn: float) -> None:
    """Compare two shapes by the share of the hand's picture that changes clearly."""
    place = (0.4, 0.62, -0.2)
    hands = {shape: around((0.4, 0.55, 0), one(Hand(place, shape, turn), side=side), 0.13) for shape in HANDSHAPES}
    names = sorted(hands)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            changed = (np.abs(hands[a] - hands[b]).max(axis=2) > 60).mean()
            assert changed > 0.015, f"{a} and {b} change only {changed:.3f}"


def test_the_palm_is_lighter_than_the_back_of_the_hand() -> None:
    place = (0.4, 0.62, -0.2)
    palm, back = (around((0.4, 0.575, 0), one(Hand(place, "flat", turn)), 0.01).mean() for turn in (0, 180))
    assert palm > back + 4


def test_bent_fingers_cover_the_palm_and_hide_behind_the_back_of_the_hand() -> None:
    def change(turn: float) -> float:
        """How much the middle of the hand changes when the fingers close."""
        closed, flat = (
            around((0.4, 0.578, 0), one(Hand((0.4, 0.62, -0.2), shape, turn)), 0.012) for shape in ("fist", "flat")
        )
        return float(np.abs(closed - flat).mean())

    assert change(0) > 8
    assert change(180) < 2


def test_the_nearer_hand_covers_the_other() -> None:
    def palms(right_depth: float, left_depth: float | None) -> npt.NDArray[np.int64]:
        """The place where the palm of the right hand and the back of the left one cross."""
        left = None if left_depth is None else Hand((0.5, 0.62, left_depth), "flat", 180)
        return around((0.5, 0.57, 0), one(Hand((0.5, 0.62, right_depth), "flat"), left), 0.01)

    only_right = palms(-0.2, None)
    assert np.abs(palms(-0.3, -0.1) - only_right).mean() < 1
    assert np.abs(palms(-0.1, -0.3) - only_right).mean() > 5


def test_an_opening_mouth_shows_its_dark_inside() -> None:
    mouth = (0.5, 0.265, 0)
    dark = [(around(mouth, one(None, mouth=opening), 0.03).max(axis=2) < 90).sum() for opening in (0.0, 0.5, 1.0)]
    assert dark[0] < dark[1] < dark[2]


def test_edges_are_smooth() -> None:
    """Along the edge of a light arm on a dark wall there are steps between the two colours."""
    look = Appearance(skin=(255, 255, 255), hair=(255, 255, 255), top=(255, 255, 255), background=(0, 0, 0))
    frame = next(render_frames(landmarks(None)[None], np.zeros(1, np.float32), look))
    assert len(np.unique(frame[:, :80])) > 12


def test_a_hand_that_was_not_found_is_a_mitten_and_nobody_at_all_is_no_fault() -> None:
    points = landmarks(Hand((0.4, 0.6, -0.2)))
    points[132 + 63 :] = 0
    assert skin_pixels(around((0.4, 0.57, 0), rendered(points[None])[0], 0.06)) > 100
    assert rendered(np.zeros((2, 258), np.float32))[0].shape == (256, 256, 3)
    assert rendered(np.zeros((0, 258), np.float32)) == []


def test_figures_far_outside_the_picture_are_no_fault() -> None:
    points = landmarks(Hand((0.4, 0.6, -0.2)))[None] * np.float32(30)
    assert rendered(points)[0].shape == (256, 256, 3)


@pytest.mark.parametrize(
    ("points", "mouth", "words"),
    [
        (np.zeros((3, 257), np.float32), np.zeros(3, np.float32), "landmarks of shape"),
        (np.zeros((3, 258), np.float32), np.zeros(2, np.float32), "mouths of"),
        (np.full((1, 258), np.nan, np.float32), np.zeros(1, np.float32), "finite"),
        (np.zeros((1, 258), np.float32), np.full(1, 1.5, np.float32), r"0\.\.1"),
    ],
)
def test_wrong_input_is_refused_before_the_first_frame(points: Points, mouth: Points, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        render_frames(points, mouth, LOOK)


def test_a_picture_too_small_for_a_person_is_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        render_frames(np.zeros((1, 258), np.float32), np.zeros(1, np.float32), LOOK, side=8)


def test_a_placed_signer_is_where_the_placed_landmarks_are() -> None:
    placement = _Placement(0.3, 0.2, 0.6)
    points = landmarks(Hand((0.4, 0.6, -0.2)))[None]
    placed = rendered(points, scene=Studio(LOOK.background, placement))[0]
    moved = rendered(placement.apply(points), scene=Studio(LOOK.background))[0]
    assert (placed == moved).all()
    assert not placement.apply(np.zeros((1, 258), np.float32)).any()


def test_placing_keeps_visibility_and_depth_scale() -> None:
    points = landmarks(Hand((0.4, 0.6, -0.2)))[None]
    moved = _Placement(0.1, 0.2, 0.5).apply(points)
    assert np.allclose(moved[0, 3:132:4], points[0, 3:132:4])
    assert np.allclose(moved[0, 60:63], points[0, 60:63] * 0.5 + (0.1, 0.2, 0))


def test_a_broadcast_moves_behind_a_still_signer_and_changes_its_shots() -> None:
    points = np.repeat(landmarks(None)[None], 150, axis=0)
    frames = np.stack(rendered(points, scene=Broadcast(4), side=64)).astype(int)
    step = np.abs(np.diff(frames[:, :, :12], axis=0)).mean(axis=(1, 2, 3))
    assert (step > 0).mean() > 0.5  # it moves nearly always
    assert (step > 10 * np.median(step)).sum() >= 1  # and cuts now and then
    chest = frames[:, 44:48, 37:40]
    assert np.abs(np.diff(chest, axis=0)).max() == 0


def test_different_broadcasts_differ() -> None:
    points = landmarks(None)[None]
    assert (rendered(points, scene=Broadcast(1))[0] != rendered(points, scene=Broadcast(2))[0]).mean() > 0.3
