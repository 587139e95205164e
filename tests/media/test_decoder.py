from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.media.decoder import (
    _LONGEST_GAP_MS,
    _LONGEST_LAST_MS,
    _ROUNDING_MS,
    ClockFaults,
    Timed,
    _from_zero,
    _Stamped,
    _straightened,
    at_ticks,
)


def ticked(times: list[float], duration_ms: float = 40.0, faults: ClockFaults | None = None) -> list[int]:
    """Which picture is shown at each tick, by its number."""
    pictures = [Timed(number, time, duration_ms) for number, time in enumerate(times)]
    return [picture.content for picture in at_ticks(pictures, faults or ClockFaults())]


def ticked_by_hand(times: list[float], duration_ms: float) -> list[int]:
    """The rule read aloud: for every tick, look at all pictures."""
    end_ms = times[-1] + min(duration_ms, _LONGEST_LAST_MS) - _ROUNDING_MS
    shown = []
    for k in itertools.count():
        tick = times[0] + 40 * k
        if k > 0 and tick >= end_ms:
            return shown
        allowed = [number for number, time in enumerate(times) if time <= tick + 20]
        nearest = min(abs(times[number] - tick) for number in allowed)
        best = [number for number in allowed if abs(times[number] - tick) == nearest]
        past = [number for number in best if times[number] <= tick]
        shown.append(past[-1] if past else best[0])  # of two equally near, the one already shown


def straight(times: list[float | None], duration_ms: float = 40.0) -> tuple[list[tuple[int, float]], ClockFaults]:
    """What is left of the pictures, as (number, time), and the faults."""
    faults = ClockFaults()
    stamped = [_Stamped(number, time, duration_ms) for number, time in enumerate(times)]
    return [(picture.content, picture.time_ms) for picture in _straightened(stamped, faults)], faults


steps = st.lists(st.floats(0.0, 500.0), min_size=0, max_size=30)


@given(steps, st.floats(-1e5, 1e7), st.floats(5.0, 200.0))
def test_every_tick_shows_the_picture_the_rule_names(gaps: list[float], start: float, duration_ms: float) -> None:
    times = [float(round(start + t, 3)) for t in itertools.accumulate(gaps, initial=0.0)]
    assert ticked(times, duration_ms) == ticked_by_hand(times, duration_ms)


@given(steps)
def test_pictures_never_go_back_and_a_later_one_comes_at_most_20_ms_early(gaps: list[float]) -> None:
    times = list(itertools.accumulate(gaps, initial=0.0))
    shown = ticked(times)
    assert shown == sorted(shown)
    assert all(times[number] <= 40 * k + 20 for k, number in enumerate(shown))


@pytest.mark.parametrize("rate", [23.976, 25, 29.97, 60])
def test_a_steady_hour_has_90000_frames_and_does_not_drift(rate: float) -> None:
    times = [1000 * i / rate for i in range(math.ceil(3600 * rate))]
    shown = ticked(times, 1000 / rate)
    assert abs(len(shown) - 90_000) <= 1
    assert all(abs(times[number] - 40 * k) <= max(20.0, 1000 / rate - 20) + 1e-6 for k, number in enumerate(shown[:-1]))


def test_a_held_picture_is_held_until_20_ms_before_the_next() -> None:
    assert ticked([0, 140, 180]) == [0, 0, 0, 1, 1, 2]
    assert ticked([0, 141, 181]) == [0, 0, 0, 0, 1, 2]


def test_a_single_picture_is_one_frame_whatever_its_duration_says() -> None:
    assert ticked([500.0], 0.0) == [0]
    assert ticked([500.0], 40.0) == [0]
    assert ticked([500.0], 80.0) == [0, 0]


def test_no_picture_gives_no_frame() -> None:
    assert ticked([]) == []


def test_the_last_picture_is_not_held_for_hours() -> None:
    assert len(ticked([0.0], 1e9)) == _LONGEST_LAST_MS // 40


def test_a_gap_of_ten_minutes_is_filled_and_a_longer_one_is_left_out() -> None:
    filled, skipped = ClockFaults(), ClockFaults()
    assert len(ticked([0.0, _LONGEST_GAP_MS], faults=filled)) == _LONGEST_GAP_MS // 40 + 1
    assert ticked([0.0, 40.0, 5e9, 5e9 + 40], faults=skipped) == [0, 1, 2, 3]
    assert filled.gaps == 0 and skipped.gaps == 1


