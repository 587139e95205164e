"""Answers as text for people and as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from signspot.domain.results import VideoAnswer, WordAnswer
from signspot.domain.time import clock
from signspot.errors import Notice, one_line
from signspot.interrupts import at_interruption

_NUMBERS = ("cosine", "presence", "size")  # headings of columns that stand on the right
_DETAILED = 5  # words of which each is said how close it came


def warn(message: str) -> None:
    typer.echo(f"signspot: {one_line(message)}", err=True)


def warn_of(answer: VideoAnswer) -> None:
    messages = [message for message in (answer.partial, *answer.warnings) if message]
    if messages:
        warn(f"{answer.video_id}: {'; '.join(messages)}")


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in _NUMBERS else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    Console(highlight=False).print(table)


def print_answer(answer: VideoAnswer) -> None:
    """The findings in order of time, then, in one line, the words that were not found."""
    console = Console(highlight=False)
    found = list(answer)
    if found:
        rows = []
        for one in found:
            start, stop = clock(one.span_ms.start, 3), clock(one.span_ms.stop, 3)
            sure = "?" if one.presence is None else f"{one.presence.band.value} {one.presence.probability:.0%}"
            rows.append((start, stop, one.word, one.variant, f"{one.cosine:.3f}", sure, one.entry_id))
        print_table(("from", "to", "word", "variant", "cosine", "presence", "dictionary entry"), rows)
    if missing := [word for word in answer.words if not word.spottings]:
        said = f"{missing[0].word}: {_absence(missing[0], answer)}" if len(missing) == 1 else _absences(missing, answer)
        console.print(Text(one_line(said)), soft_wrap=True)  # one line, however many words
    if said := closing_line(answer):
        console.print(Text(said, style="dim"), soft_wrap=True)


def closing_line(answer: VideoAnswer) -> str:
    """What counted as found, and how many false alarms that gave where the truth was known."""
    if answer.least_presence is not None:
        alarms = (
            "" if answer.false_alarms is None else f" ({_rate(answer.false_alarms)} per word and hour, as calibrated)"
        )
        return f"found: presence {answer.least_presence:.0%} or more{alarms}"
    if any(one.presence is not None for one in answer):
        return f"found: cosine {answer.threshold:.3f} or more"
    if any(word.spottings for word in answer.words):
        return f"found: cosine {answer.threshold:.3f} or more; presence: unknown without `signspot calibrate`"
    return ""


def _rate(alarms: float) -> str:
    return f"about {alarms:.2g} false alarms"


def _absences(missing: Sequence[WordAnswer], answer: VideoAnswer) -> str:
    """What several words have in common that were not found; of a few, also how close each came."""
    unsearched = [word.word for word in missing if word.searched_ms == ()]
    compared = [word for word in missing if word.searched_ms != () and word.best_cosine is not None]
    others = [word.word for word in missing if word.searched_ms != () and word.best_cosine is None]
    named = [f"{word.word}{_closeness(word) if len(missing) <= _DETAILED else ''}" for word in compared]
    groups = (
        ("not found", named),
        ("not found, since no window could be compared", others),
        ("not searched, since no subtitle mentions them", unsearched),
    )
    said = [f"{what}: {', '.join(words)}" for what, words in groups if words]
    if any(word.presence is None for word in compared):
        said.insert(1, f"needed {answer.threshold:.3f}, uncalibrated")
    return "; ".join(said)


def _closeness(word: WordAnswer) -> str:
    if word.presence is None:
        return f" (closest {word.best_cosine:.3f})"
    return f" (absent: {1 - word.presence.probability:.0%}, closest {word.best_cosine:.3f})"


def _absence(word: WordAnswer, answer: VideoAnswer) -> str:
    if word.searched_ms == ():
        return "not searched: no subtitle mentions it"
    if word.best_cosine is None:
        return "not found: no window could be compared"
    if word.presence is not None:
        return f"absent with a probability of {1 - word.presence.probability:.0%} (closest {word.best_cosine:.3f})"
    return f"not found (closest {word.best_cosine:.3f}, needed {answer.threshold:.3f}; uncalibrated)"


# Progress bars with the pace and the time left, on the error stream, and only where a person looks on.


class Bars:
    """Call it to show how far a step is; clear it before anything is printed, or the two would mix on the screen."""

    def __init__(self) -> None:
        self._shown: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._is_watched = sys.stderr.isatty()
        self.warnings: list[str] = []  # all that was noticed
        self._n_said = 0  # of these

    def __call__(self, step: str, done: float, total: float | None) -> None:
        """Show that `done` of `total` (None: unknown) of a step is done."""
        if not self._is_watched:
            return
        if self._shown is None:
            self._shown = _bars()
            self._shown.start()
        if step not in self._tasks:
            for task in self._tasks.values():
                self._shown.update(task, visible=False)
            self._tasks[step] = self._shown.add_task(one_line(step), total=total)
        self._shown.update(self._tasks[step], completed=done, total=total, visible=True)

    def notify(self, notice: Notice) -> None:
        """Keep what was noticed until the next line is printed: of wrong input, the error is the only line."""
        self.warnings.append(str(notice))

    def clear(self) -> None:
        """Take the bars off the screen and say what was noticed; the next call shows new ones."""
        self.stop()
        for message in self.warnings[self._n_said :]:
            warn(message)
        self._n_said = len(self.warnings)

    def stop(self) -> None:
        if self._shown is not None:
            self._shown.stop()
        self._shown, self._tasks = None, {}


@contextmanager
def progress_bars() -> Iterator[Bars]:
    bars = Bars()
    try:
        with at_interruption(bars.stop):
            yield bars
        bars.clear()
    finally:
        bars.stop()


class _PaceColumn(ProgressColumn):
    """How many of what a step counts, such as windows, are done in a second."""

    def render(self, task: Task) -> Text:
        """The pace of the last half minute; nothing while it is not known."""
        pace = task.finished_speed or task.speed
        shown = "" if pace is None else f"{pace:.3g}/s" if pace < 100 else f"{pace:.0f}/s"
        return Text(shown, style="progress.data.speed")


def _bars() -> Progress:
    step = TextColumn("{task.description}", markup=False)
    columns = (step, BarColumn(), TaskProgressColumn(), _PaceColumn(), TimeRemainingColumn())
    # Results go to the standard output, which may be a file: nothing but the bars passes through here.
    return Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )
