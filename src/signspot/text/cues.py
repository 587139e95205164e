"""What the readers of the single formats hand over: cues as the file states them, not yet judged or cleaned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

Exact = int | Fraction  # milliseconds, not yet rounded


@dataclass(frozen=True, slots=True)
class Cue:
    """One cue with its times in ms, the lines of its text separated by line breaks, markup included."""

    number: int  # counted from 1 in the order of the file
    start_ms: Exact
    stop_ms: Exact
    text: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A cue whose times cannot be made out, and why."""

    number: int
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class CueSource:
    """The cues of one file in its own order, read as they are asked for, and what its header says about them."""

    cues: Iterator[Cue | Unreadable]
    start_of_programme_ms: Exact = 0  # the time code of the programme's first frame
    remarks: tuple[str, ...] = ()
