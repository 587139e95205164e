"""Did you mean: a recording of one sign in, the words it may show out.

Two dictionaries of two sign languages compared: words they share, forms they share, and forms that mislead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from signspot.domain.recordings import Dictionary, Entry
from signspot.domain.results import Band
from signspot.domain.tracks import Pixels
from signspot.embedding.model import LANDMARK_MODEL, Model, Reading
from signspot.embedding.zoo import ModelChoice, embed_gallery, opened_dictionary, with_lexicon
from signspot.errors import InputError, Notice
from signspot.figures.sheets import Pair, SheetRow, contact_sheet, jpeg_strip, paired_sheet
from signspot.files.atomic import new_folder
from signspot.files.pages import FriendsCard, FriendsGroup, write_friends_page
from signspot.files.tables import write_csv
from signspot.media.frames import write_picture
from signspot.media.trim import Trim
from signspot.spotting.friends import FriendOptions, Friends, Gallery, Relation, friends
from signspot.spotting.lookup import Guess, LookupLimits, guesses
from signspot.workflows.variants import entry_pictures

NO_MATCH = "no good match: no sign looks enough like the recording"
# The least cosine with the direction of a learned word. Of clips by signers never seen, 72% of the first guesses above
# it are right, and 19% of clips of other words are above it (fold of experiments/wlasl300).
LEARNED_LEVEL = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupOptions:
    """How a recording is looked up."""

    count: int = 6  # words
    threshold: float | None = None  # least cosine of a possible word; None: the model's own
    lexicon: bool = True  # also name words that the dictionary lacks and the model learned
    reading: Reading = Reading()  # its box is that of the recording; its store keeps dictionary clips only


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """What a recording may show."""

    recording: Path
    guesses: tuple[Guess, ...]  # the most similar first; none where the recording shows no sign
    trim: Trim
    faults: tuple[str, ...]  # why the recording shows no sign
    doubts: tuple[str, ...]  # why the guesses may be wrong
    pictures: tuple[Pixels, ...]  # (96, W, 3) uint8, of the part that moves
    warnings: tuple[str, ...] = ()

    @property
    def has_match(self) -> bool:
        return any(guess.band is not Band.UNLIKELY for guess in self.guesses)

    def record(self) -> dict[str, object]:
        return {
            "recording": str(self.recording),
            "has_match": self.has_match,
            "faults": list(self.faults),
            "doubts": list(self.doubts),
            "frames": self.trim.n_frames,
            "kept_start": self.trim.kept.start,
            "kept_stop": self.trim.kept.stop,
            "guesses": [
                {
                    "word": guess.word,
                    "variant": guess.entry.variant,
                    "band": guess.band.value,
                    "cosine": round(guess.cosine, 6),
                    "mirrored": guess.is_mirrored,
                    "entry_id": guess.entry.entry_id,
                    "language": guess.entry.language,
                }
                for guess in self.guesses
            ],
            "warnings": list(self.warnings),
        }

    def write_sheet(self, path: Path, reading: Reading = Reading(), *, overwrite: bool = False) -> bool:
        """A picture of the recording above the clips of its best words; False where nothing may be shown."""
        rows = [SheetRow("your recording", self.pictures)] if self.pictures else []
        for number, guess in enumerate(self.guesses, start=1):
            reading.progress("drawing the best words", number, len(self.guesses))
            pictures = entry_pictures(guess.entry, date.today(), reading)
            if pictures:
                rows.append(SheetRow(f"{number} {guess.word}, {guess.band.value}", pictures))
        if rows:
            write_picture(contact_sheet(rows), path, overwrite=overwrite)
        return bool(rows)


def lookup(
    recording: Path | str,
    *,
    dictionary: Dictionary | None = None,
    model: Model | None = None,
    options: LookupOptions = LookupOptions(),
) -> Lookup:
    """Name the words whose dictionary clips look most like a recording of one sign, or say why none does.

    The words that the model learned are named, too, where the dictionary lacks them, or where there is none. Without a
    model, the one that can see all recordings is used.
    """
    reading, said = options.reading.collecting()
    if model is None:
        opened = ModelChoice().open((Path(recording), *(entry.video for entry in dictionary or ())), reading)
        model, reading = opened.model, opened.reading
    options = replace(options, reading=reading)
    if dictionary is None:
        if not options.lexicon:
            raise InputError("dictionary", "none given", "give one, or do without --no-lexicon")
        gallery = learned_words(model, reading)
        # Recordings are compared with directions of words here, not with clips.
        options = options if options.threshold is not None else replace(options, threshold=LEARNED_LEVEL)
    else:
        all_known = with_lexicon(dictionary, model, are_named=False) if options.lexicon else dictionary
        gallery = embed_gallery(all_known, model, reading, model.towards_mean)
    return replace(look_up(Path(recording), model, gallery, options), warnings=tuple(map(str, said)))


def learned_words(model: Model, reading: Reading) -> Gallery:
    known = with_lexicon(None, model)
    n_words = len(known.by_word)
    reading.notify(Notice("no dictionary", f"only the {n_words} words that {model.name} learned can be named"))
    return Gallery(model.lexicon.entries, model.lexicon.directions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest:
    """Which recording, in which dictionary, by which model."""

    recording: Path
    dictionary: Path | None = None  # None: the words that the model learned
    model: ModelChoice = ModelChoice()
    options: LookupOptions = LookupOptions()


def lookup_file(request: LookupRequest) -> Lookup:
    """The same with a dictionary and a model by their names; without a name, the model that can see them best."""
    reading, said = request.options.reading.collecting()
    dictionary = None if request.dictionary is None else opened_dictionary(request.dictionary, reading)
    recordings = (request.recording, *(entry.video for entry in dictionary or ()))
    opened = request.model.open(recordings, reading)
    options = replace(request.options, reading=opened.reading)
    found = lookup(request.recording, dictionary=dictionary, model=opened.model, options=options)
    return replace(found, warnings=tuple(map(str, said)))


def look_up(recording: Path, model: Model, gallery: Gallery, options: LookupOptions = LookupOptions()) -> Lookup:
    """The words of a recording, in a dictionary that is embedded already."""
    seen = model.recording(recording, options.reading)
    limits = LookupLimits(
        possible=model.threshold if options.threshold is None else options.threshold, count=options.count
    )
    found = () if seen.faults else guesses(seen.vectors, gallery.entries, gallery.vectors, limits)
    return Lookup(recording, found, seen.trim, seen.faults, seen.doubts, seen.pictures)


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

    def record(self) -> dict[str, object]:
        return {
            "first": self.first.name,
            "second": self.second.name,
            "shared_words": self.n_shared_words,
            "compared": self.way,
            "pairs": [dict(zip(_HEADER, _cells(pair), strict=True)) for pair in self.pairs],
        }

    def write(self, out: Path, reading: Reading = Reading(), *, overwrite: bool = False) -> tuple[Path, ...]:
        shown = {relation: self.of(relation)[:_SHOWN] for relation in Relation}
        wanted = [entry for pairs in shown.values() for pair in pairs for entry in (pair.entry, pair.other)]
        pictures = _pictures(wanted, reading)
        with new_folder(out, OWN_FILES, overwrite=overwrite) as folder:
            write_csv(_HEADER, map(_cells, self.pairs), folder / TABLE)
            groups = [_group(self, relation, shown[relation], pictures) for relation in Relation]
            write_friends_page(f"{self.first.name} and {self.second.name}", groups, folder / PAGE)
            on_sheet = shown[Relation.FALSE_FRIEND][:_ON_SHEET]
            if on_sheet:
                pairs = [Pair(_title(p), pictures[p.entry], pictures[p.other]) for p in on_sheet]
                write_picture(paired_sheet(pairs), folder / SHEET)
        return tuple(path for path in (out / TABLE, out / PAGE, out / SHEET) if path.exists())


def compare_dictionaries(request: FriendsRequest) -> Comparison:
    """Read both dictionaries and relate their words; their languages are kept apart, so they must be two."""
    first, second = (opened_dictionary(path, request.reading) for path in (request.first, request.second))
    _refuse_same_language(first, second)
    opened = request.model.open((entry.video for entry in (*first, *second)), request.reading)
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


def _refuse_same_language(first: Dictionary, second: Dictionary) -> None:
    """Within one language a second word of the same form is a synonym, no false friend."""
    one, other = ({entry.language for entry in dictionary} - {""} for dictionary in (first, second))
    if both := sorted(one & other):
        what = f"both dictionaries hold signs of the language {both[0]!r}"
        raise InputError(f"{first.name} and {second.name}", what, "compare dictionaries of two languages")


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
