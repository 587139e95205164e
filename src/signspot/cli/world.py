"""`signspot world`: a made-up signing world whose truth is known, as ordinary files.

`signspot demo`: the whole path, with nothing but this program.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from signspot.cli.console import print_json, progress_bars

if TYPE_CHECKING:
    from signspot.workflows.demo import Demonstration


_HELP = "Make a signing world whose truth is known: synthetic, for trying, testing and comparing."
app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)

_PRESET = typer.Option("demo", "--preset", help="demo (minutes), small (about an hour), paper (joints only).")
_SEED = typer.Option(0, "--seed", min=0, help="Another seed is another world.")


@app.command("make")
def _make_command(
    folder: Path = typer.Argument(metavar="DIR", help="Where to put it."),
    preset: str = _PRESET,
    seed: int = _SEED,
    side: int = typer.Option(256, "--side", min=64, max=1024, help="Pixels of the pictures' sides."),
    workers: int = typer.Option(0, "--workers", min=0, help="Processes that draw; 0: one per core."),
    other_language: bool = typer.Option(
        False, "--other-language", help="Also the dictionary of a second sign language, for `signspot friends`."
    ),
) -> None:
    """Write a dictionary, a corpus with subtitles and annotations, landmarks beside each video, and the truth.

    Run again to continue.
    """
    from signspot.workflows.world import WorldRequest, make_world

    request = WorldRequest(
        folder=folder, preset=preset, seed=seed, side=side, workers=workers, other_language=other_language
    )
    with progress_bars() as progress:
        made = make_world(request, progress)
    typer.echo(
        f"""A world was made: synthetic signing, no claim about any real language.
  {made.dictionary}      signspot dictionary check {made.dictionary}
  {made.corpus}          signspot corpus check {made.corpus}
  {made.split}      the words that are trained and those that are only tested
  {made.truth}   every sign of every episode, from frame to frame"""
    )
    if other_language:
        typer.echo(f"  {made.other_dictionary}  signspot friends {made.dictionary} {made.other_dictionary}")


@app.command("preview")
def _preview_command(
    folder: Path = typer.Argument(metavar="DIR", help="Where to put the pictures."),
    preset: str = _PRESET,
    seed: int = _SEED,
) -> None:
    """Draw a contact sheet, some minimal pairs, a dictionary clip and continuous signing."""
    from signspot.workflows.world import preview_world

    for path in preview_world(folder, preset, seed):
        typer.echo(path)


@app.command("measure")
def _measure_command(
    preset: str = _PRESET,
    seed: int = _SEED,
    json_target: Path | None = typer.Option(None, "--json", metavar="[-]", help="Give the result as JSON."),
) -> None:
    """Compare the world with the paper's corpora, and say how hard it is for nearest neighbours on raw joints."""
    from signspot.workflows.world import measure_world

    measured = measure_world(preset, seed)
    if json_target is not None:
        print_json(asdict(measured))
        return
    for row in measured.statistics:
        typer.echo(f"{row.name:34} {row.world:8.2f}   paper {row.paper:8.2f}  ({row.deviation:.0%} off; {row.source})")
    typer.echo(
        f"raw joints, nearest neighbour: mAP {measured.mean_ap:.1%}, R@5 {measured.recall_at_5:.1%}, "
        f"localisation {measured.localisation:.1%} (chance mAP {measured.chance_mean_ap:.2%})"
    )


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
    from signspot.workflows.demo import NOTE, DemoRequest, demonstrate

    typer.echo(f"{NOTE}\n")
    began = time.monotonic()
    with progress_bars() as progress:

        def tell(line: str) -> None:
            progress.clear()
            typer.echo(f"[{time.monotonic() - began:4.0f} s] {line}")

        request = DemoRequest(folder=folder, seed=seed, model=model, preset=preset, epochs=epochs, backend=backend)
        result = demonstrate(replace(request, reading=Reading(progress=progress)), tell)
    _print_table(result)
    typer.echo(f"\n{result.spotted.note()}")
    files = result.files
    typer.echo(f"\nOpen\n  {files.report}    the table, and a found and a missed sign")
    for path, what in zip(files.outputs.paths.values(), ("the findings", "the same in ELAN", "the video"), strict=True):
        typer.echo(f"  {path}    {what}")
    typer.echo("\nNext\n  " + "\n  ".join(files.next_commands(result.spotted)))


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
