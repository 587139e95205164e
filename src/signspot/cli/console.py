"""Answers as text for people and as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
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

from signspot.errors import Notice, one_line
from signspot.interrupts import at_interruption

_NUMBERS = ("cosine", "presence", "size")  # headings of columns that stand on the right


def warn(message: str) -> None:
    typer.echo(f"signspot: {one_line(message)}", err=True)


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