@given(st.lists(st.one_of(st.none(), st.floats(-1e9, 1e12)), max_size=40), st.floats(0.0, 1e9))
def test_any_timestamps_become_times_that_never_decrease(times: list[float | None], duration_ms: float) -> None:
    kept, faults = straight(times, duration_ms)
    assert [time for _, time in kept] == sorted(time for _, time in kept)
    assert [number for number, _ in kept] == sorted(number for number, _ in kept)
    assert len(kept) + faults.late + faults.strays == len(times)
    assert bool(kept) == bool(times)


@given(st.lists(st.floats(0.0, 900.0), max_size=40), st.floats(-1e6, 1e9))
def test_sound_timestamps_pass_untouched(gaps: list[float], start: float) -> None:
    times = [start + t for t in itertools.accumulate(gaps, initial=0.0)]
    kept, faults = straight(list(times))
    assert kept == list(enumerate(times)) and faults == ClockFaults()


def test_slides_that_stay_for_seconds_pass_untouched() -> None:
    kept, faults = straight([0.0, 5000.0, 12000.0, 60000.0])
    assert [time for _, time in kept] == [0, 5000, 12000, 60000] and faults == ClockFaults()


def test_a_missing_time_follows_from_the_picture_before() -> None:
    kept, faults = straight([None, None, 80.0, None, 160.0])
    assert [time for _, time in kept] == [0, 40, 80, 120, 160] and faults == ClockFaults()


def test_a_missing_duration_follows_from_the_spacing() -> None:
    pictures = [_Stamped("a", 0.0), _Stamped("b", 20.0), _Stamped("c", 40.0)]
    assert [p.duration_ms for p in _straightened(pictures, ClockFaults())] == [40, 20, 20]


@pytest.mark.parametrize("absurd", [2000.0, 300_000.0, 95_443_717.0, 1e15, -5000.0, -1e12])
def test_one_absurd_timestamp_is_left_out(absurd: float) -> None:
    kept, faults = straight([0.0, 40.0, absurd, 120.0, 160.0])
    assert kept == [(0, 0), (1, 40), (3, 120), (4, 160)]
    assert faults == ClockFaults(strays=1)
    assert faults.warnings() == ("1 pictures with an impossible time were left out",)


@pytest.mark.parametrize("absurd", [1e9, -1e9])
def test_an_absurd_first_or_last_timestamp_is_left_out(absurd: float) -> None:
    assert straight([absurd, 0.0, 40.0])[0] == [(1, 0), (2, 40)]
    assert straight([0.0, 40.0, absurd])[0] == [(0, 0), (1, 40)]


def test_a_spliced_recording_counts_on_where_its_clock_jumps_back() -> None:
    kept, faults = straight([90_000.0, 90_040.0, 0.0, 40.0, 80.0])
    assert [time for _, time in kept] == [90_000, 90_040, 90_080, 90_120, 90_160]
    assert faults == ClockFaults(restarts=1)


def test_a_jump_forward_is_a_gap_on_a_timeline_and_a_restart_of_an_arbitrary_clock() -> None:
    times = [0.0, 40.0, 9e7, 9e7 + 40]
    pictures = [_Stamped(None, time, 40.0) for time in times]
    gap, restart = ClockFaults(), ClockFaults()
    assert [p.time_ms for p in _straightened(pictures, gap)] == times
    assert [p.time_ms for p in _straightened(pictures, restart, clock_is_arbitrary=True)] == [0, 40, 80, 120]
    assert (gap.restarts, restart.restarts) == (0, 1)


def test_duplicates_are_kept_and_late_pictures_dropped() -> None:
    kept, faults = straight([0.0, 40.0, 40.0, 20.0, 80.0])
    assert kept == [(0, 0), (1, 40), (2, 40), (4, 80)] and faults == ClockFaults(late=1)
    assert ticked([0, 40, 40, 80]) == [0, 2, 3]


def test_pictures_begin_at_zero() -> None:
    pictures = [Timed(number, 40.0 * number - 100, 40.0) for number in range(5)]
    hidden = [(2, 0.0, 20.0), (3, 20.0, 40.0), (4, 60.0, 40.0)]
    assert [(p.content, p.time_ms, p.duration_ms) for p in _from_zero(pictures, hides_earlier=True)] == hidden
    moved = [(number, 40.0 * number, 40.0) for number in range(5)]
    assert [(p.content, p.time_ms, p.duration_ms) for p in _from_zero(pictures, hides_earlier=False)] == moved
    late = [Timed(0, 500.0, 40.0)]
    assert list(_from_zero(late, hides_earlier=False)) == list(_from_zero(late, hides_earlier=True)) == late
