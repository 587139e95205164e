from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.errors import FormatError
from signspot.files.intake import MAX_FILE_BYTES
from signspot.files.json import _MAX_VALUES, MAX_DEPTH, parse_json, read_json, write_json

numbers = st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_what_is_good_json_reads_as_the_standard_library_reads_it(value: object) -> None:
    for content in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert parse_json(content.encode(), "x") == json.loads(content)


@given(value=values)
def test_what_is_written_reads_back(value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    write_json(value, path)
    assert read_json(path) == value


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@given(st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b"a", b",", b":", b"[" * 60]), max_size=40))
def test_no_bytes_raise_anything_but_a_format_error(parts: list[bytes]) -> None:
    try:
        parse_json(b"".join(parts), "x")
    except FormatError:
        return


def test_a_hundred_levels_are_read_and_one_more_is_refused() -> None:
    assert parse_json(nested(MAX_DEPTH), "x") == json.loads(nested(MAX_DEPTH))
    with pytest.raises(FormatError, match="nested more than 100 levels"):
        parse_json(nested(MAX_DEPTH + 1), "x")


def test_depth_is_counted_across_pieces_of_a_long_file() -> None:
    filler = b" " * (1 << 20)
    with pytest.raises(FormatError, match="nested more than 100 levels"):
        parse_json(filler.join([b"[" * 51, b"[" * 51, b"]" * 102]), "x")


def test_brackets_in_texts_are_no_levels() -> None:
    text = "[{" * 500 + '\\"' * 3
    assert parse_json(json.dumps([text]).encode(), "x") == [text]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"NaN", "NaN is not a number"),
        (b"[-Infinity]", "-Infinity is not a number"),
        (b"1e999", "too large"),
        (b"1" * 19, "integer of 19 digits"),
        (b"1" * 100_000, "integer of 100000 digits"),
        (b'{"a": 1, "b": 2, "a": 3}', "'a' comes twice"),
        (b"\xff\xfe[\0]\0", "not UTF-8"),
        (b'["\\ud800"]', "half a character"),
        (b'{"\\uDC00": 1}', "half a character"),
        (b"", "not valid JSON"),
        (b"[1,]", "not valid JSON"),
        (b"[1] 2", "not valid JSON"),
        (b"[" + b"0," * _MAX_VALUES + b"0]", "5 million values"),
    ],
)
def test_bad_json_is_refused_with_its_reason(content: bytes, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        parse_json(content, "x")


def test_a_pair_of_surrogate_escapes_is_one_character() -> None:
    assert parse_json(b'"\\ud83d\\ude00"', "x") == "😀"


@pytest.mark.parametrize("piece", [b'\\"', b'"', b"\\", b'"\\', b"[", b'{"a":'])
def test_hostile_repetition_takes_linear_time(piece: bytes) -> None:
    start = time.monotonic()
    with pytest.raises(FormatError):
        parse_json(b'"' + piece * (4_000_000 // len(piece)), "x")
    assert time.monotonic() - start < 5


def test_files_that_are_too_large_or_no_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        read_json(tmp_path / "none.json")
    with pytest.raises(FormatError, match="is not a file"):
        read_json(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(FormatError, match="is not a file"):
        read_json(tmp_path / "pipe.json")
    with pytest.raises(FormatError, match="cannot be opened"):
        read_json(tmp_path / ("x" * 5000))
    big = tmp_path / "big.json"
    with big.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(FormatError, match="larger than 64 MB"):
        read_json(big)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], "\ud800"])
def test_what_could_not_be_read_back_is_not_written(value: object, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be written"):
        write_json(value, tmp_path / "a.json")
    assert not list(tmp_path.iterdir())
