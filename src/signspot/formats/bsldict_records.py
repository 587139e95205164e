"""What BSLDict says about each of its clips, beyond what our entries hold: bsldict.json beside the manifest.

The file keeps the released field names and values. `BslDictRecord` is the typed view: boxes as fractions of the
picture, trims as half-open frames at 25 per second (the release counts both ends in).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from signspot.domain.spans import FrameSpan
from signspot.domain.words import Synonyms, Word, normalise
from signspot.errors import FormatError
from signspot.formats.clip_boxes import Box
from signspot.formats.oddities import Oddities
from signspot.formats.plain_data import MAX_NAME, Node
from signspot.formats.records import read_manifest
from signspot.formats.safe_json import write_json

RECORDS_FILE = "bsldict.json"
_FORMAT = "signspot-bsldict"
_Read = TypeVar("_Read")

# Our name of each field, and the released one.
_TEXTS = {
    "letter": "letter_db",
    "sign_text_original": "sign_text_orig_db",
    "sign_text": "sign_text_db",
    "how_to": "how_to_db",
    "source_site": "source_site_db",
    "download_method": "download_method_db",
    "upload_date": "upload_date_db",
}
_PATTERNS = {
    "sign_link": ("sign_link_db", re.compile(r"(https?:/)?/[^\s\"<>`\\]{1,1999}")),
    "video_link": ("video_link_db", re.compile(r"https?://[^\s\"<>`\\]{1,1999}")),
    "youtube_id": ("youtube_identifier_db", re.compile("[A-Za-z0-9_-]{1,32}")),
}
_NUMBERS = {
    "word_id": "word_id",
    "page": "page_db",
    "sign": "sign_cnt_db",
    "version": "version_cnt_db",
    "video_in_version": "video_cnt_in_version_db",
    "video_in_sign": "video_cnt_in_sign_db",
}
_LISTS = {
    "alternative_words": "alternative_words",
    "see_also": "see_also_db",
    "similar": "similar_items_db",
    "categories": "categories_db",
    "within_category": "within_this_cat_db",
}
_FACTS = {"original": "videos_original", "resampled": "videos_360h_25fps"}
_NEEDED = ("name", "word")
_NOTHING: tuple[str, ...] = ()
FACT_FIELDS = ("T", "H", "W", "duration_sec", "fps")
NESTED_FIELDS = tuple(_FACTS.values())
FLAT_FIELDS = (
    *("name", "word", "bbox", "temp_interval"),
    *_TEXTS.values(),
    *(column for column, _ in _PATTERNS.values()),
    *_NUMBERS.values(),
    *_LISTS.values(),
)


@dataclass(frozen=True, slots=True)
class ClipFacts:
    """The size of a released video; None where the release does not say."""

    n_frames: int | None
    height: int | None
    width: int | None
    duration_seconds: float | None
    fps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BslDictRecord:
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
    original: ClipFacts | None
    resampled: ClipFacts | None  # to a height of 360 pixels and 25 fps


@dataclass(frozen=True, slots=True)
class ReleasedWord:
    """A word of the released vocabulary, also one without a clip."""

    text: str
    word_id: int
    normalised: str  # with numbers spelt out, such as one for 1; "" if not released


@dataclass(frozen=True, slots=True)
class BslDictRecords:
    """All records, in the order of the dictionary's entries, and the released vocabulary."""

    records: tuple[BslDictRecord, ...]
    words: tuple[ReleasedWord, ...]


def sign_synonyms(records: tuple[BslDictRecord, ...]) -> Synonyms:
    """Pairs of words that the dictionary calls similar or related: they may name the same sign."""
    pairs: list[tuple[Word, Word]] = []
    for record in records:
        for text in (*record.similar, *record.see_also):
            try:
                pairs.append((normalise(record.word), normalise(text)))
            except ValueError:  # no word in it, so no synonym
                continue
    return Synonyms.of(pairs)


def record_from(fields: Mapping[str, Node], odd: Oddities) -> BslDictRecord:
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
    return BslDictRecord(entry_id=name.removesuffix(".mp4"), name=name, word=word, box=box, trim=trim, **read)


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


def _facts(node: Node) -> ClipFacts:
    held = node.members()
    values = [None if (one := held.get(name)) is None or one.is_missing else one.number() for name in FACT_FIELDS]
    n_frames, height, width = (None if value is None else int(value) for value in values[:3])
    return ClipFacts(n_frames, height, width, *values[3:])


def write_bsldict_records(content: BslDictRecords, folder: Path, *, overwrite: bool = False) -> None:
    """Write bsldict.json into the folder of an imported dictionary."""
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


def _released(record: BslDictRecord, lists: dict[tuple[str, ...], int]) -> dict[str, object]:
    fields: dict[str, object] = {"name": record.name, "word": record.word}
    columns = _TEXTS | _NUMBERS | {ours: column for ours, (column, _) in _PATTERNS.items()}
    fields |= {column: getattr(record, ours) for ours, column in columns.items()}
    for ours, column in _LISTS.items():
        if texts := getattr(record, ours):
            fields[column] = lists.setdefault(texts, len(lists))
    for ours, column in _FACTS.items():
        if facts := getattr(record, ours):
            values = (facts.n_frames, facts.height, facts.width, facts.duration_seconds, facts.fps)
            fields[column] = {name: value for name, value in zip(FACT_FIELDS, values, strict=True) if value is not None}
    if record.box is not None:
        fields["bbox"] = [record.box.top, record.box.left, record.box.bottom, record.box.right]
    if record.trim is not None:
        fields["temp_interval"] = [record.trim.start, record.trim.stop - 1]
    return {column: value for column, value in fields.items() if value not in (None, "", {})}


def read_bsldict_records(folder: Path) -> BslDictRecords:
    """Read bsldict.json of an imported dictionary."""
    path = folder / RECORDS_FILE
    content = Node(path, read_manifest(path, _FORMAT))
    lists = content.member("lists").rows()
    odd = Oddities()
    records: list[BslDictRecord] = []
    for row in content.member("records").rows():
        fields = row.members()
        for column in _LISTS.values():
            if column in fields:
                fields[column] = _listed(fields[column], lists)
        if missing := [column for column in _NEEDED if column not in fields]:
            raise row.wrong(f"has no field {missing[0]!r}")
        records.append(record_from(fields, odd))
    if odd.lines():
        raise FormatError(path, odd.lines()[0], "import the dictionary again")
    return BslDictRecords(tuple(records), tuple(_word(row) for row in content.member("words").rows()))


def _listed(node: Node, lists: list[Node]) -> Node:
    if not 0 <= (number := node.integer()) < len(lists):
        raise node.is_not("number of a list")
    return lists[number]


def _word(row: Node) -> ReleasedWord:
    text, word_id, normalised = row.rows(3)
    return ReleasedWord(text.text(), word_id.integer(), normalised.text())
