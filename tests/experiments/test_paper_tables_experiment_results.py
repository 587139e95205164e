from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.lib.paper_tables import (
    ExperimentResults,
    Measured,
    ResultRow,
    markdown_of,
    read_results,
    write_results,
)
from hypothesis import given
from hypothesis import strategies as st

from signspot.errors import FormatError

TABLE = ExperimentResults(
    name="table9",
    title="A table",
    paper="Table 9",
    data="synthetic world: small, version 1, seed 0",
    command="python experiments/table9/run.py",
    conditions={"seeds": "0, 1"},
    columns=("mAP", "R@5"),
    rows=(
        ResultRow("one", {"mAP": Measured(0.25, (0.2, 0.3), 0.125, 0.375, 0.5), "R@5": Measured(1)}),
        ResultRow("two", {"mAP": Measured(0.0)}),
    ),
    verdict="The same order.",
)
CELLS = st.builds(
    Measured,
    st.floats(-1, 1),
    st.lists(st.floats(-1, 1), max_size=3).map(tuple),
    st.none() | st.floats(-1, 1),
    st.none() | st.floats(-1, 1),
    st.none() | st.floats(0, 1),
)


def test_a_table_reads_back_as_it_was_written(tmp_path: Path) -> None:
    write_results(TABLE, tmp_path / "results.json")
    assert read_results(tmp_path / "results.json") == TABLE


def test_an_older_table_is_replaced(tmp_path: Path) -> None:
    write_results(TABLE, tmp_path / "results.json")
    write_results(replace(TABLE, verdict="Another order."), tmp_path / "results.json")
    assert read_results(tmp_path / "results.json").verdict == "Another order."


@given(st.lists(st.dictionaries(st.sampled_from(("mAP", "R@5")), CELLS), max_size=3))
def test_any_cells_read_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, cells: list[dict[str, Measured]]
) -> None:
    path = tmp_path_factory.mktemp("results") / "results.json"
    table = replace(TABLE, rows=tuple(ResultRow(f"row {i}", one) for i, one in enumerate(cells)))
    write_results(table, path)
    assert read_results(path) == table


def test_a_cell_shows_ours_the_interval_and_the_papers_number() -> None:
    lines = markdown_of(TABLE).splitlines()
    assert lines == [
        "| method | mAP | R@5 |",
        "|---|---|---|",
        "| one | 25.0 [12.5, 37.5] (paper: 50.0) | 100.0 |",
        "| two | 0.0 | – |",
    ]


def test_numbers_that_are_no_shares_are_shown_as_they_are() -> None:
    assert "| one | 0.250 [0.125, 0.375] (paper: 0.500) | 1.000 |" in markdown_of(replace(TABLE, is_percent=False))


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '"results"',
        '{"rows": 3, "columns": []}',
        '{"rows": [{"name": "one"}], "columns": []}',
        json.dumps({"rows": [{"name": "one", "cells": {"mAP": {"mean": "high", "runs": []}}}], "columns": ["mAP"]}),
        json.dumps({"rows": [{"name": "one", "cells": {"mAP": {"mean": 1, "runs": 3}}}], "columns": ["mAP"]}),
        json.dumps({"rows": [{"name": "one", "cells": {"mAP": {"mean": 1, "runs": [], "best": 2}}}], "columns": []}),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(FormatError, match="is no table of results"):
        read_results(path)


def test_a_cell_of_no_column_is_refused() -> None:
    with pytest.raises(ValueError, match="has a cell of no column: 'speed'"):
        replace(TABLE, rows=(ResultRow("one", {"speed": Measured(1.0)}),))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True, "0.5"])
def test_what_is_no_number_is_no_measure(number: float) -> None:
    with pytest.raises(ValueError, match="holds what is no number"):
        Measured(0.5, (number,))
