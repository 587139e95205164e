"""The frames of a sign: a hand is raised, and none rests, hanging or before the belly."""

from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.spans import FrameSpan
from signspot.spotting.multi_rate import points_at
from signspot.spotting.sign_span import sign_span, sign_window, signing_span

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
