"""Hands made up of 21 points, given to a body 0.2 of a square picture wide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.tracks import FloatArray
from signspot.embedding.hands import Hand, MissingHands

LEFT, RIGHT = 0, 1
SIDE = 100  # pixels
PLACES = slice(132, 195), slice(195, 258)
SHAPE = np.random.default_rng(0).uniform((-0.04, -0.08, 0), (0.04, 0, 0.05), (21, 3)).astype(np.float32)
SHAPE[0] = 0


def points(x: float, y: float, flip: bool = False) -> FloatArray:
    """A hand with its wrist at (x, y)."""
    return SHAPE * np.array((-1 if flip else 1, 1, 1), np.float32) + np.array((x, y, 0), np.float32)


def body(left: tuple[float, float], right: tuple[float, float]) -> FloatArray:
    """Landmarks of somebody with wrists there and without hands; the signer's left is at the right."""
    numbers = np.zeros(258, np.float32)
    pose = numbers[:132].reshape(33, 4)
    pose[:] = 0.5
    pose[11, :2], pose[12, :2] = (0.6, 0.4), (0.4, 0.4)
    pose[15, :2], pose[16, :2] = left, right
    return numbers


def with_hand(numbers: FloatArray, side: int, hand: FloatArray) -> FloatArray:
    changed = numbers.copy()
    changed[PLACES[side]] = hand.reshape(-1)
    return changed


def sides(numbers: FloatArray) -> list[FloatArray | None]:
    return [numbers[place].reshape(21, 3) if numbers[place].any() else None for place in PLACES]


def filled(numbers: FloatArray, *hands: Hand) -> list[FloatArray | None]:
    return sides(MissingHands().filled(numbers, hands, SIDE, SIDE))


def test_a_hand_at_the_wrist_of_an_arm_without_one_is_its_hand() -> None:
    numbers = with_hand(body((0.7, 0.6), (0.3, 0.6)), RIGHT, points(0.3, 0.6))
    left, right = filled(numbers, Hand(points(0.71, 0.61), LEFT))
    assert left is not None and np.array_equal(left, points(0.71, 0.61))
    assert right is not None and np.array_equal(right, points(0.3, 0.6))


def test_hands_go_to_the_nearest_arms_in_any_order() -> None:
    numbers = body((0.7, 0.6), (0.3, 0.6))
    hands = Hand(points(0.69, 0.6), LEFT), Hand(points(0.32, 0.6), RIGHT)
    for order in (hands, hands[::-1]):
        left, right = filled(numbers, *order)
        assert np.array_equal(left, hands[0].points)  # type: ignore[arg-type]
        assert np.array_equal(right, hands[1].points)  # type: ignore[arg-type]


def test_crossed_arms_keep_their_hands() -> None:
    numbers = body((0.35, 0.5), (0.65, 0.5))
    left, right = filled(numbers, Hand(points(0.64, 0.5), RIGHT), Hand(points(0.36, 0.5), LEFT))
    assert left is not None and left[0, 0] < 0.5
    assert right is not None and right[0, 0] > 0.5


@pytest.mark.parametrize("looks_like", [LEFT, RIGHT])
def test_a_hand_that_was_found_already_is_not_given_to_the_other_arm(looks_like: int) -> None:
    numbers = with_hand(body((0.5, 0.6), (0.49, 0.6)), RIGHT, points(0.49, 0.6))
    left, _ = filled(numbers, Hand(points(0.5, 0.605), looks_like))
    assert left is None


def test_clasped_hands_are_two() -> None:
    numbers = with_hand(body((0.53, 0.6), (0.47, 0.6)), RIGHT, points(0.47, 0.6))
    left, _ = filled(numbers, Hand(points(0.475, 0.6), RIGHT), Hand(points(0.53, 0.6, flip=True), LEFT))
    assert left is not None and np.array_equal(left, points(0.53, 0.6, flip=True))


@pytest.mark.parametrize(("looks_like", "expected"), [(LEFT, [True, False]), (RIGHT, [False, True])])
def test_one_hand_between_both_wrists_fills_one_side_by_its_looks(looks_like: int, expected: list[bool]) -> None:
    found = filled(body((0.51, 0.6), (0.49, 0.6)), Hand(points(0.5, 0.6), looks_like))
    assert [hand is not None for hand in found] == expected


def test_one_hand_that_is_found_twice_fills_one_side() -> None:
    found = filled(body((0.51, 0.6), (0.49, 0.6)), Hand(points(0.5, 0.6), LEFT), Hand(points(0.505, 0.6), RIGHT))
    assert [hand is not None for hand in found] == [True, False]


def test_a_hand_that_looks_like_the_other_one_and_is_nearer_to_it_is_left_out() -> None:
    numbers = with_hand(body((0.52, 0.6), (0.5, 0.6)), RIGHT, points(0.8, 0.2))
    assert filled(numbers, Hand(points(0.49, 0.6), RIGHT))[LEFT] is None
    assert filled(numbers, Hand(points(0.49, 0.6), LEFT))[LEFT] is not None


