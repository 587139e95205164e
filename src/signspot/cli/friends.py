"""`signspot friends`: two dictionaries of two sign languages compared."""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli.console import progress_bars
from signspot.cli.options import JSON, OVERWRITE, ReadingOptions, give_json, grouped, refuse_json, say
from signspot.errors import InputError
from signspot.files.atomic import refuse_folder
from signspot.spotting.friends import FriendOptions, Relation
from signspot.workflows.friends import (
    OWN_FILES,
    Comparison,
    FriendsRequest,
    compare_dictionaries,
    friends_record,
    write_comparison,
)

_FAR, _USUAL = "How far beyond what is usual a cosine must lie (-2 to 2).", "0.25 for landmark-v1, 0.5 for others"
_SHOWN = 10  # pairs of a relation on the screen


@grouped
def friends(
    first: Path = typer.Argument(metavar="DICTIONARY", help="A dictionary of one sign language."),
    second: Path = typer.Argument(metavar="OTHER", help="A dictionary of another."),
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="Table, picture and page, in a new folder."),
    closeness: float | None = typer.Option(None, "--closeness", help=_FAR, show_default=_USUAL),
    json_target: Path | None = JSON,
    overwrite: bool = OVERWRITE,
    *,
    how: ReadingOptions,
) -> None:
    """Find words of two languages with the same form: cognates, and false friends, which mean something else.

    Words that both have, but sign differently, are listed too. The closest come first.
    """
    if closeness is not None and not -2 <= closeness <= 2:
        raise InputError("--closeness", f"{closeness} is out of range", "use -2 to 2")
    options = None if closeness is None else FriendOptions(least_closeness=closeness)
    refuse_json(json_target, overwrite=overwrite)
    if out is not None:
        refuse_folder(out, OWN_FILES, overwrite=overwrite)
    written: tuple[Path, ...] = ()
    with progress_bars() as progress:
        reading = how.reading(progress)
        request = FriendsRequest(first=first, second=second, model=how.choice, options=options, reading=reading)
        found = compare_dictionaries(request)
        if out is not None:
            written = write_comparison(found, out, reading, overwrite=overwrite)
    if not give_json(friends_record(found) | {"warnings": progress.warnings}, json_target, overwrite=overwrite):
        _say_found(found, written)


def _say_found(found: Comparison, written: tuple[Path, ...]) -> None:
    say(f"{len(found.first.by_word)} and {len(found.second.by_word)} words, {found.n_shared_words} of them in both")
    say(f"compared {found.way}")
    for relation in Relation:
        pairs = found.of(relation)
        say(f"{relation.value}: {len(pairs)}")
        for pair in pairs[:_SHOWN]:
            say(f"  {pair.entry.word} - {pair.other.word}  ({pair.likeness})")
        if len(pairs) > _SHOWN:
            say(f"  and {len(pairs) - _SHOWN} more (--out and --json list all)")
    for path in written:
        say(f"wrote {path}")
