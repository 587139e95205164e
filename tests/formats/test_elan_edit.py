"""Reading, writing and making EAF files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from lxml import etree

from signspot.domain.time import Millis, MillisSpan
from signspot.errors import FormatError, InputError, OutputExists
from signspot.formats.elan import ElanDocument, new_eaf, read_eaf
from tests.formats.eaf_generator import SCHEMAS, load_schema, make_eaf, seeds, sizes

NOON = datetime(2024, 5, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))

SAMPLE = """<?xml version="1.0" encoding="UTF-8"?>
<!-- first -->
<ANNOTATION_DOCUMENT AUTHOR="me" DATE="2020-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0">
    <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
        <MEDIA_DESCRIPTOR MEDIA_URL="file:///C:/a.mp4" MIME_TYPE="video/mp4" RELATIVE_MEDIA_URL="./a.mp4"
            TIME_ORIGIN="-40" EXTRACTED_FROM="file:///tape.mpg"/>
    </HEADER>
    <TIME_ORDER>
        <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="100"/>
        <TIME_SLOT TIME_SLOT_ID="ts2"/>
        <TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="500"/>
    </TIME_ORDER>
    <TIER TIER_ID="gloss" LINGUISTIC_TYPE_REF="g" PARTICIPANT="S1" ANNOTATOR="X" LANG_REF="eng">
        <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts3" CVE_REF="7">
            <ANNOTATION_VALUE>HOUSE-A</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
    </TIER>
    <TIER TIER_ID="parts" LINGUISTIC_TYPE_REF="p" PARENT_REF="gloss">
        <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a2" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
            <ANNOTATION_VALUE/></ALIGNABLE_ANNOTATION></ANNOTATION>
    </TIER>
    <TIER TIER_ID="meaning" LINGUISTIC_TYPE_REF="m" PARENT_REF="gloss">
        <ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a3" ANNOTATION_REF="a1">
            <ANNOTATION_VALUE>a house</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>
    </TIER>
    <LANGUAGE LANG_ID="eng"/>
    <CONTROLLED_VOCABULARY CV_ID="BSL" EXT_REF="er1"/>
    <EXTERNAL_REF EXT_REF_ID="er1" TYPE="ecv" VALUE="https://bank.org/bsl.ecv"/>
