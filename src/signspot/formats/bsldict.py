"""BSLDict: the released metadata (bsldict_v1.pkl) becomes a dictionary folder of ours.

The folder holds dictionary.json (words, variants, rights), features.safetensors (the released I3D and MLP vectors of
all clips, enough to spot every word with no dictionary video at hand) and bsldict.json (everything else released).
The pickle is read through the quarantine: nothing in it is run, and no name in it is used as a path.

The variant of an entry counts the (sign, version) pairs of its word in the released order. A clip comes from one of 28
sites, so nothing is known to be allowed, and exporting clips is known not to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Dictionary, Entry, Rights, Synonyms, Word, normalise
from signspot.domain.time import Progress
from signspot.errors import DictionaryError, FormatError, Notice
from signspot.files.atomic import new_folder, refuse_folder
from signspot.files.intake import Oddities
from signspot.files.json import MAX_NAME, Node, write_json
from signspot.files.pickles.door import read_metadata
from signspot.files.tables import read_manifest
from signspot.formats.wlasl import Box
from signspot.stores.dictionary import FEATURES_FILE, EntryFeatures, FeatureSet, write_dictionary_manifest

# What BSLDict says about each of its clips, beyond what our entries hold: bsldict.json beside the manifest. The file
# keeps the released field names and values, but boxes are clamped to the picture.

RECORDS_FILE = "bsldict.json"
_FORMAT = "signspot-bsldict"
_Read = TypeVar("_Read")

_TEXTS = (
    "letter_db", "sign_text_orig_db", "sign_text_db", "how_to_db", "source_site_db", "download_method_db",
    "upload_date_db",
)  # fmt: skip
_NUMBERS = ("word_id", "page_db", "sign_cnt_db", "version_cnt_db", "video_cnt_in_version_db", "video_cnt_in_sign_db")
_PATTERNS = {
    "sign_link_db": re.compile(r"(https?:/)?/[^\s\"<>`\\]{1,1999}"),
    "video_link_db": re.compile(r"https?://[^\s\"<>`\\]{1,1999}"),
    "youtube_identifier_db": re.compile("[A-Za-z0-9_-]{1,32}"),
}
_LISTS = ("alternative_words", "see_also_db", "similar_items_db", "categories_db", "within_this_cat_db")
_NESTED = ("videos_original", "videos_360h_25fps")  # the size of the video; resampled to a height of 360 and 25 fps
_FLAT = ("name", "word", *_TEXTS, *_NUMBERS, *_PATTERNS, *_LISTS, "bbox", "temp_interval")
_FACTS: dict[str, type] = {"T": int, "H": int, "W": int, "duration_sec": float, "fps": float}


@dataclass(frozen=True, slots=True)
class _Record:
    """One clip of BSLDict: its released fields by their names, those that say nothing left out."""

    name: str  # the released file name; never used as a path here
    word: str  # as released, with "-" between the words of a phrase
    box: Box | None
    fields: Mapping[str, Any]

    @property
    def entry_id(self) -> str:
        return self.name.removesuffix(".mp4")


def sign_synonyms(folder: Path) -> Synonyms:
    """Pairs of words that an imported BSLDict calls similar or related: they may name the same sign."""
    pairs: list[tuple[Word, Word]] = []
    for record in _read_records(folder / RECORDS_FILE):
        for text in (*record.fields.get("similar_items_db", ()), *record.fields.get("see_also_db", ())):
            try:
                pairs.append((normalise(record.word), normalise(text)))
            except ValueError:  # no word in it, so no synonym
                continue
    return Synonyms.of(pairs)


def _record(given: Mapping[str, Node], odd: Oddities) -> _Record:
    """One record from its released fields; what is not needed and not understood is left out and noted."""

    def lenient(column: str, read: Callable[[Node], _Read]) -> _Read | None:
        if column not in given or given[column].is_missing:
            return None
        try:
            return read(given[column])
        except (FormatError, ValueError):
            odd.note(f"values of {column} that are not understood and left empty", given[column].place)
            return None

    name, word = given["name"].name(), given["word"].text(MAX_NAME)
    fields = {column: lenient(column, read) for column, read in _READERS.items()}
    # The shapes of these two are promised; only their values may be odd.
    edges, ends = _numbers(given, "bbox", 4), _numbers(given, "temp_interval", 2)
    box = lenient("bbox", lambda _: Box.clamped(*edges)) if edges else None
    if box is not None:
        fields["bbox"] = [box.top, box.left, box.bottom, box.right]
    if ends:
        fields["temp_interval"] = lenient("temp_interval", lambda _: _interval(*ends))
    return _Record(
        name, word, box, {column: value for column, value in fields.items() if value not in (None, "", (), {})}
    )


def _numbers(fields: Mapping[str, Node], column: str, count: int) -> list[float]:
    if column not in fields or fields[column].is_missing:
        return []
    nodes = fields[column].rows(count)
    return [] if all(node.is_missing for node in nodes) else [node.number() for node in nodes]


def _interval(first: float, last: float) -> list[int]:
    if first < 0 or last < first - 1 or not first.is_integer() or not last.is_integer():
        raise ValueError("no frame numbers")
    return [int(first), int(last)]


def _matching(pattern: re.Pattern[str], node: Node) -> str:
    text = node.text().strip().replace(" ", "%20")  # as browsers do with links that were typed by hand
    if not pattern.fullmatch(text):
        raise ValueError("not of the promised form")
    return text


def _count(node: Node) -> int:
    if isinstance(node.value, str) and node.value.isascii() and node.value.isdigit() and len(node.value) < 10:
        return int(node.value)
    return node.integer()


def _facts(node: Node) -> dict[str, float]:
    held = node.members()
    return {
        name: kind(held[name].number()) for name, kind in _FACTS.items() if name in held and not held[name].is_missing
    }


_READERS: dict[str, Callable[[Node], Any]] = {
    **dict.fromkeys(_TEXTS, Node.text_or_nothing),
    **dict.fromkeys(_NUMBERS, _count),
    **{column: partial(_matching, pattern) for column, pattern in _PATTERNS.items()},
    **dict.fromkeys(_LISTS, Node.texts),
    **dict.fromkeys(_NESTED, _facts),
}


def _write_records(records: Iterable[_Record], words: Sequence[tuple[str, int, str]], folder: Path) -> None:
    # Clips of one category share their long list of signs: each list is written once.
    lists: dict[tuple[str, ...], int] = {}
    written = [
        {"name": record.name, "word": record.word}
        | {
            column: lists.setdefault(value, len(lists)) if column in _LISTS else value
            for column, value in record.fields.items()
        }
        for record in records
    ]
    content = {"format": _FORMAT, "version": 1, "words": words, "lists": list(lists), "records": written}
    write_json(content, folder / RECORDS_FILE)


def _read_records(path: Path) -> list[_Record]:
    content = Node(path, read_manifest(path, _FORMAT))
    lists, odd = content.member("lists").rows(), Oddities()
    records: list[_Record] = []
    for row in content.member("records").rows():
        fields = {"name": row.member("name"), "word": row.member("word")} | row.members()
        for column in _LISTS:
            if column in fields:
                if not 0 <= (number := fields[column].integer()) < len(lists):
                    raise fields[column].is_not("number of a list")
                fields[column] = lists[number]
        records.append(_record(fields, odd))
    if odd.lines():
        raise FormatError(path, odd.lines()[0], "import the dictionary again")
    return records


_KINDS = {"i3d": 1024, "mlp": 256}  # the released features and their length
_LANGUAGE = "bfi"
_MANIFEST = "dictionary.json"
_OWN_FILES = frozenset((_MANIFEST, FEATURES_FILE, RECORDS_FILE))
_ROWS_PER_REPORT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _ImportedDictionary:
    """What an import made of the released files."""

    folder: Path
    dictionary: Dictionary
    missing: Mapping[str, int]  # kind of feature -> entries without it
    problems: tuple[Notice, ...]  # what was left out, left empty or not known

    @property
    def summary(self) -> str:
        lacking = ", ".join(f"{count} without {kind}" for kind, count in self.missing.items() if count)
        counts = f"{len(self.dictionary)} entries of {len(self.dictionary.by_word)} words"
        return f"{self.folder}: {counts}" + (f" ({lacking})" if lacking else "")


@dataclass(frozen=True, slots=True)
class _Released:
    """The metadata as columns of equal length."""

    columns: Mapping[str, list[Node]]
    features: Mapping[str, list[Node]]
    words: list[tuple[str, int, str]]  # the vocabulary: text, id, and with numbers spelt out, such as one for 1


def import_bsldict(
    pickle: Path, folder: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> _ImportedDictionary:
    """Turn the released metadata into a dictionary folder; an existing one is refused unless `overwrite` is set."""
    report = progress or (lambda step, done, total: None)
    refuse_folder(folder, _OWN_FILES, overwrite=overwrite)
    report(f"reading {pickle.name}", 0, 1)
    odd = Oddities()
    released = _released_dictionary(Node(pickle, read_metadata(pickle)), odd)
    report(f"reading {pickle.name}", 1, 1)
    records, problems = _records(released, odd, report), list[Notice]()
    dictionary = Dictionary.of(folder.resolve().name, _entries(records, folder / FEATURES_FILE, problems))
    if not len(dictionary):
        raise DictionaryError(pickle, "holds no usable entry", "get the file again")
    rows = {record.entry_id: row for row, record in enumerate(records)}
    order = [rows[entry.entry_id] for entry in dictionary]
    kinds = {kind: _feature_set(kind, released.features[kind], order) for kind in _KINDS}
    report(f"writing {folder.name}", 0, 1)
    with new_folder(folder, _OWN_FILES, overwrite=overwrite) as temporary:
        EntryFeatures(tuple(entry.entry_id for entry in dictionary), kinds).write(temporary)
        _write_records((records[row] for row in order), released.words, temporary)
        write_dictionary_manifest(dictionary, temporary / _MANIFEST)
    report(f"writing {folder.name}", 1, 1)
    remarks = (Notice(str(pickle), line, "the rest was imported") for line in odd.lines())
    return _ImportedDictionary(
        folder=folder,
        dictionary=dictionary,
        missing={kind: int((~each.present).sum()) for kind, each in kinds.items()},
        problems=(*problems, *remarks),
    )


def _released_dictionary(tree: Node, odd: Oddities) -> _Released:
    """The columns of the metadata, all of one length; unknown and absent fields are noted."""
    videos = tree.member("videos")
    fields = videos.members()
    count = len(videos.member("name").rows())
    videos.member("word")  # names the field if it is not there
    _note_difference({*_FLAT, *_NESTED, "features"}, set(fields), videos.place, odd)
    _note_difference({"words", "words_to_id", "words_normalised", "videos"}, set(tree.members()), "the file", odd)
    columns = {name: fields[name].rows(count) for name in _FLAT if name in fields}
    columns |= {name: _nested(fields[name], count) for name in _NESTED if name in fields}
    held = videos.member("features")
    _note_difference(set(_KINDS), set(held.members()), held.place, odd)
    features = {kind: held.member(kind).rows(count) for kind in _KINDS}
    return _Released(columns, features, _words(tree, odd))


def _note_difference(known: set[str], found: set[str], place: str, odd: Oddities) -> None:
    for name in sorted(found - known):
        odd.note(f"unknown fields of {place} that are not read", name)
    for name in sorted(known - found):
        odd.note(f"fields that {place} should have and has not", name)


def _nested(node: Node, count: int) -> list[Node]:
    """A table of columns as rows."""
    columns = {name: column.rows(count) for name, column in node.members().items() if name in _FACTS}
    return [
        Node(node.file, {name: column[i].value for name, column in columns.items()}, f"{node.place}[{i}]")
        for i in range(count)
    ]


def _words(tree: Node, odd: Oddities) -> list[tuple[str, int, str]]:
    texts = [node.text() for node in tree.member("words").rows()]
    ids = {text: node.integer() for text, node in tree.member("words_to_id").members().items()}
    plain = tree.members().get("words_normalised")
    spelt: dict[str, str] = {}
    if plain is not None:
        nodes = plain.members() if isinstance(plain.value, dict) else zip(texts, plain.rows(len(texts)), strict=True)
        spelt = {text: node.text_or_nothing() for text, node in dict(nodes).items()}
    for text in texts:
        if text not in ids:
            odd.note("words without an id, left out of the vocabulary", text)
    return [(text, ids[text], spelt.get(text, "")) for text in texts if text in ids]


def _records(released: _Released, odd: Oddities, report: Progress) -> list[_Record]:
    records: list[_Record] = []
    seen: dict[str, int] = {}
    total = len(released.columns["name"])
    for row in range(total):
        record = _record({name: column[row] for name, column in released.columns.items()}, odd)
        if (first := seen.setdefault(record.entry_id, row)) != row:
            raise released.columns["name"][row].wrong(f"is the name of row {first} too: {record.name!r}")
        records.append(record)
        if row % _ROWS_PER_REPORT == 0:
            report("reading entries", row, total)
    return records


def _entries(records: list[_Record], features: Path, problems: list[Notice]) -> list[Entry]:
    entries: list[Entry] = []
    variants: dict[str, dict[tuple[object, ...], int]] = {}
    for record in records:
        try:
            word = normalise(record.word)
        except ValueError as error:
            problems.append(Notice(record.entry_id, str(error), "the entry is left out"))
            continue
        forms = variants.setdefault(word, {})
        page = tuple(map(record.fields.get, ("letter_db", "page_db", "sign_cnt_db", "version_cnt_db")))
        form = forms.setdefault(page, len(forms) + 1)
        rights = Rights(holder=record.fields.get("source_site_db", ""), may_export_clips=False)
        box = record.box.signer_box if record.box else None
        entries.append(
            Entry(
                entry_id=record.entry_id,
                word=word,
                variant=str(form),
                language=_LANGUAGE,
                rights=rights,
                box=box,
                features=features,
            )
        )
    return entries


def _feature_set(kind: str, rows: list[Node], order: list[int]) -> FeatureSet:
    vectors = np.zeros((len(order), _KINDS[kind]), dtype=np.float32)
    for at, row in enumerate(order):
        if not rows[row].is_missing:
            vectors[at] = _vector(rows[row], _KINDS[kind])
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
