"""`signspot embed`: compute the vectors of videos once, so that later questions are answered at once."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from signspot.cli.console import progress_bars, warn
from signspot.cli.options import BACKEND, BOX, DEVICE, FAILURES_FOUND, STRIDE, TRUST, signer_box
from signspot.embedding.pictures import ExtractOptions, embed_files
from signspot.embedding.zoo import load_model
from signspot.errors import one_line
from signspot.stores.features import usable_store_folder


def embed(
    videos: list[Path] = typer.Argument(metavar="VIDEO", help="Videos and folders of videos."),
    model: str = typer.Option(..., "--model", "-m", help="A name of `signspot models list`, or a .safetensors file."),
    backend: str = BACKEND,
    device: str = DEVICE,
    stride: int = STRIDE,
    box: str | None = BOX,
    store: Path | None = typer.Option(None, "--store", metavar="DIR", help="Where to keep them (default: the cache)."),
    trust: bool = TRUST,
) -> None:
    """Compute and keep the vectors of every window. Run again after an interruption: what is done stays done."""
    options = ExtractOptions(stride=stride, isolated=not trust, box=signer_box(box))
    embedder = load_model(model, backend=backend, device=device)
    typer.echo(one_line(f"model {embedder.name}, {getattr(embedder, 'backend', 'numpy')}"))
    folder, failed, total = store or usable_store_folder(os.environ), 0, 0
    with progress_bars() as progress:
        for outcome in embed_files(tuple(videos), embedder, folder, options, progress):
            progress.clear()
            total += 1
            for remark in outcome.remarks:
                warn(remark)
            if outcome.made is None:
                failed += 1
                warn(str(outcome.failure))
                continue
            for message in (*outcome.made.remarks.warnings, outcome.made.remarks.partial):
                if message:
                    warn(f"{outcome.video}: {message}")
            state = "was there" if outcome.made.was_stored else "computed"
            typer.echo(one_line(f"{outcome.video}: {len(outcome.made.track.grid)} windows, {state}"))
    typer.echo(one_line(f"kept in {folder}"))
    if failed:
        warn(f"{failed} of {total} videos failed")
        raise typer.Exit(FAILURES_FOUND)
