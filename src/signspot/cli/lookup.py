"""`signspot lookup`: a recording of one sign in, the words it may show out.

`signspot friends`: two dictionaries of two sign languages compared.
"""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli import options as shared
from signspot.cli.console import print_table, progress_bars
from signspot.cli.options import JSON, OVERWRITE, ReadingOptions, give_json, grouped, refuse_json, say, warn_all
from signspot.errors import InputError
from signspot.files.atomic import refuse_existing, refuse_folder
from signspot.spotting.friends import FriendOptions, Relation
from signspot.workflows.lookup import (
    NO_MATCH,
    OWN_FILES,
    Comparison,
    FriendsRequest,
    Lookup,
    LookupOptions,
    LookupRequest,
    compare_dictionaries,
    lookup_file,
)

NO_SIGN = 2  # wrong input: the recording shows no sign


@grouped
def lookup(
    recording: Path = typer.Argument(metavar="CLIP", help="A recording of one sign, up to 20 s."),
    dictionary: Path | None = shared.DICTIONARY_OR_LEARNED,
    no_lexicon: bool = shared.NO_LEXICON,
    count: int = typer.Option(6, "--count", min=1, max=100, help="How many words to show."),
    threshold: float | None = shared.THRESHOLD,
    box: str | None = shared.BOX,
    sheet: Path | None = typer.Option(None, "--sheet", metavar="F.png", help="Picture of the recording and the words."),
    json_target: Path | None = shared.JSON,
    overwrite: bool = shared.OVERWRITE,
    *,
    how: ReadingOptions,
) -> None:
    """Name the words whose dictionary clips look most like a recording of one sign.

    Beside the words of the dictionary, those that the model learned are named: landmark-v1 knows 306 of American Sign
    Language.
    The recording is trimmed to the sign, and is also compared mirrored, as left-handed people sign. Nothing of it is
    kept.
    """
    if threshold is not None and not -1 <= threshold <= 1:
        raise InputError("--threshold", f"{threshold} is out of range", "use -1 to 1")
    refuse_json(json_target, overwrite=overwrite)
    if sheet is not None:
        refuse_existing(sheet, overwrite=overwrite)
    with progress_bars() as progress:
        reading = how.reading(progress, box=box)
        options = LookupOptions(count=count, threshold=threshold, lexicon=not no_lexicon, reading=reading)
        request = LookupRequest(recording=recording, dictionary=dictionary, model=how.choice, options=options)
        found = lookup_file(request)
        drawn = (sheet is not None and not found.faults) and found.write_sheet(sheet, reading, overwrite=overwrite)
    warn_all((*found.doubts, *(f"nothing was looked up: {fault}" for fault in found.faults)))
    is_given = give_json(found.record(), json_target, overwrite=overwrite)
    if found.faults:
        raise typer.Exit(NO_SIGN)
    if not is_given:
        _show(found)
        if drawn:
            say(f"wrote {sheet}")


def _show(found: Lookup) -> None:
    say(f"trimmed: {found.trim}")
    if not found.has_match:
        say(NO_MATCH)
    rows = []
    for number, guess in enumerate(found.guesses, start=1):
        sure = guess.band.value + (", mirrored" if guess.is_mirrored else "")
        rows.append((str(number), guess.word, guess.entry.variant, sure, f"{guess.cosine:.3f}", guess.entry.entry_id))
    print_table(("", "word", "variant", "how sure", "cosine", "dictionary entry"), rows)


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
            written = found.write(out, reading, overwrite=overwrite)
    if not give_json(found.record() | {"warnings": progress.warnings}, json_target, overwrite=overwrite):
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
