"""The types of a lexicon kept elsewhere (an ELAN ECV, a SignBank table), and how words find them.

A type is known by its list and its id alone; glosses may repeat, change and differ between languages. SignBanks give
every type an id of its own; each list of an ECV may count from one, so that an id says nothing without its list. A word
finds types on two levels:

1. the types with a gloss that, normalised, is the word: "house" finds HOUSE, "house-a" finds HOUSE-A;
2. only where there are none: the types with a gloss that is the word plus the mark of a variant. The mark is one
   capital letter after a separator (HOUSE-A, HOUSE:B), or a number of one or two digits with or without separator and
   letter (HOUSE2, HOUSE_02, HOUSE-1A). It counts only if it is the first of its series (A, 1, 01, 1A) or if another
   gloss has the same stem: VITAMIN-C alone is no variant of "vitamin".
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lxml import etree

from signspot.domain.recordings import Dictionary, Entry, Word, normalise
from signspot.errors import FormatError
from signspot.files.intake import Oddities, read_whole
from signspot.files.xml import MAX_XML_BYTES, parse_xml

_VARIANT_MARK = re.compile(r"(?:[-_:. ]([A-Z])|(?<!\d)[-_:. ]?(\d{1,2}[A-Z]?))$")
_MOST_NAMES = 100  # in one message
_FIRST_OF_SERIES = {"A", "1", "01", "1A", "01A"}
# ELAN names languages in three letters; only the ones whose lower case differs matter here.
_TWO_LETTERS = {"tur": "tr", "aze": "az", "azj": "az", "Turkish": "tr", "Azerbaijani": "az"}


@dataclass(frozen=True, slots=True)
class _LocalGloss:
    """The gloss of a type in one language, named as the source names it (eng, English, ...)."""

    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyItem:
    """One type of a lexicon."""

    type_id: str
    glosses: tuple[_LocalGloss, ...] = ()
    description: str = ""
    vocabulary: str = ""  # the list it belongs to: ELAN CV_ID, SignBank dataset

    def gloss(self, language: str = "") -> str:
        """The gloss in `language`, else the first one; empty if there is none."""
        chosen = next((g.text for g in self.glosses if g.text and g.language == language), "")
        return chosen or next((g.text for g in self.glosses if g.text), "")


@dataclass(frozen=True, slots=True)
class ExternalVocabulary:
    """The types of a lexicon and how to find them by word."""

    source: str  # the file it was read from
    items: tuple[VocabularyItem, ...]
    url: str = ""  # where ELAN loads it from; empty for tables, which ELAN cannot load
    warnings: tuple[str, ...] = ()
    _by_id: dict[str, VocabularyItem] = field(init=False, repr=False, compare=False)
    _by_gloss: dict[Word, list[VocabularyItem]] = field(init=False, repr=False, compare=False)
    _by_stem: dict[Word, list[VocabularyItem]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_id: dict[str, dict[str, VocabularyItem]] = {}
        for item in self.items:
            by_id.setdefault(item.type_id, {}).setdefault(item.vocabulary, item)
        known = {type_id: next(iter(found.values())) for type_id, found in by_id.items() if len(found) == 1}
        object.__setattr__(self, "_by_id", known)
        object.__setattr__(self, "_by_gloss", _filed((word, item) for item in self.items for word in _words(item)))
        object.__setattr__(self, "_by_stem", _filed(_stems(self.items, self._by_gloss)))

    @property
    def lists(self) -> tuple[str, ...]:
        """The names of the lists that hold its types, in the order of the source."""
        return tuple(dict.fromkeys(item.vocabulary for item in self.items))

    def only(self, name: str) -> ExternalVocabulary:
        if name not in self.lists:
            what = f"has no vocabulary {name!r}, only {shortened(self.lists)}"
            raise FormatError(self.source, what, "choose one of these")
        return replace(self, items=tuple(item for item in self.items if item.vocabulary == name))

    def item(self, type_id: str) -> VocabularyItem | None:
        """The type with an id, or None: also where several lists use the id for types of their own."""
        return self._by_id.get(type_id)

    def items_for(self, word: Word) -> tuple[VocabularyItem, ...]:
        """The types of a word, in the order of the source: by gloss, else by gloss without the mark of a variant."""
        return tuple(self._by_gloss.get(word, ()) or self._by_stem.get(word, ()))


def with_type_ids(dictionary: Dictionary, vocabulary: ExternalVocabulary) -> Dictionary:
    """The same dictionary with a `type_id` on every entry that means one type of the vocabulary.

    The gloss of word and variant decides ("house" + "A" is HOUSE-A), then the word. Where several types fit, the entry
    stays without an id, as where lists share the id: a wrong id is worse than none. Ids that are already there stay.
    """
    entries = (_with_type_id(entry, vocabulary) for entry in dictionary)
    return Dictionary.of(dictionary.name, entries, dictionary.folder)


def _with_type_id(entry: Entry, vocabulary: ExternalVocabulary) -> Entry:
    if entry.type_id:
        return entry
    found: tuple[VocabularyItem, ...] = ()
    if entry.variant:
        both = (_word(f"{entry.word}{joint}{entry.variant}", entry.language) for joint in ("-", ""))
        found = tuple(item for word in both if word for item in vocabulary._by_gloss.get(word, ()))
    type_ids = {item.type_id for item in found or vocabulary.items_for(entry.word)}
    if len(type_ids) != 1 or vocabulary.item(type_id := type_ids.pop()) is None:
        return entry
    return replace(entry, type_id=type_id)


def shortened(names: Sequence[str]) -> str:
    """Names as a message gives them: all, unless they are very many."""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return ", ".join([name or "one without a name" for name in names[:_MOST_NAMES]] + more)


def _filed(pairs: Iterator[tuple[Word, VocabularyItem]]) -> dict[Word, list[VocabularyItem]]:
    filed: dict[Word, dict[tuple[str, str], VocabularyItem]] = {}
    for word, item in pairs:
        filed.setdefault(word, {}).setdefault((item.vocabulary, item.type_id), item)
    return {word: list(items.values()) for word, items in filed.items()}


def _word(text: str, language: str) -> Word | None:
    try:
        return normalise(text, _TWO_LETTERS.get(language, language))
    except ValueError:  # nothing but punctuation, or longer than a word can be
        return None


def _words(item: VocabularyItem) -> Iterator[Word]:
    return (word for gloss in item.glosses if (word := _word(gloss.text, gloss.language)))


def _stems(
    items: tuple[VocabularyItem, ...], by_gloss: dict[Word, list[VocabularyItem]]
) -> Iterator[tuple[Word, VocabularyItem]]:
    """Every item under the stem of its glosses, where the rest of the gloss is the mark of a variant."""
    marked: dict[Word, list[tuple[str, VocabularyItem]]] = {}
    for item in items:
        for gloss in item.glosses:
            text = gloss.text.strip()
            mark = _VARIANT_MARK.search(text)
            stem = _word(text[: mark.start()], gloss.language) if mark else None
            if mark and stem and any(character.isalpha() for character in stem):
                marked.setdefault(stem, []).append((mark[1] or mark[2], item))
    for stem, cases in marked.items():
        if stem in by_gloss or len({mark for mark, _ in cases}) > 1 or cases[0][0] in _FIRST_OF_SERIES:
            yield from ((stem, item) for _, item in cases)


# ELAN external controlled vocabularies (.ecv), as SignBanks export them. CV_RESOURCE
#   LANGUAGE LANG_ID
#   CONTROLLED_VOCABULARY CV_ID            one or more lists
#     CV_ENTRY_ML CVE_ID EXT_REF           one type; the id may occur in every list
#       CVE_VALUE LANG_REF DESCRIPTION     its gloss in one language
#     CV_ENTRY CVE_ID DESCRIPTION EXT_REF  one type, before EAF 2.8

_UNKNOWN_LANGUAGE = "und"  # ELAN's name for "not said"


def read_ecv(path: Path) -> ExternalVocabulary:
    """Read every list of an external vocabulary; entries without an id are left out with a warning."""
    root = parse_xml(read_whole(path, MAX_XML_BYTES), path, FormatError).getroot()
    if root.tag != "CV_RESOURCE":
        raise FormatError(path, f"is not an ELAN external vocabulary (it is a <{root.tag}> file)", "give the .ecv file")
    odd = Oddities()
    items = tuple(_with_ids(root, odd))
    if not items:
        raise FormatError(path, "holds no entries with an id", "export it again from the SignBank or from ELAN")
    return ExternalVocabulary(str(path), items, file_url(path), odd.lines())


def file_url(path: Path) -> str:
    """The URL of a file as ELAN writes and reads it: never percent-encoded."""
    absolute = path.absolute().as_posix()
    # //server/share, a Windows network path, keeps its two slashes.
    return f"file:{absolute}" if absolute.startswith("//") else f"file:///{absolute.lstrip('/')}"


def items_of(vocabulary: etree._Element) -> Iterator[VocabularyItem]:
    """The entries of one CONTROLLED_VOCABULARY."""
    for entry in vocabulary.iterchildren("CV_ENTRY_ML", "CV_ENTRY"):
        values = list(entry.iterchildren("CVE_VALUE")) if entry.tag == "CV_ENTRY_ML" else [entry]
        yield VocabularyItem(
            type_id=entry.get("CVE_ID", ""),
            glosses=tuple(_LocalGloss(v.get("LANG_REF", _UNKNOWN_LANGUAGE), plain_text(v)) for v in values),
            description=next((v.get("DESCRIPTION", "") for v in values if v.get("DESCRIPTION")), ""),
            vocabulary=vocabulary.get("CV_ID", ""),
        )


def plain_text(element: etree._Element | None) -> str:
    """The text of an element without its comments; empty if there is none."""
    if element is None:
        return ""
    return str(element.xpath("string()")) if len(element) else element.text or ""


def _with_ids(root: etree._Element, odd: Oddities) -> Iterator[VocabularyItem]:
    seen: set[tuple[str, str]] = set()  # an id is that of one list only
    for vocabulary in root.iterchildren("CONTROLLED_VOCABULARY"):
        for item in items_of(vocabulary):
            if not item.type_id:
                odd.note("entries without an id, left out", item.gloss())
            elif (item.vocabulary, item.type_id) in seen:
                odd.note("entries whose id occurs before, left out", item.type_id)
            else:
                seen.add((item.vocabulary, item.type_id))
                yield item


# The gloss table of a Global SignBank (CSV), read as a vocabulary. Columns are found by name, in any order and any
# case, for any languages:
#
#     Signbank ID                   the type; rows are known by nothing else
#     Dataset                       the list it belongs to
#     Annotation ID Gloss (Dutch)   its gloss, one column for each language
#     Senses (Dutch)                what it means, one column for each language; also "Keywords (...)" of older tables
#
# Other columns are ignored. The table may be separated by commas, semicolons or tabs, in UTF-8, UTF-16 or cp1252.

MAX_BYTES = 100_000_000
_DELIMITERS = (",", ";", "\t")
_IN_LANGUAGE = re.compile(r"(annotation id gloss|senses|keywords)\s*[(:]\s*([^()]+?)\s*\)?", re.IGNORECASE)
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def read_signbank(path: Path) -> ExternalVocabulary:
    """Read a SignBank table; rows without an id or with a repeated one are left out with a warning naming the row."""
    text = _decoded(read_whole(path, MAX_BYTES), path)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text)))
    except csv.Error as error:
        raise FormatError(path, f"is not a readable table ({error})", "export it again from the SignBank") from error
    header = rows[0] if rows else []
    columns = _Columns.of(header)
    if columns is None:
        found = ", ".join(header[:8]) or "none"
        raise FormatError(path, f"has no column 'Signbank ID' (found: {found[:200]})", "export it from a SignBank")
    odd = Oddities()
    items = tuple(_items(rows[1:], columns, odd))
    if not items:
        raise FormatError(path, "holds no rows with a Signbank ID", "export it again from the SignBank")
    return ExternalVocabulary(str(path), items, warnings=odd.lines())


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where in a row things are."""

    type_id: int
    dataset: int | None
    glosses: tuple[tuple[str, int], ...]  # language, column
    senses: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, header: Sequence[str]) -> _Columns | None:
        names = [name.strip().lower() for name in header]
        if "signbank id" not in names:
            return None
        glosses, senses = list[tuple[str, int]](), list[tuple[str, int]]()
        for column, name in enumerate(header):
            if match := _IN_LANGUAGE.fullmatch(name.strip()):
                (glosses if match[1].lower().startswith("annotation") else senses).append((match[2], column))
        dataset = names.index("dataset") if "dataset" in names else None
        return cls(names.index("signbank id"), dataset, tuple(glosses), tuple(senses))


