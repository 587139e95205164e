"""`signspot dictionary check` and `signspot corpus check`: what is there, and what is wrong with it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import typer

from signspot.cli.progress import progress_bars
from signspot.cli.show import print_json
from signspot.errors import one_line
from signspot.formats.safe_json import write_json
from signspot.workflows.check import Check, CheckOptions, check_corpus, check_dictionary

PROBLEMS_FOUND = 1

dictionary_app = typer.Typer(help="Work with a dictionary of signs.", no_args_is_help=True, rich_markup_mode=None)
corpus_app = typer.Typer(help="Work with a corpus of videos.", no_args_is_help=True, rich_markup_mode=None)

_SOURCE = typer.Argument(help="A folder, a CSV or a JSON manifest.", metavar="DIR")
_JSON = typer.Option(None, "--json", metavar="[F.json]", help="Give the result as JSON, on the screen or in F.")


@dictionary_app.command("check")
def check_dictionary_command(
    source: Path = _SOURCE,
    json_target: Path | None = _JSON,
    quick: bool = typer.Option(False, "--quick", help="Open every clip, but do not decode it to its end."),
) -> None:
    """Open every clip; list words, variants and signers, and every clip that cannot be used."""
    with progress_bars() as progress:
        result = check_dictionary(source, CheckOptions(full=not quick), progress)
    _show(result, json_target)


@corpus_app.command("check")
def check_corpus_command(
    source: Path = _SOURCE,
    json_target: Path | None = _JSON,
    full: bool = typer.Option(False, "--full", help="Decode every video to its end (finds truncated files)."),
) -> None:
    """Open every video and subtitle file; list what can be used and what cannot."""
    with progress_bars() as progress:
        result = check_corpus(source, CheckOptions(full=full), progress)
    _show(result, json_target)


def _show(result: Check, json_target: Path | None) -> None:
    if json_target is None:
        counts = " · ".join(f"{count:,} {what}" for what, count in result.counts)
        typer.echo(one_line(f"{result.name}: {counts}"))
        for title, rows in (("cannot be used", result.problems), ("to know", result.remarks)):
            for row in rows:
                typer.echo(one_line(f"{title}: {': '.join(p for p in (row.where, row.what, row.fix) if p)}"))
        if not result.problems:
            typer.echo("no problems found")
    else:
        record = dataclasses.asdict(result) | {"counts": dict(result.counts)}
        print_json(record) if str(json_target) == "-" else write_json(record, json_target)
    if result.problems:
        raise typer.Exit(PROBLEMS_FOUND)
