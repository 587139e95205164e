"""Where a dictionary's clips are and what they show, from a plain folder, a CSV file or our JSON manifest.

A plain folder holds clips named after their word (`apple.mp4`) or folders named after it (`apple/anything.mp4`).
A number at the end, `apple_2.mp4` or `apple (2).mp4`, says that this is a further form of the sign: the variant "2".
Other underscores, spaces and "-" join a phrase: `ice_cream.mp4` is the word ice-cream. Deeper folders are not read.
Where there is no clip of that name, a file of landmarks, `apple.pose`, stands for one.
Where the folder holds dictionary.json or else dictionary.csv, that file says it all instead. Its kept_start and
kept_stop, in frames at 25 a second, say which part of a clip shows the sign: the first frame, and the one after the
last. Its box_left, box_top, box_right and box_bottom, in fractions of the picture's width and height, say where the
signer is.

No clip is opened. The id of an entry is its path from the folder, the same on every machine. Where features.safetensors
lies beside the manifest, entries with an id may do without a file: their stored vectors stand for the clip.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Dictionary, Entry, Rights, Signer, normalise
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray
from signspot.errors import DictionaryError, FormatError, Notice
from signspot.files.arrays import Arrays, ArraysKind, read_arrays, write_arrays
from signspot.files.atomic import atomic_output
from signspot.files.intake import (
    RECORDING_SUFFIXES,
    Found,
    Place,
    is_folder,
    is_there,
    nfc,
    read_whole,
    recordings,
    unread,
)
from signspot.files.json import write_json
from signspot.files.tables import (
    BOX_FIELDS,
    RIGHTS_FIELDS,
    Fields,
    Record,
    box_fields,
    csv_bytes,
    csv_records,
    json_records,
    manifest_in,
    name_in_manifest,
    nothing_usable,
    read_manifest,
    rights_fields,
    unguarded,
)

_FORMAT = "signspot-dictionary"
_TEXTS = ("variant", "language", "region", "type_id")
_KEPT = ("kept_start", "kept_stop")
_FIELDS = Fields(
    ("word", "file"),
    ("entry_id", *_TEXTS, "signer", "left_handed", *_KEPT, *BOX_FIELDS, "word_language", *RIGHTS_FIELDS),
)
_COLUMNS = ("word", "variant", "file", *_KEPT, "signer", "left_handed", "language", "region", "type_id")
_SELDOM = (*BOX_FIELDS, *RIGHTS_FIELDS)  # columns that a table has only if it needs them
_NUMBERED = re.compile(r"(.*?)(?:_([0-9]+)| \(([0-9]+)\))")
_FIX_WORD = "name the file or folder after its word, or describe it in dictionary.csv"


@dataclass(frozen=True, slots=True)
class DictionarySource:
    """A dictionary and what had to be left out of it."""

    dictionary: Dictionary
    problems: tuple[Notice, ...]


def read_dictionary(path: Path) -> DictionarySource:
    """List the entries of a dictionary folder, or of the CSV or JSON file that describes one."""
    if not is_there(path):
        raise DictionaryError(path, "no such file or folder", "check the name")
    manifest, remarks = manifest_in(path, "dictionary") if is_folder(path) else (path, [])
    if manifest is None:
        name, found = path.resolve().name, _from_folder(Place(path))
    elif manifest.suffix.lower() == ".json":
        name, found = _from_json(manifest)
    elif manifest.suffix.lower() == ".csv":
        records = csv_records(manifest, _FIELDS)
        name, remarks = manifest.parent.resolve().name, [*remarks, *records.problems]
        found = _from_records(records.rows, Place(manifest.parent))
    else:
        raise DictionaryError(path, "is not a dictionary", "name a folder of clips, or its .csv or .json file")
    entries, problems = _unique(itertools.chain(remarks, found))
    if not entries:
        what = nothing_usable("clip", problems)
        raise DictionaryError(path, what, "put clips there, named after their words")
    folder = path if manifest is None else manifest.parent
    return DictionarySource(Dictionary.of(name, entries, folder), tuple(problems))


def write_dictionary_manifest(dictionary: Dictionary, path: Path, *, overwrite: bool = False) -> None:
    """Write the manifest of a dictionary, JSON or CSV by its suffix, into a folder at or above its clips."""
    if path.suffix.lower() == ".csv":
        table = dictionary_table(dictionary, path)
        with atomic_output(path, overwrite=overwrite) as temporary:
            temporary.write_bytes(table)
        return
    content = {
        "format": _FORMAT,
        "version": 1,
        "name": dictionary.name,
        "entries": [_fields(entry, path) for entry in dictionary],
    }
    write_json(content, path, overwrite=overwrite)


def dictionary_table(dictionary: Dictionary, path: Path) -> bytes:
    """The content of the CSV manifest at `path`; its folder's name becomes that of the dictionary."""
    rows = [_fields(entry, path) for entry in dictionary]
    columns = (*_COLUMNS, *(name for name in _SELDOM if any(name in row for row in rows)), "entry_id")
    return csv_bytes(columns, ([_cell(row.get(name, "")) for name in columns] for row in rows))


