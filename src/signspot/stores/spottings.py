"""A spotting as one flat row: the one list of columns that every table format and `--json` share.

Times are whole milliseconds of media time from 0:00 of the player; `start` is inside the sign, `stop` no longer is.
Words and ids are written and read as they are, without normalising: what was written comes back.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from signspot.domain.recordings import Subtitle, Word
from signspot.domain.results import Presence, Provenance, Spotting, VideoAnswer
from signspot.domain.time import Millis, MillisSpan, clock
from signspot.errors import FormatError, readable_size
from signspot.files.atomic import atomic_output
from signspot.files.intake import MAX_FILE_BYTES, MAX_LINE_CHARACTERS, bounded_lines, open_text, require_file
from signspot.files.json import parse_json, read_json
from signspot.files.tables import guarded, unguarded

MAX_TEXT = 32_767  # characters; more does not fit into a cell of a spreadsheet
_MAX_INTEGER = 1 << 53  # beyond, a JSON reader may round
_MAX_COSINE = 1.001  # float32 rounding may exceed 1 a little

_INTEGER = re.compile(r"(-?[0-9]{1,16})(?:\.0*)?", re.ASCII)  # pandas writes 1200.0 where other rows are empty
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)


class _Kind(Enum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"


class _Role(Enum):
    """What a column is for when a table is read."""

    READ = "read"
    DERIVED = "derived"  # made from other columns; ignored in reading
    FOR_PEOPLE = "for people"  # derived, and only in CSV


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of the table: documented here and nowhere else."""

    name: str
    kind: _Kind
    meaning: str
    optional: bool = False  # may be empty
    role: _Role = _Role.READ


COLUMNS = (
    _Column("spotting_id", _Kind.TEXT, "the same for the same finding, on any machine", role=_Role.DERIVED),
    _Column("video_id", _Kind.TEXT, "which video"),
    _Column("word", _Kind.TEXT, "the word whose sign was found"),
    _Column("start_ms", _Kind.INTEGER, "where the sign starts, in ms of media time"),
    _Column("stop_ms", _Kind.INTEGER, "where the sign has ended, in ms of media time"),
    _Column("start", _Kind.TEXT, "start_ms as h:mm:ss.mmm", role=_Role.FOR_PEOPLE),
    _Column("stop", _Kind.TEXT, "stop_ms as h:mm:ss.mmm", role=_Role.FOR_PEOPLE),
    _Column("frame", _Kind.INTEGER, "the frame at the centre of the best window, counted from 0 at 25 per second"),
    _Column("entry_id", _Kind.TEXT, "the dictionary clip that fits best"),
    _Column("variant", _Kind.TEXT, "which form of the sign; empty where the dictionary does not say"),
    _Column("type_id", _Kind.TEXT, "the sign's id in an external vocabulary such as SignBank; empty if it has none"),
    _Column("cosine", _Kind.NUMBER, "how alike sign and clip are, from -1 to 1; no probability"),
    _Column(
        "presence", _Kind.NUMBER, "calibrated probability that the sign is there; empty: uncalibrated", optional=True
    ),
    _Column("calibration", _Kind.TEXT, "which calibration gave the presence"),
    _Column("model", _Kind.TEXT, "the model's name"),
    _Column("fingerprint", _Kind.TEXT, "the model's exact weights and settings"),
    _Column("dictionary", _Kind.TEXT, "the dictionary"),
    _Column("media_sha256", _Kind.TEXT, "the video file's content"),
    _Column("source", _Kind.TEXT, "how it was found: lookup, watch, read, mouthing, human"),
    _Column("subtitle", _Kind.TEXT, "the subtitle that led to the search"),
    _Column("subtitle_start_ms", _Kind.INTEGER, "its start; empty: no subtitle", optional=True),
    _Column("subtitle_stop_ms", _Kind.INTEGER, "its end; empty: no subtitle", optional=True),
)
STORED = tuple(column for column in COLUMNS if column.role is not _Role.FOR_PEOPLE)
NEEDED = tuple(column for column in COLUMNS if column.role is _Role.READ)

