"""Which picture is shown at which 25 fps tick: pure arithmetic on timestamps, no video.

All times are milliseconds. Pictures arrive in the order in which the decoder shows them, with the timestamps the file
claims; `straightened` turns these into times that never decrease, and `at_ticks` picks one picture for every tick.
Both look one picture ahead and no further, so that a video of any length needs the same memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from signspot.domain.spans import FRAME_MS

Content = TypeVar("Content")

AHEAD_MS = FRAME_MS / 2  # how early a picture may be shown: a long-held picture is held, not replaced early
SUSPICIOUS_JUMP_MS = 1_000.0  # a jump this far needs a second picture to confirm it
LONGEST_GAP_MS = 600_000.0  # a gap in the recording longer than this is left out, not filled with one picture
LONGEST_LAST_MS = 10_000.0  # a picture that none follows ends by then
ROUNDING_MS = 1.5  # containers round times to whole milliseconds; the end of a video is no more exact than this


@dataclass(frozen=True, slots=True)
class Stamped(Generic[Content]):
    """A picture with the time the file claims for it (None: it claims none) and how long it lasts (0: unknown)."""

    content: Content
    time_ms: float | None
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Timed(Generic[Content]):
    """A picture with its media time and how long it lasts."""

    content: Content
    time_ms: float
    duration_ms: float

    @property
    def end_ms(self) -> float:
        """When the next picture is due."""
        return self.time_ms + self.duration_ms

    def shifted(self, by_ms: float) -> Timed[Content]:
        """The same picture, `by_ms` later."""
        return Timed(self.content, self.time_ms + by_ms, self.duration_ms) if by_ms else self


@dataclass(slots=True)
class ClockFaults:
    """What was wrong with the timestamps of one video, counted while it is read."""

    late: int = 0  # pictures that came after a later one
    strays: int = 0  # single timestamps far from their neighbours
    restarts: int = 0  # the clock jumped and went on from there
    gaps: int = 0  # stretches without pictures too long to fill

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each kind of fault that occurred."""
        said = (
            (self.late, "{} pictures out of order were left out"),
            (self.strays, "{} pictures with an impossible time were left out"),
            (self.restarts, "the clock of the recording jumps {} times: later times count on from there"),
            (self.gaps, "{} gaps of over 10 minutes between pictures are not filled"),
        )
        return tuple(sentence.format(count) for count, sentence in said if count)


def straightened(
    pictures: Iterable[Stamped[Content]], faults: ClockFaults, *, clock_is_arbitrary: bool = False
) -> Iterator[Timed[Content]]:
    """Give every picture a time that never decreases; what cannot be believed is left out and counted.

    A picture slightly too early is dropped. A far jump is believed only if the next picture agrees: forward, it is a
    gap; back, it is a spliced recording whose clock restarts, and time counts on. Where the clock is arbitrary (a
    transport stream), a jump forward over more than the longest gap is a restart too.
    """
    last: Timed[Content] | None = None
    suspect: Timed[Content] | None = None  # the first picture, or one after a far jump, until the next confirms it
    shift = 0.0  # what restarts have added to the clock of the file
    for picture in _filled(pictures):
        if suspect is not None:
            if _is_stray(suspect, picture, last, shift):
                faults.strays += 1
            else:
                jump_ms = suspect.time_ms + shift - last.time_ms if last is not None else 0.0
                if last is not None and (jump_ms < 0 or (clock_is_arbitrary and jump_ms > LONGEST_GAP_MS)):
                    faults.restarts += 1
                    shift = last.end_ms - suspect.time_ms
                last = suspect.shifted(shift)
                yield last
            suspect = None
        step_ms = picture.time_ms + shift - last.time_ms if last is not None else math.inf
        if abs(step_ms) > SUSPICIOUS_JUMP_MS:
            suspect = picture
        elif step_ms < 0:
            faults.late += 1
        else:
            last = picture.shifted(shift)
            yield last
    if suspect is not None:
        if last is None or 0 <= suspect.time_ms + shift - last.time_ms <= LONGEST_GAP_MS:
            yield suspect.shifted(shift)
        else:
            faults.strays += 1


def from_zero(pictures: Iterable[Timed[Content]], *, hides_earlier: bool) -> Iterator[Timed[Content]]:
    """Let the pictures begin at zero or later, as in a player.

    Where something hides what lies before zero (the edit list of an MP4: it begins between two key pictures), a picture
    that ends by then is left out, and one that goes on is shown from zero. Elsewhere zero is where the pictures begin.
    """
    shift = 0.0
    for number, picture in enumerate(pictures):
        if number == 0 and not hides_earlier:
            shift = max(0.0, -picture.time_ms)
        moved = picture.shifted(shift)
        if moved.time_ms >= 0:
            yield moved
        elif moved.end_ms > ROUNDING_MS:
            yield Timed(moved.content, 0.0, moved.end_ms)


def at_ticks(pictures: Iterable[Timed[Content]], faults: ClockFaults) -> Iterator[Timed[Content]]:
    """Pick the picture of every tick: one each 40 ms, from the time of the first picture to the end of the last.

    It is the nearest picture, but one that is yet to come only within 20 ms. Times of `pictures` never decrease.
    """
    remaining = iter(pictures)
    current = next(remaining, None)
    if current is None:
        return
    origin_ms, ticks = current.time_ms, 0
    for following in remaining:
        is_gap = following.time_ms - current.time_ms > LONGEST_GAP_MS
        end_ms = _end_ms(current) if is_gap else math.inf
        while not _replaces(following, current, tick_ms := origin_ms + FRAME_MS * ticks) and tick_ms < end_ms:
            yield current
            ticks += 1
        if is_gap:
            faults.gaps += 1
            origin_ms, ticks = following.time_ms, 0
        current = following
    while ticks == 0 or origin_ms + FRAME_MS * ticks < _end_ms(current):
        yield current
        ticks += 1


def _end_ms(picture: Timed[Content]) -> float:
    """When a picture ends that none follows."""
    return picture.time_ms + min(picture.duration_ms, LONGEST_LAST_MS) - ROUNDING_MS


def _filled(pictures: Iterable[Stamped[Content]]) -> Iterator[Timed[Content]]:
    """Complete missing times and durations from the picture before."""
    before: Timed[Content] | None = None
    for picture in pictures:
        time_ms = picture.time_ms
        if time_ms is None:
            time_ms = before.end_ms if before else 0.0
        duration_ms = picture.duration_ms
        if duration_ms <= 0:
            step_ms = time_ms - before.time_ms if before else 0.0
            usual_ms = before.duration_ms if before else float(FRAME_MS)
            duration_ms = step_ms if 0 < step_ms <= SUSPICIOUS_JUMP_MS else usual_ms
        before = Timed(picture.content, time_ms, duration_ms)
        yield before


def _is_stray(suspect: Timed[Content], following: Timed[Content], last: Timed[Content] | None, shift: float) -> bool:
    if last is not None and 0 <= following.time_ms + shift - last.time_ms <= SUSPICIOUS_JUMP_MS:
        return True
    return not 0 <= following.time_ms - suspect.time_ms <= LONGEST_GAP_MS


def _replaces(following: Timed[Content], current: Timed[Content], tick_ms: float) -> bool:
    ahead_ms = following.time_ms - tick_ms
    return ahead_ms <= 0 or (ahead_ms <= AHEAD_MS and ahead_ms < tick_ms - current.time_ms)
