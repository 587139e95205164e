"""What the encoder is told about a frame: one description for both hands, and shapes that know no size."""

from __future__ import annotations

import torch

from signspot.models.landmarks import (
    _BODY_NUMBERS,
    _PLACE_NUMBERS,
    _RELATION_NUMBERS,
    _SHAPE_NUMBERS,
    Body,
    _frame_numbers,
    _FrameNumbers,
    _motion,
    mirrored,
)
from tests.models.signing import LEFT, RIGHT, signing


def described(points: torch.Tensor) -> _FrameNumbers:
    return _frame_numbers(Body.of(points).in_body_coordinates())


def test_every_description_has_its_length_and_is_finite() -> None:
    points = signing(3)
    points[0, :, LEFT] = 0
    points[1] = 0
    numbers = described(points)
    assert numbers.body.shape == (3, 16, _BODY_NUMBERS) and numbers.relation.shape == (3, 16, _RELATION_NUMBERS)
    for hand in (numbers.left, numbers.right):
        assert hand.shape.shape == (3, 16, _SHAPE_NUMBERS) and hand.place.shape == (3, 16, _PLACE_NUMBERS)
        assert hand.shape.isfinite().all() and hand.place.isfinite().all()
    assert numbers.left.is_known[:, 0].tolist() == [False, False, True]


def test_the_left_hand_of_a_mirrored_signer_is_described_as_the_right_hand() -> None:
    points = signing(gaps=False)
    here, there = described(points), described(mirrored(points))
    torch.testing.assert_close(there.left.shape, here.right.shape, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(there.right.place, here.left.place, atol=1e-4, rtol=1e-4)


def test_the_size_of_a_hand_does_not_change_its_shape() -> None:
    points = signing(gaps=False)
    larger = points.clone()
    hand = larger[..., RIGHT].view(2, 16, 21, 3)
    hand.copy_(hand[:, :, :1] + 1.7 * (hand - hand[:, :, :1]))
    torch.testing.assert_close(described(larger).right.shape, described(points).right.shape, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(described(larger).right.place, described(points).right.place)


def test_where_a_hand_is_missing_the_wrist_of_the_pose_stands_in() -> None:
    points = signing(gaps=False)
    points[:, 5, RIGHT] = 0
    body = Body.of(points).in_body_coordinates()
    wrist = _frame_numbers(body).right.wrist
    assert torch.equal(wrist[:, 5], body.pose.points[:, 5, 16, :2])
    assert torch.equal(wrist[:, 6], body.right.points[:, 6, 0, :2])


def test_motion_is_five_times_the_step_from_the_frame_before() -> None:
    numbers = torch.randn(2, 5, 3)
    moved = _motion(numbers)
    assert not moved[:, 0].any()
    torch.testing.assert_close(moved[:, 1:].cumsum(1) / 5 + numbers[:, :1], numbers[:, 1:])