Cell = str | int | float | None


def _row_of(spotting: Spotting) -> tuple[Cell, ...]:
    """The values of the columns in STORED; ValueError if they could not be read back."""
    from_model, presence = spotting.provenance, spotting.presence
    subtitle = from_model.subtitle
    texts = (
        spotting.video_id,
        spotting.word,
        spotting.entry_id,
        spotting.variant,
        spotting.type_id,
        presence.calibration if presence else "",
        from_model.model,
        from_model.fingerprint,
        from_model.dictionary,
        from_model.media_sha256,
        from_model.source,
        subtitle.text if subtitle else "",
    )
    _check_texts(texts)
    _check_numbers(spotting)
    return (
        spotting.spotting_id,
        *texts[:2],
        spotting.span_ms.start,
        spotting.span_ms.stop,
        spotting.frame,
        *texts[2:5],
        float(spotting.cosine),
        float(presence.probability) if presence else None,
        *texts[5:],
        subtitle.span_ms.start if subtitle else None,
        subtitle.span_ms.stop if subtitle else None,
    )


def _spotting_of(record: Mapping[str, object]) -> Spotting:
    """The spotting a row describes; ValueError says which column is wrong."""
    cells = {column.name: _cell(column, record) for column in NEEDED}
    integer = {name: value for name, value in cells.items() if isinstance(value, int)}
    text = {name: value for name, value in cells.items() if isinstance(value, str)}
    spotting = Spotting(
        video_id=text["video_id"],
        span_ms=MillisSpan(Millis(integer["start_ms"]), Millis(integer["stop_ms"])),
        frame=integer["frame"],
        word=Word(text["word"]),
        entry_id=text["entry_id"],
        variant=text["variant"],
        type_id=text["type_id"],
        cosine=float(cells["cosine"] or 0),
        presence=_presence(cells["presence"], text["calibration"]),
        provenance=Provenance(
            media_sha256=text["media_sha256"],
            model=text["model"],
            fingerprint=text["fingerprint"],
            dictionary=text["dictionary"],
            source=text["source"],
            subtitle=_subtitle(text["subtitle"], integer.get("subtitle_start_ms"), integer.get("subtitle_stop_ms")),
        ),
    )
    _check_texts(tuple(text.values()))
    _check_numbers(spotting)
    return spotting


def _check_texts(texts: tuple[str, ...]) -> None:
    longest = max(texts, key=len)
    if len(longest) > MAX_TEXT:
        raise ValueError(f"a text of {len(longest)} characters, over {MAX_TEXT}: {longest[:20]!r}...")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half a character (a lone surrogate)") from error


def _check_numbers(spotting: Spotting) -> None:
    span, subtitle = spotting.span_ms, spotting.provenance.subtitle
    if span.start < 0 or spotting.frame < 0:
        raise ValueError(f"a negative time: start_ms {span.start}, frame {spotting.frame}")
    # A subtitle may start below zero: a shift for the signers' delay moves it there.
    furthest = max(span.stop, spotting.frame, *((-subtitle.span_ms.start, subtitle.span_ms.stop) if subtitle else ()))
    if furthest > _MAX_INTEGER:
        raise ValueError(f"a time or frame of {furthest} is beyond any video")
    if not abs(spotting.cosine) <= _MAX_COSINE:  # also true of NaN
        raise ValueError(f"cosine {spotting.cosine} is not between -1 and 1")


def _presence(probability: Cell, calibration: str) -> Presence | None:
    if probability is None:
        if calibration:
            raise ValueError(f"calibration is {calibration[:40]!r} but presence is empty")
        return None
    return Presence(float(probability), calibration)


def _subtitle(text: str, start_ms: int | None, stop_ms: int | None) -> Subtitle | None:
    if start_ms is None and stop_ms is None:
        if text:
            raise ValueError("a subtitle without its times")
        return None
    if start_ms is None or stop_ms is None:
        raise ValueError("a subtitle with only one of its times")
    return Subtitle(MillisSpan(Millis(start_ms), Millis(stop_ms)), text)


