"""Rows of manifests, from CSV or JSON, as named fields; columns are matched without regard to case.

CSV may be separated by commas, semicolons or tabs (Excel writes what the country is used to) and is UTF-8.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from signspot.domain.recordings import Rights, SignerBox, Word, normalise
from signspot.errors import FormatError, Notice
from signspot.files.atomic import atomic_output
from signspot.files.intake import bounded_lines, nfc, open_text
from signspot.files.json import read_json

RIGHTS_FIELDS = tuple(field.name for field in dataclasses.fields(Rights))
BOX_FIELDS = tuple(f"box_{field.name}" for field in dataclasses.fields(SignerBox))
_MAX_ROWS = 1_000_000
_ALIASES = {"license": "licence"}
_YES, _NO = frozenset({"yes", "true", "1"}), frozenset({"no", "false", "0"})
# The language whose spelling rules a sign language's words follow, where casing depends on it.
_WRITTEN_LANGUAGE = {"tsm": "tr"}  # Turkish Sign Language


@dataclass(frozen=True, slots=True)
class Record:
    """One row: where it stands, and its fields by name."""

    where: str
    fields: Mapping[str, object]

    def has(self, name: str) -> bool:
        return self.fields.get(name) not in (None, "")

    def text(self, name: str) -> str:
        """A field as text, "" if it is missing; ValueError if it is something else."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if isinstance(value, str) or type(value) is int:
            return str(value)
        raise ValueError(f"{name} is {str(value)[:40]!r}, which is not text")

    def claim(self, name: str) -> bool | None:
        """A field as yes or no; None if it is missing."""
        value = str(self.fields[name]).strip().lower() if self.has(name) else ""
        if value in _YES or value in _NO:
            return value in _YES
        if value:
            raise ValueError(f"{name} is {value[:40]!r}, which is neither yes nor no")
        return None

    def number(self, name: str) -> float | None:
        """A field as a finite number; None if it is missing."""
        if not self.has(name):
            return None
        value = self.fields[name]
        try:
            number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"{name} is {str(value)[:40]!r}, which is not a number")
        return number

    def day(self, name: str) -> date | None:
        """A field as a date; None if it is missing."""
        try:
            return date.fromisoformat(self.text(name)) if self.has(name) else None
        except ValueError as error:
            raise ValueError(f"{name} is {str(self.fields[name])[:40]!r}, which is not a date") from error

    def word(self, language: str) -> Word:
        """The field `word`, normalised by the rules of its written language."""
        return normalise(self.text("word"), self.text("word_language") or _WRITTEN_LANGUAGE.get(language, language))

    def box(self) -> SignerBox | None:
        edges = [edge for name in BOX_FIELDS if (edge := self.number(name)) is not None]
        if len(edges) not in (0, len(BOX_FIELDS)):
            raise ValueError(f"a box needs all of {', '.join(BOX_FIELDS)}")
        return SignerBox(*edges) if edges else None

    def problem(self, what: str, fix: str) -> Notice:
        return Notice(self.where, what, fix)

    def rights(self) -> tuple[Rights, tuple[Notice, ...]]:
        """Who may do what; if any of it cannot be understood, nothing is allowed."""
        try:
            claims = {name: self.claim(name) for name in RIGHTS_FIELDS if name.startswith("may_")}
            holder, licence = self.text("holder"), self.text("licence")
            rights = Rights(holder=holder, licence=licence, expires=self.day("expires"), **claims)
        except ValueError as error:
            fix = "until it is corrected nothing is allowed (yes or no; dates as 2031-12-31)"
            return Rights(), (self.problem(f"rights: {error}", fix),)
        return rights, ()


def rights_fields(rights: Rights) -> dict[str, object]:
    values = {name: getattr(rights, name) for name in RIGHTS_FIELDS}
    if rights.expires is not None:
        values["expires"] = rights.expires.isoformat()
    return {name: value for name, value in values.items() if value not in (None, "")}


