"""BSLDict: the released metadata (bsldict_v1.pkl) becomes a dictionary folder of ours.

The folder holds dictionary.json (words, variants, rights), features.safetensors (the released I3D and MLP vectors of
all clips, enough to spot every word with no dictionary video at hand) and bsldict.json (everything else released).
The pickle is read through the quarantine: nothing in it is run, and no name in it is used as a path.

The variant of an entry counts the (sign, version) pairs of its word in the released order. A clip comes from one of 28
sites, so nothing is known to be allowed, and exporting clips is known not to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Dictionary, Entry, Rights
from signspot.domain.time import FrameSpan, Progress
from signspot.domain.words import Synonyms, Word, normalise
from signspot.errors import DictionaryError, FormatError, Notice
from signspot.files.atomic import new_folder, refuse_folder
from signspot.files.intake import Oddities
from signspot.files.json import MAX_NAME, Node, write_json
from signspot.files.pickles.door import read_metadata
from signspot.files.tables import read_manifest
from signspot.formats.wlasl import Box
from signspot.stores.dictionary import (
    FEATURES_FILE,
    EntryFeatures,
    FeatureSet,
    write_dictionary_manifest,
    write_entry_features,
)

# What BSLDict says about each of its clips, beyond what our entries hold: bsldict.json beside the manifest. The file
# keeps the released field names and values. `BslDictRecord` is the typed view: boxes as fractions of the picture, trims
# as half-open frames at 25 per second (the release counts both ends in).

RECORDS_FILE = "bsldict.json"
_FORMAT = "signspot-bsldict"
_Read = TypeVar("_Read")

# Our name of each field, and the released one.
_TEXTS = {
    "letter": "letter_db", "sign_text_original": "sign_text_orig_db", "sign_text": "sign_text_db",
    "how_to": "how_to_db", "source_site": "source_site_db", "download_method": "download_method_db",
    "upload_date": "upload_date_db",
}  # fmt: skip
_PATTERNS = {
    "sign_link": ("sign_link_db", re.compile(r"(https?:/)?/[^\s\"<>`\\]{1,1999}")),
    "video_link": ("video_link_db", re.compile(r"https?://[^\s\"<>`\\]{1,1999}")),
    "youtube_id": ("youtube_identifier_db", re.compile("[A-Za-z0-9_-]{1,32}")),
}
_NUMBERS = {
    "word_id": "word_id", "page": "page_db", "sign": "sign_cnt_db", "version": "version_cnt_db",
    "video_in_version": "video_cnt_in_version_db", "video_in_sign": "video_cnt_in_sign_db",
}  # fmt: skip
_LISTS = {
    "alternative_words": "alternative_words", "see_also": "see_also_db", "similar": "similar_items_db",
    "categories": "categories_db", "within_category": "within_this_cat_db",
}  # fmt: skip
_FACTS = {"original": "videos_original", "resampled": "videos_360h_25fps"}
_NEEDED = ("name", "word")
_NOTHING: tuple[str, ...] = ()
_FACT_FIELDS = ("T", "H", "W", "duration_sec", "fps")
_NESTED_FIELDS = tuple(_FACTS.values())
_FLAT_FIELDS = (
    *("name", "word", "bbox", "temp_interval"),
    *_TEXTS.values(),
    *(column for column, _ in _PATTERNS.values()),
    *_NUMBERS.values(),
    *_LISTS.values(),
)


@dataclass(frozen=True, slots=True)
class _ClipFacts:
    """The size of a released video; None where the release does not say."""

    n_frames: int | None
    height: int | None
    width: int | None
    duration_seconds: float | None
    fps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _BslDictRecord:
    """One clip of BSLDict as released; texts are "" and numbers None where the release says nothing."""

    entry_id: str
    name: str  # the released file name; never used as a path here
    word: str  # as released, with "-" between the words of a phrase
    word_id: int | None
    alternative_words: tuple[str, ...]  # other words under which the same video appears
    letter: str
    page: int | None
    sign: int | None  # of the page
    version: int | None  # of the sign
    video_in_version: int | None
    video_in_sign: int | None
    sign_text_original: str  # on the site the clip comes from
    sign_text: str
    sign_link: str  # such as /sign/eye
    how_to: str
    see_also: tuple[str, ...]
    similar: tuple[str, ...]
    categories: tuple[str, ...]
    within_category: tuple[str, ...]
    video_link: str
    source_site: str
    download_method: str
    youtube_id: str
    upload_date: str
    box: Box | None  # fractions of the picture
    trim: FrameSpan | None  # the frames at 25 fps with motion of the hands
    original: _ClipFacts | None
    resampled: _ClipFacts | None  # to a height of 360 pixels and 25 fps


@dataclass(frozen=True, slots=True)
class _ReleasedWord:
    """A word of the released vocabulary, also one without a clip."""

    text: str
    word_id: int
    normalised: str  # with numbers spelt out, such as one for 1; "" if not released


@dataclass(frozen=True, slots=True)
class _BslDictRecords:
    """All records, in the order of the dictionary's entries, and the released vocabulary."""

    records: tuple[_BslDictRecord, ...]
    words: tuple[_ReleasedWord, ...]