_Item = Entry | Notice


def _unique(items: Iterable[_Item]) -> tuple[list[Entry], list[Notice]]:
    """Part entries from problems; of entries with the same id, or the same file and word, only the first counts.

    One clip may show several words: its later entries have the word in their id.
    """
    entries: list[Entry] = []
    problems: list[Notice] = []
    seen: set[str] = set()
    files: set[str] = set()
    for item in items:
        if isinstance(item, Notice):
            problems.append(item)
            continue
        file = f"file {nfc(str(item.video))}" if item.video else ""
        if file and file in files and f"{file} {item.word}" not in seen and f"id {item.entry_id}" in seen:
            item = dataclasses.replace(item, entry_id=f"{item.entry_id}#{item.word}")
        same = {f"id {item.entry_id}"} | ({f"{file} {item.word}"} if file else set())
        if twice := same & seen:
            where = str(item.video or item.entry_id)
            problems.append(Notice(where, f"the {min(twice)} comes twice", "list each clip once"))
        else:
            entries.append(item)
            seen |= same
            files.add(file)
    return entries, problems


def _from_folder(place: Place) -> Iterator[_Item]:
    top = place.listing()
    yield from top.problems
    clips, others = recordings(top.files)
    yield from (_clip(file, *_word_and_variant(file.stem)) for file in clips)
    for folder in top.folders:
        text, variant = _word_and_variant(folder.name)
        inside = place.listing(folder)
        clips, left = recordings(inside.files)
        others += left
        yield from inside.problems
        yield from (
            Notice(str(deeper.path), "is too deep and not read", "move its clips up") for deeper in inside.folders
        )
        yield from (_clip(file, text, variant or _word_and_variant(file.stem)[1]) for file in clips)
        if not clips:
            yield Notice(str(folder.path), "holds no videos", "put clips of the word there, or remove it")
    yield from unread(others, place.root)


def _word_and_variant(stem: str) -> tuple[str, str]:
    """The words and the number in the name of a file.

    >>> _word_and_variant("ice_cream_2"), _word_and_variant("apple (3)"), _word_and_variant("apple")
    (('ice cream', '2'), ('apple', '3'), ('apple', ''))
    """
    match = _NUMBERED.fullmatch(stem)
    text, variant = (match[1], match[2] or match[3]) if match and match[1] else (stem, "")
    return text.replace("_", " "), variant


def _clip(file: Found, text: str, variant: str) -> _Item:
    try:
        return Entry(entry_id=file.name, word=normalise(text), variant=variant, video=file.path)
    except ValueError as error:
        return Notice(str(file.path), str(error), _FIX_WORD)


def _from_json(path: Path) -> tuple[str, Iterator[_Item]]:
    content = read_manifest(path, _FORMAT)
    name = content.get("name", path.parent.resolve().name)
    if not isinstance(name, str):
        raise FormatError(path, 'its "name" is not text', "write the manifest again")
    records = json_records(path, content, "entries", _FIELDS)
    return name, iter((*records.problems, *_from_records(records.rows, Place(path.parent))))


def _from_records(rows: Iterable[Record], place: Place) -> Iterator[_Item]:
    for row in rows:
        rights, problems = row.rights()
        yield from problems
        try:
            yield _entry(row, place, rights)
        except ValueError as error:
            yield row.problem(f"{str(row.fields.get('file', ''))[:100]!r}: {error}", "correct or remove the row")


def _entry(row: Record, place: Place, rights: Rights) -> Entry:
    needs_file = row.has("file") or not row.has("entry_id") or not _has_features(place.root)
    file = place.find(row.text("file")) if needs_file else None
    if file and file.suffix not in RECORDING_SUFFIXES:
        raise ValueError(f"{file.suffix or 'no suffix'} is no suffix of a video")
    signer = Signer(row.text("signer"), row.claim("left_handed")) if row.has("signer") else None
    return Entry(
        entry_id=row.text("entry_id") or (file.name if file else ""),
        word=row.word(row.text("language")),
        variant=row.text("variant"),
        video=file.path if file else None,
        features=None if file else place.root / FEATURES_FILE,
        signer=signer,
        language=row.text("language"),
        region=row.text("region"),
        type_id=row.text("type_id"),
        rights=rights,
        kept=_kept(row),
        box=row.box(),
    )


def _kept(row: Record) -> FrameSpan | None:
    start, stop = (row.number(name) for name in _KEPT)
    if start is None and stop is None:
        return None
    if start is None or stop is None or not (start.is_integer() and stop.is_integer() and 0 <= start < stop < 1e9):
        raise ValueError("kept_start and kept_stop are two whole numbers of frames, the second larger")
    return FrameSpan(int(start), int(stop))