def _cell(column: _Column, record: Mapping[str, object]) -> Cell:
    """One value, from text as in CSV or from a typed value as in JSON and Parquet."""
    value = record[column.name]
    if column.kind is _Kind.TEXT:
        if value is None or isinstance(value, str):
            return value or ""
    elif value is None or value == "":
        if column.optional:
            return None
        raise ValueError(f"{column.name} is empty")
    elif column.kind is _Kind.INTEGER:
        if (whole := _whole(value)) is not None:
            return whole
    elif (number := _number(value)) is not None:
        return number
    raise ValueError(f"{column.name} is {str(value)[:40]!r}, which is no {column.kind.value}")


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        match = _INTEGER.fullmatch(value)
        return int(match[1]) if match else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


# Spottings as tables: CSV, JSON lines, JSON and Parquet, chosen by the suffix. JSON is one array and, like every JSON
# file we read whole, at most 64 MB; JSON lines and Parquet have no such limit. Reading needs all columns but the
# derived ones (spotting_id, start, stop) and ignores columns of other people.

_NAMES = tuple(column.name for column in STORED)
_CLOCKS_AT = next(at for at, column in enumerate(COLUMNS) if column.role is _Role.FOR_PEOPLE)  # after start_ms, stop_ms


def write_spottings(spottings: Iterable[Spotting], path: Path, *, overwrite: bool = False) -> None:
    """Write a table of spottings in the format of the suffix, in bounded memory."""
    write, _ = _format(path)
    with atomic_output(path, overwrite=overwrite) as temporary:
        write(_rows(spottings, path), temporary, path)


def read_spottings(path: Path) -> Iterator[Spotting]:
    """The spottings of a table that `write_spottings` or a spreadsheet wrote, one at a time."""
    _, read = _format(path)
    require_file(path)
    return read(path)


def spotting_record(spotting: Spotting) -> dict[str, object]:
    """A spotting as one flat JSON object: the columns of the tables without those for people."""
    try:
        return dict(zip(_NAMES, _row_of(spotting), strict=True))
    except ValueError as error:
        raise FormatError(spotting.video_id, str(error), "correct the dictionary or the subtitles") from error


def _rows(spottings: Iterable[Spotting], path: Path) -> Iterator[tuple[Cell, ...]]:
    for number, spotting in enumerate(spottings, start=1):
        try:
            yield _row_of(spotting)
        except ValueError as error:
            raise FormatError(path, f"spotting {number}: {error}", "correct the dictionary or the subtitles") from error


def _spotting(record: dict[str, object], path: Path, number: int) -> Spotting:
    try:
        return _spotting_of(record)
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
    return [*cells[:_CLOCKS_AT], clock(int(start_ms or 0), 3), clock(int(stop_ms or 0), 3), *cells[_CLOCKS_AT:]]


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
            if number % 10_000 == 0 and file.tell() > MAX_FILE_BYTES:
                break  # its size is refused below
        file.write("\n]\n" if file.tell() else "[]\n")
    if temporary.stat().st_size > MAX_FILE_BYTES:
        what = f"would be larger than {readable_size(MAX_FILE_BYTES)}"
        raise FormatError(path, what, "write .jsonl or .parquet instead")