def sign_synonyms(records: tuple[_BslDictRecord, ...]) -> Synonyms:
    """Pairs of words that the dictionary calls similar or related: they may name the same sign."""
    pairs: list[tuple[Word, Word]] = []
    for record in records:
        for text in (*record.similar, *record.see_also):
            try:
                pairs.append((normalise(record.word), normalise(text)))
            except ValueError:  # no word in it, so no synonym
                continue
    return Synonyms.of(pairs)


def _record_from(fields: Mapping[str, Node], odd: Oddities) -> _BslDictRecord:
    """One record from its released fields; what is not needed and not understood is left empty and noted."""

    def lenient(column: str, read: Callable[[Node], _Read], empty: _Read) -> _Read:
        if column not in fields or fields[column].is_missing:
            return empty
        try:
            return read(fields[column])
        except (FormatError, ValueError):
            odd.note(f"values of {column} that are not understood and left empty", fields[column].place)
            return empty

    name, word = fields["name"].name(), fields["word"].text(MAX_NAME)
    read: dict[str, Any] = {ours: lenient(column, Node.text_or_nothing, "") for ours, column in _TEXTS.items()}
    for ours, (column, pattern) in _PATTERNS.items():
        read[ours] = lenient(column, partial(_matching, pattern), "")
    for ours, column in _NUMBERS.items():
        read[ours] = lenient(column, _count, None)
    for ours, column in _LISTS.items():
        read[ours] = lenient(column, Node.texts, _NOTHING)
    for ours, column in _FACTS.items():
        read[ours] = lenient(column, _facts, None)
    # The shapes of these two are promised; only their values may be odd.
    edges, ends = _numbers(fields, "bbox", 4), _numbers(fields, "temp_interval", 2)
    box = lenient("bbox", lambda _: Box.clamped(*edges), None) if edges else None
    trim = lenient("temp_interval", lambda _: _inclusive(*ends), None) if ends else None
    return _BslDictRecord(entry_id=name.removesuffix(".mp4"), name=name, word=word, box=box, trim=trim, **read)


def _numbers(fields: Mapping[str, Node], column: str, count: int) -> list[float]:
    if column not in fields or fields[column].is_missing:
        return []
    nodes = fields[column].rows(count)
    return [] if all(node.is_missing for node in nodes) else [node.number() for node in nodes]


def _inclusive(first: float, last: float) -> FrameSpan:
    if first < 0 or not first.is_integer() or not last.is_integer():
        raise ValueError("no frame numbers")
    return FrameSpan(int(first), int(last) + 1)


def _matching(pattern: re.Pattern[str], node: Node) -> str:
    text = node.text().strip().replace(" ", "%20")  # as browsers do with links that were typed by hand
    if not pattern.fullmatch(text):
        raise ValueError("not of the promised form")
    return text


def _count(node: Node) -> int:
    if isinstance(node.value, str) and node.value.isascii() and node.value.isdigit() and len(node.value) < 10:
        return int(node.value)
    return node.integer()


def _facts(node: Node) -> _ClipFacts:
    held = node.members()
    values = [None if (one := held.get(name)) is None or one.is_missing else one.number() for name in _FACT_FIELDS]
    n_frames, height, width = (None if value is None else int(value) for value in values[:3])
    return _ClipFacts(n_frames, height, width, *values[3:])


def _write_bsldict_records(content: _BslDictRecords, folder: Path, *, overwrite: bool = False) -> None:
    # Clips of one category share their long list of signs: each list is written once.
    lists: dict[tuple[str, ...], int] = {}
    records = [_released(record, lists) for record in content.records]
    written = {
        "format": _FORMAT,
        "version": 1,
        "words": [[word.text, word.word_id, word.normalised] for word in content.words],
        "lists": list(lists),
        "records": records,
    }
    write_json(written, folder / RECORDS_FILE, overwrite=overwrite)


def _released(record: _BslDictRecord, lists: dict[tuple[str, ...], int]) -> dict[str, object]:
    fields: dict[str, object] = {"name": record.name, "word": record.word}
    columns = _TEXTS | _NUMBERS | {ours: column for ours, (column, _) in _PATTERNS.items()}
    fields |= {column: getattr(record, ours) for ours, column in columns.items()}
    for ours, column in _LISTS.items():
        if texts := getattr(record, ours):
            fields[column] = lists.setdefault(texts, len(lists))
    for ours, column in _FACTS.items():
        if facts := getattr(record, ours):
            values = (facts.n_frames, facts.height, facts.width, facts.duration_seconds, facts.fps)
            known = zip(_FACT_FIELDS, values, strict=True)
            fields[column] = {name: value for name, value in known if value is not None}
    if record.box is not None:
        fields["bbox"] = [record.box.top, record.box.left, record.box.bottom, record.box.right]
    if record.trim is not None:
        fields["temp_interval"] = [record.trim.start, record.trim.stop - 1]
    return {column: value for column, value in fields.items() if value not in (None, "", {})}


