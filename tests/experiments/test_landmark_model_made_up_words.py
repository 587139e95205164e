"""Words made of words: only what is exchanged changes."""

from __future__ import annotations

import numpy as np
from experiments.lib.landmark_model import PARTS, compound, elsewhere, made_up_word, with_shape_of
from hypothesis import given, settings
from hypothesis import strategies as st

LEFT, RIGHT = PARTS[1:]


def window(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(16, 258)).astype(np.float32)


def hand(points: np.ndarray, part: slice) -> np.ndarray:
    return points[:, part].reshape(16, 21, 3)


def test_hands_and_wrists_are_moved_and_the_head_is_not() -> None:
    points = window(0)
    points[4, RIGHT] = 0
    moved = elsewhere(points, (0.5, -0.25))
    step = hand(moved, LEFT) - hand(points, LEFT)
    np.testing.assert_allclose(step, np.broadcast_to([0.5, -0.25, 0], step.shape), atol=1e-6)
    assert not moved[4, RIGHT].any()
    pose = (moved - points)[:, PARTS[0]].reshape(16, 33, 4)
    np.testing.assert_allclose(pose[:, 16, :2], np.broadcast_to([0.5, -0.25], (16, 2)), atol=1e-6)
    np.testing.assert_allclose(pose[:, 13, :2], np.broadcast_to([0.25, -0.125], (16, 2)), atol=1e-6)
    assert not pose[:, :13].any() and not pose[:, 23:].any()


def test_a_lent_shape_stays_at_the_wrist() -> None:
    own, lent = window(0), window(1)
    own[2, LEFT] = 0
    changed = with_shape_of(own, lent)
    np.testing.assert_allclose(hand(changed, RIGHT)[:, 0], hand(own, RIGHT)[:, 0], atol=1e-6)
    shape = hand(changed, RIGHT) - hand(changed, RIGHT)[:, :1]
    np.testing.assert_allclose(shape, hand(lent, RIGHT) - hand(lent, RIGHT)[:, :1], atol=1e-5)
    assert not changed[2, LEFT].any() and np.array_equal(changed[:, PARTS[0]], own[:, PARTS[0]])


def test_a_hand_that_is_hardly_seen_lends_nothing() -> None:
    own, lent = window(0), window(1)
    lent[3:, RIGHT] = 0
    assert np.array_equal(with_shape_of(own, lent)[:, RIGHT], own[:, RIGHT])


def test_a_compound_begins_with_one_word_and_ends_with_the_other() -> None:
    first, second = np.full((16, 258), 1, np.float32), np.full((16, 258), 2, np.float32)
    assert compound(first, second, 6)[:, 0].tolist() == [1] * 6 + [2] * 10


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**16))
def test_both_windows_of_a_pair_are_changed_in_the_same_way(seed: int) -> None:
    """Two equal signers stay equal, whatever was drawn, and the word is no longer the old one."""
    old, other = window(0), window(1)
    before = old.copy()
    first, second = made_up_word((old, old), (other, other), np.random.default_rng(seed))
    assert np.array_equal(first, second) and first.shape == (16, 258)
    assert not np.allclose(first, old) and np.array_equal(old, before)
