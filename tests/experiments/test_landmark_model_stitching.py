"""Running signing made of single signs: the truth about where each sign is must hold."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.lib.landmark_model import (
    PARTS,
    RecordedSign,
    StitchOptions,
    WindowOptions,
    bridge,
    in_shoulder_widths,
    recorded_sign,
    stitched,
    training_window,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.domain.time import FrameSpan


def sign(number: int, n_frames: int = 30, span: FrameSpan = FrameSpan(5, 25)) -> RecordedSign:
    """Every number of every frame is that of the sign."""
    return RecordedSign(Word(f"w{number}"), "s", np.full((n_frames, 258), number, np.float32), span)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**16), st.integers(1, 6))
def test_each_sign_is_where_the_passage_says_and_the_rest_is_bridges(seed: int, n_signs: int) -> None:
    passage = stitched([sign(n + 1) for n in range(n_signs)], np.random.default_rng(seed))
    covered = np.zeros(len(passage.points), bool)
    for n, place in enumerate(passage.signs):
        assert place.word == f"w{n + 1}"
        np.testing.assert_allclose(passage.points[place.span.start : place.span.stop], n + 1, rtol=1e-5)
        covered[place.span.start : place.span.stop] = True
    gaps = [
        second.span.start - first.span.stop for first, second in zip(passage.signs, passage.signs[1:], strict=False)
    ]
    assert all(3 <= gap <= 7 for gap in gaps) and (~covered).sum() == sum(gaps)
    bridges = passage.points[~covered][:, 0]
    assert (np.abs(bridges - np.round(bridges)) > 0.01).all()  # on the way from one sign to the next


def test_signs_are_sped_up_and_cut_as_asked() -> None:
    options = StitchOptions(speed=(2, 2), cut=(0.25, 0.25), bridge=(4, 4))
    passage = stitched([sign(1), sign(2)], np.random.default_rng(0), options)
    assert [place.span for place in passage.signs] == [FrameSpan(0, 5), FrameSpan(9, 14)]


def test_a_passage_needs_signs() -> None:
    with pytest.raises(ValueError, match="without signs"):
        stitched([], np.random.default_rng(0))


def test_a_bridge_is_a_straight_line_on_which_missing_parts_are_missing() -> None:
    before, after = np.zeros(258, np.float32), np.full(258, 4, np.float32)
    before[PARTS[0]] = 1
    way = bridge(before, after, 2)
    np.testing.assert_allclose(way[:, PARTS[0]][:, 0], [2, 3])
    assert not way[:, PARTS[1]].any() and not way[:, PARTS[2]].any()


def test_bodies_of_any_place_and_size_become_the_same() -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(0.3, 0.7, (12, 258)).astype(np.float32)
    points[3:5, PARTS[1]] = 0
    moved = points.copy()
    for first, stop, step in ((0, 132, 4), (132, 258, 3)):
        moved[:, first:stop:step] = 1.5 * points[:, first:stop:step] + 0.2
        moved[:, first + 1 : stop : step] = 1.5 * points[:, first + 1 : stop : step] - 0.1
        moved[:, first + 2 : stop : step] *= 1.5
    moved[3:5, PARTS[1]] = 0
    here, there = in_shoulder_widths(points), in_shoulder_widths(moved)
    np.testing.assert_allclose(here, there, atol=1e-4)
    pose = here[:, PARTS[0]].reshape(-1, 33, 4)
    np.testing.assert_allclose(np.median(np.linalg.norm(pose[:, 11, :2] - pose[:, 12, :2], axis=1)), 1, rtol=1e-4)
    assert not here[3:5, PARTS[1]].any() and np.array_equal(pose[..., 3], points[:, 3:132:4])


def test_without_shoulders_nothing_is_moved() -> None:
    points = np.zeros((3, 258), np.float32)
    points[:, PARTS[2]] = 0.5
    assert np.array_equal(in_shoulder_widths(points), points)
    assert recorded_sign(Word("a"), "s", points).span == FrameSpan(0, 3)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**16))
def test_a_training_window_shows_mostly_its_sign(seed: int) -> None:
    rng = np.random.default_rng(seed)
    window = training_window(sign(1), lambda: sign(5), rng, WindowOptions(neighbours=1.0))
    assert window.shape == (16, 258) and window.dtype == np.float32
    share = (np.abs(window[:, 0] - 1) < 1e-4).mean()
    assert share >= 0.5 and ((window[:, 0] > 0.999) & (window[:, 0] < 5.001)).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**16))
def test_without_neighbours_and_rest_a_window_lies_in_its_sign(seed: int) -> None:
    points = np.repeat(np.arange(1, 31, dtype=np.float32)[:, None], 258, axis=1)
    whole = RecordedSign(Word("a"), "s", points, FrameSpan(5, 25))
    options = WindowOptions(neighbours=0.0, most_rest=0.0)
    window = training_window(whole, lambda: whole, np.random.default_rng(seed), options)
    assert window.min() >= 6 - 0.5 and window.max() <= 25 + 0.5 and (np.diff(window[:, 0]) >= 0).all()


def test_signs_of_one_frame_can_be_stitched_and_shown() -> None:
    tiny = sign(1, 1, FrameSpan(0, 1))
    assert len(stitched([tiny, tiny], np.random.default_rng(0)).points) >= 10
    for seed in range(20):
        training_window(tiny, lambda: tiny, np.random.default_rng(seed))
