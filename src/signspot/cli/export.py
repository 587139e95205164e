"""`signspot export`: results in any other format, later."""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli.console import progress_bars
from signspot.cli.options import OVERWRITE, counted, say, warn_all
from signspot.workflows.outputs import ExportFormat, ExportRequest
from signspot.workflows.outputs import export as export_results


def export(
    results: Path = typer.Argument(
        metavar="RESULTS", help="A .csv, .json, .jsonl or .parquet of spottings, or a VIA project."
    ),
    csv: Path | None = typer.Option(None, "--csv", metavar="F.csv", help="Table for a spreadsheet."),
    json: Path | None = typer.Option(None, "--json", metavar="F.json", help="JSON."),
    jsonl: Path | None = typer.Option(None, "--jsonl", metavar="F.jsonl", help="One JSON object per line."),
    parquet: Path | None = typer.Option(None, "--parquet", metavar="F.parquet", help="Parquet table."),
    eaf: Path | None = typer.Option(None, "--eaf", metavar="F.eaf", help="ELAN file."),
    vtt: Path | None = typer.Option(None, "--vtt", metavar="F.vtt", help="WebVTT subtitles."),
    srt: Path | None = typer.Option(None, "--srt", metavar="F.srt", help="SubRip subtitles."),
    via: Path | None = typer.Option(None, "--via", metavar="F.json", help="VGG VIA 3 project."),
    challenge: Path | None = typer.Option(
        None, "--challenge", metavar="F.json", help="JSON of the spotting challenge."
    ),
    videos: Path | None = typer.Option(None, "--videos", help="The videos, for ELAN and VIA: a file, folder or list."),
    classes: Path | None = typer.Option(
        None, "--classes", help="Words, one a line, that the challenge numbers from 0."
    ),
    overwrite: bool = OVERWRITE,
) -> None:
    """Write results in other formats. Of several videos, ELAN files and subtitles go into a folder, one each."""
    asked = {
        ExportFormat.CSV: csv,
        ExportFormat.JSON: json,
        ExportFormat.JSONL: jsonl,
        ExportFormat.PARQUET: parquet,
        ExportFormat.EAF: eaf,
        ExportFormat.VTT: vtt,
        ExportFormat.SRT: srt,
        ExportFormat.VIA: via,
        ExportFormat.CHALLENGE: challenge,
    }
    request = ExportRequest(
        results=results,
        targets={kind: path for kind, path in asked.items() if path is not None},
        videos=videos,
        classes=classes,
        overwrite=overwrite,
    )
    with progress_bars() as progress:
        done = export_results(request, progress)
    warn_all(done.warnings)
    say(f"{counted(done.n_spottings, 'result')} of {counted(done.n_videos, 'video')}")
    if challenge is not None and classes is None:
        say("classes: " + ", ".join(f"{number} {word}" for word, number in done.classes.items()))
    for path in done.written:
        say(f"wrote {path}")
