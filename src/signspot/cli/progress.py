"""Progress bars with the time left, on the error stream, and only where a person looks on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from signspot.errors import one_line
from signspot.workflows.spot import Progress as Report


@contextmanager
def progress_bars() -> Iterator[Report | None]:
    """Give a function that shows how far each step is; None where the error stream is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def report(step: str, done: float, total: float | None) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(one_line(step), total=total)
            bars.update(tasks[step], completed=done, total=total)

        yield report
