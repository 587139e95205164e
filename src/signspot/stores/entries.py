"""Vectors of dictionary entries beside their manifest, for dictionaries whose videos are not at hand.

One file, features.safetensors: for every kind of feature an array (n_entries, d) and which rows it has. The header
names the entries in the order of the rows, says what made each kind, and carries a checksum of it all, because a
flipped bit in a flat file reads as a valid number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Entry
from signspot.domain.tracks import EntryVectors, FloatArray
from signspot.domain.words import Word
from signspot.files.arrays import Arrays, ArraysKind, read_arrays, write_arrays

FEATURES_FILE = "features.safetensors"
_FEATURES = ArraysKind(
    what="file of vectors",
    fix="import the dictionary again",
    format="signspot-entry-features",
    checked="entry_ids",
)
_PRESENT = ".present"


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
    arrays: Arrays = {}
    for kind, each in features.kinds.items():
        arrays |= {kind: each.vectors, kind + _PRESENT: each.present}
    unchecked = {"made_by": {kind: each.made_by for kind, each in features.kinds.items()}}
    write_arrays(arrays, features.entry_ids, path, _FEATURES, unchecked=unchecked, overwrite=overwrite)


def read_entry_features(folder: Path) -> EntryFeatures:
    """Read the stored vectors of a dictionary; every bit is checked."""
    header, arrays = read_arrays(folder / FEATURES_FILE, _FEATURES)
    entry_ids = tuple(node.text() for node in header.member("entry_ids").rows())
    makers = {kind: node.text() for kind, node in header.member("made_by").members().items()}
    if set(arrays) != {name for kind in makers for name in (kind, kind + _PRESENT)}:
        raise header.wrong("names other features than the file holds")
    try:
        kinds = {kind: FeatureSet(maker, arrays[kind], arrays[kind + _PRESENT]) for kind, maker in makers.items()}
        return EntryFeatures(entry_ids, kinds)
    except ValueError as error:
        raise _FEATURES.damaged(folder / FEATURES_FILE, error) from error
