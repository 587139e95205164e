"""Signs as their parts: a sign is its own form whoever signs it, and each part tells of its own change only."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.lib.forms import PATH, PLACE, RAISED, ROW, SEEN, SHAPE, SIDE, TURN, form_row

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray


def turned(joints: FloatArray, degrees: float) -> FloatArray:
    """Joints (21, 3) turned in the picture about the wrist."""
    angle = np.radians(degrees)
    matrix = np.array([[np.cos(angle), np.sin(angle), 0], [-np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    return np.asarray(joints @ matrix, np.float32)


def hand(spread: float) -> FloatArray:
    """(21, 3) a hand of about a tenth of the picture; `spread` opens the fingers."""
    joints = np.zeros((21, 3), np.float32)
    for finger in range(5):
        for joint in range(4):
            side = (finger - 2) * (0.012 + (spread * joint if finger else 0.0))
            joints[1 + 4 * finger + joint] = (side, -0.05 - 0.018 * joint, 0.004 * joint * (finger - 2))
    return joints


def sign(
    *,
    place: tuple[float, float] = (0.35, 0.3),
    way: tuple[float, float] = (0.1, 0.0),
    spread: float = 0.002,
    turn: float = 0.0,
    other: bool = False,
    n: int = 50,
) -> FloatArray:
    """A right hand that comes up, moves along `way`, and goes down; the other rests, or does the same."""
    phase = np.linspace(0, 1, n)
    up = np.clip(np.minimum(phase, 1 - phase) / 0.15, 0, 1)[:, None]
    along = np.clip((phase - 0.2) / 0.6, 0, 1)[:, None] - 0.5
    rest = np.array([0.45, 0.7])
    right = rest * (1 - up) + up * (np.array(place) + along * np.array(way))
    left = np.array([1, 0]) + right * [-1, 1] if other else np.tile([0.55, 0.7], (n, 1))
    pose = np.zeros((n, 33, 4), np.float32)
    pose[:, 11, :2], pose[:, 12, :2] = (0.6, 0.4), (0.4, 0.4)
    hands = []
    for side, wrist in ((left, 15), (right, 16)):
        pose[:, wrist : wrist + 7 : 2, :2] = side[:, None]
        joints = turned(hand(spread), turn) * ([-1, 1, 1] if wrist == 15 else [1, 1, 1])
        # The middle of the palm stays where it is told, however the hand is turned.
        palm = joints[[0, 5, 9, 13, 17]].mean(axis=0)
        hands.append(np.concatenate([side, np.zeros((n, 1))], axis=1)[:, None] + joints - palm)
    pose[:, 13], pose[:, 14] = (0.65, 0.6, 0, 1), (0.35, 0.6, 0, 1)
    flat = [pose.reshape(n, -1), *(one.reshape(n, -1) for one in hands)]
    return np.concatenate(flat, axis=1).astype(np.float32)


def seen(points: FloatArray) -> FloatArray:
    return form_row(points, FrameSpan(0, len(points)))


def row(points: FloatArray, *, left_handed: bool = False) -> FloatArray:
    return seen(points)[ROW * left_handed :][:ROW]


def apart(one: FloatArray, other: FloatArray) -> dict[str, float]:
    """How far each part of the leading hand differs."""
    parts = {"place": slice(PLACE.start, 3), "path": PATH, "turn": TURN, "shape": SHAPE}
    found = {name: float(np.abs(one[part] - other[part]).max()) for name, part in parts.items()}
    return found | {"other": float(np.abs(one[SIDE + RAISED] - other[SIDE + RAISED]))}


def mirrored(points: FloatArray) -> FloatArray:
    pose = points[:, :132].reshape(-1, 33, 4).copy()
    pose[..., 0] = np.where(pose[..., :2].any(axis=-1), 1 - pose[..., 0], 0)
    for left in range(11, 22, 2):
        pose[:, [left, left + 1]] = pose[:, [left + 1, left]]
    hands = [points[:, start : start + 63].reshape(-1, 21, 3) * [-1, 1, 1] + [1, 0, 0] for start in (195, 132)]
    return np.concatenate([part.reshape(len(points), -1) for part in (pose, *hands)], axis=1).astype(np.float32)


def test_the_same_sign_slower_elsewhere_in_the_picture_and_larger_differs_in_no_part() -> None:
    slow = sign(n=80)
    moved = slow.copy()
    x = np.r_[np.arange(0, 132, 4), np.arange(132, 258, 3)]
    for axis, centre in ((0, 0.3), (1, 0.1), (2, 0.0)):
        moved[:, x + axis] = np.where(slow[:, x + axis] != 0, 1.4 * slow[:, x + axis] + centre, 0)
    assert max(apart(row(slow), row(moved)).values()) < 1e-4
    assert max(apart(row(sign()), row(slow)).values()) < 0.15  # the hands come and go a little softer


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("place", sign(place=(0.35, 0.15))),
        ("path", sign(way=(0.0, 0.1))),
        ("turn", sign(turn=60)),
        ("shape", sign(spread=0.012)),
        ("other", sign(other=True)),
    ],
)
def test_a_sign_that_differs_in_one_part_differs_in_that_part_most(part: str, changed: FloatArray) -> None:
    found = apart(row(sign()), row(changed))
    if part == "place":
        found.pop("path")  # the way up is another
    assert found.pop(part) > 0.15
    assert max(found.values()) < 0.05


def test_a_left_handed_signer_signs_the_mirror_image_and_leads_with_the_left_hand() -> None:
    mirror = mirrored(sign())
    np.testing.assert_allclose(row(mirror, left_handed=True), row(sign()), atol=1e-4)
    np.testing.assert_allclose(row(mirror), row(sign(), left_handed=True), atol=1e-4)
    assert seen(sign())[-1] > 1 and seen(mirror)[-1] < -1
    assert abs(seen(sign(other=True))[-1]) < 0.01, "two hands that do the same say nothing"


def test_a_hand_at_rest_is_not_raised() -> None:
    assert row(sign())[RAISED] == 1 and row(sign())[SIDE + RAISED] == 0
    assert row(sign(other=True))[SIDE + RAISED] == 1


def test_a_hand_that_is_lost_for_some_frames_is_where_its_wrist_is() -> None:
    zigzag = sign()
    wave = 0.05 * np.sin(np.linspace(0, 12 * np.pi, len(zigzag)))[:, None]
    zigzag[:, 196:258:3] += wave
    zigzag[:, [65, 73, 81, 89]] += wave
    lost = zigzag.copy()
    lost[18:26, 195:] = 0
    assert max(apart(row(zigzag), row(lost)).values()) < 1e-3


def test_landmarks_without_a_body_or_a_hand_have_no_form() -> None:
    nothing = np.zeros((20, 258), np.float32)
    with pytest.raises(ValueError, match="no body"):
        seen(nothing)
    handless = sign()
    handless[:, 132:] = 0
    with pytest.raises(ValueError, match="no hand"):
        seen(handless)
    with pytest.raises(ValueError, match="no sign in the frames 3 to 3"):
        form_row(sign(), FrameSpan(3, 3))
    with pytest.raises(ValueError, match="no sign"):
        form_row(sign()[:, :200], FrameSpan(0, 50))
    broken = sign()
    broken[4, 200] = np.nan
    assert np.isfinite(seen(broken)).all() and seen(broken).shape == (SEEN,)
