"""Training material as a folder: everything that is learned from, without any video.

    material.json            vocabulary, names, the trunk's fingerprint, the sha256 of every other file
    rows.npy                 the rows of all tracks, one track after the other; (n_rows, d) float16 or float32
    track_lengths.npy        how many rows each track has
    entry_vectors.npy, entry_word.npy, passage_*.npy
    synonyms-*.json          optional: pairs of words that may name the same sign

Rows are mapped into memory, not read: a folder may be larger than memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from signspot.atomic import atomic_output
from signspot.domain.words import Synonyms, Vocabulary, Word, normalise
from signspot.errors import FormatError, InputError
from signspot.formats.intake import require_file, unreadable
from signspot.formats.new_folder import new_folder, refuse_folder
from signspot.formats.records import read_manifest
from signspot.formats.safe_json import write_json
from signspot.learning.material import Ints, Material, Passages, Track
from signspot.learning.material_checks import check_material

SynonymKind = Literal["english", "sign"]
_MANIFEST = "material.json"
_FORMAT, _SYNONYMS_FORMAT = "signspot-material", "signspot-synonyms"
_ROWS, _LENGTHS = "rows.npy", "track_lengths.npy"
_MAPPED = (_ROWS, "entry_vectors.npy")
_PASSAGE_COLUMNS = ("track", "start", "stop", "label", "label_frame", "confidence", "word_offsets", "words")
_ARRAYS = (_ROWS, _LENGTHS, "entry_vectors.npy", "entry_word.npy", *(f"passage_{n}.npy" for n in _PASSAGE_COLUMNS))
_SYNONYM_FILES: Mapping[SynonymKind, str] = {"english": "synonyms-english.json", "sign": "synonyms-sign.json"}
_NONE: Mapping[SynonymKind, Synonyms] = MappingProxyType({})
_OWN_FILES = frozenset((_MANIFEST, *_ARRAYS, *_SYNONYM_FILES.values()))
_ROWS_AT_ONCE = 4096
_MAKE_AGAIN = "make the material again"


def refuse_material_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Raise if material cannot be written there, before hours are spent on making it."""
    refuse_folder(folder, _OWN_FILES, overwrite=overwrite)


def write_material(
    material: Material, folder: Path, *, synonyms: Mapping[SynonymKind, Synonyms] = _NONE, overwrite: bool = False
) -> None:
    """Write material as a folder, whole or not at all; rows that hold what is no number are refused."""
    check_material(material, str(folder))
    lengths = np.array([len(track) for track in material.tracks], np.int64)
    arrays: dict[str, npt.NDArray[Any]] = {
        _LENGTHS: lengths,
        "entry_vectors.npy": material.entry_vectors.astype(np.float32, copy=False),
        "entry_word.npy": material.entry_word,
        **{f"passage_{name}.npy": getattr(material.passages, name) for name in _PASSAGE_COLUMNS},
    }
    with new_folder(folder, _OWN_FILES, overwrite=overwrite) as temporary:
        _write_rows(temporary / _ROWS, material.tracks, (int(lengths.sum()), material.entry_vectors.shape[1]))
        for name, array in arrays.items():
            with atomic_output(temporary / name) as file, file.open("xb") as stream:
                np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
        content = {
            "format": _FORMAT,
            "version": 1,
            "fingerprint": material.fingerprint,
            "files": {name: file_sha256(temporary / name) for name in _ARRAYS},
            "vocabulary": list(material.vocabulary),
            "entries": list(material.entry_ids),
            "passages": list(material.passages.names),
        }
        write_json(content, temporary / _MANIFEST)
        for kind, pairs in synonyms.items():
            write_synonyms(pairs, temporary, kind)


def refuse_missing(folder: Path) -> None:
    """Raise if there is no such folder: nobody types the name of the manifest in it."""
    if not folder.is_dir():
        raise InputError(folder, "no such folder", "name a folder that `signspot train material` made")


def read_material(folder: Path, *, verify: bool = True) -> Material:
    """Open the material of a folder; `verify` reads it once to compare the checksums of all files."""
    refuse_missing(folder)
    content = read_manifest(folder / _MANIFEST, _FORMAT)
    checksums = content.get("files")
    if not isinstance(checksums, dict) or set(checksums) != set(_ARRAYS):
        raise FormatError(folder / _MANIFEST, 'does not name its files under "files"', _MAKE_AGAIN)
    for name in _ARRAYS:
        require_file(folder / name)
        if verify and file_sha256(folder / name) != checksums[name]:
            raise FormatError(folder / name, "does not have the checksum it was written with", _MAKE_AGAIN)
    arrays = {name: _array(folder / name) for name in _ARRAYS}
    passages = Passages(
        names=_texts(folder, content, "passages"),
        **{name: arrays[f"passage_{name}.npy"] for name in _PASSAGE_COLUMNS},
    )
    material = Material(
        vocabulary=_vocabulary(folder, _texts(folder, content, "vocabulary")),
        tracks=_tracks(folder, arrays[_ROWS], arrays[_LENGTHS]),
        passages=passages,
        entry_ids=_texts(folder, content, "entries"),
        entry_vectors=arrays["entry_vectors.npy"],
        entry_word=arrays["entry_word.npy"],
        fingerprint=str(content.get("fingerprint") or ""),
    )
    check_material(material, str(folder))
    return material


