"""The clips of a dictionary as vectors, computed once and kept: what every search, lookup and training needs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.recordings import Dictionary, Entry
from signspot.domain.tracks import EntryVectors, FloatArray
from signspot.domain.words import Word
from signspot.embedding.model import LANDMARK_MODEL, Embeds, Model, Reading, Views
from signspot.embedding.pictures import STORED_KIND, stored_features
from signspot.errors import DictionaryError, InputError, Notice, SignspotError, VideoError, notify_left_out
from signspot.formats.pose import landmarks_beside
from signspot.media.reader import shared_decoding
from signspot.media.video import media_sha256
from signspot.spotting.friends import Gallery
from signspot.spotting.search import Query, drawn_together
from signspot.stores.dictionary import read_dictionary
from signspot.stores.features import EntryKey, FeatureStore

LEFT_OUT = "left out of the dictionary"
_NEEDS_DICTIONARY = f"give --dictionary, or use {LANDMARK_MODEL} (pip install 'signspot[pose]', or .pose files)"
_SAVED_EVERY = 200  # entries: a run that is stopped loses no more


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedEntries:
    """The entries that could be embedded, and why the others could not."""

    entries: tuple[Entry, ...]
    vectors: FloatArray  # (n, n_views, d)
    failures: tuple[tuple[Entry, InputError], ...] = ()

    @property
    def stored(self) -> tuple[Notice, ...]:
        files = sorted({entry.features for entry in self.entries if entry.video is None and entry.features})
        makers = {file: stored_features(file).kinds[STORED_KIND].made_by for file in files}
        used = "stored vectors are used ({}); they fit only the trunk that made them"
        return tuple(Notice(file.parent.name, used.format(by), severity="note") for file, by in makers.items())

    def notify(self, reading: Reading) -> None:
        for notice in (*self.stored, *(Notice(LEFT_OUT, str(error)) for _, error in self.failures)):
            reading.notify(notice)


def opened_dictionary(path: Path, reading: Reading) -> Dictionary:
    source = read_dictionary(path)
    notify_left_out(source.problems, reading.notify, LEFT_OUT)
    return source.dictionary


def with_lexicon(dictionary: Dictionary | None, model: Model) -> Dictionary:
    """A dictionary with the signs that a model knows by itself behind its own entries.

    They are added under the words that the dictionary lacks and, as further variants, under those that it shows in the
    language the model learned. A dictionary that says it shows other languages only is left as it is.
    """
    lexicon, own = model.lexicon, Dictionary.of(model.name, ()) if dictionary is None else dictionary
    if not len(lexicon) and not len(own):
        raise InputError(model.name, "knows no words by itself", _NEEDS_DICTIONARY)
    shown = {word: {_plain(entry.language) for entry in entries} for word, entries in own.by_word.items()}
    stated = set[str]().union(*shown.values()) - {""}
    if stated and lexicon.language not in stated:
        return own
    taken = {entry.entry_id for entry in own}
    added = [
        entry
        for entry in lexicon.entries
        if entry.entry_id not in taken and lexicon.language in shown.get(entry.word, {lexicon.language})
    ]
    return Dictionary.of(own.name, (*own, *added), own.folder)


def _plain(language: str) -> str:
    """One code for each way to write it: sgn-ase and ASL are ase."""
    code = language.lower().removeprefix("sgn-")
    return {"asl": "ase", "us": "ase"}.get(code, code)


def embed_entries(entries: Sequence[Entry], model: Embeds, reading: Reading, views: Views = Views()) -> EmbeddedEntries:
    """The vectors of dictionary entries; those in the store are read, the others are computed and kept there."""
    usable: list[tuple[Entry, FloatArray]] = []
    failures: list[tuple[Entry, InputError]] = []
    with ExitStack() as stack:
        stack.enter_context(shared_decoding())
        kept = _KeptVectors(entries, model.name, model.entries_name(reading, views), reading, stack)
        for number, entry in enumerate(entries, start=1):
            vectors = kept.vectors(entry)
            try:
                if vectors is None:
                    vectors = model.entry(entry, reading, views)
                    kept.add(entry, vectors)
                usable.append((entry, vectors.reshape(-1, model.dim)))
            except VideoError as error:
                failures.append((entry, error))
            reading.progress("reading the dictionary", number, len(entries))
        kept.save()
    stacked = np.stack([vectors for _, vectors in usable]) if usable else np.zeros((0, 1, model.dim), np.float32)
    return EmbeddedEntries(tuple(entry for entry, _ in usable), stacked, tuple(failures))


def embed_query(
    words: Sequence[Word], dictionary: Dictionary, model: Model, reading: Reading, views: Views = Views()
) -> Query:
    made = embed_entries([entry for word in words for entry in dictionary.entries(word)], model, reading, views)
    places: dict[Word, list[int]] = {word: [] for word in words}
    for place, entry in enumerate(made.entries):
        places[entry.word].append(place)
    found: list[EntryVectors] = []
    for word, own in places.items():
        if not own:
            why = next((str(error) for entry, error in made.failures if entry.word == word), "")
            raise DictionaryError(word, "none of its clips can be used", why)
        variants = [None if made.entries[place].is_learned else made.entries[place].variant for place in own]
        rows = drawn_together(made.vectors[own], variants, model.towards_mean)
        shown = tuple(made.entries[place] for place in own for _ in range(rows.shape[1]))
        found.append(EntryVectors(word, shown, rows.reshape(-1, rows.shape[2]), model.fingerprint))
    n_views = made.vectors.shape[1]
    if n_views < len(views):
        reading.notify(Notice("--rates changes nothing", f"{model.name} looks for signs of every usual speed"))
    made.notify(reading)
    return Query(tuple(found), dictionary, n_views)


def embed_gallery(dictionary: Dictionary, model: Model, reading: Reading, towards_mean: float = 0.0) -> Gallery:
    """The vectors of all entries, each with the mean of its word's and variant's added `towards_mean` times."""
    made = embed_entries(tuple(dictionary), model, reading)
    if not made.entries:
        why = next((f"{LEFT_OUT}: {error}" for _, error in made.failures), "")
        raise DictionaryError(dictionary.name, "none of its clips can be read", why)
    made.notify(reading)
    groups = [None if entry.is_learned else (entry.word, entry.variant) for entry in made.entries]
    return Gallery(made.entries, drawn_together(made.vectors[:, :1], groups, towards_mean)[:, 0])


class _KeptVectors:
    """The vectors of dictionary clips in a store, known by the content of the clip, of the landmarks beside it, and the
    part that is shown. Where nothing can be kept, a notice says so, and it only costs time."""

    def __init__(
        self, entries: Sequence[Entry], model: str, fingerprint: str, reading: Reading, stack: ExitStack
    ) -> None:
        self._model, self._fingerprint, self._notify = model, fingerprint, reading.notify
        self._store: FeatureStore | None = None
        self._keys: dict[Entry, EntryKey] = {}
        self._known: dict[EntryKey, FloatArray] = {}
        self._fresh: dict[EntryKey, FloatArray] = {}
        try:
            self._store = stack.enter_context(reading.opened_store())
            if self._store is not None:
                self._keys = _keys(entries, self._store, reading)
                self._known = self._store.entry_vectors(self._keys.values(), fingerprint)
        except SignspotError as problem:
            self._give_up(problem)

    def vectors(self, entry: Entry) -> FloatArray | None:
        key = self._keys.get(entry)
        return None if key is None else self._known.get(key)

    def add(self, entry: Entry, vectors: FloatArray) -> None:
        if (key := self._keys.get(entry)) is not None:
            self._known[key] = self._fresh[key] = vectors.ravel()
        if len(self._fresh) >= _SAVED_EVERY:
            self.save()

    def save(self) -> None:
        try:
            if self._store is not None and self._fresh:
                self._store.put_entry_vectors(self._fresh, self._fingerprint, model=self._model)
        except SignspotError as problem:
            self._give_up(problem)
        self._fresh = {}

    def _give_up(self, problem: SignspotError) -> None:
        self._store = None
        self._notify(Notice("vectors of the dictionary are not kept", str(problem)))


def _keys(entries: Sequence[Entry], store: FeatureStore, reading: Reading) -> dict[Entry, EntryKey]:
    """What the vectors of entries depend on beside the model; entries that cannot be read have no key."""
    videos = {entry.video: landmarks_beside(entry.video) for entry in entries if entry.video is not None}
    files = list(dict.fromkeys(path for pair in videos.items() for path in pair if path is not None))
    counted = itertools.count(1)

    def digest(path: Path) -> str:
        reading.progress("looking for changed clips", next(counted), len(files))
        return media_sha256(path)

    hashed = store.sha256s(files, digest)
    keys: dict[Entry, EntryKey] = {}
    for entry in entries:
        beside = None if entry.video is None else videos[entry.video]
        if entry.video not in hashed or (beside is not None and beside not in hashed):
            continue
        frames = "" if entry.kept is None else f"frames {entry.kept.start}-{entry.kept.stop}"
        box = "" if entry.box is None else f"box {entry.box}"
        landmarks = "" if beside is None else hashed[beside]
        keys[entry] = EntryKey(hashed[entry.video], landmarks, f"{frames} {box}".strip(), entry.video.name)
    return keys
