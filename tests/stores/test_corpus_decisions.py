from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from signspot.errors import OutputExists
from signspot.evaluation.protocol import Decisions
from signspot.stores.corpus import DecisionNames, write_decisions

DECISIONS = Decisions(
    passage=np.array([0, 0, 1]),
    entry_row=np.array([0, 1, 1]),
    rank=np.array([1, 2, 1]),
    cosine=np.array([0.5, -np.inf, 0.25], np.float32),
    found_frame=np.array([30, -1, 7]),
    is_relevant=np.array([True, False, True]),
    is_right=np.array([True, False, False]),
)
NAMES = DecisionNames(
    passages=("p0", "p1\udcff"),
    words=("apple", "tree"),
    signers=("s", "s"),
    label_frames=np.array([33, 90]),
    entries=("apple_1", "tree_1"),
    entry_words=("apple", "tree"),
)


def test_every_decision_is_a_row_and_what_was_not_compared_is_empty(tmp_path: Path) -> None:
    write_decisions(DECISIONS, NAMES, tmp_path / "d.parquet")
    rows = pq.read_table(tmp_path / "d.parquet").to_pylist()
    assert rows[0] == {
        "passage": "p0",
        "word": "apple",
        "signer": "s",
        "entry": "apple_1",
        "entry_word": "apple",
        "rank": 1,
        "cosine": 0.5,
        "found_frame": 30,
        "label_frame": 33,
        "relevant": True,
        "right": True,
    }
    assert (rows[1]["cosine"], rows[1]["found_frame"]) == (None, None)
    assert (rows[2]["passage"], rows[2]["label_frame"], rows[2]["right"]) == ("p1\\udcff", 90, False)


def test_an_older_table_is_not_replaced_unasked(tmp_path: Path) -> None:
    write_decisions(DECISIONS, NAMES, tmp_path / "d.parquet")
    with pytest.raises(OutputExists, match="exists already"):
        write_decisions(DECISIONS, NAMES, tmp_path / "d.parquet")
