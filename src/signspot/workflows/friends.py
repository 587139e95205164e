"""Two dictionaries of two sign languages compared: words they share, forms they share, and forms that mislead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from signspot.domain.recordings import Dictionary, Entry
from signspot.domain.tracks import Pixels
from signspot.embedding.model import LANDMARK_MODEL, Reading
from signspot.embedding.zoo import ModelChoice, embed_gallery, open_model, opened_dictionary
from signspot.errors import InputError, Notice
from signspot.figures.sheets import Pair, jpeg_strip, paired_sheet
from signspot.files.atomic import new_folder
from signspot.files.pages import FriendsCard, FriendsGroup, write_friends_page
from signspot.files.tables import write_csv
from signspot.media.frames import write_picture
from signspot.spotting.friends import FriendOptions, Friends, Relation, friends
from signspot.workflows.variants import entry_pictures

TABLE, SHEET, PAGE = "friends.csv", "friends.png", "friends.html"
OWN_FILES = frozenset((TABLE, SHEET, PAGE))
_SHOWN = 40  # pairs of a relation on the page
_PEOPLE = 0.25  # three of four pairs are right where the words were never learned: experiments/friends/people.py
_ON_SHEET = 40  # false friends on the picture
_HEADER = (
    "relation", "word", "language", "entry_id", "other_word", "other_language", "other_entry_id", "cosine", "closeness",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FriendsRequest:
    """Which two dictionaries, compared how."""

    first: Path
    second: Path
    model: ModelChoice = ModelChoice()
    options: FriendOptions | None = None  # None: what suits the model
    reading: Reading = Reading()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two dictionaries compared."""

    first: Dictionary
    second: Dictionary
    pairs: tuple[Friends, ...]
    n_shared_words: int
    way: str  # how they were compared, for people

    def of(self, relation: Relation) -> tuple[Friends, ...]:
        return tuple(pair for pair in self.pairs if pair.relation is relation)


def compare_dictionaries(request: FriendsRequest) -> Comparison:
    """Read both dictionaries and relate their words; their languages are kept apart, so they must be two."""
    first, second = (opened_dictionary(path, request.reading) for path in (request.first, request.second))
    _refuse_same_language(first, second)
    opened = open_model(request.model, (entry.video for entry in (*first, *second)), request.reading)
    gallery, other = (embed_gallery(one, opened.model, opened.reading) for one in (first, second))
    # Whatever is usual, signs that the model itself does not call alike have no common form.
    options = replace(request.options or usual_options(opened.name), least_cosine=opened.model.threshold)
    pairs = friends(gallery, other, options)
    fewest = min(len(first.vocabulary), len(second.vocabulary))
    if fewest <= options.neighbours:
        few = "too few to judge what is normal; rely on the cosines instead"
        request.reading.notify(Notice(f"only {fewest} words on one side", few))
    shared = len(set(first.by_word) & set(second.by_word))
    return Comparison(first, second, pairs, shared, f"by one vector of {opened.name} for each clip")


def usual_options(model: str) -> FriendOptions:
    """When two signs count as one form for a model: cosines of landmark-v1 lie closer together than those of others."""
    return FriendOptions(least_closeness=_PEOPLE) if model == LANDMARK_MODEL else FriendOptions()


def friends_record(comparison: Comparison) -> dict[str, object]:
    return {
        "first": comparison.first.name,
        "second": comparison.second.name,
        "shared_words": comparison.n_shared_words,
        "compared": comparison.way,
        "pairs": [dict(zip(_HEADER, _cells(pair), strict=True)) for pair in comparison.pairs],
    }


def _refuse_same_language(first: Dictionary, second: Dictionary) -> None:
    """Within one language a second word of the same form is a synonym, no false friend."""
    one, other = ({entry.language for entry in dictionary} - {""} for dictionary in (first, second))
    if both := sorted(one & other):
        what = f"both dictionaries hold signs of the language {both[0]!r}"
        raise InputError(f"{first.name} and {second.name}", what, "compare dictionaries of two languages")


def write_comparison(
    comparison: Comparison, out: Path, reading: Reading = Reading(), *, overwrite: bool = False
) -> tuple[Path, ...]:
    shown = {relation: comparison.of(relation)[:_SHOWN] for relation in Relation}
    wanted = [entry for pairs in shown.values() for pair in pairs for entry in (pair.entry, pair.other)]
    pictures = _pictures(wanted, reading)
    with new_folder(out, OWN_FILES, overwrite=overwrite) as folder:
        write_csv(_HEADER, map(_cells, comparison.pairs), folder / TABLE)
        groups = [_group(comparison, relation, shown[relation], pictures) for relation in Relation]
        write_friends_page(f"{comparison.first.name} and {comparison.second.name}", groups, folder / PAGE)
        on_sheet = shown[Relation.FALSE_FRIEND][:_ON_SHEET]
        if on_sheet:
            pairs = [Pair(_title(p), pictures[p.entry], pictures[p.other]) for p in on_sheet]
            write_picture(paired_sheet(pairs), folder / SHEET)
    return tuple(path for path in (out / TABLE, out / PAGE, out / SHEET) if path.exists())


def _pictures(entries: Sequence[Entry], reading: Reading) -> dict[Entry, tuple[Pixels, ...]]:
    pictures: dict[Entry, tuple[Pixels, ...]] = {}
    for number, entry in enumerate(entries, start=1):
        if entry not in pictures:  # the whole entry: two dictionaries may use the same ids
            pictures[entry] = entry_pictures(entry, date.today(), reading)
        reading.progress("drawing the pairs", number, len(entries))
    return pictures


def _group(
    comparison: Comparison, relation: Relation, shown: Sequence[Friends], pictures: dict[Entry, tuple[Pixels, ...]]
) -> FriendsGroup:
    cards = [
        FriendsCard(
            title=pair.likeness,
            left=_named(pair.entry),
            right=_named(pair.other),
            left_jpeg=jpeg_strip(pictures[pair.entry]),
            right_jpeg=jpeg_strip(pictures[pair.other]),
        )
        for pair in shown
    ]
    return FriendsGroup(relation.value, cards, len(comparison.of(relation)) - len(cards))


def _named(entry: Entry) -> str:
    language = f" ({entry.language})" if entry.language else ""
    return f"{entry.word}{language}, {entry.entry_id}"


def _title(pair: Friends) -> str:
    return f"{_named(pair.entry)}   |   {_named(pair.other)}   |   {pair.likeness.partition(', cosine')[0]}"


def _cells(pair: Friends) -> tuple[str | float, ...]:
    one, other = pair.entry, pair.other
    sides = (one.word, one.language, one.entry_id, other.word, other.language, other.entry_id)
    return (pair.relation.value, *sides, round(pair.cosine, 4), round(pair.closeness, 4))