</ANNOTATION_DOCUMENT>
"""


def read(text: str | bytes, folder: Path) -> ElanDocument:
    path = folder / "sample.eaf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_eaf(path)


@cache
def schema() -> etree.XMLSchema:
    if not SCHEMAS.is_dir():
        pytest.skip("the EAF schemas are not on this computer")
    return load_schema("3.0")


def test_a_file_is_read_as_elan_shows_it(tmp_path: Path) -> None:
    document = read(SAMPLE, tmp_path)
    assert document.warnings == ()
    assert (document.format_version, document.time_unit) == ("3.0", "milliseconds")
    (media,) = document.media
    assert (media.url, media.relative_url, media.mime_type) == ("file:///C:/a.mp4", "./a.mp4", "video/mp4")
    assert media.time_origin_ms == -40
    gloss, parts, meaning = document.tiers
    assert (gloss.annotator, gloss.language, gloss.linguistic_type) == ("X", "eng", "g")
    assert gloss.annotations[0].span_ms == MillisSpan(Millis(100), Millis(500))
    assert (gloss.annotations[0].value, gloss.annotations[0].cve_ref) == ("HOUSE-A", "7")
    assert parts.annotations[0].span_ms is None  # one end is not aligned
    assert (meaning.parent, meaning.annotations[0].parent_id) == ("gloss", "a1")
    assert meaning.annotations[0].span_ms == gloss.annotations[0].span_ms
    assert [(cv.cv_id, cv.ecv_url) for cv in document.vocabularies] == [("BSL", "https://bank.org/bsl.ecv")]
    assert document.tier("meaning") is meaning
    assert document.tier("nowhere") is None


def test_media_time_is_eaf_time_plus_time_origin(tmp_path: Path) -> None:
    (media,) = read(SAMPLE, tmp_path).media
    assert media.to_eaf(MillisSpan(Millis(60), Millis(460))) == MillisSpan(Millis(100), Millis(500))


@pytest.mark.parametrize(("unit", "start", "stop"), [("PAL-frames", 4000, 20000), ("NTSC-frames", 3337, 16683)])
def test_frames_become_milliseconds(tmp_path: Path, unit: str, start: int, stop: int) -> None:
    document = read(SAMPLE.replace("milliseconds", unit), tmp_path)
    assert document.tiers[0].annotations[0].span_ms == MillisSpan(Millis(start), Millis(stop))


def test_eaf_2_7_names_vocabulary_entries_by_external_references(tmp_path: Path) -> None:
    text = SAMPLE.replace('CVE_REF="7"', 'EXT_REF="er1 er2"').replace("3.0", "2.7")
    ref = '<EXTERNAL_REF EXT_REF_ID="er2" TYPE="cve_id" VALUE="77"/></ANNOTATION_DOCUMENT>'
    document = read(text.replace("</ANNOTATION_DOCUMENT>", ref), tmp_path)
    assert document.tiers[0].annotations[0].cve_ref == "77"


def test_the_version_comes_from_the_schema_if_the_file_does_not_say(tmp_path: Path) -> None:
    location = (
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://x/EAFv2.8.xsd"'
    )
    assert read(SAMPLE.replace('FORMAT="3.0"', location), tmp_path).format_version == "2.8"
    assert read(SAMPLE.replace('FORMAT="3.0"', ""), tmp_path).format_version == "3.0"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_and_windows_line_ends_do_not_matter(tmp_path: Path, encoding: str) -> None:
    text = SAMPLE.replace("\n", "\r\n").replace('encoding="UTF-8"', "")
    document = read(text.encode(encoding), tmp_path)
    assert document.tiers == read(SAMPLE, tmp_path).tiers
    assert document.xml.startswith(b"<?xml version='1.0' encoding='UTF-8'?>")


def test_text_of_others_keeps_its_form(tmp_path: Path) -> None:
    for value in ("e\u0301", "\u00e9", "\u202eabc", "\U0001d800", "\ue0e6", "x" * 10_000):
        document = read(SAMPLE.replace("HOUSE-A", value), tmp_path)
        assert document.tiers[0].annotations[0].value == value
        assert value.encode() in document.xml


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seeds, sizes)
def test_what_is_written_is_read_back_the_same(tmp_path_factory: pytest.TempPathFactory, seed: int, size: int) -> None:
    path = tmp_path_factory.getbasetemp() / "again.eaf"
    path.write_bytes(make_eaf(seed, size))
    document = read_eaf(path)
    document.write(path, overwrite=True)
    assert read_eaf(path) == document
    assert path.read_bytes() == document.xml
    assert etree.canonicalize(document.xml.decode()) == etree.canonicalize(make_eaf(seed, size).decode())


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ('TIME_VALUE="100"', 'TIME_VALUE="abc"', "whose TIME_VALUE is no time, read as not aligned: 1 (ts1)"),
        ('TIME_VALUE="100"', 'TIME_VALUE="-5"', "whose TIME_VALUE is no time, read as not aligned: 1 (ts1)"),
        ('TIME_VALUE="100"', f'TIME_VALUE="{"9" * 5000}"', "whose TIME_VALUE is no time"),
        ('TIME_VALUE="100"', 'TIME_VALUE="\u0661"', "whose TIME_VALUE is no time"),
        ('TIME_VALUE="100"', 'TIME_VALUE="1_0"', "whose TIME_VALUE is no time"),
        ('TIME_VALUE="100"', 'TIME_VALUE="900"', "that end before they start, read as not aligned: 1 (a1)"),
        ('TIME_SLOT_ID="ts3"', 'TIME_SLOT_ID="ts1"', "time slots whose id occurs before, ignored: 1 (ts1)"),
        ('TIME_SLOT_REF2="ts3"', 'TIME_SLOT_REF2="ts77"', "with a time slot that does not exist: 1 (a1)"),
        ('ANNOTATION_REF="a1"', 'ANNOTATION_REF="a77"', "references to annotations that do not exist: 1 (a77)"),
        ('ANNOTATION_REF="a1"', 'ANNOTATION_REF="a3"', "that refer to each other in a circle: 1 (a3)"),
        ('ANNOTATION_ID="a3"', 'ANNOTATION_ID="a1"', "annotations whose id occurs before: 1 (a1)"),
        ('PARENT_REF="gloss"', 'PARENT_REF="none"', "parent tiers that do not exist: 2 (none, none)"),
        ('PARENT_REF="gloss"', 'PARENT_REF="parts"', "tiers that are their own ancestors: 1 (parts)"),
        ('TIER_ID="meaning"', 'TIER_ID="gloss"', "tiers whose name occurs before: 1 (gloss)"),
        ('TIME_ORIGIN="-40"', 'TIME_ORIGIN="soon"', "with a TIME_ORIGIN that is not a number, read as 0: 1 (file:///C:/a.mp4)"),
        ('TIME_UNITS="milliseconds"', 'TIME_UNITS="weeks"', "that EAF does not know, read as milliseconds: 1 (weeks)"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_read_with_a_warning(tmp_path: Path, old: str, new: str, warning: str) -> None:
    assert old in SAMPLE
    assert any(warning in line for line in read(SAMPLE.replace(old, new), tmp_path).warnings)


SUBDIVIDED = """<ANNOTATION_DOCUMENT><TIME_ORDER><TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/>
<TIME_SLOT TIME_SLOT_ID="ts2"/><TIME_SLOT TIME_SLOT_ID="ts3"/>
<TIME_SLOT TIME_SLOT_ID="ts4" TIME_VALUE="900"/></TIME_ORDER>
<TIER TIER_ID="parts">
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2"/></ANNOTATION>
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a2" TIME_SLOT_REF1="ts2" TIME_SLOT_REF2="ts3"/></ANNOTATION>
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a3" TIME_SLOT_REF1="ts3" TIME_SLOT_REF2="ts4"/></ANNOTATION></TIER>
<TIER TIER_ID="notes">
<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a4" ANNOTATION_REF="a3"/></ANNOTATION>
<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a5" ANNOTATION_REF="a4"/></ANNOTATION></TIER></ANNOTATION_DOCUMENT>"""


