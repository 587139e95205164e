"""`signspot demo`: the whole path, with nothing but this program."""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli.progress import progress_bars
from signspot.cli.show import print_answer
from signspot.formats.spotting_rows import clock
from signspot.workflows.demo import Demonstration, demonstrate
from signspot.workflows.outputs import Output


def demo(
    folder: Path = typer.Argument(Path("signspot-demo"), metavar="DIR", help="Where to put what is made."),
    seed: int = typer.Option(0, help="Another seed makes another broadcast."),
) -> None:
    """Make a toy world, find signs in it, and write a plot, an overlay video and an ELAN file."""
    with progress_bars() as progress:
        result = demonstrate(folder, seed, progress)
    typer.echo(
        "A toy world was made: a drawn figure whose hands take the colour of the sign, six dictionary clips, and a\n"
        f"broadcast of {clock(result.answer.duration_ms)}. It was searched for apple, tree and house.\n"
    )
    print_answer(result.answer)
    _compare(result)
    paths = result.outputs.paths
    typer.echo(
        f"""
Open
  {paths[Output.PLOT]}    the similarity over time, one curve per variant
  {paths[Output.VIDEO]}       the broadcast with the curve moving along
  {paths[Output.EAF]}     in ELAN: the findings on tiers of their own
  {paths[Output.CSV]}     in a spreadsheet

This shows that the path works, from a file to a finding. The model compares mean colours: it says nothing about
real signing. Next, with your own clips (a folder per word) and video:
  signspot dictionary check MY_DICTIONARY
  signspot spot MY_VIDEO.mp4 WORD --dictionary MY_DICTIONARY --plot similarity.png"""
    )


def _compare(result: Demonstration) -> None:
    asked = {word.word for word in result.answer.words}
    truth = [signed for signed in result.world.truth if signed.sign.word in asked]
    found = sum(result.found(signed) for signed in truth)
    extra = len(list(result.answer)) - found
    typer.echo(
        f"\nTruth: {len(truth)} of these signs were performed; {found} found in place and variant, {extra} wrong."
    )
