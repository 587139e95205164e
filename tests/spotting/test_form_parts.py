"""Signs compared part by part: a sign is its own form whoever signs it, and one part is enough to make it another."""

from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.tracks import FloatArray
from signspot.evaluation.presence import Logistic
from signspot.spotting.form_parts import HAND_NUMBERS, N_FRAMES, PARTS, ROW, FormJudge, form_row, whole_sign

# Every distance counts by itself: more of any is less likely one form.
JUDGE = FormJudge(
    np.eye(HAND_NUMBERS, dtype=np.float32),
    np.full(len(PARTS), 0.1),
    Logistic((0.0,) * 13, (1.0,) * 13, (0.0,) * 6 + (-1.0,) + (0.0,) * 6, 1.0),
)


def sign(
    *,
    place: tuple[float, float] = (0.35, 0.3),
    way: tuple[float, float] = (0.1, 0.0),
    spread: float = 0.02,
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
    for wrist, palm, side in ((15, left, -1), (16, right, 1)):
        pose[:, wrist, :2] = palm
        fingers = np.stack([side * spread * (np.arange(21) % 4), -0.003 * np.arange(21), np.zeros(21)], axis=1)
        hands.append(np.concatenate([palm, np.zeros((n, 1))], axis=1)[:, None] + fingers)
    flat = [pose.reshape(n, -1), *(hand.reshape(n, -1) for hand in hands)]
    return np.concatenate(flat, axis=1).astype(np.float32)


def row(points: FloatArray, *, left_handed: bool = False) -> FloatArray:
    return form_row(whole_sign(points), left_handed=left_handed)


def apart(one: FloatArray, other: FloatArray) -> dict[str, float]:
    return dict(zip(PARTS, JUDGE.distances(one[None], other[None])[0, 0].tolist(), strict=True))


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
    for other in (slow, moved):
        assert max(apart(row(sign()), row(other)).values()) < 0.01


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("place", sign(place=(0.35, 0.15))),
        ("path", sign(way=(0.0, 0.1))),
        ("hand", sign(spread=0.005)),
        ("other place", sign(other=True)),
    ],
)
def test_a_sign_that_differs_in_one_part_differs_in_that_part_only(part: str, changed: FloatArray) -> None:
    found = apart(row(sign()), row(changed))
    assert found.pop(part) > 0.05
    assert max(found.values()) < 0.02


def test_a_left_handed_signer_signs_the_mirror_image() -> None:
    mirror = mirrored(sign())
    assert max(apart(row(sign()), row(mirror, left_handed=True)).values()) < 1e-4
    assert max(apart(row(sign()), row(mirror)).values()) > 0.1


def test_where_the_other_hand_rests_does_not_matter() -> None:
    hanging = sign()
    hanging[:, 132:195].reshape(-1, 21, 3)[..., 1] += 0.2
    hanging[:, :132].reshape(-1, 33, 4)[:, 15, 1] += 0.2
    assert max(apart(row(sign()), row(hanging)).values()) < 1e-4


def test_a_hand_that_is_lost_for_some_frames_is_bridged() -> None:
    lost = sign()
    lost[20:24, 195:] = 0
    found = apart(row(sign()), row(lost))
    assert max(found.values()) < 1e-3


def test_the_largest_difference_decides_and_more_of_it_is_less_likely() -> None:
    distances = np.array([[0.0] * 6, [0.1, 0, 0, 0, 0, 0], [0.3, 0, 0, 0, 0, 0], [0.3, 0.2, 0, 0, 0, 0]], np.float32)
    odds = JUDGE.log_odds(distances)
    assert odds[0] > odds[1] > odds[2]
    assert odds[3] == pytest.approx(odds[2])
    assert JUDGE.log_odds(distances.reshape(2, 2, 6)).shape == (2, 2)


def test_distances_are_the_same_both_ways() -> None:
    rows = np.stack([row(sign()), row(sign(way=(0.05, 0.1), other=True)), row(sign(spread=0.01))])
    there, back = JUDGE.distances(rows, rows[:2]), JUDGE.distances(rows[:2], rows)
    assert there == pytest.approx(back.transpose(1, 0, 2), abs=1e-6)


def test_landmarks_without_a_body_or_a_hand_have_no_form() -> None:
    nothing = np.zeros((N_FRAMES, 258), np.float32)
    with pytest.raises(ValueError, match="no body"):
        form_row(nothing)
    handless = whole_sign(sign())
    handless[:, 132:] = 0
    with pytest.raises(ValueError, match="no hand"):
        form_row(handless)
    with pytest.raises(ValueError, match="instead of"):
        form_row(nothing[:3])
    assert row(sign()).shape == (ROW,)
