"""`signspot demo`: the whole path, with nothing but this program."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from signspot.cli.console import progress_bars

if TYPE_CHECKING:
    from signspot.workflows.demo import Demonstration


def demo(
    folder: Path = typer.Argument(Path("signspot-demo"), metavar="DIR", help="Where to put what is made."),
    seed: int = typer.Option(0, min=0, help="Another seed is another world: give another DIR too."),
    model: str = typer.Option("world-v1", hidden=True),
    preset: str = typer.Option("demo", hidden=True),
    epochs: int = typer.Option(100, min=1, hidden=True),
    backend: str = typer.Option("auto", hidden=True),
) -> None:
    """Make a signing world, learn to spot signs in it, and find some that were never annotated: some minutes."""
    # torch takes seconds to load, and every command passes through here.
    from signspot.embedding.model import Reading
    from signspot.workflows.demo import NOTE, DemoRequest, demonstrate, findings_note, next_commands

    typer.echo(f"{NOTE}\n")
    began = time.monotonic()
    with progress_bars() as progress:

        def tell(line: str) -> None:
            progress.clear()
            typer.echo(f"[{time.monotonic() - began:4.0f} s] {line}")

        request = DemoRequest(folder=folder, seed=seed, model=model, preset=preset, epochs=epochs, backend=backend)
        result = demonstrate(replace(request, reading=Reading(progress=progress)), tell)
    _print_table(result)
    typer.echo(f"\n{findings_note(result.spotted)}")
    files = result.files
    typer.echo(f"\nOpen\n  {files.report}    the table, and a found and a missed sign")
    for path, what in zip(files.outputs.paths.values(), ("the findings", "the same in ELAN", "the video"), strict=True):
        typer.echo(f"  {path}    {what}")
    typer.echo("\nNext\n  " + "\n  ".join(next_commands(files, result.spotted)))


def _print_table(result: Demonstration) -> None:
    from signspot.workflows.demo import HEADINGS

    typer.echo(
        f"\n{result.n_test_words} words that were never annotated, {result.n_passages} passages, each looked up in "
        f"{result.n_entries} dictionary clips:\n"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading else "left")
    for row in result.table:
        table.add_row(*row.cells)
    Console(highlight=False).print(table)