MISSING, TIMELESS, BACKWARDS = (
    "their time slots are missing",
    "their time slots have no time",
    "they end before they start",
)
LOST, UNREAD = "what they refer to is missing", "what they refer to cannot be read"


@pytest.mark.parametrize(
    ("old", "new", "unread"),
    [
        ('TIME_SLOT_REF2="ts2"', 'TIME_SLOT_REF2="ts9"', f"5 of 5 | 1: {MISSING}; 2: {TIMELESS}; 2: {UNREAD}"),
        ('TIME_SLOT_ID="ts4"', 'TIME_SLOT_ID="x"', f"5 of 5 | 2: {TIMELESS}; 1: {MISSING}; 2: {UNREAD}"),
        (' TIME_VALUE="0"', "", f"5 of 5 | 3: {TIMELESS}; 2: {UNREAD}"),
        (' TIME_VALUE="900"', ' TIME_VALUE="late"', f"5 of 5 | 3: {TIMELESS}; 2: {UNREAD}"),
        ('"ts3"/>\n', '"ts3" TIME_VALUE="950"/>\n', f"3 of 5 | 1: {BACKWARDS}; 2: {UNREAD}"),
        ('ANNOTATION_REF="a4"', 'ANNOTATION_REF="a9"', f"1 of 5 | {LOST}"),
        ('ANNOTATION_REF="a4"', "", f"1 of 5 | {LOST}"),
        ('ANNOTATION_REF="a3"', 'ANNOTATION_REF="a9"', f"2 of 5 | 1: {LOST}; 1: {UNREAD}"),
        ('ANNOTATION_REF="a3"', 'ANNOTATION_REF="a5"', f"2 of 5 | {UNREAD}"),  # a circle
        ("<TIER ", "<TIER><ANNOTATION/><ANNOTATION><X/></ANNOTATION></TIER><TIER ", "4 of 9 | they are empty"),
    ],
)
def test_annotations_that_cannot_be_read_are_counted(tmp_path: Path, old: str, new: str, unread: str) -> None:
    assert old in SUBDIVIDED
    count, why = unread.split(" | ")
    damaged = read(SUBDIVIDED.replace(old, new), tmp_path)
    assert damaged.unread == f"{count} annotations cannot be read ({why})"


def test_of_a_subdivision_only_the_ends_have_times(tmp_path: Path) -> None:
    assert read(SUBDIVIDED, tmp_path).unread == ""


def test_annotations_of_the_same_id_keep_their_own_times(tmp_path: Path) -> None:
    document = read(SAMPLE.replace('"a2" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2"',
                                   '"a1" TIME_SLOT_REF1="ts3" TIME_SLOT_REF2="ts3"'), tmp_path)  # fmt: skip
    assert document.tiers[0].annotations[0].span_ms == MillisSpan(Millis(100), Millis(500))
    assert document.tiers[1].annotations[0].span_ms == MillisSpan(Millis(500), Millis(500))


def test_a_long_chain_of_references_is_followed_in_one_pass(tmp_path: Path) -> None:
    links = "".join(
        f'<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="b{i}" ANNOTATION_REF="b{i + 1}"><ANNOTATION_VALUE/>'
        "</REF_ANNOTATION></ANNOTATION>"
        for i in range(20_000)
    )
    chain = f'<TIER TIER_ID="chain" LINGUISTIC_TYPE_REF="m">{links}</TIER><LANGUAGE LANG_ID="eng"/>'
    text = SAMPLE.replace('<LANGUAGE LANG_ID="eng"/>', chain).replace('"b20000"', '"a1"')
    spans = {a.span_ms for a in read(text, tmp_path).tiers[3].annotations}
    assert spans == {MillisSpan(Millis(100), Millis(500))}


def test_an_existing_file_is_replaced_only_if_asked(tmp_path: Path) -> None:
    document = read(SAMPLE, tmp_path)
    before = (tmp_path / "sample.eaf").read_bytes()
    with pytest.raises(OutputExists, match="exists already"):
        document.write(tmp_path / "sample.eaf")
    assert (tmp_path / "sample.eaf").read_bytes() == before
    document.write(tmp_path / "sample.eaf", overwrite=True)
    assert (tmp_path / "sample.eaf").read_bytes() == document.xml


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the folder to write to does not exist"):
        read(SAMPLE, tmp_path).write(tmp_path / "no" / "x.eaf")


def test_a_kill_before_the_new_file_is_in_place_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "sample.eaf"
    before = read(SAMPLE, tmp_path)
    program = (
        "import os, signal, sys, pathlib\n"
        "import signspot.files.atomic as atomic\n"
        "from signspot.formats.elan import read_eaf\n"
        "atomic._publish = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "read_eaf(path).add_spottings([]).write(path, overwrite=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == SAMPLE
    assert read_eaf(path) == before


@pytest.mark.parametrize("name", ["a.mp4", "a b.MOV", "Ünïcode é.webm", "dots.in.name.mpg", "x.unknown", "a'b&c.mkv"])
def test_a_new_file_links_its_video_and_is_valid(tmp_path: Path, name: str) -> None:
    video, eaf = tmp_path / "videos" / name, tmp_path / "eaf" / "x.eaf"
    for path in (video, eaf):
        path.parent.mkdir(exist_ok=True)
    video.touch()
    document = new_eaf(video, eaf, date=NOON)
    assert schema().validate(etree.fromstring(document.xml)), schema().error_log
    (media,) = document.media
    assert media.url == f"file://{video}"
    assert media.relative_url == f"../videos/{name}"
    (found,) = document.resolve_media(eaf)
    assert found.path.resolve() == video
    root = etree.fromstring(document.xml)
    assert (root.get("AUTHOR"), root.get("DATE")) == ("signspot", "2024-05-01T12:00:00+02:00")


def test_a_new_file_names_the_type_of_its_video(tmp_path: Path) -> None:
    types = {"a.mp4": "video/mp4", "a.MPG": "video/mpeg", "a.mov": "video/quicktime", "a.xyz": "unknown"}
    for name, mime_type in types.items():
        assert new_eaf(tmp_path / name, tmp_path / "x.eaf", date=NOON).media[0].mime_type == mime_type


def test_a_new_file_beside_its_video_says_so(tmp_path: Path) -> None:
    assert new_eaf(tmp_path / "a.mp4", tmp_path / "x.eaf", date=NOON).media[0].relative_url == "./a.mp4"


def test_the_same_request_gives_the_same_bytes(tmp_path: Path) -> None:
    made = [new_eaf(tmp_path / "a.mp4", tmp_path / "x.eaf", date=NOON).xml for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.parametrize("name", ["title [dQw4w9].mp4", "100%.mp4", "a%20b.mp4", "a#b?.mp4"])
def test_names_that_are_no_valid_urls_are_written_as_elan_reads_them(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    document = new_eaf(tmp_path / name, tmp_path / "x.eaf", date=NOON)
    assert document.media[0].url == f"file://{tmp_path}/{name}"
    assert document.resolve_media(tmp_path / "x.eaf")[0].path == tmp_path / name


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an XML file"),
        (b"not xml", "is not an XML file"),
        (b"<html/>", "is not an ELAN annotation file .it is a <html> file.: give an .eaf file"),
        (b"<CV_RESOURCE/>", "give it as the vocabulary"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><ANNOTATION_DOCUMENT/>', "holds a DTD"),
        (SAMPLE.encode()[:-30], "is not valid XML"),
        (b"<ANNOTATION_DOCUMENT>" + b"<a>" * 100 + b"</a>" * 100 + b"</ANNOTATION_DOCUMENT>", "nested deeper than 64"),
    ],
)
def test_what_is_no_eaf_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message) as refused:
        read(content, tmp_path)
    assert str(refused.value).startswith(str(tmp_path / "sample.eaf"))
    assert "\n" not in str(refused.value)


def test_a_bare_document_is_read_as_empty(tmp_path: Path) -> None:
    document = read("<ANNOTATION_DOCUMENT/>", tmp_path)
    assert (document.tiers, document.media, document.warnings) == ((), (), ())


def test_missing_files_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.eaf")
    with pytest.raises(FormatError, match="no such file"):
        read_eaf(tmp_path / "none.eaf")
    with pytest.raises(FormatError, match="is not a file"):
        read_eaf(tmp_path)
    with pytest.raises(FormatError, match="is not a file"):
        read_eaf(tmp_path / "pipe.eaf")
    with pytest.raises(FormatError, match=r"cannot be opened|no such file"):
        read_eaf(tmp_path / ("x" * 300))
    with pytest.raises(FormatError, match=r"cannot be opened|no such file"):
        read_eaf(tmp_path / "a\0b")


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.eaf").open("wb") as file:
        file.truncate((100 << 20) + 1)
    with pytest.raises(FormatError, match="is larger than 100 MB"):
        read_eaf(tmp_path / "huge.eaf")


def test_of_landmarks_the_video_beside_them_is_linked(tmp_path: Path) -> None:
    def linked() -> str:
        document = new_eaf(tmp_path / "news.pose", tmp_path / "news.eaf", date=datetime(2026, 1, 1, tzinfo=UTC))
        return document.media[0].url

    assert linked().endswith("/news.pose")
    (tmp_path / "news.mov").touch()
    assert linked().endswith("/news.mov")
