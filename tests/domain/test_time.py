from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.time import FRAME_MS, FrameSpan, MillisSpan, TimeAxis, Tolerance, clock

times = st.lists(st.floats(0, 1e7), min_size=1, max_size=40).map(sorted)


def test_both_ends_of_the_tolerance_count_as_right() -> None:
    around = Tolerance().around(100)
    assert (79 in around, 80 in around, 105 in around, 106 in around) == (False, True, True, False)


@pytest.mark.parametrize("make", [lambda: FrameSpan(5, 4), lambda: MillisSpan.of(50, 40)])
def test_a_span_that_ends_before_it_starts_is_refused(make) -> None:
    with pytest.raises(ValueError, match="ends before it starts"):
        make()


@pytest.mark.parametrize("bad", [[0.0, 40.0, 39.0], [-0.1, 40.0], [0.0, float("nan")], [[0.0]]])
def test_an_axis_refuses_times_that_make_no_sense(bad: list[float]) -> None:
    with pytest.raises(ValueError, match=r"never decrease|one dimension"):
        TimeAxis(np.array(bad))


@given(times, st.floats(-1e6, 2e7))
def test_the_nearest_frame_is_the_first_of_the_closest(values: list[float], time: float) -> None:
    axis = TimeAxis(np.array(values))
    distances = [abs(value - time) for value in values]
    nearest = axis.nearest_frame(time)
    assert distances[nearest] == pytest.approx(min(distances), abs=1e-6)
    assert nearest == 0 or values[nearest - 1] < values[nearest]


@given(times, st.integers(0, 10_000_000), st.integers(0, 100_000))
def test_frames_in_a_span_are_those_whose_time_lies_in_it(values: list[float], start: int, length: int) -> None:
    span = MillisSpan.of(start, start + length)
    frames = TimeAxis(np.array(values)).frames_in(span)
    assert list(range(frames.start, frames.stop)) == [i for i, t in enumerate(values) if span.start <= t < span.stop]


def test_time_comes_from_the_axis_not_from_the_frame_number() -> None:
    axis = TimeAxis(np.array([500.0, 500.0, 620.0, 4000.0]))
    assert axis.millis_of(FrameSpan(0, 3)) == MillisSpan.of(500, 620 + FRAME_MS)
    assert axis.millis_of(FrameSpan(3, 4)) == MillisSpan.of(4000, 4040)
    thirty = TimeAxis(np.array([0.0, 33.4, 66.7, 133.4]))  # 30 pictures a second, brought to 25
    assert [thirty.millis_of(FrameSpan(i, i + 1)) for i in range(4)] == [
        MillisSpan.of(0, 33.4), MillisSpan.of(33.4, 66.7), MillisSpan.of(66.7, 106.7), MillisSpan.of(133.4, 173.4),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no frames"):
        axis.millis_of(FrameSpan(2, 2))
    with pytest.raises(ValueError, match="read-only"):
        axis.times_ms[0] = 1


def test_a_picture_that_stays_is_never_without_duration() -> None:
    """A still picture of variable frame rate: its time repeats."""
    still = TimeAxis(np.array([0.0, 40.0, 40.0, 40.0, 160.0]))
    assert [still.millis_of(FrameSpan(i, i + 1)).duration for i in range(5)] == [40, 1, 1, 40, 40]


def test_halfway_between_two_frames_the_first_is_nearest() -> None:
    assert TimeAxis(np.array([0.0, 40.0, 80.0])).nearest_frame(60) == 1


def test_spans_that_touch_share_nothing() -> None:
    assert not MillisSpan.of(0, 40).overlaps(MillisSpan.of(40, 80))
    assert MillisSpan.of(0, 41).overlaps(MillisSpan.of(40, 80))
    assert not FrameSpan(0, 4).overlaps(FrameSpan(4, 8)) and FrameSpan(0, 5).overlaps(FrameSpan(4, 8))


def test_a_span_before_the_video_is_widened_to_nothing() -> None:
    assert MillisSpan.of(-9000, -8000).padded(2000, 2000) == MillisSpan.of(0, 0)
    assert MillisSpan.of(-900, 100).padded(2000, 2000) == MillisSpan.of(0, 2100)


@pytest.mark.parametrize(
    ("ms", "digits", "said"),
    [
        (0, 0, "0:00"),
        (59_600, 0, "0:59"),
        (83_000, 0, "1:23"),
        (3_600_000, 0, "1:00:00"),
        (36_125_000, 0, "10:02:05"),
        (0.3 * 1000, 1, "0:00.3"),
        (1000 * 4.35, 2, "0:04.35"),
        (59_990, 1, "0:59.9"),
        (3_661_500, 1, "1:01:01.5"),
        (-1, 0, "0:00"),
        (-1_500, 0, "-0:01"),
        (Fraction(7_000_000, 3), 3, "0:38:53.333"),
        (1 << 53, 3, "2501999792:59:00.992"),
    ],
)
def test_time_is_said_as_people_say_it(ms: float | Fraction, digits: int, said: str) -> None:
    assert clock(ms, digits) == said


def test_a_cue_is_shown_from_0_on_and_for_a_moment_at_least() -> None:
    assert MillisSpan(40, 680).cue_times() == "00:00:00.040 --> 00:00:00.680"
    assert MillisSpan(-167, -100).cue_times() == "00:00:00.000 --> 00:00:00.001"
    assert MillisSpan(0, 360_000_000).cue_times() == "00:00:00.000 --> 100:00:00.000"
