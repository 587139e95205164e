"""From cues as a file states them to cues in order, without repeats and overlaps; the rules are in `subtitles`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate, groupby, pairwise
from pathlib import Path

from signspot.errors import one_line
from signspot.text.cues import Cue, Exact, Unreadable

MAX_DURATION_MS = 10 * 60_000
MAX_TIME_MS = 100 * 3_600_000
MAX_WARNINGS = 100  # about single cues, in one file
_ROLL_UP_GAP_MS = 100
_ROLL_UP_LINES = 4  # more lines than these are never shown at once
_ROLL_UP_STEPS = 3  # in a row are no accident
_ROLL_UP_NEIGHBOURS = 12  # steps before and after, by which fewer are judged
_MOSTLY = 0.8  # of a cue's length inside another; staggered captions overlap by about half


class Warnings:
    """Collects what the user should know about one file; many complaints about cues become a number."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._general: list[str] = []
        self._cues: list[str] = []
        self._unnamed = 0
        self._left_out: dict[str, tuple[int, str]] = {}  # why -> how many cues, and which is the first
        self._wordless: tuple[int, str] = (0, "")

    def note(self, what: str) -> None:
        """Remark on the whole file."""
        self._general.append(one_line(f"{self._name}: {what}"))

    def about(self, cue: Cue | Unreadable, what: str) -> None:
        """Remark on one cue, named by its number, the time the file states and its first words."""
        if len(self._cues) >= MAX_WARNINGS:
            self._unnamed += 1
            return
        words = " ".join(cue.text[:200].split())[:40]
        self._cues.append(one_line(f'{self._name}: {_named(cue)}: {what}: "{words}"'))

    def left_out(self, cue: Cue | Unreadable, what: str, why: str) -> None:
        """Say that a cue was left out, in the singular, and count it, in the plural."""
        count, first = self._left_out.get(why, (0, _named(cue)))
        self._left_out[why] = (count + 1, first)
        self.about(cue, f"{what}: left out")

    def wordless(self, cue: Cue | Unreadable) -> None:
        """Count a cue without words, such as a sound."""
        count, first = self._wordless
        self._wordless = (count + 1, first or _named(cue))

    def all(self, n_cues: int, most: int = MAX_WARNINGS) -> tuple[str, ...]:
        """Every warning about a file of `n_cues`: about the whole file, then the first `most` about single cues."""
        unnamed = self._unnamed + len(self._cues[most:])
        more = (one_line(f"{self._name}: and {unnamed} more warnings of this kind"),) if unnamed else ()
        return (*self._general, *map(one_line, self._counted(n_cues)), *self._cues[:most], *more)

    def _counted(self, n_cues: int) -> Iterator[str]:
        if (n_left_out := sum(count for count, _ in self._left_out.values())) > 1:  # one is named, that is enough
            kinds = (
                f"{why} ({f'{count:,}, ' if count < n_left_out else ''}first: {first})"
                for why, (count, first) in self._left_out.items()
            )
            yield f"{self._name}: {n_left_out:,} of {n_cues:,} subtitles were left out: {', '.join(kinds)}"
        count, first = self._wordless
        if count:
            hold = "holds" if count == 1 else "hold"
            yield f"{self._name}: {count:,} of {n_cues:,} subtitles {hold} no words: left out (first: {first})"


def _named(cue: Cue | Unreadable) -> str:
    return f"cue {cue.number}{f' ({clock(cue.start_ms)})' if isinstance(cue, Cue) else ''}"


@dataclass(frozen=True, slots=True)
class Retiming:
    """Times of the file -> times of the video: (time - start) * scale + shift."""

    start: Exact = 0
    scale: Exact = 1
    shift: Exact = 0

    def apply(self, time: Exact) -> int:
        """The time in the video, in whole ms."""
        return round((time - self.start) * self.scale + self.shift)


@dataclass(frozen=True, slots=True)
class Placed:
    """Good words at their time in the video, ms; `cues` is what the file said, several where cues were joined."""

    start: int
    stop: int
    lines: tuple[str, ...]
    cues: tuple[Cue, ...]


def clock(time_ms: Exact) -> str:
    """A time as people write it.

    >>> clock(3_723_500)
    '1:02:03'
    """
    seconds = min(round(max(time_ms, -time_ms)), 10**12) // 1000
    return f"{'-' if time_ms < 0 else ''}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def place(cue: Cue, lines: tuple[str, ...], retiming: Retiming, warnings: Warnings) -> Placed | None:
    """Put one cue at its time in the video, or say why it has none."""
    start, stop = retiming.apply(cue.start_ms), retiming.apply(cue.stop_ms)
    if problem := _impossible(cue) or _unusable(start, stop):
        warnings.left_out(cue, *problem)
        return None
    if start < 0:
        warnings.about(cue, "begins before the video: starts with it")
    return Placed(max(0, start), stop, lines, (cue,))


_BEYOND = ("lies beyond 100 hours", "they lie beyond 100 hours")


def _impossible(cue: Cue) -> tuple[str, str] | None:
    """What is wrong with the times a file states, if anything: of one cue, and of several."""
    if cue.start_ms < 0 or cue.stop_ms < 0:
        return "its time is negative", "their times are negative"
    return _BEYOND if max(cue.start_ms, cue.stop_ms) > MAX_TIME_MS else None


def _unusable(start: int, stop: int) -> tuple[str, str] | None:
    """What is wrong with times in the video, if anything: of one cue, and of several."""
    if stop < start:
        return "ends before it starts", "they end before they start"
    if stop == start:
        return "has no length", "they have no length"
    if stop - start > MAX_DURATION_MS:
        return "lasts longer than 10 minutes", "they last longer than 10 minutes"
    if stop <= 0:
        return "lies before the start of the video", "they lie before the start of the video"
    return _BEYOND if stop > MAX_TIME_MS else None


