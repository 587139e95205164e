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
from signspot.spotting.form_friends import LEAST_LOG_ODDS
from signspot.workflows.friends import (
    OWN_FILES,
    By,
    FriendsRequest,
    compare_dictionaries,
    friends_record,
    write_comparison,
)
from signspot.workflows.sign_vectors import SignModel

_SHOWN = 10  # pairs of a relation on the screen


def friends(
    first: Path = typer.Argument(metavar="DICTIONARY", help="A dictionary of one sign language."),
    second: Path = typer.Argument(metavar="OTHER", help="A dictionary of another."),
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="Table, picture and page, in a new folder."),
    by: By | None = typer.Option(
        None,
        "--by",
        help="One vector of a model for each clip, or part by part: says which parts differ.",
        show_default="parts for a made-up world with landmarks, else vectors",
    ),
    model: str = MODEL,
    backend: str = BACKEND,
    device: str = DEVICE,
    closeness: float | None = typer.Option(
        None,
        "--closeness",
        help="By vectors: how far beyond what is usual a cosine must lie (-2 to 2).",
        show_default="0.25 for landmark-v1, 0.5 for others",
    ),
    log_odds: float = typer.Option(
        LEAST_LOG_ODDS, "--log-odds", help="By parts: how likely one form must be (-30 to 30; 0: as likely as not)."
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
    if closeness is not None and not -2 <= closeness <= 2:
        raise InputError("--closeness", f"{closeness} is out of range", "give a number from -2 to 2")
    if not -30 <= log_odds <= 30:
        raise InputError("--log-odds", f"{log_odds} is out of range", "give a number from -30 to 30")
    refuse_json(json_target, overwrite=overwrite)
    if out is not None:
        refuse_folder(out, OWN_FILES, overwrite=overwrite)
    request = FriendsRequest(
        first=first,
        second=second,
        by=by,
        model=SignModel(name=model, backend=backend, device=device, isolated=not trust),
        options=None if closeness is None else FriendOptions(least_closeness=closeness),
        least_log_odds=log_odds,
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
    say(f"compared {found.way}")
    for relation in (Relation.FALSE_FRIEND, Relation.DIFFERENT_FORM, Relation.COGNATE):
        pairs = found.of(relation)
        say(f"{relation.value}: {len(pairs)}")
        for pair in pairs[:_SHOWN]:
            say(f"  {pair.entry.word} - {pair.other.word}  ({pair.likeness})")
    for path in written:
        say(f"wrote {path}")
