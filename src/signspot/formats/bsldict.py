"""BSLDict: the released metadata (bsldict_v1.pkl) becomes a dictionary folder of ours.

The folder holds dictionary.json (words, variants, rights), features.safetensors (the released I3D and MLP vectors of
all clips, enough to spot every word with no dictionary video at hand) and bsldict.json (everything else released).
The pickle is read through the quarantine: nothing in it is run, and no name in it is used as a path.

The variant of an entry counts the (sign, version) pairs of its word in the released order. A clip comes from one of 28
sites, so nothing is known to be allowed, and exporting clips is known not to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from signspot.domain.corpus import Rights
from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.words import normalise
from signspot.errors import DictionaryError
from signspot.formats.bsldict_records import (
    FACT_FIELDS,
    FLAT_FIELDS,
    NESTED_FIELDS,
    RECORDS_FILE,
    BslDictRecord,
    BslDictRecords,
    ReleasedWord,
    record_from,
    write_bsldict_records,
)
from signspot.formats.dictionary_source import write_dictionary_manifest
from signspot.formats.entry_features import FEATURES_FILE, EntryFeatures, FeatureSet, write_entry_features
from signspot.formats.new_folder import new_folder, refuse_folder
from signspot.formats.oddities import Oddities
from signspot.formats.places import Problem
from signspot.formats.plain_data import Node
from signspot.quarantine.load import read_metadata

KINDS = {"i3d": 1024, "mlp": 256}  # the released features and their length
LANGUAGE = "bfi"
_MANIFEST = "dictionary.json"
_OWN_FILES = frozenset((_MANIFEST, FEATURES_FILE, RECORDS_FILE))
_ROWS_PER_REPORT = 500

Progress = Callable[[str, float, float | None], None]  # what is going on, how much is done, how much there is if known


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedDictionary:
    """What an import made of the released files."""

    folder: Path
    dictionary: Dictionary
    missing: Mapping[str, int]  # kind of feature -> entries without it
    problems: tuple[Problem, ...]  # what was left out, left empty or not known

    @property
    def summary(self) -> str:
        """One line for the user."""
        lacking = ", ".join(f"{count} without {kind}" for kind, count in self.missing.items() if count)
        counts = f"{len(self.dictionary)} entries of {len(self.dictionary.by_word)} words"
        return f"{self.folder}: {counts}" + (f" ({lacking})" if lacking else "")


@dataclass(frozen=True, slots=True)
class _Released:
    """The metadata as columns of equal length."""

    columns: Mapping[str, list[Node]]
    features: Mapping[str, list[Node]]
    words: tuple[ReleasedWord, ...]


def import_bsldict(
    pickle: Path, folder: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> ImportedDictionary:
    """Turn the released metadata into a dictionary folder; an existing one is refused unless `overwrite` is set."""
    report = progress or _silent
    refuse_folder(folder, _OWN_FILES, overwrite=overwrite)
    report(f"reading {pickle.name}", 0, 1)
    odd = Oddities()
    released = _released(Node(pickle, read_metadata(pickle)), odd)
    report(f"reading {pickle.name}", 1, 1)
    records, problems = _records(released, odd, report)
    dictionary = Dictionary.of(folder.resolve().name, _entries(records, problems))
    if not len(dictionary):
        raise DictionaryError(pickle, "holds no usable entry", "get the file again")
    rows = {record.entry_id: row for row, record in enumerate(records)}
    order = [rows[entry.entry_id] for entry in dictionary]
    kinds = {kind: _feature_set(kind, released.features[kind], order) for kind in KINDS}
    report(f"writing {folder.name}", 0, 1)
    with new_folder(folder, _OWN_FILES, overwrite=overwrite) as temporary:
        write_entry_features(EntryFeatures(tuple(entry.entry_id for entry in dictionary), kinds), temporary)
        write_bsldict_records(BslDictRecords(tuple(records[row] for row in order), released.words), temporary)
        write_dictionary_manifest(dictionary, temporary / _MANIFEST)
    report(f"writing {folder.name}", 1, 1)
    remarks = (Problem(str(pickle), line, "the rest was imported") for line in odd.lines())
    return ImportedDictionary(
        folder=folder,
        dictionary=dictionary,
        missing={kind: int((~each.present).sum()) for kind, each in kinds.items()},
        problems=(*problems, *remarks),
    )


def _silent(step: str, done: float, total: float | None) -> None:
    """Nobody looks on."""


def _released(tree: Node, odd: Oddities) -> _Released:
    """The columns of the metadata, all of one length; unknown and absent fields are noted."""
    videos = tree.member("videos")
    fields = videos.members()
    count = len(videos.member("name").rows())
    videos.member("word")  # names the field if it is not there
    known = {*FLAT_FIELDS, *NESTED_FIELDS, "features"}
    _note_difference(known, set(fields), videos.place, odd)
    _note_difference({"words", "words_to_id", "words_normalised", "videos"}, set(tree.members()), "the file", odd)
    columns = {name: fields[name].rows(count) for name in FLAT_FIELDS if name in fields}
    for name in NESTED_FIELDS:
        if name in fields:
            columns[name] = _nested(fields[name], count)
    held = videos.member("features")
    _note_difference(set(KINDS), set(held.members()), held.place, odd)
    features = {kind: held.member(kind).rows(count) for kind in KINDS}
    return _Released(columns, features, _words(tree, odd))


def _note_difference(known: set[str], found: set[str], place: str, odd: Oddities) -> None:
    for name in sorted(found - known):
        odd.note(f"unknown fields of {place} that are not read", name)
    for name in sorted(known - found):
        odd.note(f"fields that {place} should have and has not", name)


def _nested(node: Node, count: int) -> list[Node]:
    """A table of columns as rows."""
    columns = {name: column.rows(count) for name, column in node.members().items() if name in FACT_FIELDS}
    return [
        Node(node.file, {name: column[i].value for name, column in columns.items()}, f"{node.place}[{i}]")
        for i in range(count)
    ]


def _words(tree: Node, odd: Oddities) -> tuple[ReleasedWord, ...]:
    texts = [node.text() for node in tree.member("words").rows()]
    ids = {text: node.integer() for text, node in tree.member("words_to_id").members().items()}
    plain = tree.members().get("words_normalised")
    if plain is not None and isinstance(plain.value, dict):
        spelt = {text: node.text_or_nothing() for text, node in plain.members().items()}
    elif plain is not None:
        spelt = dict(zip(texts, (node.text_or_nothing() for node in plain.rows(len(texts))), strict=True))
    else:
        spelt = {}
    for text in texts:
        if text not in ids:
            odd.note("words without an id, left out of the vocabulary", text)
    return tuple(ReleasedWord(text, ids[text], spelt.get(text, "")) for text in texts if text in ids)


def _records(released: _Released, odd: Oddities, report: Progress) -> tuple[list[BslDictRecord], list[Problem]]:
    records: list[BslDictRecord] = []
    seen: dict[str, int] = {}
    total = len(released.columns["name"])
    for row in range(total):
        record = record_from({name: column[row] for name, column in released.columns.items()}, odd)
        if (first := seen.setdefault(record.entry_id, row)) != row:
            raise released.columns["name"][row].wrong(f"is the name of row {first} too: {record.name!r}")
        records.append(record)
        if row % _ROWS_PER_REPORT == 0:
            report("reading entries", row, total)
    return records, []


def _entries(records: list[BslDictRecord], problems: list[Problem]) -> list[Entry]:
    entries: list[Entry] = []
    variants: dict[str, dict[tuple[object, ...], int]] = {}
    for record in records:
        try:
            word = normalise(record.word)
        except ValueError as error:
            problems.append(Problem(record.entry_id, str(error), "the entry is left out"))
            continue
        forms = variants.setdefault(word, {})
        form = forms.setdefault((record.letter, record.page, record.sign, record.version), len(forms) + 1)
        entries.append(
            Entry(
                entry_id=record.entry_id,
                word=word,
                variant=str(form),
                language=LANGUAGE,
                rights=Rights(holder=record.source_site, may_export_clips=False),
                box=record.box.signer_box if record.box else None,
            )
        )
    return entries


def _feature_set(kind: str, rows: list[Node], order: list[int]) -> FeatureSet:
    vectors = np.zeros((len(order), KINDS[kind]), dtype=np.float32)
    for at, row in enumerate(order):
        if not rows[row].is_missing:
            vectors[at] = _vector(rows[row], KINDS[kind])
    # A vector of zeros has no direction: it cannot be compared, and stands for none.
    return FeatureSet(f"bsldict-released-{kind}", vectors, np.asarray(vectors.any(axis=1)))


def _vector(node: Node, length: int) -> npt.NDArray[np.float32]:
    try:
        array = np.asarray(node.value)
    except (ValueError, TypeError) as error:  # lists of different lengths
        raise node.is_not(f"vector of {length} numbers") from error
    if array.dtype.kind not in "iuf" or array.squeeze().shape != (length,):
        raise Node(node.file, array, node.place).is_not(f"vector of {length} numbers")
    with np.errstate(over="ignore"):
        vector = array.reshape(length).astype(np.float32)
    if not np.isfinite(vector).all():
        raise node.wrong(f"holds a number that is not finite at {int(np.argmin(np.isfinite(vector)))}")
    return vector
