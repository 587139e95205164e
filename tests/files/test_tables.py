from __future__ import annotations

import csv
import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from signspot.files.tables import csv_bytes, guarded, unguarded, write_csv


@given(st.text())
def test_a_guarded_text_comes_back_and_never_starts_like_a_formula(text: str) -> None:
    assert unguarded(guarded(text)) == text
    assert not guarded(text).startswith(("=", "+", "-", "@", "\t", "\r"))


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))


@given(st.lists(st.tuples(TEXT, TEXT), max_size=5))
def test_a_table_read_by_the_standard_library_holds_the_texts(rows: list[tuple[str, str]]) -> None:
    text = io.StringIO(csv_bytes(("a", "b"), rows).decode("utf-8-sig"), newline="")
    assert [tuple(map(unguarded, row)) for row in csv.reader(text)] == [("a", "b"), *rows]


def test_a_negative_number_is_a_number_and_a_text_that_looks_like_one_is_none() -> None:
    assert csv_bytes(("a", "b"), [(-7.28, "-7.28")]).decode("utf-8-sig").splitlines()[1] == "-7.28,'-7.28"


def test_half_a_character_does_not_stop_the_writing(tmp_path: Path) -> None:
    write_csv(("a",), [("\ud800",)], tmp_path / "t.csv")
    assert "ud800" in (tmp_path / "t.csv").read_text(encoding="utf-8-sig")