def _fields(entry: Entry, path: Path) -> dict[str, object]:
    fields: dict[str, object] = {"entry_id": entry.entry_id, "word": entry.word}
    if entry.video is not None or not _has_features(path.parent):
        fields["file"] = name_in_manifest(path, entry.video)
    fields |= {name: getattr(entry, name) for name in _TEXTS if getattr(entry, name)}
    if entry.signer is not None:
        fields["signer"] = entry.signer.signer_id
        if entry.signer.left_handed is not None:
            fields["left_handed"] = entry.signer.left_handed
    if entry.kept is not None:
        fields |= zip(_KEPT, (entry.kept.start, entry.kept.stop), strict=True)
    return fields | box_fields(entry.box) | rights_fields(entry.rights)


def _cell(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _has_features(folder: Path) -> bool:
    return (folder / FEATURES_FILE).is_file()


# New entries for a dictionary that exists, at the end of the file that describes it; whatever is in that file stays. A
# folder of clips without such a file gets one, which lists the old clips and the new.


def manifest_of(path: Path) -> Path:
    """The file that describes a dictionary, given by its folder or by that file; it may not exist yet."""
    if not is_folder(path):
        return path
    return manifest_in(path, "dictionary")[0] or path / "dictionary.json"


def add_entries(path: Path, old: Dictionary, entries: Sequence[Entry]) -> Path:
    """Add entries, whose clips lie under its folder, to the dictionary `old` at `path`; gives the file written."""
    manifest = manifest_of(path)
    if not manifest.exists():
        write_dictionary_manifest(Dictionary.of(old.name, [*old, *entries], path), manifest)
    elif manifest.suffix.lower() == ".json":
        content = read_manifest(manifest, _FORMAT)
        listed = content.get("entries")
        if not isinstance(listed, list):
            raise FormatError(manifest, "its entries are not a list", "write the manifest again")
        new = [{name: unguarded(cell) for name, cell in row.items()} for row in _rows(entries, manifest)]
        content["entries"] = [*listed, *new]
        write_json(content, manifest, overwrite=True)
    else:
        _extend_table(manifest, _rows(entries, manifest))
    return manifest


def _rows(entries: Sequence[Entry], manifest: Path) -> list[dict[str, str]]:
    """What a table says about entries, by column; empty cells left out."""
    table = dictionary_table(Dictionary.of("new", entries), manifest).decode("utf-8-sig")
    rows = csv.DictReader(io.StringIO(table, newline=""))
    return [{name: cell for name, cell in row.items() if cell} for row in rows]


def _extend_table(manifest: Path, rows: Sequence[dict[str, str]]) -> None:
    """Write a table again with rows at its end, and new columns at the right where the rows need them."""
    try:
        text = read_whole(manifest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(manifest, "is not UTF-8 text", "save the file as UTF-8") from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        header, *lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    except (csv.Error, ValueError) as error:
        raise FormatError(manifest, f"is not a table ({error})", "correct it first") from error
    known = [name.strip().lower() for name in header]
    missing = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in known]
    written = io.StringIO(newline="")
    writer = csv.writer(written, delimiter=delimiter)
    writer.writerow([*header, *missing])
    for line in lines:
        writer.writerow([*line, *[""] * (len(header) + len(missing) - len(line))] if line else line)
    writer.writerows([row.get(name, "") for name in (*known, *missing)] for row in rows)
    with atomic_output(manifest, overwrite=True) as temporary:
        temporary.write_bytes(written.getvalue().encode("utf-8-sig"))


# Vectors of dictionary entries beside their manifest, for dictionaries whose videos are not at hand: one file,
# features.safetensors: for every kind of feature an array (n_entries, d) and which rows it has. The header names the
# entries in the order of the rows, says what made each kind, and carries a checksum of it all, because a flipped bit in
# a flat file reads as a valid number.

FEATURES_FILE = "features.safetensors"
_FEATURES = ArraysKind(
    what="file of vectors", fix="import the dictionary again", format="signspot-entry-features", checked="entry_ids"
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

    def write(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write features.safetensors into the folder of a dictionary, the same bytes for the same features."""
        path = folder / FEATURES_FILE
        arrays: Arrays = {}
        for kind, each in self.kinds.items():
            arrays |= {kind: each.vectors, kind + _PRESENT: each.present}
        unchecked = {"made_by": {kind: each.made_by for kind, each in self.kinds.items()}}
        write_arrays(arrays, self.entry_ids, path, _FEATURES, unchecked=unchecked, overwrite=overwrite)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the stored vectors of a dictionary; every bit is checked."""
        header, arrays = read_arrays(folder / FEATURES_FILE, _FEATURES)
        entry_ids = tuple(node.text() for node in header.member("entry_ids").rows())
        makers = {kind: node.text() for kind, node in header.member("made_by").members().items()}
        if set(arrays) != {name for kind in makers for name in (kind, kind + _PRESENT)}:
            raise header.wrong("names other features than the file holds")
        try:
            kinds = {kind: FeatureSet(maker, arrays[kind], arrays[kind + _PRESENT]) for kind, maker in makers.items()}
            return cls(entry_ids, kinds)
        except ValueError as error:
            raise _FEATURES.damaged(folder / FEATURES_FILE, error) from error