def read_bsldict_records(folder: Path) -> _BslDictRecords:
    path = folder / RECORDS_FILE
    content = Node(path, read_manifest(path, _FORMAT))
    lists = content.member("lists").rows()
    odd = Oddities()
    records: list[_BslDictRecord] = []
    for row in content.member("records").rows():
        fields = row.members()
        for column in _LISTS.values():
            if column in fields:
                fields[column] = _listed(fields[column], lists)
        if missing := [column for column in _NEEDED if column not in fields]:
            raise row.wrong(f"has no field {missing[0]!r}")
        records.append(_record_from(fields, odd))
    if odd.lines():
        raise FormatError(path, odd.lines()[0], "import the dictionary again")
    return _BslDictRecords(tuple(records), tuple(_word(row) for row in content.member("words").rows()))


def _listed(node: Node, lists: list[Node]) -> Node:
    if not 0 <= (number := node.integer()) < len(lists):
        raise node.is_not("number of a list")
    return lists[number]


def _word(row: Node) -> _ReleasedWord:
    text, word_id, normalised = row.rows(3)
    return _ReleasedWord(text.text(), word_id.integer(), normalised.text())


_KINDS = {"i3d": 1024, "mlp": 256}  # the released features and their length
LANGUAGE = "bfi"
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
    words: tuple[_ReleasedWord, ...]


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
    dictionary = Dictionary.of(folder.resolve().name, _entries(records, problems))
    if not len(dictionary):
        raise DictionaryError(pickle, "holds no usable entry", "get the file again")
    rows = {record.entry_id: row for row, record in enumerate(records)}
    order = [rows[entry.entry_id] for entry in dictionary]
    kinds = {kind: _feature_set(kind, released.features[kind], order) for kind in _KINDS}
    report(f"writing {folder.name}", 0, 1)
    with new_folder(folder, _OWN_FILES, overwrite=overwrite) as temporary:
        write_entry_features(EntryFeatures(tuple(entry.entry_id for entry in dictionary), kinds), temporary)
        _write_bsldict_records(_BslDictRecords(tuple(records[row] for row in order), released.words), temporary)
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
    known = {*_FLAT_FIELDS, *_NESTED_FIELDS, "features"}
    _note_difference(known, set(fields), videos.place, odd)
    _note_difference({"words", "words_to_id", "words_normalised", "videos"}, set(tree.members()), "the file", odd)
    columns = {name: fields[name].rows(count) for name in _FLAT_FIELDS if name in fields}
    for name in _NESTED_FIELDS:
        if name in fields:
            columns[name] = _nested(fields[name], count)
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
    columns = {name: column.rows(count) for name, column in node.members().items() if name in _FACT_FIELDS}
    return [
        Node(node.file, {name: column[i].value for name, column in columns.items()}, f"{node.place}[{i}]")
        for i in range(count)
    ]


def _words(tree: Node, odd: Oddities) -> tuple[_ReleasedWord, ...]:
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
    return tuple(_ReleasedWord(text, ids[text], spelt.get(text, "")) for text in texts if text in ids)


def _records(released: _Released, odd: Oddities, report: Progress) -> list[_BslDictRecord]:
    records: list[_BslDictRecord] = []
    seen: dict[str, int] = {}
    total = len(released.columns["name"])
    for row in range(total):
        record = _record_from({name: column[row] for name, column in released.columns.items()}, odd)
        if (first := seen.setdefault(record.entry_id, row)) != row:
            raise released.columns["name"][row].wrong(f"is the name of row {first} too: {record.name!r}")
        records.append(record)
        if row % _ROWS_PER_REPORT == 0:
            report("reading entries", row, total)
    return records


def _entries(records: list[_BslDictRecord], problems: list[Notice]) -> list[Entry]:
    entries: list[Entry] = []
    variants: dict[str, dict[tuple[object, ...], int]] = {}
    for record in records:
        try:
            word = normalise(record.word)
        except ValueError as error:
            problems.append(Notice(record.entry_id, str(error), "the entry is left out"))
            continue
        forms = variants.setdefault(word, {})
        form = forms.setdefault((record.letter, record.page, record.sign, record.version), len(forms) + 1)
        rights = Rights(holder=record.source_site, may_export_clips=False)
        box = record.box.signer_box if record.box else None
        found = Entry(entry_id=record.entry_id, word=word, variant=str(form), language=LANGUAGE, rights=rights, box=box)
        entries.append(found)
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
