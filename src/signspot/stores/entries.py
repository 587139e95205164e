"""Vectors of dictionary entries beside their manifest, for dictionaries whose videos are not at hand.

One file, features.safetensors: for every kind of feature an array (n_entries, d) and which rows it has. The header
names the entries in the order of the rows, says what made each kind, and carries a checksum of it all, because a
flipped bit in a flat file reads as a valid number.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from signspot.domain.recordings import Entry
from signspot.domain.tracks import EntryVectors, FloatArray
from signspot.domain.words import Word
from signspot.errors import FormatError, readable_size
from signspot.files.atomic import atomic_output
from signspot.files.intake import require_file
from signspot.files.json import Node, parse_json

FEATURES_FILE = "features.safetensors"
_FORMAT = "signspot-entry-features"
_HEADER = "signspot"  # one key only: the order of several would differ from run to run
_PRESENT = ".present"
_MAX_BYTES = 2_000_000_000
_FIX = "import the dictionary again"

_Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSet:
    """One kind of feature of all entries."""

    made_by: str  # the fingerprint of what made them
    vectors: FloatArray  # (n_entries, d) finite; zeros where missing
    present: npt.NDArray[np.bool_]  # (n_entries,)

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.present.shape != self.vectors.shape[:1]:
            raise ValueError(f"vectors of shape {self.vectors.shape} for {self.present.shape} entries")
        if self.vectors.dtype != np.float32 or self.present.dtype != np.bool_:
            raise ValueError(f"vectors of type {self.vectors.dtype} and {self.present.dtype}")
        if not np.isfinite(self.vectors).all():
            raise ValueError("vectors that are not numbers")
        self.vectors.setflags(write=False)
        self.present.setflags(write=False)


@dataclass(frozen=True, slots=True, eq=False)
class EntryFeatures:
    """The stored vectors of a dictionary's entries, by kind such as i3d and mlp."""

    entry_ids: tuple[str, ...]
    kinds: Mapping[str, FeatureSet]
    _rows: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = {entry_id: row for row, entry_id in enumerate(self.entry_ids)}
        if len(rows) != len(self.entry_ids):
            raise ValueError("two entries have the same id")
        for kind, features in self.kinds.items():
            if len(features.present) != len(rows):
                raise ValueError(f"{len(features.present)} rows of {kind} for {len(rows)} entries")
        object.__setattr__(self, "_rows", rows)

    def vector(self, kind: str, entry_id: str) -> FloatArray | None:
        """The vector of an entry as it was stored, (d,); None if it has none."""
        features, row = self.kinds[kind], self._rows.get(entry_id)
        if row is None or not features.present[row]:
            return None
        vector: FloatArray = features.vectors[row]
        return vector

    def of_word(self, kind: str, word: Word, entries: Iterable[Entry]) -> EntryVectors:
        """The vectors of those entries that have one, scaled to length 1, ready to be compared."""
        found = [(entry, v) for entry in entries if (v := self.vector(kind, entry.entry_id)) is not None]
        stacked = np.stack([v for _, v in found]) if found else np.empty((0, self.kinds[kind].vectors.shape[1]))
        lengths = np.linalg.norm(stacked.astype(np.float64), axis=1, keepdims=True)
        unit = (stacked / lengths).astype(np.float32)
        return EntryVectors(word, tuple(entry for entry, _ in found), unit, self.kinds[kind].made_by)


def write_entry_features(features: EntryFeatures, folder: Path, *, overwrite: bool = False) -> None:
    """Write features.safetensors into the folder of a dictionary, the same bytes for the same features."""
    path = folder / FEATURES_FILE
    arrays: _Arrays = {}
    for kind, each in features.kinds.items():
        arrays |= {kind: np.ascontiguousarray(each.vectors), kind + _PRESENT: np.ascontiguousarray(each.present)}
    header = {
        "format": _FORMAT,
        "version": 1,
        "made_by": {kind: each.made_by for kind, each in features.kinds.items()},
        "sha256": _checksum(features.entry_ids, arrays),
        "entry_ids": features.entry_ids,
    }
    with atomic_output(path, overwrite=overwrite) as temporary:
        try:
            save_file(arrays, temporary, metadata={_HEADER: json.dumps(header)})
        except SafetensorError as error:  # it hides the reason of the operating system
            raise OSError(str(error)) from error


def read_entry_features(folder: Path) -> EntryFeatures:
    """Read the stored vectors of a dictionary; every bit is checked."""
    path = folder / FEATURES_FILE
    require_file(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise FormatError(path, f"is larger than {readable_size(_MAX_BYTES)}", _FIX)
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise FormatError(path, f"cannot be read ({error})", _FIX) from error
    header = Node(path, parse_json(metadata.get(_HEADER, "").encode(), path), "header")
    if (kind := header.member("format").value) != _FORMAT or header.member("version").value != 1:
        raise FormatError(path, f"holds {str(kind)[:40]!r} of a version that is not read here", _FIX)
    return _features(header, arrays)


def _features(header: Node, arrays: _Arrays) -> EntryFeatures:
    entry_ids = tuple(node.text() for node in header.member("entry_ids").rows())
    if header.member("sha256").value != _checksum(entry_ids, arrays):
        raise FormatError(header.file, "is damaged: its checksum does not match", _FIX)
    makers = {kind: node.text() for kind, node in header.member("made_by").members().items()}
    if set(arrays) != {name for kind in makers for name in (kind, kind + _PRESENT)}:
        raise header.wrong("names other features than the file holds")
    try:
        kinds = {kind: FeatureSet(maker, arrays[kind], arrays[kind + _PRESENT]) for kind, maker in makers.items()}
        return EntryFeatures(entry_ids, kinds)
    except ValueError as error:
        raise FormatError(header.file, str(error), _FIX) from error


def _checksum(entry_ids: tuple[str, ...], arrays: _Arrays) -> str:
    digest = hashlib.sha256(json.dumps(entry_ids).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


# Vectors of dictionary entries, kept between runs: a file of numpy arrays that is only ever a cache.
#
# A file that cannot be read, or holds something else, counts as empty: everything in it can be computed again.


_LARGEST_BYTES = 2 << 30


def read_vectors(path: Path, dim: int) -> dict[str, FloatArray]:
    """The vectors (dim,) in a file by their keys; none if there is no such file, or it is damaged."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return {}
        # numpy leaves a damaged file open that it was given by name.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            keys, vectors = arrays["keys"], arrays["vectors"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return {}
    if keys.dtype.kind != "U" or vectors.dtype != np.float32 or vectors.shape != (len(keys), dim):
        return {}
    return dict(zip(keys.tolist(), vectors, strict=True))


def write_vectors(vectors: Mapping[str, FloatArray], path: Path) -> None:
    """Keep vectors, all of one length, in place of what was there; the folder exists."""
    with atomic_output(path, overwrite=True) as temporary, temporary.open("wb") as file:
        np.savez(file, keys=np.array(list(vectors), np.str_), vectors=np.stack(list(vectors.values())))
