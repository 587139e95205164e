"""The frames of a sign: a hand is raised, and none rests, hanging or before the belly."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.lib.landmark_model import sign_window

from signspot.domain.time import FrameSpan
from signspot.embedding.landmarks import _has_raised_hand, points_at, sign_span, signing_span

LEFT, RIGHT = slice(132, 195), slice(195, 258)


def signer(n_frames: int, raised: slice) -> np.ndarray:
    """Shoulders 0.4 apart at height 0.4; both hands far below but for the raised frames."""
    points = np.zeros((n_frames, 258), np.float32)
    pose = points[:, :132].reshape(n_frames, 33, 4)
    pose[:, 11], pose[:, 12] = (0.7, 0.4, 0, 1), (0.3, 0.4, 0, 1)
    pose[:, 15:17] = (0.5, 1.5, 0, 1)
    pose[raised, 16] = (0.3, 0.6, 0, 1)
    return points


def test_the_span_is_from_the_first_raised_hand_to_the_last() -> None:
    assert signing_span(signer(40, slice(12, 30))) == FrameSpan(12, 30)


def test_a_found_hand_counts_where_the_pose_does_not_see_its_wrist() -> None:
    points = signer(40, slice(0, 0))
    points[8:20, LEFT] = 0.7
    assert signing_span(points) == FrameSpan(8, 20)
    points[8:20, LEFT] = 1.5  # in the lap
    assert signing_span(points) == FrameSpan(0, 40)


@pytest.mark.parametrize("points", [np.zeros((7, 258), np.float32), signer(7, slice(2, 5))])
def test_without_a_body_or_with_hardly_a_raised_hand_all_frames_count(points: np.ndarray) -> None:
    assert signing_span(points) == FrameSpan(0, 7)


def resting(n_frames: int, signed: slice, *, low: float = 0.84, step: float = 0.004) -> np.ndarray:
    """The same signer with both hands at the height `low`, trembling, and the right one at work for some frames."""
    points = signer(n_frames, slice(0, 0))
    pose = points[:, :132].reshape(n_frames, 33, 4)
    pose[:, 15:17, 1] = low
    pose[:, 15:17, 0] = 0.5 + step * (np.arange(n_frames) % 2)[:, None]
    working = np.arange(n_frames)[signed]
    pose[working, 16, 1] = 0.6 + 0.15 * np.sin(working)
    for part, wrist in ((LEFT, 15), (RIGHT, 16)):
        hand = points[:, part].reshape(n_frames, 21, 3)
        hand[..., :2] = pose[:, None, wrist, :2]
        points[:, part] = hand.reshape(n_frames, 63)
    return points


def test_hands_that_rest_before_the_belly_are_cut_off_at_both_ends() -> None:
    points = resting(60, slice(20, 40))
    assert signing_span(points) == FrameSpan(0, 60)  # 1.1 shoulder widths below the shoulders: hands sign there, too
    span = sign_span(points)
    assert abs(span.start - 20) <= 1 and abs(span.stop - 40) <= 1
    assert sign_window(points)[:, 16 * 4 + 1].max() < 0.84
    for unit in (0.1, 30.0):  # picture heights, pixels, shoulder widths: it does not matter
        scaled = points.copy()
        scaled[:, : 33 * 4].reshape(60, 33, 4)[..., :3] *= unit
        scaled[:, 132:] *= unit
        assert sign_span(scaled) == span


def test_it_does_not_matter_how_fast_somebody_signs() -> None:
    points = resting(60, slice(20, 40))
    slow = points_at(points, np.arange(240) / 4)
    span, slowly = sign_span(points), sign_span(slow)
    assert abs(slowly.start / 4 - span.start) <= 1.5 and abs(slowly.stop / 4 - span.stop) <= 1.5


def test_rest_between_two_movements_stays() -> None:
    points = resting(60, slice(15, 25))
    points[38:45] = resting(60, slice(38, 45))[38:45]
    span = sign_span(points)
    assert span.start <= 16 and span.stop >= 45


@pytest.mark.parametrize("how", [{"step": 0.12}, {"low": 0.65}])
def test_hands_that_move_or_are_held_high_do_not_rest(how: dict[str, float]) -> None:
    points = resting(60, slice(20, 40), **how)
    span = sign_span(points)
    assert signing_span(points) == FrameSpan(0, 60)
    assert span.start <= 1 and span.stop >= 59  # a single frame never moves


def test_where_hardly_anything_is_left_the_raised_frames_count() -> None:
    assert sign_span(resting(30, slice(12, 14))) == FrameSpan(0, 30)
    assert sign_span(resting(30, slice(0, 0))) == FrameSpan(0, 30)
    assert sign_span(np.zeros((7, 258), np.float32)) == FrameSpan(0, 7)


def low_sign(n_before: int, n_signed: int, n_after: int, *, out: float = 0.12) -> np.ndarray:
    """Both hands before the belly, mostly near where they rest, going to and fro three times between two rests."""
    points = resting(n_before + n_signed + n_after, slice(0, 0))
    pose, turns = points[:, :132].reshape(-1, 33, 4), 6 * np.pi * np.arange(n_signed) / n_signed
    sideways = 0.07 * np.sin(turns) + out * np.exp(-((np.arange(n_signed) - n_signed / 2) ** 2) / 20)  # 0.4 is a width
    for part, wrist, side in ((LEFT, 15, 1), (RIGHT, 16, -1)):
        pose[n_before : n_before + n_signed, wrist, 0] += side * sideways
        points[:, part].reshape(-1, 21, 3)[..., :2] = pose[:, None, wrist, :2]
    return points


@pytest.mark.parametrize(("n_before", "n_after"), [(0, 0), (20, 20), (3, 15)])
def test_a_low_sign_of_both_hands_is_no_rest(n_before: int, n_after: int) -> None:
    points = low_sign(n_before, 45, n_after)
    span = sign_span(points)
    assert span.start <= n_before + 5 and span.stop >= n_before + 40
    assert len(span) <= 46 + (n_before if n_before < 10 else 0) + (n_after if n_after < 10 else 0)


def test_hands_that_are_low_and_still_rest_even_if_they_move_now_and_then() -> None:
    points = resting(80, slice(40, 60))
    points[20:40, :132].reshape(-1, 33, 4)[:, 15:17, 0] += 0.03  # a sixth of the way to and fro
    for part in (LEFT, RIGHT):
        points[20:40, part].reshape(-1, 21, 3)[..., 0] += 0.03
    span = sign_span(points)
    assert abs(span.start - 40) <= 1 and abs(span.stop - 60) <= 1


def test_what_is_no_number_was_not_found() -> None:
    points = resting(60, slice(20, 40))
    span = sign_span(points)
    points[5, 44], points[30, 140], points[33, 200] = np.nan, np.inf, np.nan
    assert sign_span(points) == span and _has_raised_hand(points)
    assert sign_span(np.full((20, 258), np.nan, np.float32)) == FrameSpan(0, 20)


def test_a_hand_is_raised_where_it_is_found_above_the_belly() -> None:
    held = np.repeat(resting(1, slice(0, 0), low=0.3), 20, axis=0)  # at the ear, without moving
    assert _has_raised_hand(held)
    held[4:, 132:] = 0  # a wrist alone may be a guess of the detector
    assert not _has_raised_hand(held)
    assert not _has_raised_hand(resting(40, slice(0, 0)))  # before the belly
    assert not _has_raised_hand(signer(40, slice(0, 0)))  # hanging
    assert not _has_raised_hand(np.zeros((40, 258), np.float32))
