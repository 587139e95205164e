"""Every decision of an evaluation as a Parquet table: one row for a passage and a dictionary entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from signspot.atomic import atomic_output
from signspot.evaluation.decisions import Decisions
from signspot.evaluation.ranking import Ints


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
