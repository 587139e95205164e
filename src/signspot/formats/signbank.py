"""The gloss table of a Global SignBank (CSV), read as a vocabulary.

Columns are found by name, in any order and any case, for any languages:

    Signbank ID                   the type; rows are known by nothing else
    Dataset                       the list it belongs to
    Annotation ID Gloss (Dutch)   its gloss, one column for each language
    Senses (Dutch)                what it means, one column for each language; also "Keywords (...)" of older tables

Other columns are ignored. The table may be separated by commas, semicolons or tabs, in UTF-8, UTF-16 or cp1252.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from signspot.errors import FormatError
from signspot.formats.intake import read_whole
from signspot.formats.oddities import Oddities
from signspot.formats.vocabulary import ExternalVocabulary, LocalGloss, VocabularyItem

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
        raise FormatError(path, f"is no readable table ({error})", "export it again from the SignBank") from error
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
        parts = [
            (match, column) for column, name in enumerate(header) if (match := _IN_LANGUAGE.fullmatch(name.strip()))
        ]
        return cls(
            names.index("signbank id"),
            names.index("dataset") if "dataset" in names else None,
            tuple((match[2], column) for match, column in parts if match[1].lower().startswith("annotation")),
            tuple((match[2], column) for match, column in parts if not match[1].lower().startswith("annotation")),
        )


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
            yield _item(row, type_id, columns)


def _item(row: Sequence[str], type_id: str, columns: _Columns) -> VocabularyItem:
    glosses = tuple(LocalGloss(language, _cell(row, column)) for language, column in columns.glosses)
    senses = (f"{language}: {_cell(row, column)}" for language, column in columns.senses if _cell(row, column))
    return VocabularyItem(
        type_id=type_id,
        glosses=tuple(gloss for gloss in glosses if gloss.text),
        description="; ".join(senses),
        vocabulary=_cell(row, columns.dataset) if columns.dataset is not None else "",
    )


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
    raise FormatError(path, "is in no known text encoding", "save it as CSV UTF-8")