def arranged(cues: Iterable[Placed], warnings: Warnings) -> list[Placed]:
    """Sort cues by time, join those shown together, and resolve repeats and overlaps."""
    in_order = sorted(cues, key=lambda cue: (cue.start, cue.stop, cue.cues[0].number))
    return _without_overlaps(_without_roll_up(_joined(in_order, warnings), warnings), warnings)


def _joined(cues: list[Placed], warnings: Warnings) -> list[Placed]:
    """Make one cue of those with exactly the same times."""
    together: dict[tuple[int, int], dict[tuple[str, ...], Placed]] = {}
    for cue in cues:
        same_time = together.setdefault((cue.start, cue.stop), {})
        if cue.lines in same_time:
            first = same_time[cue.lines].cues[0].number
            warnings.left_out(cue.cues[0], f"repeats cue {first}", "they repeat another of the same time")
        else:
            same_time[cue.lines] = cue
    return [_one_of(tuple(group.values())) for group in together.values()]


def _one_of(group: tuple[Placed, ...]) -> Placed:
    lines = tuple(line for cue in group for line in cue.lines)
    return replace(group[0], lines=lines, cues=tuple(one for cue in group for one in cue.cues))


class _Step(Enum):
    """How a cue follows the one before."""

    APART = 0  # after a pause, or with other words
    SAME = 1  # at once, with the same lines: roll-up captions do so, and so does who says or signs a word twice
    ROLLED = 2  # at once, with the last lines of the cue before on top, or with only those: captions that roll up


def _without_roll_up(cues: list[Placed], warnings: Warnings) -> list[Placed]:
    steps = [_Step.APART, *(_step(before, now) for before, now in pairwise(cues))]
    repeats = _repeats(steps)
    kept: list[Placed] = []
    for number, cue in enumerate(cues):
        n_old = _n_repeated(cues[number - 1].lines, cue.lines) if repeats[number] else 0
        if n_old == len(cue.lines):
            longer = max(kept[-1].stop, cue.stop)
            kept[-1] = replace(kept[-1], stop=min(longer, kept[-1].start + MAX_DURATION_MS))
        else:
            kept.append(replace(cue, lines=cue.lines[n_old:]))
    if any(repeats):
        warnings.note(f"{sum(repeats)} cues repeat lines of the cue before (roll-up captions): repeats removed")
    return kept


def _step(before: Placed, now: Placed) -> _Step:
    n_old = _n_repeated(before.lines, now.lines) if now.start - before.stop <= _ROLL_UP_GAP_MS else 0
    if not n_old:
        return _Step.APART
    return _Step.SAME if n_old == len(now.lines) == len(before.lines) else _Step.ROLLED


def _repeats(steps: list[_Step]) -> list[bool]:
    """Which cues repeat lines because captions roll up there, and not because something is said or signed twice.

    Captions that roll up do so cue after cue. So an unbroken run of repeats is of that kind if it rolls several times,
    or if most steps in it and around it roll. Steps with the same lines prove nothing: they are not counted.
    """
    telling = [number for number, step in enumerate(steps) if step is not _Step.SAME and number]
    n_rolled = [0, *accumulate(int(steps[number] is _Step.ROLLED) for number in telling)]
    answer = [False] * len(steps)
    for is_run, numbers in groupby(range(len(steps)), lambda number: steps[number] is not _Step.APART):
        if is_run:
            run = list(numbers)
            first = max(0, bisect_left(telling, run[0]) - _ROLL_UP_NEIGHBOURS)
            stop = min(len(telling), bisect_right(telling, run[-1]) + _ROLL_UP_NEIGHBOURS)
            rolled_around = n_rolled[stop] - n_rolled[first]
            rolls = sum(steps[number] is _Step.ROLLED for number in run)
            if rolls >= _ROLL_UP_STEPS or stop - first < 2 * rolled_around:
                answer[run[0] : run[-1] + 1] = [True] * len(run)
    return answer


def _n_repeated(before: tuple[str, ...], now: tuple[str, ...]) -> int:
    """How many lines the end of one cue and the start of the next have in common."""
    longest = min(len(before), len(now), _ROLL_UP_LINES)
    return next((n for n in range(longest, 0, -1) if before[-n:] == now[:n]), 0)


def _without_overlaps(cues: list[Placed], warnings: Warnings) -> list[Placed]:
    kept: list[Placed] = []
    cut: list[Placed] = []
    for cue in cues:
        overlap = min(kept[-1].stop, cue.stop) - cue.start if kept else 0
        if overlap <= 0:
            kept.append(cue)
        elif overlap > _MOSTLY * (cue.stop - cue.start):
            _leave_out(cue, kept[-1], warnings)
        elif overlap > _MOSTLY * (kept[-1].stop - kept[-1].start):
            _leave_out(kept[-1], cue, warnings)
            kept[-1] = cue
        else:
            cut.append(kept[-1])
            kept[-1:] = [replace(kept[-1], stop=cue.start), cue]
    if cut:
        first = cut[0].cues[0]
        where = f"first: cue {first.number} ({clock(first.start_ms)})"
        warnings.note(f"{len(cut)} cues overlap the next one: their ends were cut back ({where})")
    return kept


def _leave_out(loser: Placed, winner: Placed, warnings: Warnings) -> None:
    for cue in loser.cues:
        warnings.left_out(cue, f"overlaps cue {winner.cues[0].number}", "they overlap another")