def test_far_from_the_wrist_a_hand_counts_only_where_it_was_just_before() -> None:
    seen = with_hand(body((0.7, 0.6), (0.3, 0.6)), LEFT, points(0.7, 0.6))
    strayed = body((0.9, 0.9), (0.3, 0.6))
    hand = Hand(points(0.68, 0.58), LEFT)
    assert filled(strayed, hand)[LEFT] is None
    for n_lost, is_known in ((0, True), (2, True), (3, False), (9, False)):
        hands = MissingHands()
        hands.filled(seen, (), SIDE, SIDE)
        for _ in range(n_lost):
            hands.filled(strayed, (), SIDE, SIDE)
        assert (sides(hands.filled(strayed, [hand], SIDE, SIDE))[LEFT] is not None) == is_known, n_lost


def test_a_hand_that_was_filled_in_is_followed_too() -> None:
    hands, strayed = MissingHands(), body((0.95, 0.95), (0.3, 0.6))
    hands.filled(body((0.7, 0.6), (0.3, 0.6)), [Hand(points(0.7, 0.6), LEFT)], SIDE, SIDE)
    for step in range(1, 6):
        moved = Hand(points(0.7 + 0.03 * step, 0.6), LEFT)
        assert sides(hands.filled(strayed, [moved], SIDE, SIDE))[LEFT] is not None


def test_distances_are_those_of_the_picture_not_of_its_fractions() -> None:
    numbers, hand = body((0.7, 0.6), (0.3, 0.6)), Hand(points(0.7, 0.64), LEFT)
    assert sides(MissingHands().filled(numbers, [hand], 100, 100))[LEFT] is not None
    assert sides(MissingHands().filled(numbers, [hand], 100, 200))[LEFT] is None


@pytest.mark.parametrize("scale", [0.0, 0.1, 5.0, np.nan])
def test_what_is_no_hand_by_its_size_is_left_out(scale: float) -> None:
    shape = (SHAPE * scale + np.array((0.7, 0.6, 0), np.float32)).astype(np.float32)
    assert filled(body((0.7, 0.6), (0.3, 0.6)), Hand(shape, LEFT)) == [None, None]


def test_without_shoulders_nothing_is_filled_in() -> None:
    hand = Hand(points(0.5, 0.5), LEFT)
    assert filled(np.zeros(258, np.float32), hand) == [None, None]
    assert filled(np.full(258, 0.5, np.float32) * (np.arange(258) < 132), hand) == [None, None]


def test_a_hand_is_looked_for_where_it_should_be_in_the_picture() -> None:
    inside, outside = body((0.7, 0.6), (0.3, 0.6)), body((0.7, 1.2), (-0.1, 0.9))
    both = with_hand(with_hand(inside, LEFT, points(0.7, 0.6)), RIGHT, points(0.3, 0.6))
    hands = MissingHands()
    assert not hands.wanted(np.zeros(258, np.float32)) and not hands.wanted(outside) and not hands.wanted(both)
    assert hands.wanted(inside) and hands.wanted(with_hand(inside, LEFT, points(0.7, 0.6)))
    hands.filled(both, (), SIDE, SIDE)
    for is_remembered in (True, True, True, False, False):
        assert hands.wanted(outside) == is_remembered
        hands.filled(outside, (), SIDE, SIDE)


PLACE = st.floats(0.3, 0.7)


@given(
    wrists=st.tuples(PLACE, PLACE, PLACE, PLACE),
    known=st.lists(st.tuples(st.sampled_from((LEFT, RIGHT)), PLACE, PLACE), max_size=2),
    found=st.lists(st.tuples(PLACE, PLACE, st.sampled_from((LEFT, RIGHT)), st.booleans()), max_size=3),
)
def test_what_holistic_found_stays_and_no_hand_is_used_twice(
    wrists: tuple[float, ...],
    known: list[tuple[int, float, float]],
    found: list[tuple[float, float, int, bool]],
) -> None:
    numbers = body((wrists[0], wrists[1]), (wrists[2], wrists[3]))
    for side, x, y in known:
        numbers = with_hand(numbers, side, points(x, y))
    hands = [Hand(points(x, y, flip), side) for x, y, side, flip in found]
    answer = MissingHands().filled(numbers, hands, SIDE, SIDE)
    assert np.array_equal(answer[:132], numbers[:132])
    for before, after in zip(sides(numbers), sides(answer), strict=True):
        if before is not None:
            assert after is not None and np.array_equal(before, after)
        elif after is not None:
            assert any(np.array_equal(after, hand.points) for hand in hands)
    left, right = sides(answer)
    if left is not None and right is not None and not numbers[132:].reshape(2, -1).any(axis=1).all():
        assert np.linalg.norm((left - right)[:, :2], axis=1).mean() >= 0.5 * np.ptp(left[:, :2], axis=0).max() - 1e-6
