"""What was really signed, as a Parquet table: one row a sign, for those who measure spotting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from signspot.domain.tracks import Ints
from signspot.errors import FormatError
from signspot.evaluation.protocol import Decisions
from signspot.files.atomic import atomic_output

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


# Every decision of an evaluation as a Parquet table: one row for a passage and a dictionary entry.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionNames:
    """What the numbers of the decisions stand for."""

    passages: Sequence[str]  # (P,)
    words: Sequence[str]  # (P,) annotated
    signers: Sequence[str]  # (P,)
    label_frames: Ints  # (P,)
    entries: Sequence[str]  # (E,)
    entry_words: Sequence[str]  # (E,)


def write_decisions(decisions: Decisions, names: DecisionNames, path: Path, *, overwrite: bool = False) -> None:
    """Write all of them, passage by passage; a cosine or frame is empty where nothing could be compared."""
    passage, entry = decisions.passage, decisions.entry_row
    is_compared = np.isfinite(decisions.cosine)
    columns = {
        "passage": _texts(names.passages, passage),
        "word": _texts(names.words, passage),
        "signer": _texts(names.signers, passage),
        "entry": _texts(names.entries, entry),
        "entry_word": _texts(names.entry_words, entry),
        "rank": pa.array(decisions.rank),
        "cosine": pa.array(decisions.cosine.astype(np.float32), mask=~is_compared),
        "found_frame": pa.array(decisions.found_frame, mask=~is_compared),
        "label_frame": pa.array(names.label_frames[passage]),
        "relevant": pa.array(decisions.is_relevant),
        "right": pa.array(decisions.is_right),
    }
    with atomic_output(path, overwrite=overwrite) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


def _texts(texts: Sequence[str], places: Ints) -> pa.Array:
    """Texts by their places, each held once."""
    known = pa.array([text.encode(errors="backslashreplace").decode() for text in texts], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), known).cast(pa.string())
