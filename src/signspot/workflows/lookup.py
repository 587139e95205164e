"""Did you mean: a recording of one sign in, the words it may show out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from signspot.domain.recordings import Dictionary, Entry
from signspot.domain.results import Band
from signspot.domain.tracks import Pixels
from signspot.embedding.entries import embed_gallery, opened_dictionary
from signspot.embedding.model import Model, Reading
from signspot.embedding.zoo import ModelChoice, open_model
from signspot.errors import InputError, Notice
from signspot.figures.sheets import SheetRow, contact_sheet
from signspot.media.frames import write_picture
from signspot.media.trim import Trim
from signspot.spotting.friends import Gallery
from signspot.spotting.lookup import Guess, LookupLimits, guesses
from signspot.workflows.footage import entry_pictures

NO_MATCH = "no good match: no sign looks enough like the recording"
# The least cosine with the direction of a learned word. Of clips by signers never seen, 72% of the first guesses above
# it are right, and 19% of clips of other words are above it (fold of experiments/wlasl300).
LEARNED_LEVEL = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupOptions:
    """How a recording is looked up."""

    count: int = 6  # words
    threshold: float | None = None  # least cosine of a possible word; None: the model's own
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


def lookup(
    recording: Path | str,
    *,
    dictionary: Dictionary | None = None,
    model: Model,
    options: LookupOptions = LookupOptions(),
) -> Lookup:
    """Name the words whose dictionary clips look most like a recording of one sign, or say why none does.

    Without a dictionary, the words that the model learned are named.
    """
    reading, said = options.reading.collecting()
    options = replace(options, reading=reading)
    if dictionary is None:
        gallery = learned_words(model, reading)
        # Recordings are compared with directions of words here, not with clips.
        options = options if options.threshold is not None else replace(options, threshold=LEARNED_LEVEL)
    else:
        gallery = embed_gallery(dictionary, model, reading)
    return replace(look_up(Path(recording), model, gallery, options), warnings=tuple(map(str, said)))


def learned_words(model: Model, reading: Reading) -> Gallery:
    if model.words:
        entries = tuple(Entry(entry_id=f"learned by {model.name}", word=word) for word in model.words)
        reading.notify(Notice("no dictionary", f"only the {len(entries)} words that {model.name} learned can be named"))
        return Gallery(entries, model.word_vectors)
    fix = "give --dictionary, or use landmark-v1 (pip install 'signspot[pose]', or .pose files)"
    raise InputError(model.name, "knows no words by itself", fix)


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
    opened = open_model(request.model, recordings, reading)
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


def lookup_record(found: Lookup) -> dict[str, object]:
    return {
        "recording": str(found.recording),
        "has_match": found.has_match,
        "faults": list(found.faults),
        "doubts": list(found.doubts),
        "frames": found.trim.n_frames,
        "kept_start": found.trim.kept.start,
        "kept_stop": found.trim.kept.stop,
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
            for guess in found.guesses
        ],
        "warnings": list(found.warnings),
    }


def write_lookup_sheet(found: Lookup, path: Path, reading: Reading = Reading(), *, overwrite: bool = False) -> bool:
    """A picture of the recording above the clips of its best words; False where nothing may be shown."""
    rows = [SheetRow("your recording", found.pictures)] if found.pictures else []
    for number, guess in enumerate(found.guesses, start=1):
        reading.progress("drawing the best words", number, len(found.guesses))
        pictures = entry_pictures(guess.entry, date.today(), reading)
        if pictures:
            rows.append(SheetRow(f"{number} {guess.word}, {guess.band.value}", pictures))
    if rows:
        write_picture(contact_sheet(rows), path, overwrite=overwrite)
    return bool(rows)
