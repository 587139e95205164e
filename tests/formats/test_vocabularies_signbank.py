"""The gloss table of a SignBank."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.errors import FormatError
from signspot.formats.vocabularies import _LocalGloss, read_signbank

TABLE = (
    '"Signbank ID","Dataset","Lemma ID Gloss (Dutch)","Annotation ID Gloss (Dutch)","Annotation ID Gloss (English)",'
    '"Senses (Dutch)","Senses (English)","Handedness"\r\n'
    '"101","NGT","HUIS","HUIS-A","HOUSE-A","1. huis, woning","1. house","2"\r\n'
    '"102","NGT","HUIS","HUIS-B","","","","1"\r\n'
)


def read(folder: Path, text: str | bytes, encoding: str = "utf-8") -> object:
    path = folder / "glosses.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return read_signbank(path)


def test_rows_become_types_keyed_by_signbank_id(tmp_path: Path) -> None:
    vocabulary = read(tmp_path, TABLE)
    first, second = vocabulary.items
    assert (first.type_id, first.vocabulary) == ("101", "NGT")
    assert first.glosses == (_LocalGloss("Dutch", "HUIS-A"), _LocalGloss("English", "HOUSE-A"))
    assert first.description == "Dutch: 1. huis, woning; English: 1. house"
    assert second.glosses == (_LocalGloss("Dutch", "HUIS-B"),)
    assert [item.type_id for item in vocabulary.items_for(Word("huis"))] == ["101", "102"]
    assert (vocabulary.url, vocabulary.warnings) == ("", ())


def test_the_same_gloss_may_belong_to_two_types(tmp_path: Path) -> None:
    vocabulary = read(tmp_path, "Signbank ID,Annotation ID Gloss (English)\n1,BANK\n2,BANK\n")
    assert [item.type_id for item in vocabulary.items_for(Word("bank"))] == ["1", "2"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_any_delimiter_and_encoding_gives_the_same(tmp_path: Path, delimiter: str, encoding: str) -> None:
    rows = [
        ["Dataset", "signbank id", "Annotation ID Gloss (Français)"],
        ["LSF", "7", "ÉCOLE"],
        ["LSF", "8", "a;b,c\td"],
    ]
    text = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    vocabulary = read(tmp_path, text, encoding)
    assert [(item.type_id, item.gloss()) for item in vocabulary.items] == [("7", "ÉCOLE"), ("8", "a;b,c\td")]
    assert vocabulary.items[0].glosses[0].language == "Français"


def test_missing_and_repeated_ids_are_reported_by_row(tmp_path: Path) -> None:
    vocabulary = read(tmp_path, "Signbank ID,Annotation ID Gloss (X)\n1,A\n,B\n\n1,C\n2\n3,D,more,cells\n")
    assert [item.type_id for item in vocabulary.items] == ["1", "2", "3"]
    assert vocabulary.items[0].gloss() == "A"
    assert vocabulary.warnings == (
        "rows without a Signbank ID, left out: 1 (row 3)",
        "rows whose Signbank ID occurs before, left out: 1 (row 5: 1)",
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end_is_understood(tmp_path: Path, end: str) -> None:
    text = f'Signbank ID;Annotation ID Gloss (X){end}1;"two{end}lines"{end}2;B'
    assert [item.type_id for item in read(tmp_path, text).items] == ["1", "2"]


def test_older_column_names_are_understood(tmp_path: Path) -> None:
    text = "Signbank ID,Annotation ID Gloss: English,Keywords (English)\n1,HOUSE,home\n"
    (item,) = read(tmp_path, text).items
    assert (item.gloss("English"), item.description) == ("HOUSE", "English: home")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no column 'Signbank ID' .found: none."),
        (b"Gloss,Meaning\nA,B\n", "has no column 'Signbank ID' .found: Gloss, Meaning."),
        (b"Signbank ID,Dataset\n", "holds no rows with a Signbank ID"),
        (b"Signbank ID\n\x81\x8d\n", "is not in a known text encoding: save it as CSV UTF-8"),
        (b"\xff\xfeS\x00i\x00", "has no column 'Signbank ID'"),
        (b"\xff\xfeS", "is not in a known text encoding"),
        (b"Signbank ID\n" + b"x" * 200_000 + b"\n", "is not a readable table"),
    ],
)
def test_what_is_no_signbank_table_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message) as refused:
        read(tmp_path, content)
    assert "\n" not in str(refused.value)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(tmp_path: Path, noise: bytes, behind_a_header: bool) -> None:
    try:
        read(tmp_path, b"Signbank ID,Dataset\n" * behind_a_header + noise)
    except FormatError:
        return
    assert behind_a_header or b"ignbank" in noise


def test_mutated_tables_are_read_or_refused(tmp_path: Path) -> None:
    for seed in range(500):
        rng, data = random.Random(seed), bytearray(TABLE.encode())
        for _ in range(3):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 9)] = rng.choice((b"", b'"', b"\0", b"\xff", b"\r", b"\n", b";", b",,,"))
        try:
            assert read(tmp_path, bytes(data)).items
        except FormatError as refused:
            assert "\n" not in str(refused)
