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
from signspot.workflows.imports import import_dictionary

PROBLEMS_FOUND = 1
_SHOWN = 3  # problems, where a file lists them all

dictionary_app = typer.Typer(help="Work with a dictionary of signs.", no_args_is_help=True, rich_markup_mode=None)
corpus_app = typer.Typer(help="Work with a corpus of videos.", no_args_is_help=True, rich_markup_mode=None)

_SOURCE = typer.Argument(help="A folder, a CSV or a JSON manifest.", metavar="DIR")
_OVERWRITE = typer.Option(False, "--overwrite", help="Replace an output that exists.")
_JSON = typer.Option(None, "--json", metavar="[F.json]", help="Give the result as JSON, on the screen or in F.")


@dictionary_app.command("check")
def check_dictionary_command(
    source: Path = _SOURCE,
    json_target: Path | None = _JSON,
    quick: bool = typer.Option(False, "--quick", help="Open every clip, but do not decode it to its end."),
    words: bool = typer.Option(False, "--words", help="List the words and how many clips each has."),
    overwrite: bool = _OVERWRITE,
) -> None:
    """Open every clip; count words, variants and signers; name every clip that cannot be used."""
    with progress_bars() as progress:
        result = check_dictionary(source, CheckOptions(full=not quick), progress)
    _show(result, json_target, overwrite=overwrite)
    if words and json_target is None:
        for word, count in result.words:
            typer.echo(one_line(f"{count:6} {word}"))
    _leave(result)


@dictionary_app.command("import")
def import_dictionary_command(
    source: Path = typer.Argument(metavar="FILE", help="bsldict_v1.pkl, WLASL_v0.3.json or MSASL_*.json."),
    folder: Path = typer.Argument(metavar="DIR", help="The dictionary to make; for JSON, the folder of its clips."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a dictionary made by an earlier import."),
) -> None:
    """Turn a released data set into a dictionary (a pickle is read safely: nothing in it is run).

    Clips of WLASL or MS-ASL that are missing are listed in DIR/problems.csv.
    """
    with progress_bars() as progress:
        result = import_dictionary(source, folder, overwrite=overwrite, progress=progress)
    _show(result, None)
    typer.echo(one_line(f"wrote {folder}; use it with --dictionary {folder}"))


@corpus_app.command("check")
def check_corpus_command(
    source: Path = _SOURCE,
    json_target: Path | None = _JSON,
    full: bool = typer.Option(False, "--full", help="Decode every video to its end (finds truncated files)."),
    overwrite: bool = _OVERWRITE,
) -> None:
    """Open every video and subtitle file; list what can be used and what cannot."""
    with progress_bars() as progress:
        result = check_corpus(source, CheckOptions(full=full), progress)
    _show(result, json_target, overwrite=overwrite)
    _leave(result)


def _leave(result: Check) -> None:
    if result.problems:
        raise typer.Exit(PROBLEMS_FOUND)


def _counted(what: str, count: int) -> str:
    """One of many videos is a video; "with subtitles" stays as it is."""
    if count != 1 or what.startswith("with"):
        return what
    return f"{what.removesuffix('ies')}y" if what.endswith("ies") else what.removesuffix("s")


def _show(result: Check, json_target: Path | None, *, overwrite: bool = False) -> None:
    if json_target is None:
        counts = " · ".join(f"{count:,} {_counted(what, count)}" for what, count in result.counts)
        typer.echo(one_line(f"{result.name}: {counts}"))
        shown = result.problems if result.listed is None else result.problems[:_SHOWN]
        if len(shown) < len(result.problems):
            count = f"{len(result.problems):,} clips of the list"
            typer.echo(one_line(f"cannot be used: {count}: {result.listed} names them all, the first are:"))
        for title, rows in (("cannot be used", shown), ("to know", result.remarks)):
            for row in rows:
                typer.echo(f"{title}: {row}")
        if not result.problems:
            typer.echo(f"no problems found, {len(result.remarks)} to know" if result.remarks else "no problems found")
    else:
        record = dataclasses.asdict(result) | {"counts": dict(result.counts), "words": dict(result.words)}
        del record["listed"]
        print_json(record) if str(json_target) == "-" else write_json(record, json_target, overwrite=overwrite)
