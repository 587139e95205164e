"""The part of a clip that is kept, and the manifest as a table: what is written comes back."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Dictionary, Entry, Rights, Signer, normalise
from signspot.domain.time import FrameSpan
from signspot.errors import DictionaryError
from signspot.stores.dictionary import read_dictionary, write_dictionary_manifest

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12).map(str.strip)
RIGHTS = Rights(holder="=Deaf club", may_train=True, may_display=False, expires=date(2031, 12, 31))


@st.composite
def entries(draw: st.DrawFn) -> list[tuple[str, str, str, str, FrameSpan | None]]:
    span = st.tuples(st.integers(0, 500), st.integers(1, 500)).map(lambda pair: FrameSpan(pair[0], pair[0] + pair[1]))
    row = st.tuples(st.sampled_from(["apple", "ice cream", "=1+1", "Straße"]), TEXT, TEXT, TEXT, st.none() | span)
    return draw(st.lists(row, min_size=1, max_size=5))


@pytest.mark.parametrize("name", ["dictionary.csv", "dictionary.json"])
@given(rows=entries())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_a_dictionary_written_and_read_is_the_same(
    tmp_path: Path, name: str, rows: list[tuple[str, str, str, str, FrameSpan | None]]
) -> None:
    folder = tmp_path / name.replace(".", "-")
    folder.mkdir(exist_ok=True)
    made = []
    for number, (text, variant, signer, region, kept) in enumerate(rows):
        video = folder / f"{number}.mp4"
        video.touch()
        made.append(
            Entry(
                entry_id=f"@{number}",
                word=normalise(text),
                variant=variant,
                video=video,
                signer=Signer(signer, left_handed=bool(number % 2)) if signer else None,
                region=region,
                rights=RIGHTS if number % 2 else Rights(),
                kept=kept,
            )
        )
    dictionary = Dictionary.of("any", made)
    write_dictionary_manifest(dictionary, folder / name, overwrite=True)
    read = read_dictionary(folder)
    assert read.problems == ()
    assert list(read.dictionary) == list(dictionary)


@pytest.mark.parametrize(("start", "stop"), [("5", ""), ("", "5"), ("5", "5"), ("-1", "5"), ("1.5", "3"), ("x", "3")])
def test_a_part_that_is_none_is_a_problem_of_its_row(tmp_path: Path, start: str, stop: str) -> None:
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / name).touch()
    table = f"word,file,kept_start,kept_stop\na,a.mp4,{start},{stop}\nb,b.mp4,2,7\n"
    (tmp_path / "dictionary.csv").write_text(table)
    read = read_dictionary(tmp_path)
    assert [(entry.word, entry.kept) for entry in read.dictionary] == [("b", FrameSpan(2, 7))]
    assert "kept_start" in str(read.problems[0]) and "line 2" in str(read.problems[0])


def test_a_table_without_entries_says_so(tmp_path: Path) -> None:
    write_dictionary_manifest(Dictionary.of("none", []), tmp_path / "dictionary.csv")
    with pytest.raises(DictionaryError, match="no usable clip"):
        read_dictionary(tmp_path)


def test_an_entry_keeps_at_least_one_frame() -> None:
    with pytest.raises(ValueError, match="no frames from 3 to 3"):
        Entry(entry_id="a", word=normalise("a"), kept=FrameSpan(3, 3))
