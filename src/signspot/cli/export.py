"""`signspot export`: results in any other format, later."""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli.console import progress_bars
from signspot.cli.options import OVERWRITE, ExportFiles, counted, grouped, say, warn_all
from signspot.workflows.outputs import ExportRequest
from signspot.workflows.outputs import export as export_results


@grouped
def export(
    *,
    results: Path = typer.Argument(
        metavar="RESULTS", help="A .csv, .json, .jsonl or .parquet of spottings, or a VIA project."
    ),
    files: ExportFiles,
    videos: Path | None = typer.Option(None, "--videos", help="The videos, for ELAN and VIA: a file, folder or list."),
    classes: Path | None = typer.Option(
        None, "--classes", help="Words, one a line, that the challenge numbers from 0."
    ),
    overwrite: bool = OVERWRITE,
) -> None:
    """Write results in other formats. Of several videos, ELAN files and subtitles go into a folder, one each."""
    request = ExportRequest(
        results=results, targets=files.asked_for(), videos=videos, classes=classes, overwrite=overwrite
    )
    with progress_bars() as progress:
        done = export_results(request, progress)
    warn_all(done.warnings)
    say(f"{counted(done.n_spottings, 'result')} of {counted(done.n_videos, 'video')}")
    if files.challenge is not None and classes is None:
        say("classes: " + ", ".join(f"{number} {word}" for word, number in done.classes.items()))
    for path in done.written:
        say(f"wrote {path}")
