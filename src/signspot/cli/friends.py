"""`signspot friends`: two dictionaries of two sign languages compared."""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli.progress import progress_bars
from signspot.cli.shared_options import (
    BACKEND,
    DEVICE,
    JSON,
    MODEL,
    NO_STORE,
    OVERWRITE,
    STORE,
    TRUST,
    default_store,
    give_json,
    refuse_json,
    say,
    warn_all,
)
from signspot.errors import InputError
from signspot.formats.new_folder import refuse_folder
from signspot.spotting.false_friends import FriendOptions, Relation
from signspot.workflows.friends import OWN_FILES, FriendsRequest, compare_dictionaries, friends_record, write_comparison
from signspot.workflows.sign_vectors import SignModel

_SHOWN = 10  # pairs of a relation on the screen


def friends(
    first: Path = typer.Argument(metavar="DICTIONARY", help="A dictionary of one sign language."),
    second: Path = typer.Argument(metavar="OTHER", help="A dictionary of another."),
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="Table, picture and page, in a new folder."),
    model: str = MODEL,
    backend: str = BACKEND,
    device: str = DEVICE,
    closeness: float = typer.Option(
        0.5, "--closeness", help="How far beyond what is usual a cosine must lie to be the same form (-2 to 2)."
    ),
    store: Path | None = STORE,
    no_store: bool = NO_STORE,
    json_target: Path | None = JSON,
    overwrite: bool = OVERWRITE,
    trust: bool = TRUST,
) -> None:
    """Find words of two languages with the same form: cognates, and false friends, which mean something else.

    Words that both have, but sign differently, are listed too. The closest come first.
    """
    if not -2 <= closeness <= 2:
        raise InputError("--closeness", f"{closeness} is out of range", "give a number from -2 to 2")
    refuse_json(json_target, overwrite=overwrite)
    if out is not None:
        refuse_folder(out, OWN_FILES, overwrite=overwrite)
    request = FriendsRequest(
        first=first,
        second=second,
        model=SignModel(name=model, backend=backend, device=device, isolated=not trust),
        options=FriendOptions(least_closeness=closeness),
        store=None if no_store else store or default_store(model),
    )
    with progress_bars() as progress:
        found = compare_dictionaries(request, progress)
        written = (
            ()
            if out is None
            else write_comparison(found, out, isolated=not trust, overwrite=overwrite, progress=progress)
        )
    warn_all(found.warnings)
    if give_json(friends_record(found), json_target, overwrite=overwrite):
        return
    say(f"{len(found.first.by_word)} and {len(found.second.by_word)} words, {found.n_shared_words} of them in both")
    for relation in (Relation.FALSE_FRIEND, Relation.DIFFERENT_FORM, Relation.COGNATE):
        pairs = found.of(relation)
        say(f"{relation.value}: {len(pairs)}")
        for pair in pairs[:_SHOWN]:
            say(f"  {pair.entry.word} - {pair.other.word}  ({pair.likeness})")
    for path in written:
        say(f"wrote {path}")
