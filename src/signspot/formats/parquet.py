"""Parquet files of spottings, in row groups small enough for bounded memory on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from signspot.errors import FormatError, readable_size
from signspot.formats.spotting_rows import NEEDED, STORED, Cell, Kind

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

_TYPES = {Kind.TEXT: pa.string(), Kind.INTEGER: pa.int64(), Kind.NUMBER: pa.float64()}
_SCHEMA = pa.schema([pa.field(column.name, _TYPES[column.kind], nullable=column.optional) for column in STORED])
_texts = itemgetter(*(position for position, column in enumerate(STORED) if column.kind is Kind.TEXT))
_READ = [column.name for column in NEEDED]


def write_parquet(rows: Iterable[tuple[Cell, ...]], temporary: Path, path: Path) -> None:
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


def parquet_rows(path: Path) -> Iterator[dict[str, object]]:
    """The rows of a Parquet file as records of the columns NEEDED."""
    try:
        with pq.ParquetFile(path, **_LIMITS) as file:
            texts = _checked(file, path)
        # Texts stay dictionary-encoded: one long text repeated a million times is held once.
        with pq.ParquetFile(path, read_dictionary=texts, **_LIMITS) as file:
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=_READ, use_threads=False):
                batch.validate(full=True)  # decoding alone accepts texts that are not there
                yield from _records(batch)
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


def _records(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    columns = [_values(batch.column(name)) for name in _READ]
    for cells in zip(*columns, strict=True):
        yield dict(zip(_READ, cells, strict=True))


def _values(column: pa.Array) -> list[object]:
    """The values of a column; a text that repeats is made once."""
    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    texts: list[object] = column.dictionary.to_pylist()
    return [None if index is None else texts[index] for index in column.indices.to_pylist()]
