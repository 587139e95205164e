"""Results of experiments: written by `experiments/NAME/run.py` as results.json, read by the page docs/results.md.

A table has rows (methods) and columns (measures). Every cell keeps the value of each run, an interval, and, where the
paper reports the same measure, its number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from signspot.errors import FormatError
from signspot.formats.safe_json import read_json, write_json


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell: the mean of `runs`, the interval that the experiment's conditions describe, and the paper's number."""

    mean: float
    runs: tuple[float, ...] = ()  # one value for each seed
    low: float | None = None
    high: float | None = None
    paper: float | None = None  # in the same unit

    def __post_init__(self) -> None:
        numbers = (self.mean, *self.runs, *(n for n in (self.low, self.high, self.paper) if n is not None))
        if any(isinstance(n, bool) or not isinstance(n, int | float) or not math.isfinite(n) for n in numbers):
            raise ValueError(f"{self} holds what is no number")


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One method: its measures by column."""

    name: str
    cells: Mapping[str, Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResults:
    """One table."""

    name: str  # of the folder in experiments/
    title: str
    paper: str = ""  # "Table 2"; empty where the paper has no such table
    data: str  # "synthetic world: small, version 1, seed 0" or "real: boston104"
    command: str  # that makes this table again
    conditions: Mapping[str, str] = field(default_factory=dict)  # seeds, epochs, what the interval is, the machine...
    columns: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    verdict: str  # one honest sentence or two: the same order as the paper's or not, and why we think so
    is_percent: bool = True  # how the numbers, all shares of 1, are shown

    def __post_init__(self) -> None:
        for row in self.rows:
            if unknown := set(row.cells) - set(self.columns):
                raise ValueError(f"{row.name!r} has a cell of no column: {sorted(unknown)[0]!r}")


def write_results(results: ExperimentResults, path: Path) -> None:
    """Write a table, in place of an older one."""
    write_json(asdict(results), path, overwrite=True)


def read_results(path: Path) -> ExperimentResults:
    """Read a table that `write_results` wrote."""
    value = read_json(path)
    try:
        facts = dict(value)  # type: ignore[call-overload]
        rows = tuple(
            ResultRow(
                row["name"],
                {column: Measured(**(cell | {"runs": tuple(cell["runs"])})) for column, cell in row["cells"].items()},
            )
            for row in facts.pop("rows")
        )
        return ExperimentResults(rows=rows, columns=tuple(facts.pop("columns")), **facts)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise FormatError(path, f"is no table of results ({error})", "run the experiment again") from error


def markdown_of(results: ExperimentResults) -> str:
    """The table as Markdown: each cell ours [interval], then the paper's in parentheses; – where there is none."""
    head = ["method", *results.columns]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in results.rows:
        cells = [_shown(row.cells[column], results.is_percent) if column in row.cells else "–" for column in head[1:]]
        lines.append(f"| {' | '.join([row.name, *cells])} |")
    return "\n".join(lines) + "\n"


def _shown(cell: Measured, is_percent: bool) -> str:
    def number(value: float) -> str:
        return f"{100 * value:.1f}" if is_percent else f"{value:.3f}"

    text = number(cell.mean)
    if cell.low is not None and cell.high is not None:
        text += f" [{number(cell.low)}, {number(cell.high)}]"
    return text if cell.paper is None else f"{text} (paper: {number(cell.paper)})"
