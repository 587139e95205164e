"""The parts of a frame, the mirror, and coordinates that do not know where the signer stands."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.models.landmarks import Body, Part, _bridged, mirrored
from tests.models.signing import LEFT, POSE, RIGHT, moved, signing

SIDES = ("left", "right")
# MediaPipe's names of the pose points, in order.
NAMES = [
    *("nose", "left_eye_inner", "left_eye", "left_eye_outer", "right_eye_inner", "right_eye", "right_eye_outer"),
    *("left_ear", "right_ear", "mouth_left", "mouth_right"),
    *(f"{side}_{part}" for part in ("shoulder", "elbow", "wrist", "pinky", "index", "thumb") for side in SIDES),
    *(f"{side}_{part}" for part in ("hip", "knee", "ankle", "heel", "foot_index") for side in SIDES),
]


def other_side(name: str) -> str:
    return name.replace("left", "?").replace("right", "left").replace("?", "right")


def test_mirror_follows_the_names_of_the_points() -> None:
    points = signing(gaps=False)
    pose, image = (p[..., POSE].reshape(2, 16, 33, 4) for p in (points, mirrored(points)))
    for index, name in enumerate(NAMES):
        twin = pose[..., NAMES.index(other_side(name)), :]
        torch.testing.assert_close(image[..., index, 0], 1 - twin[..., 0])
        assert torch.equal(image[..., index, 1:], twin[..., 1:])


def test_mirror_swaps_the_hands() -> None:
    points = signing()
    points[..., LEFT] = 0
    image = mirrored(points)
    assert not image[..., RIGHT].any()
    hand, twin = (p.reshape(2, 16, 21, 3) for p in (points[..., RIGHT], image[..., LEFT]))
    found = hand.flatten(2).any(-1)
    torch.testing.assert_close(twin[found][..., 0], 1 - hand[found][..., 0])
    assert torch.equal(twin[..., 1:], hand[..., 1:])


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**16), st.sampled_from([torch.float16, torch.float32, torch.float64]))
def test_mirroring_twice_changes_nothing(seed: int, dtype: torch.dtype) -> None:
    points = signing(seed=seed).to(dtype)
    twice = mirrored(mirrored(points))
    assert twice.dtype == dtype
    torch.testing.assert_close(twice, points, atol=2e-3 if dtype == torch.float16 else 1e-6, rtol=0)


def test_mirror_leaves_its_input_alone() -> None:
    points = signing()
    before = points.clone()
    mirrored(points)
    assert torch.equal(points, before)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**16), st.floats(0.2, 5), st.floats(-2, 2), st.floats(-2, 2))
def test_body_coordinates_ignore_place_and_size(seed: int, scale: float, right: float, down: float) -> None:
    points = signing(seed=seed)
    here, there = (Body.of(p).in_body_coordinates() for p in (points, moved(points, scale, right, down)))
    for name in ("pose", "left", "right"):
        torch.testing.assert_close(getattr(here, name).points, getattr(there, name).points, atol=2e-4, rtol=1e-4)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.2, 5), st.floats(-2, 2))
def test_hands_stand_in_for_a_body_that_is_never_found(scale: float, shift: float) -> None:
    points = signing()
    points[..., POSE] = 0
    here, there = (Body.of(p).in_body_coordinates() for p in (points, moved(points, scale, shift, shift)))
    torch.testing.assert_close(here.left.points, there.left.points, atol=2e-4, rtol=1e-4)
    assert here.left.points[..., :2].abs().max() < 3


def test_shoulders_are_one_apart_around_the_origin() -> None:
    pose = Body.of(signing(gaps=False)).in_body_coordinates().pose.points
    torch.testing.assert_close(pose[..., 11, :2], torch.tensor([0.5, 0.0]).expand(2, 16, 2))
    torch.testing.assert_close(pose[..., 12, :2], torch.tensor([-0.5, 0.0]).expand(2, 16, 2))


def test_missing_parts_are_zero_in_body_coordinates() -> None:
    body = Body.of(signing()).in_body_coordinates()
    for part in (body.pose, body.left, body.right):
        assert not part.points[~part.found].any() and (~part.found).any()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_part_that_is_not_finite_counts_as_missing(bad: float) -> None:
    points = signing(gaps=False)
    points[0, 3, 140] = bad
    body = Body.of(points).in_body_coordinates()
    assert not body.left.found[0, 3] and body.left.found.sum() == 31
    assert all(part.points.isfinite().all() for part in (body.pose, body.left, body.right))


def test_a_signer_seen_from_the_side_stays_within_ten_units() -> None:
    points = signing(gaps=False)
    pose = points[..., POSE].view(2, 16, 33, 4)
    pose[..., 11, :2] = pose[..., 12, :2]
    body = Body.of(points).in_body_coordinates()
    assert body.left.points.abs().max() <= 10 and body.pose.points.isfinite().all()


def test_other_layouts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"instead of \(\.\.\., 258\)"):
        mirrored(torch.zeros(16, 225))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4))
def test_gaps_are_bridged_on_a_straight_line_and_ends_are_held(pattern: list[list[bool]]) -> None:
    found = torch.tensor(pattern)
    values = torch.rand(len(pattern), 6)
    points = torch.where(found, values, 0.0)[..., None, None].expand(-1, -1, 2, 3)
    whole = _bridged(Part(points, found))
    for window, frames in enumerate(pattern):
        known = [frame for frame in range(6) if frames[frame]]
        assert whole.is_known[window].tolist() == [bool(known)] * 6
        for frame in range(6):
            before, after = [k for k in known if k <= frame], [k for k in known if k >= frame]
            first, last = (before or after or [0])[-1 if before else 0], (after or before or [0])[0 if after else -1]
            share = (frame - first) / (last - first) if last > first else 0.0
            expected = (1 - share) * points[window, first] + share * points[window, last]
            torch.testing.assert_close(whole.points[window, frame], expected)
            nearest = min((abs(frame - k) for k in known), default=6)
            assert whole.distance[window, frame] == nearest
