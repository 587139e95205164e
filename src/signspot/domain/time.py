"""Time: half-open spans of frames and milliseconds, the axis that joins them, and times for people.

Frames are counted at 25 per second, as in the paper. A frame number never becomes a time by division: variable frame
rates, dropped frames and start offsets make that wrong by many frames. `TimeAxis` holds the true time of every frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NewType

import numpy as np
import numpy.typing as npt

FRAME_RATE = 25  # Paper 4.1: all footage is processed at 25 frames per second
FRAME_MS = 1000 // FRAME_RATE  # 40 ms between two frames

_EXACT = 3  # digits of a second: milliseconds
_LONGEST_MS = 10**16  # what a damaged file may claim stays readable

Millis = NewType("Millis", int)
Progress = Callable[[str, float, float | None], None]  # what is going on, how much is done, how much there is if known
MediaProgress = Callable[[float, float | None], None]  # called with media time done and, if known, expected, both in ms


def silent(step: str, done: float, total: float | None) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, order=True)
class FrameSpan:
    """The frames start, start + 1, ... stop - 1.

    >>> 4 in FrameSpan(2, 5), 5 in FrameSpan(2, 5), len(FrameSpan(2, 5))
    (True, False, 3)
    """

    start: int
    stop: int

    def __post_init__(self) -> None:
        if self.stop < self.start:
            raise ValueError(f"frame span ends before it starts: [{self.start}, {self.stop})")

    def __len__(self) -> int:
        return self.stop - self.start

    def __contains__(self, frame: int) -> bool:
        return self.start <= frame < self.stop

    def overlaps(self, other: FrameSpan) -> bool:
        return max(self.start, other.start) < min(self.stop, other.stop)


@dataclass(frozen=True, slots=True, order=True)
class MillisSpan:
    """The media time from `start` up to, but not including, `stop`, in whole milliseconds."""

    start: Millis
    stop: Millis

    def __post_init__(self) -> None:
        if self.stop < self.start:
            raise ValueError(f"time span ends before it starts: [{self.start}, {self.stop}) ms")

    @classmethod
    def of(cls, start: float, stop: float) -> MillisSpan:
        """Round both ends to whole milliseconds.

        >>> MillisSpan.of(39.96, 80.2)
        MillisSpan(start=40, stop=80)
        """
        return cls(Millis(round(start)), Millis(round(stop)))

    @property
    def duration(self) -> int:
        return self.stop - self.start

    def padded(self, before: int, after: int) -> MillisSpan:
        """Widen both ends, but not before the start of the video."""
        start = max(0, self.start - before)
        return MillisSpan(Millis(start), Millis(max(start, self.stop + after)))

    def overlaps(self, other: MillisSpan) -> bool:
        return max(self.start, other.start) < min(self.stop, other.stop)

    def cue_times(self) -> str:
        """When WebVTT shows a cue: never before 0:00, which no player reads, and for 1 ms at least, to be seen."""
        start = max(0, self.start)
        return " --> ".join(clock(time, _EXACT).rjust(12, "0") for time in (start, max(start + 1, self.stop)))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a predicted frame may lie from an annotated one and still be right (Paper 4.2)."""

    before: int = 20
    after: int = 5

    def around(self, frame: int) -> FrameSpan:
        """Both ends count as right: 20 frames before *to* 5 frames after."""
        return FrameSpan(frame - self.before, frame + self.after + 1)


@dataclass(frozen=True, slots=True, eq=False)
class TimeAxis:
    """The media time of every 25 fps frame of one video.

    The time of a frame is the presentation time of the picture that is shown, as a player displays it: zero where a
    player shows 0:00. `origin_ms` is the container's own clock at that zero (a broadcast transport stream may start
    anywhere), so the stored timestamp of a frame is `times_ms + origin_ms`. Times are never negative and never
    decrease; they repeat where a picture is shown for longer than 40 ms.
    """

    times_ms: npt.NDArray[np.float64]  # (n_frames,)
    origin_ms: float = 0.0

    def __post_init__(self) -> None:
        if self.times_ms.ndim != 1:
            raise ValueError(f"a time axis has one dimension, not shape {self.times_ms.shape}")
        if not np.isfinite(self.times_ms).all() or (np.diff(self.times_ms, prepend=0.0) < 0).any():
            raise ValueError("the times of an axis must be finite, not negative, and never decrease")
        self.times_ms.setflags(write=False)

    def __len__(self) -> int:
        return len(self.times_ms)

    def time_of(self, frame: int) -> float:
        return float(self.times_ms[frame])

    def nearest_frame(self, time_ms: float) -> int:
        """The frame whose time lies closest to `time_ms`; the first of several."""
        if not len(self):
            raise ValueError("an empty time axis has no frames")
        right = int(np.searchsorted(self.times_ms, time_ms))
        if right == 0:
            return 0
        before = self.times_ms[right - 1]
        if right == len(self) or time_ms - before <= self.times_ms[right] - time_ms:
            return int(np.searchsorted(self.times_ms, before))
        return right

    def frames_in(self, span: MillisSpan) -> FrameSpan:
        start, stop = np.searchsorted(self.times_ms, (span.start, span.stop))
        return FrameSpan(int(start), int(stop))

    def millis_of(self, span: FrameSpan) -> MillisSpan:
        """The time covered by `span`: from its first picture to the end of its last, or to the next if that is earlier.

        Pictures brought to 25 a second keep their own times: at 30 a second some follow after 33 ms.
        """
        if not len(span):
            raise ValueError(f"no frames in {span}")
        stop = self.time_of(span.stop - 1) + FRAME_MS
        if 0 < span.stop < len(self):
            stop = min(stop, max(self.time_of(span.stop), self.time_of(span.stop - 1) + 1))
        return MillisSpan.of(self.time_of(span.start), stop)


def clock(time_ms: float | Fraction, digits: int = 0, *, hours: bool = False) -> str:
    """A time as players show it, rounded down; hours where there are any, where asked for, and where it is exact.

    >>> clock(232_900), clock(3_600_000), clock(3_960, 1), clock(4_000, hours=True)
    ('3:52', '1:00:00', '0:03.9', '0:00:04')
    >>> clock(3_723_004, 3), clock(-167, 3)
    ('1:02:03.004', '-0:00:00.167')
    """
    # What computing with floats took from a whole millisecond is given back.
    units = int(round(min(abs(Fraction(time_ms)), Fraction(_LONGEST_MS)), 3)) // 10 ** (3 - digits)
    seconds, rest = divmod(units, 10**digits)
    minutes, hour = seconds // 60 % 60, seconds // 3600
    text = f"{hour}:{minutes:02}" if hour or hours or digits == _EXACT else f"{minutes}"
    sign, fraction = "-" if time_ms < 0 and units else "", f".{rest:0{digits}}" if digits else ""
    return f"{sign}{text}:{seconds % 60:02}{fraction}"
