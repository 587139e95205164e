"""`signspot embed`: compute the vectors of videos once, so that later questions are answered at once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import typer

from signspot.cli.console import progress_bars, warn
from signspot.cli.options import BOX, FAILURES, FAILURES_FOUND, JOBS, STRIDE, ReadingOptions, grouped, warn_all
from signspot.errors import InputError, one_line
from signspot.stores.features import usable_store_folder
from signspot.workflows.embed import EmbedRequest, embed_files


@grouped
def embed(
    videos: list[Path] = typer.Argument(metavar="VIDEO", help="Videos and folders of videos."),
    stride: int = STRIDE,
    box: str | None = BOX,
    jobs: int = JOBS,
    failures: Path = FAILURES,
    *,
    how: ReadingOptions,
) -> None:
    """Compute and keep the vectors of every window. Run again after an interruption: what is done stays done."""
    if how.no_store:
        raise InputError("--no-store", "embed is there to fill a store", "leave it out, or name a folder with --store")
    failed = total = 0
    with progress_bars() as progress:
        reading = replace(how, no_store=True).reading(progress, box=box, stride=stride)
        reading = replace(reading, store=how.store or usable_store_folder(os.environ))
        request = EmbedRequest(sources=tuple(videos), model=how.choice, reading=reading, jobs=jobs, failures=failures)
        started = embed_files(request)
        progress.clear()
        typer.echo(one_line(f"model {started.model.name}, {started.model.backend}"))
        for outcome in started.outcomes:
            progress.clear()
            total += 1
            video, made = outcome.item.video, outcome.result
            if made is None:
                failed += 1
                warn(str(outcome.failure))
                continue
            warn_all(f"{video}: {remark}" for remark in made.warnings)
            state = "was there" if made.was_stored else "computed"
            typer.echo(one_line(f"{video}: {made.n_windows} windows, {state}"))
    typer.echo(one_line(f"kept in {reading.store}"))
    if failed:
        warn(f"{failed} of {total} videos failed: see {failures}")
        raise typer.Exit(FAILURES_FOUND)
