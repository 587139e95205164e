"""Spottings as tables: CSV, JSON lines, JSON and Parquet, chosen by the suffix; columns in spotting_rows.COLUMNS.

CSV is as `spreadsheet` describes it. JSON is one array and, like every JSON file we read whole, at most 64 MB; JSON
lines and Parquet have no such limit. Reading needs all columns but the derived ones (spotting_id, start, stop) and
ignores columns of other people.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from signspot.atomic import atomic_output
from signspot.domain.results import Spotting, VideoAnswer
from signspot.errors import FormatError, readable_size
from signspot.formats.intake import MAX_FILE_BYTES, MAX_LINE_CHARACTERS, bounded_lines, open_text, require_file
from signspot.formats.parquet import parquet_rows, write_parquet
from signspot.formats.safe_json import parse_json, read_json
from signspot.formats.spotting_rows import COLUMNS, NEEDED, STORED, Cell, Role, clock, row_of, spotting_of
from signspot.formats.spreadsheet import guarded, unguarded

_NAMES = tuple(column.name for column in STORED)
_CLOCKS_AT = next(at for at, column in enumerate(COLUMNS) if column.role is Role.FOR_PEOPLE)  # after start_ms, stop_ms


def write_spottings(spottings: Iterable[Spotting], path: Path, *, overwrite: bool = False) -> None:
    """Write a table of spottings in the format of the suffix, in bounded memory."""
    write, _ = _format(path)
    rows = _rows(spottings, path)
    with atomic_output(path, overwrite=overwrite) as temporary:
        write(rows, temporary, path)


def read_spottings(path: Path) -> Iterator[Spotting]:
    """The spottings of a table that `write_spottings` or a spreadsheet wrote, one at a time."""
    _, read = _format(path)
    require_file(path)
    return read(path)


def spotting_record(spotting: Spotting) -> dict[str, object]:
    """A spotting as one flat JSON object: the columns of the tables without those for people."""
    try:
        return dict(zip(_NAMES, row_of(spotting), strict=True))
    except ValueError as error:
        raise FormatError(spotting.video_id, str(error), "correct the dictionary or the subtitles") from error


def _rows(spottings: Iterable[Spotting], path: Path) -> Iterator[tuple[Cell, ...]]:
    for number, spotting in enumerate(spottings, start=1):
        try:
            yield row_of(spotting)
        except ValueError as error:
            raise FormatError(path, f"spotting {number}: {error}", "correct the dictionary or the subtitles") from error


def _spotting(record: dict[str, object], path: Path, number: int) -> Spotting:
    try:
        return spotting_of(record)
    except KeyError as error:
        raise FormatError(path, f"row {number}: no {error.args[0]}", "every row needs every column") from error
    except ValueError as error:
        raise FormatError(path, f"row {number}: {error}", "correct the row") from error


def _write_csv(rows: Iterable[tuple[Cell, ...]], temporary: Path, path: Path) -> None:
    del path
    with temporary.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(column.name for column in COLUMNS)
        writer.writerows(map(_csv_row, rows))


def _csv_row(row: tuple[Cell, ...]) -> list[Cell]:
    cells = [guarded(cell) if isinstance(cell, str) else cell for cell in row]
    start_ms, stop_ms = row[_CLOCKS_AT - 2 : _CLOCKS_AT]
    return [*cells[:_CLOCKS_AT], clock(int(start_ms or 0)), clock(int(stop_ms or 0)), *cells[_CLOCKS_AT:]]


def _read_csv(path: Path) -> Iterator[Spotting]:
    with open_text(path) as file:
        reader = csv.reader(bounded_lines(file, path), strict=True)
        try:
            header = next(reader, [])
            _check_header(header, path)
            for number, cells in enumerate(reader, start=2):
                if len(cells) != len(header):
                    what = f"row {number}: {len(cells)} cells under {len(header)} columns"
                    raise FormatError(path, what, "correct the row")
                record: dict[str, object] = dict(zip(header, map(unguarded, cells), strict=True))
                yield _spotting(record, path, number)
        except csv.Error as error:
            raise FormatError(path, f"row {reader.line_num}: {error}", "it is damaged or no CSV file") from error


def _check_header(header: list[str], path: Path) -> None:
    twice = sorted({name for name in header if header.count(name) > 1}) if len(header) < 1000 else header[:1]
    if twice:
        raise FormatError(path, f"the column {twice[0][:40]!r} comes twice", "name each column once")
    if missing := [column.name for column in NEEDED if column.name not in header]:
        raise FormatError(path, f"no column {', '.join(missing)}", "a table of spottings has a header row with them")


def _json_line(row: tuple[Cell, ...], path: Path, number: int) -> str:
    line = json.dumps(dict(zip(_NAMES, row, strict=True)), ensure_ascii=False, allow_nan=False)
    if len(line) >= MAX_LINE_CHARACTERS:
        raise FormatError(path, f"spotting {number} has over a million characters", "shorten its texts")
    return line


def _write_jsonl(rows: Iterable[tuple[Cell, ...]], temporary: Path, path: Path) -> None:
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        for number, row in enumerate(rows, start=1):
            file.write(_json_line(row, path, number) + "\n")


def _read_jsonl(path: Path) -> Iterator[Spotting]:
    with open_text(path) as file:
        for number, line in enumerate(bounded_lines(file, path), start=1):
            if not line.isspace():
                value = parse_json(line.encode(), f"{path}, line {number}")
                yield _spotting(_object(value, path, number), path, number)


def _write_json(rows: Iterable[tuple[Cell, ...]], temporary: Path, path: Path) -> None:
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        for number, row in enumerate(rows, start=1):
            file.write(("[\n" if number == 1 else ",\n") + _json_line(row, path, number))
            _check_size(file, path, number)
        file.write("\n]\n" if file.tell() else "[]\n")
    if temporary.stat().st_size > MAX_FILE_BYTES:
        raise _too_large(path)


def _check_size(file: TextIO, path: Path, number: int) -> None:
    if number % 10_000 == 0 and file.tell() > MAX_FILE_BYTES:
        raise _too_large(path)


def _too_large(path: Path) -> FormatError:
    what = f"would be larger than {readable_size(MAX_FILE_BYTES)}"
    return FormatError(path, what, "write .jsonl or .parquet instead")


def answer_record(answer: VideoAnswer) -> dict[str, object]:
    """The JSON form of an answer: the findings, and for every word whether it was found and how close it came."""
    return {
        "video_id": answer.video_id,
        "duration_ms": answer.duration_ms,
        "threshold": answer.threshold,
        "least_presence": answer.least_presence,
        "partial": answer.partial,
        "warnings": list(answer.warnings),
        "words": [
            {
                "word": word.word,
                "found": len(word.spottings),
                "best_cosine": None if word.best_cosine is None else round(word.best_cosine, 6),
                "presence": None if word.presence is None else round(word.presence.probability, 6),
                "was_searched": word.searched_ms != (),
            }
            for word in answer.words
        ],
        "spottings": [spotting_record(spotting) for spotting in answer],
    }


def _read_json(path: Path) -> Iterator[Spotting]:
    """An array of spottings, an answer that holds some, or an array of answers."""
    content = read_json(path)
    answers = content if isinstance(content, list) else [content]
    values: list[object] = []
    for answer in answers:
        held = answer.get("spottings") if isinstance(answer, dict) else None
        values += held if isinstance(held, list) else [answer]
    for number, value in enumerate(values, start=1):
        yield _spotting(_object(value, path, number), path, number)


def _object(value: object, path: Path, number: int) -> dict[str, object]:
    if not isinstance(value, dict):
        raise FormatError(path, f"row {number} is not an object", "every row is one object with a value per column")
    return value


def _write_parquet(rows: Iterable[tuple[Cell, ...]], temporary: Path, path: Path) -> None:
    write_parquet(rows, temporary, path)


def _read_parquet(path: Path) -> Iterator[Spotting]:
    for number, record in zip(itertools.count(1), parquet_rows(path), strict=False):
        yield _spotting(record, path, number)


_Write = Callable[[Iterable[tuple[Cell, ...]], Path, Path], None]
_Read = Callable[[Path], Iterator[Spotting]]
_FORMATS: dict[str, tuple[_Write, _Read]] = {
    ".csv": (_write_csv, _read_csv),
    ".jsonl": (_write_jsonl, _read_jsonl),
    ".json": (_write_json, _read_json),
    ".parquet": (_write_parquet, _read_parquet),
}


def _format(path: Path) -> tuple[_Write, _Read]:
    if path.suffix.lower() not in _FORMATS:
        raise FormatError(path, f"no table format ends in {path.suffix!r}", f"use one of {', '.join(_FORMATS)}")
    return _FORMATS[path.suffix.lower()]