def write_synonyms(synonyms: Synonyms, folder: Path, kind: SynonymKind, *, overwrite: bool = False) -> None:
    """Keep pairs of words that may name the same sign with the material of `folder`."""
    pairs = sorted(pair for pair in synonyms.pairs if pair[0] < pair[1])
    content = {"format": _SYNONYMS_FORMAT, "version": 1, "pairs": [list(pair) for pair in pairs]}
    write_json(content, folder / _SYNONYM_FILES[kind], overwrite=overwrite)


def read_synonyms(folder: Path, kind: SynonymKind) -> Synonyms:
    """The pairs that `write_synonyms` kept."""
    path = folder / _SYNONYM_FILES[kind]
    if not path.is_file():
        fix = "make it again with WordNet's files at hand" if kind == "english" else _MAKE_AGAIN
        raise FormatError(folder, f"was made without {kind} synonyms", fix)
    pairs = read_manifest(path, _SYNONYMS_FORMAT).get("pairs")
    if not isinstance(pairs, list):
        raise FormatError(path, '"pairs" is no list', "write the synonyms again")
    return Synonyms.of(_pair(path, pair) for pair in pairs)


def _pair(path: Path, pair: object) -> tuple[Word, Word]:
    try:
        if isinstance(pair, list) and all(isinstance(word, str) for word in pair):
            first, second = (normalise(word) for word in pair)
            return first, second
    except ValueError:
        pass
    raise FormatError(path, f"{str(pair)[:60]} is no pair of words", "write the synonyms again")


def _write_rows(path: Path, tracks: Sequence[Track], shape: tuple[int, int]) -> None:
    """All tracks in one file, block by block: together they may be larger than memory."""
    kind = np.result_type(*(track.dtype for track in tracks)) if tracks else np.dtype(np.float16)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with atomic_output(path) as file, file.open("xb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for number, track in enumerate(tracks):
            for first in range(0, len(track), _ROWS_AT_ONCE):
                block = np.ascontiguousarray(track[first : first + _ROWS_AT_ONCE], kind)
                is_finite = np.isfinite(block).all(axis=1)
                if not is_finite.all():
                    what = f"row {first + int(is_finite.argmin())} of track {number} holds what is no number"
                    raise InputError(path.parent, what, "extract the features of its video again; nothing was written")
                stream.write(block.data)


def _array(path: Path) -> npt.NDArray[Any]:
    try:
        # Mapped, a header that promises more than the file holds is found out before any memory is taken.
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, EOFError) as error:
        raise FormatError(path, f"is no array ({' '.join(str(error).split())[:100]})", _MAKE_AGAIN) from error
    n_dimensions = 2 if path.name in _MAPPED else 1
    floats = (np.float16, np.float32) if path.name == _ROWS else (np.float32,)
    kinds = floats if path.name in (*_MAPPED, "passage_confidence.npy") else (np.int64,)
    if array.ndim != n_dimensions or array.dtype not in kinds:
        raise FormatError(path, f"holds {array.dtype} numbers of shape {array.shape}", _MAKE_AGAIN)
    return array if path.name in _MAPPED else np.array(array)


def _tracks(folder: Path, rows: Track, lengths: Ints) -> tuple[Track, ...]:
    if (lengths < 0).any() or int(lengths.sum()) != len(rows):
        what = f"names {len(lengths)} tracks of {int(lengths.sum())} rows, but there are {len(rows)}"
        raise FormatError(folder / _LENGTHS, what, _MAKE_AGAIN)
    stops = np.cumsum(lengths)
    return tuple(rows[stop - length : stop] for stop, length in zip(stops, lengths, strict=True))


def _texts(folder: Path, content: Mapping[str, object], key: str) -> tuple[str, ...]:
    texts = content.get(key)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FormatError(folder / _MANIFEST, f"{key!r} is no list of texts", _MAKE_AGAIN)
    return tuple(texts)


def _vocabulary(folder: Path, words: Iterable[str]) -> Vocabulary:
    try:
        return Vocabulary(tuple(Word(word) for word in words))
    except ValueError as error:
        raise FormatError(folder / _MANIFEST, str(error), _MAKE_AGAIN) from error


def file_sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error
