"""Did you mean: a recording of one sign in, the words it may show out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from signspot.domain.recordings import Dictionary, Entry, SignerBox
from signspot.domain.time import Progress
from signspot.domain.tracks import Embedder, Pixels
from signspot.embedding.entries import FilledShelf, SignModel, SignReading, shelf_of, sign_embedder, signs_of
from signspot.embedding.model import LEFT_OUT, SignEmbedder, sees_landmarks
from signspot.embedding.zoo import chosen_model, kept_for, load_model
from signspot.errors import InputError
from signspot.figures.sheets import SheetRow, contact_sheet
from signspot.media.frames import write_picture
from signspot.media.trim import Trim
from signspot.spotting.friends import Shelf
from signspot.spotting.lookup import Band, Guess, LookupLimits, guesses
from signspot.stores.dictionary import read_dictionary
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
    box: SignerBox | None = None  # the part of the picture to look at; None: all
    store: Path | None = None  # where vectors of dictionary clips are kept, never those of the recording
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing


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
        """Whether any word is more than unlikely."""
        return any(guess.band is not Band.UNLIKELY for guess in self.guesses)


def lookup(
    recording: Path | str,
    *,
    dictionary: Dictionary | None = None,
    model: Embedder,
    options: LookupOptions = LookupOptions(),
) -> Lookup:
    """Name the words whose dictionary clips look most like a recording of one sign, or say why none does.

    Without a dictionary, the words that the model learned are named.
    """
    listed = dictionary or Dictionary.of(model.name, [])
    signs = signs_of(model, listed, SignReading(isolated=options.isolated, store=options.store))
    if dictionary is None:
        return look_up(Path(recording), signs, learned_words(model), among_learned(options))
    return look_up(Path(recording), signs, shelf_of(dictionary, signs, options.store), options)


def learned_words(model: Embedder) -> FilledShelf:
    """The words that a model learned to name, in the place of a dictionary."""
    if sees_landmarks(model) and len(model.word_directions):
        entries = tuple(Entry(entry_id=f"learned by {model.name}", word=word) for word in model.words)
        told = f"no dictionary: only the {len(entries)} words that {model.name} learned can be named"
        return FilledShelf(Shelf(entries, model.word_directions), (told,))
    fix = "give --dictionary, or use landmark-v1 (pip install 'signspot[pose]', or .pose files)"
    raise InputError(model.name, "knows no words by itself", fix)


def among_learned(options: LookupOptions) -> LookupOptions:
    """What is enough alike where a recording is compared with words that a model learned, not with clips."""
    return options if options.threshold is not None else replace(options, threshold=LEARNED_LEVEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest:
    """Which recording, in which dictionary, by which model."""

    recording: Path
    dictionary: Path | None = None  # None: the words that the model learned
    model: SignModel = SignModel()
    options: LookupOptions = LookupOptions()


def lookup_file(request: LookupRequest, progress: Progress | None = None) -> Lookup:
    """The same with a dictionary and a model by their names; without a name, the model that can see them best."""
    if request.dictionary is None:
        chosen = chosen_model(request.model.name, (request.recording,))
        model = load_model(chosen.name, backend=request.model.backend, device=request.model.device)
        options = replace(request.options, isolated=request.model.isolated)
        found = lookup(request.recording, model=model, options=options)
        return replace(found, warnings=(*chosen.remarks, *found.warnings))
    source = read_dictionary(request.dictionary)
    recordings = (request.recording, *(entry.video for entry in source.dictionary))
    chosen = chosen_model(request.model.name, recordings)
    store = kept_for(chosen, request.options.store)
    signs = sign_embedder(replace(request.model, name=chosen.name), source.dictionary, store)
    found = look_up(request.recording, signs, shelf_of(source.dictionary, signs, store, progress), request.options)
    left_out = (f"{LEFT_OUT}{problem}" for problem in source.problems if not problem.is_remark)
    return replace(found, warnings=(*chosen.remarks, *left_out, *found.warnings))


def look_up(
    recording: Path, signs: SignEmbedder, filled: FilledShelf, options: LookupOptions = LookupOptions()
) -> Lookup:
    """The words of a recording, in a dictionary that is embedded already."""
    seen = signs.recorded(recording, options.box)
    limits = LookupLimits(
        possible=signs.threshold if options.threshold is None else options.threshold, count=options.count
    )
    shelf = filled.shelf
    found = () if seen.faults else guesses(seen.vectors, shelf.entries, shelf.vectors, limits)
    return Lookup(recording, found, seen.trim, seen.faults, seen.doubts, seen.pictures, filled.warnings)


def lookup_record(found: Lookup) -> dict[str, object]:
    """For scripts."""
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


def write_lookup_sheet(
    found: Lookup, path: Path, *, isolated: bool = True, overwrite: bool = False, progress: Progress | None = None
) -> bool:
    """A picture of the recording above the clips of its best words; False where nothing may be shown."""
    rows = [SheetRow("your recording", found.pictures)] if found.pictures else []
    for number, guess in enumerate(found.guesses, start=1):
        if progress is not None:
            progress("drawing the best words", number, len(found.guesses))
        pictures = entry_pictures(guess.entry, date.today(), isolated=isolated)
        if pictures:
            rows.append(SheetRow(f"{number} {guess.word}, {guess.band.value}", pictures))
    if rows:
        write_picture(contact_sheet(rows), path, overwrite=overwrite)
    return bool(rows)
