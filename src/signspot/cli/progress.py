"""Progress bars with the pace and the time left, on the error stream, and only where a person looks on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
from rich.text import Text

from signspot.errors import one_line
from signspot.interrupts import at_interruption


class Bars:
    """Call it to show how far a step is; clear it before anything is printed, or the two would mix on the screen."""

    def __init__(self) -> None:
        self._shown: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._is_watched = sys.stderr.isatty()

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

    def clear(self) -> None:
        """Take the bars off the screen; the next call shows new ones."""
        if self._shown is not None:
            self._shown.stop()
        self._shown, self._tasks = None, {}


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Bars that are gone when the block ends."""
    bars = Bars()
    try:
        with at_interruption(bars.clear):
            yield bars
    finally:
        bars.clear()


class PaceColumn(ProgressColumn):
    """How many of what a step counts, such as windows, are done in a second."""

    def render(self, task: Task) -> Text:
        """The pace of the last half minute; nothing while it is not known."""
        pace = task.finished_speed or task.speed
        return Text(
            "" if pace is None else f"{pace:.3g}/s" if pace < 100 else f"{pace:.0f}/s", style="progress.data.speed"
        )


def _bars() -> Progress:
    step = TextColumn("{task.description}", markup=False)
    columns = (step, BarColumn(), TaskProgressColumn(), PaceColumn(), TimeRemainingColumn())
    # Results go to the standard output, which may be a file: nothing but the bars passes through here.
    return Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )
