"""External controlled vocabularies of ELAN."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from signspot.domain.recordings import Word
from signspot.errors import FormatError
from signspot.formats.vocabularies import _LocalGloss, file_url, read_ecv

SIGNBANK = """<?xml version="1.0" ?>
<CV_RESOURCE AUTHOR="" DATE="2024-01-01T00:00:00+00:00" VERSION="0.2">
    <LANGUAGE LANG_DEF="http://x" LANG_ID="nld" LANG_LABEL="Dutch (nld)"/>
    <LANGUAGE LANG_DEF="http://x" LANG_ID="eng" LANG_LABEL="English (eng)"/>
    <CONTROLLED_VOCABULARY CV_ID="NGT-Signbank-lexicon">
        <DESCRIPTION LANG_REF="nld">alles</DESCRIPTION>
        <CV_ENTRY_ML CVE_ID="101" EXT_REF="er101">
            <CVE_VALUE DESCRIPTION="een huis" LANG_REF="nld">HUIS-A</CVE_VALUE>
            <CVE_VALUE DESCRIPTION="" LANG_REF="eng">HOUSE-A</CVE_VALUE>
        </CV_ENTRY_ML>
        <EXTERNAL_REF EXT_REF_ID="er101" TYPE="resource_url" VALUE="https://bank.org/gloss/101"/>
        <CV_ENTRY_ML CVE_ID="102"><CVE_VALUE LANG_REF="nld">HUIS-B</CVE_VALUE></CV_ENTRY_ML>
        <CV_ENTRY_ML CVE_ID="102"><CVE_VALUE LANG_REF="nld">TWICE</CVE_VALUE></CV_ENTRY_ML>
        <CV_ENTRY_ML><CVE_VALUE LANG_REF="nld">NAMELESS</CVE_VALUE></CV_ENTRY_ML>
    </CONTROLLED_VOCABULARY>
    <CONTROLLED_VOCABULARY CV_ID="second">
        <CV_ENTRY_ML CVE_ID="101"><CVE_VALUE LANG_REF="eng">mouth</CVE_VALUE></CV_ENTRY_ML>
    </CONTROLLED_VOCABULARY>
</CV_RESOURCE>
"""
OLD = """<CV_RESOURCE><CONTROLLED_VOCABULARY CV_ID="old" DESCRIPTION="d">
<CV_ENTRY CVE_ID="1" DESCRIPTION="meaning" EXT_REF="er1">BOOM<!-- tree --></CV_ENTRY></CONTROLLED_VOCABULARY>
<EXTERNAL_REF EXT_REF_ID="er1" TYPE="resource_url" VALUE="http://x"/></CV_RESOURCE>"""


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "signs.ecv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_signbank_export_is_read_with_all_lists_and_languages(tmp_path: Path) -> None:
    vocabulary = read_ecv(write(tmp_path, SIGNBANK))
    first, second, other = vocabulary.items
    assert (first.type_id, first.vocabulary) == ("101", "NGT-Signbank-lexicon")
    assert first.glosses == (_LocalGloss("nld", "HUIS-A"), _LocalGloss("eng", "HOUSE-A"))
    assert first.description == "een huis"
    assert (first.gloss(), first.gloss("eng"), second.gloss("eng")) == ("HUIS-A", "HOUSE-A", "HUIS-B")
    assert (other.type_id, other.vocabulary) == ("101", "second")
    assert vocabulary.url == f"file://{tmp_path}/signs.ecv"
    assert vocabulary.warnings == (
        "entries whose id occurs before, left out: 1 (102)",
        "entries without an id, left out: 1 (NAMELESS)",
    )


def test_words_of_any_language_find_their_types(tmp_path: Path) -> None:
    vocabulary = read_ecv(write(tmp_path, SIGNBANK))
    assert [item.type_id for item in vocabulary.items_for(Word("house-a"))] == ["101"]
    assert [item.type_id for item in vocabulary.items_for(Word("huis"))] == ["101", "102"]
    assert vocabulary.items_for(Word("nameless")) == ()


def test_an_id_belongs_to_its_list(tmp_path: Path) -> None:
    vocabulary = read_ecv(write(tmp_path, SIGNBANK))
    assert vocabulary.item("101") is None  # HUIS-A or mouth
    assert vocabulary.only("second").item("101").gloss() == "mouth"
    twice = SIGNBANK.replace('CV_ID="second"', 'CV_ID="NGT-Signbank-lexicon"')
    (list_name,) = read_ecv(write(tmp_path, twice)).lists
    assert read_ecv(write(tmp_path, twice)).only(list_name).item("101").gloss() == "HUIS-A"
    assert "entries whose id occurs before, left out: 2 (102, 101)" in read_ecv(write(tmp_path, twice)).warnings


def test_the_form_before_2_8_is_read(tmp_path: Path) -> None:
    (item,) = read_ecv(write(tmp_path, OLD)).items
    assert (item.type_id, item.gloss(), item.description) == ("1", "BOOM", "meaning")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<ANNOTATION_DOCUMENT/>", "is not an ELAN external vocabulary .it is a <ANNOTATION_DOCUMENT> file."),
        ("<CV_RESOURCE/>", "holds no entries with an id"),
        ("nothing", "is not an XML file"),
        ("<!DOCTYPE a><CV_RESOURCE/>", "holds a DTD"),
        (SIGNBANK[:-20], "is not valid XML"),
    ],
)
def test_what_is_no_vocabulary_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_ecv(write(tmp_path, text))


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    outcomes = []
    for seed in range(500):
        rng, data = random.Random(seed), bytearray(SIGNBANK.encode())
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 4)] = rng.choice((b"", b"<", b"\xff", b'"', b"</CV_ENTRY_ML>", b"&", b"x"))
        try:
            outcomes.append(len(read_ecv(write(tmp_path, bytes(data))).items) > 0)
        except FormatError:
            outcomes.append(False)
    assert 0 < sum(outcomes) < 500


def test_urls_are_written_as_elan_does() -> None:
    assert file_url(Path("/a b/c%.ecv")) == "file:///a b/c%.ecv"
    assert file_url(Path("//server/share/x.ecv")) == "file://server/share/x.ecv"