def answer_record(answer: VideoAnswer) -> dict[str, object]:
    """The JSON form of an answer: the findings, and for every word whether it was found and how close it came."""
    return {
        "video_id": answer.video_id,
        "duration_ms": answer.duration_ms,
        "threshold": answer.threshold,
        "least_presence": answer.least_presence,
        "false_alarms_per_word_and_hour": None if answer.false_alarms is None else round(answer.false_alarms, 3),
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


# Parquet files of spottings, in row groups small enough for bounded memory on both sides.

_ROWS_PER_GROUP = 1 << 16
_CHARACTERS_PER_GROUP = 1 << 24  # long texts make smaller groups
_ROWS_PER_BATCH = 1 << 13
_MAX_GROUP_BYTES = 512_000_000  # decoded; a small file may claim to hold much more
_MAX_ROWS = 100_000_000
_LIMITS = {  # on the file's own description, and on what is read ahead
    "thrift_string_size_limit": 64 << 20,
    "thrift_container_size_limit": 1 << 20,
    "buffer_size": 1 << 20,
    "pre_buffer": False,
}

_TYPES = {_Kind.TEXT: pa.string(), _Kind.INTEGER: pa.int64(), _Kind.NUMBER: pa.float64()}
_SCHEMA = pa.schema([pa.field(column.name, _TYPES[column.kind], nullable=column.optional) for column in STORED])
_texts = itemgetter(*(position for position, column in enumerate(STORED) if column.kind is _Kind.TEXT))
_READ = [column.name for column in NEEDED]


def _write_parquet(rows: Iterable[tuple[Cell, ...]], temporary: Path, path: Path) -> None:
    """Write rows of the columns STORED to `temporary`; errors name `path`."""
    try:
        with pq.ParquetWriter(temporary, _SCHEMA, compression="zstd") as writer:
            for group in _groups(rows):
                columns = zip(zip(*group, strict=True), _SCHEMA.types, strict=True)
                arrays = [pa.array(values, kind) for values, kind in columns]
                writer.write_batch(pa.record_batch(arrays, schema=_SCHEMA))
    except pa.ArrowInvalid as error:
        raise FormatError(path, f"cannot be written as Parquet ({error})", "write .jsonl instead") from error


def _groups(rows: Iterable[tuple[Cell, ...]]) -> Iterator[list[tuple[Cell, ...]]]:
    group: list[tuple[Cell, ...]] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += len("".join(_texts(row)))
        if len(group) >= _ROWS_PER_GROUP or characters >= _CHARACTERS_PER_GROUP:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _read_parquet(path: Path) -> Iterator[Spotting]:
    numbers = itertools.count(1)
    try:
        with pq.ParquetFile(path, **_LIMITS) as file:
            texts = _checked(file, path)
        # Texts stay dictionary-encoded: one long text repeated a million times is held once.
        with pq.ParquetFile(path, read_dictionary=texts, **_LIMITS) as file:
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=_READ, use_threads=False):
                batch.validate(full=True)  # decoding alone accepts texts that are not there
                columns = [_values(batch.column(name)) for name in _READ]
                for cells in zip(*columns, strict=True):
                    yield _spotting(dict(zip(_READ, cells, strict=True)), path, next(numbers))
    except (pa.ArrowException, OSError, MemoryError, ValueError, OverflowError) as error:
        raise FormatError(path, f"is damaged or no Parquet file ({error})", "get a new copy") from error


def _checked(file: pq.ParquetFile, path: Path) -> list[str]:
    """Raise unless the file is a table of spottings of a sane size; give the columns that hold texts."""
    schema = file.schema_arrow
    if missing := [name for name in _READ if name not in schema.names]:
        raise FormatError(path, f"no column {', '.join(missing)}", "name a table of spottings")
    if twice := [name for name in _READ if schema.names.count(name) > 1]:
        raise FormatError(path, f"the column {twice[0]!r} comes twice", "name each column once")
    if nested := [name for name in _READ if pa.types.is_nested(schema.field(name).type)]:
        raise FormatError(path, f"the column {nested[0]!r} holds lists", "name a table of spottings")
    if file.metadata.num_rows > _MAX_ROWS:
        raise FormatError(path, f"claims to hold {file.metadata.num_rows} rows", "split it into several files")
    sizes = [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]
    if sizes and not 0 <= min(sizes) <= max(sizes) <= _MAX_GROUP_BYTES:
        what = f"a row group claims to hold {readable_size(max(sizes))}"
        raise FormatError(path, what, f"write row groups of at most {readable_size(_MAX_GROUP_BYTES)}")
    return [name for name in _READ if pa.types.is_string(schema.field(name).type)]


def _values(column: pa.Array) -> list[object]:
    """The values of a column; a text that repeats is made once."""
    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    texts: list[object] = column.dictionary.to_pylist()
    return [None if index is None else texts[index] for index in column.indices.to_pylist()]


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
