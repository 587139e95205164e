"""`signspot friends`: two dictionaries of two sign languages compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import typer

from signspot.cli.console import progress_bars
from signspot.cli.options import (
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
    grouped,
    refuse_json,
    say,
    warn_all,
)
from signspot.embedding.entries import SignModel
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

_SHOWN = 10  # pairs of a relation on the screen


@dataclass(frozen=True, slots=True)
class Likeness:
    """How signs are compared, and when two count as one form."""

    model: str = MODEL
    backend: str = BACKEND
    device: str = DEVICE
    closeness: float | None = typer.Option(
        None,
        "--closeness",
        help="How far beyond what is usual a cosine must lie (-2 to 2).",
        show_default="0.25 for landmark-v1, 0.5 for others",
    )

    def on(self, request: FriendsRequest) -> FriendsRequest:
        """A comparison of this kind; refuses what is out of range."""
        if self.closeness is not None and not -2 <= self.closeness <= 2:
            raise InputError("--closeness", f"{self.closeness} is out of range", "give a number from -2 to 2")
        return replace(
            request,
            model=replace(request.model, name=self.model, backend=self.backend, device=self.device),
            options=None if self.closeness is None else FriendOptions(least_closeness=self.closeness),
        )


@grouped
def friends(
    likeness: Likeness,
    first: Path = typer.Argument(metavar="DICTIONARY", help="A dictionary of one sign language."),
    second: Path = typer.Argument(metavar="OTHER", help="A dictionary of another."),
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="Table, picture and page, in a new folder."),
    store: Path | None = STORE,
    no_store: bool = NO_STORE,
    json_target: Path | None = JSON,
    overwrite: bool = OVERWRITE,
    trust: bool = TRUST,
) -> None:
    """Find words of two languages with the same form: cognates, and false friends, which mean something else.

    Words that both have, but sign differently, are listed too. The closest come first.
    """
    kept = None if no_store else store or default_store(likeness.model)
    asked = FriendsRequest(first=first, second=second, model=SignModel(isolated=not trust), store=kept)
    request = likeness.on(asked)
    refuse_json(json_target, overwrite=overwrite)
    if out is not None:
        refuse_folder(out, OWN_FILES, overwrite=overwrite)
    written: tuple[Path, ...] = ()
    with progress_bars() as progress:
        found = compare_dictionaries(request, progress)
        if out is not None:
            written = write_comparison(found, out, isolated=not trust, overwrite=overwrite, progress=progress)
    warn_all(found.warnings)
    if not give_json(friends_record(found), json_target, overwrite=overwrite):
        _say_found(found, written)


def _say_found(found: Comparison, written: tuple[Path, ...]) -> None:
    """The closest pairs of each relation."""
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
