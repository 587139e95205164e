"""All clips of a dictionary as vectors, computed once and kept: what a lookup and a comparison of dictionaries need."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.tracks import FloatArray
from signspot.errors import DictionaryError, SignspotError, VideoError
from signspot.features.store_disk import make_folder
from signspot.formats.pose_files import landmarks_beside
from signspot.formats.vector_cache import read_vectors, write_vectors
from signspot.spotting.false_friends import Shelf
from signspot.workflows.entry_vectors import LEFT_OUT
from signspot.workflows.sign_vectors import SignEmbedder
from signspot.workflows.tracks import Progress

_KEPT_IN = "entry-vectors"  # a folder of the store
_SAVED_EVERY = 200  # entries: a run that is stopped loses no more


@dataclass(frozen=True, slots=True)
class FilledShelf:
    """A dictionary as vectors, and what had to be left out."""

    shelf: Shelf
    warnings: tuple[str, ...] = ()


def shelf_of(
    dictionary: Dictionary,
    model: SignEmbedder,
    store: Path | None = None,
    progress: Progress | None = None,
) -> FilledShelf:
    """The vectors of all entries of a dictionary; those in `store` are read, the others are kept there.

    A clip is known by its path, size and time of change, those of the landmarks beside it, and the part that is shown.
    """
    kept = _file(store, model)
    known = read_vectors(kept, model.dim) if kept is not None else {}
    usable: list[tuple[Entry, FloatArray]] = []
    warnings: list[str] = []
    n_new = 0
    for number, entry in enumerate(dictionary):
        key = _key(entry)
        if key not in known:
            try:
                known[key] = model.entry_vector(entry)
                n_new += 1
            except VideoError as error:
                warnings.append(f"{LEFT_OUT}{error}")
                continue
            if kept is not None and n_new % _SAVED_EVERY == 0:
                write_vectors(known, kept)
        usable.append((entry, known[key]))
        if progress is not None:
            progress(f"reading {dictionary.name}", number + 1, len(dictionary))
    if kept is not None and n_new % _SAVED_EVERY:
        write_vectors(known, kept)
    if not usable:
        raise DictionaryError(dictionary.name, "none of its clips can be read", warnings[0] if warnings else "")
    shelf = Shelf(tuple(entry for entry, _ in usable), np.stack([vector for _, vector in usable]))
    return FilledShelf(shelf, (*model.remarks(tuple(dictionary.by_word)), *warnings))


def _file(store: Path | None, model: SignEmbedder) -> Path | None:
    """The file of a model's vectors; None where nothing can be kept, which only costs time."""
    if store is None:
        return None
    try:
        make_folder(store / _KEPT_IN)
    except SignspotError:
        return None
    return store / _KEPT_IN / f"{hashlib.sha256(model.fingerprint.encode()).hexdigest()[:16]}.npz"


def _key(entry: Entry) -> str:
    """What a vector depends on beside the model."""
    facts = [entry.entry_id, str(entry.kept), str(entry.box)]
    for path in (entry.video, None if entry.video is None else landmarks_beside(entry.video)):
        if path is None:
            continue
        try:
            seen = path.stat()
            facts += [str(path.resolve()), str(seen.st_size), str(seen.st_mtime_ns)]
        except OSError:  # it is gone: reading it will say so
            facts += [str(path), "gone"]
    return hashlib.sha256("\0".join(facts).encode(errors="surrogatepass")).hexdigest()
