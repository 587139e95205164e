"""What every experiments/NAME/run.py does: ask for the runs of its table, show how far they are, write results.json."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

from signspot.cli.progress import progress_bars
from signspot.errors import SignspotError
from signspot.features.store_disk import make_folder
from signspot.formats.experiment_results import write_results
from signspot.workflows.paper_table_results import SCALES, SMALL, PaperTable, TableRequest, TableRuns
from signspot.workflows.paper_tables import Places

_FOLDER = "SIGNSPOT_EXPERIMENTS"  # where finished runs are kept


def run_table(table: PaperTable, script: str) -> None:
    """Make a table from the command line of its script; exits with the code of the error, if there is one."""
    try:
        home = Path(script).resolve().parent
        _run(table, home, _request(table, home))
    except SignspotError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def _run(table: PaperTable, home: Path, request: TableRequest) -> None:
    make_folder(request.places.runs)
    with progress_bars() as bars:
        last = [""]
        begun = time.monotonic()

        def told(step: str, done: float, total: float) -> None:
            bars(step, done, total)
            if not sys.stderr.isatty() and step != last[0]:  # a log gets a line for every step
                sys.stderr.write(f"{time.monotonic() - begun:.0f} s: {step}\n")
                last[0] = step

        name = "results.json" if request.scale == SMALL.name else f"results-{request.scale}.json"
        command = f"python experiments/{table.name}/run.py --scale {request.scale}"
        command += f" --seeds {_spaced(request.seeds)} --worlds {_spaced(request.worlds)}"
        results = TableRuns(table, request, told).results(_verdict(home, request.scale), command)
    write_results(results, home / name)


def _request(table: PaperTable, home: Path) -> TableRequest:
    parser = argparse.ArgumentParser(description=f"{table.title}. Finished runs are kept in ${_FOLDER}.")
    parser.add_argument("--scale", choices=tuple(SCALES), default=SMALL.name)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--worlds", type=int, nargs="+", default=[0], help="seeds of the worlds")
    parser.add_argument("--finished", action="store_true", help="train nothing: write what is there")
    parser.add_argument("--wordnet", type=Path, help="folder of WordNet's files, for English synonyms")
    given = parser.parse_args()
    runs = Path(os.environ.get(_FOLDER) or "build/experiments")
    return TableRequest(
        scale=given.scale,
        worlds=tuple(given.worlds),
        seeds=tuple(given.seeds),
        finished_only=given.finished,
        places=Places(runs, home.parents[1] / "configs" / "embedding", given.wordnet),
    )


def _verdict(home: Path, scale: str) -> str:
    """What the README of an experiment says about its results at a scale."""
    readme, heading = home / "README.md", "Verdict" if scale == SMALL.name else f"Verdict, {scale}"
    written = re.compile(rf"\*\*{heading}\.\*\*\s*(.+?)(?:\n\n|\Z)", re.DOTALL)
    found = written.search(readme.read_text(encoding="utf-8")) if readme.is_file() else None
    return " ".join(found[1].split()) if found else "Not judged yet."


def _spaced(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))