def box_fields(box: SignerBox | None) -> dict[str, object]:
    return {} if box is None else dict(zip(BOX_FIELDS, dataclasses.astuple(box), strict=True))


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns a kind of manifest has."""

    required: tuple[str, ...]
    optional: tuple[str, ...]

    def unknown(self, names: frozenset[str], where: Path) -> tuple[Notice, ...]:
        if not (strange := sorted(names - {*self.required, *self.optional})):
            return ()
        shown = ", ".join(name[:40] for name in strange[:10])
        known = ", ".join((*self.required, *self.optional))
        return (Notice(str(where), f"columns that are not read: {shown}", f"known columns are {known}"),)


@dataclass(frozen=True, slots=True)
class _Records:
    """All rows of a manifest and what was wrong with it as a whole."""

    rows: tuple[Record, ...]
    problems: tuple[Notice, ...] = ()


def csv_records(path: Path, fields: Fields) -> _Records:
    rows: list[Record] = []
    problems: list[Notice] = []
    with open_text(path) as file:
        lines = bounded_lines(file, path)
        first = next(lines, "")
        reader = csv.reader(itertools.chain([first], lines), delimiter=max(",;\t", key=first.count), strict=True)
        try:
            header = _header(next(reader, []), path, fields)
            problems += fields.unknown(frozenset(header), path)
            for cells in reader:
                where = f"{path}, line {reader.line_num}"
                if any(cell.strip() for cell in cells[len(header) :]):
                    problem = f"{len(cells)} cells under {len(header)} columns"
                    problems.append(Notice(where, problem, "correct the row"))
                elif len(rows) >= _MAX_ROWS:
                    raise FormatError(path, f"has more than {_MAX_ROWS} rows", "split it into several folders")
                elif any(cell.strip() for cell in cells):
                    texts = (unguarded(cell.strip()) for cell in cells)
                    rows.append(Record(where, dict(zip(header, texts, strict=False))))
        except csv.Error as error:
            raise FormatError(path, f"line {reader.line_num}: {error}", "it is damaged or no CSV file") from error
    return _Records(tuple(rows), tuple(problems))


def json_records(path: Path, content: Mapping[str, object], key: str, fields: Fields) -> _Records:
    values = content.get(key, [])
    if not isinstance(values, list):
        raise FormatError(path, f"{key!r} is not a list", "write the manifest again")
    rows: list[Record] = []
    problems: list[Notice] = []
    for number, value in enumerate(values, start=1):
        where = f"{path}, {key} {number}"
        if isinstance(value, dict):
            rows.append(Record(where, value))
        else:
            problems.append(Notice(where, "is not an object", "correct or remove it"))
    names = frozenset(name for row in rows for name in row.fields)
    return _Records(tuple(rows), (*fields.unknown(names, path), *problems))


def manifest_in(folder: Path, kind: str) -> tuple[Path | None, list[Notice]]:
    """The file that describes a folder, kind.json or else kind.csv, and a remark about the one that is not read."""
    there = [folder / name for name in (f"{kind}.json", f"{kind}.csv") if (folder / name).is_file()]
    fix = f"{kind}.json says it all: remove one of the two"
    return (there[0] if there else None), [Notice(str(path), "is not read", fix) for path in there[1:]]


def name_in_manifest(path: Path, video: Path | None) -> str:
    """How the manifest at `path` names a file; FormatError if it lies outside the manifest's folder."""
    folder = path.parent.resolve()
    if video is None or not (video.parent.resolve() / video.name).is_relative_to(folder):
        what = f"{video or 'an entry without a video'} is not under the folder of the manifest"
        raise FormatError(path, what, "write the manifest into a folder above all videos")
    return nfc((video.parent.resolve() / video.name).relative_to(folder).as_posix())


def nothing_usable(what: str, problems: Sequence[Notice]) -> str:
    """Say that everything was left out, and why the first thing was."""
    return f"no usable {what}" + (f"; the first of {len(problems)} problems: {problems[0]}" if problems else "")


def read_manifest(path: Path, kind: str) -> dict[str, object]:
    """A JSON manifest of ours: {"format": kind, "version": 1, ...}."""
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != kind:
        what = f'is not a manifest: its "format" is not {kind!r}'
        raise FormatError(path, what, "name a manifest that signspot wrote")
    if content.get("version") != 1 or content["version"] is True:
        what = f"is of version {str(content.get('version'))[:20]}, this program reads version 1"
        raise FormatError(path, what, "use a newer signspot")
    return content


def _header(cells: list[str], path: Path, fields: Fields) -> list[str]:
    header = [_ALIASES.get(name, name) for name in (cell.strip().lower() for cell in cells)]
    while header and not header[-1]:  # spreadsheets write empty columns at the end
        header.pop()
    if len(set(header)) != len(header):
        raise FormatError(path, "a column comes twice", "name each column once")
    if missing := [name for name in fields.required if name not in header]:
        raise FormatError(path, f"no column {' and no column '.join(missing)}", "the first row names the columns")
    return header


# CSV as spreadsheets read it best: RFC 4180 in UTF-8 with a byte order mark, and no cell that runs as a formula.
# Without the mark Excel shows mojibake; pandas and R skip it. A text that a spreadsheet would run as a formula gets a
# leading apostrophe, which reading takes away again.

# Apostrophes before a formula character count too, so that taking one away always gives the text back.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")


def guarded(text: str) -> str:
    """The text as a cell that no spreadsheet runs."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(cell: str) -> str:
    """The text that `guarded` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[str | float]]) -> bytes:
    """A small table as the bytes of a CSV file; numbers stay numbers, also negative ones."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows([guarded(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue().encode("utf-8-sig", errors="backslashreplace")


def write_csv(
    header: Sequence[str], rows: Iterable[Sequence[str | float]], path: Path, *, overwrite: bool = False
) -> None:
    content = csv_bytes(header, rows)
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)
