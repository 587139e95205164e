"""What was really signed, as a Parquet table: one row a sign, for those who measure spotting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from signspot.atomic import atomic_output
from signspot.errors import FormatError

_TYPES = {"str": pa.string(), "int": pa.int64()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSign:
    """One sign of a video: frames [start_frame, stop_frame) at 25 a second."""

    video_id: str
    start_frame: int
    stop_frame: int
    word: str
    variant: str
    form: str  # two entries of one form look the same
    signer: str


_SCHEMA = pa.schema([pa.field(field.name, _TYPES[str(field.type)], nullable=False) for field in fields(SignedSign)])


def write_truth(signs: Iterable[SignedSign], path: Path, *, overwrite: bool = False) -> None:
    """Write all signs of a corpus."""
    rows = list(signs)
    columns = [[getattr(row, name) for row in rows] for name in _SCHEMA.names]
    table = pa.table([pa.array(column, kind) for column, kind in zip(columns, _SCHEMA.types, strict=True)], _SCHEMA)
    with atomic_output(path, overwrite=overwrite) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_truth(path: Path) -> tuple[SignedSign, ...]:
    """Read them again."""
    try:
        table = pq.read_table(path)
        if table.schema.names != _SCHEMA.names:
            raise FormatError(path, "is no table of signed signs", "name the truth.parquet of a world")
        return tuple(SignedSign(**row) for row in table.to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise FormatError(path, f"cannot be read ({error})", "name the truth.parquet of a world") from error