def _items(rows: Sequence[Sequence[str]], columns: _Columns, odd: Oddities) -> Iterator[VocabularyItem]:
    first_row: dict[str, int] = {}
    for number, row in enumerate(rows, start=2):  # as a spreadsheet counts: the header is row 1
        if not any(cell.strip() for cell in row):
            continue
        type_id = _cell(row, columns.type_id)
        if not type_id:
            odd.note("rows without a Signbank ID, left out", f"row {number}")
        elif type_id in first_row:
            odd.note("rows whose Signbank ID occurs before, left out", f"row {number}: {type_id}")
        else:
            first_row[type_id] = number
            glosses = (_LocalGloss(language, _cell(row, column)) for language, column in columns.glosses)
            told = tuple(gloss for gloss in glosses if gloss.text)
            senses = (f"{language}: {_cell(row, at)}" for language, at in columns.senses if _cell(row, at))
            dataset = _cell(row, columns.dataset) if columns.dataset is not None else ""
            yield VocabularyItem(type_id=type_id, glosses=told, description="; ".join(senses), vocabulary=dataset)


def _cell(row: Sequence[str], column: int) -> str:
    return row[column].strip() if column < len(row) else ""


def _delimiter(text: str) -> str:
    """The delimiter under which the first line has a column "Signbank ID"; a comma if there is none."""
    header = re.split(r"[\r\n]", text[:100_000], maxsplit=1)[0]
    for delimiter in _DELIMITERS:
        cells = next(csv.reader([header], delimiter=delimiter), [])
        if "signbank id" in (cell.strip().lower() for cell in cells):
            return delimiter
    return ","


def _decoded(data: bytes, path: Path) -> str:
    marked = next((name for mark, name in _BYTE_ORDER_MARKS.items() if data.startswith(mark)), None)
    # Spreadsheets save "CSV" as UTF-8 or, on older Windows, as cp1252, which almost never decodes as UTF-8.
    for encoding in (marked,) if marked else ("utf-8", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise FormatError(path, "is not in a known text encoding", "save it as CSV UTF-8")
