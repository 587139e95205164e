"""The XML gate: hostile and damaged files are refused, honest ones come through whole."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from signspot.errors import FormatError, SubtitleError
from signspot.files.xml import _MAX_NODES, MAX_DEPTH, parse_xml
from signspot.files.xml import MAX_XML_BYTES as MAX_BYTES

LAUGHS = (
    "<!DOCTYPE a [<!ENTITY l0 'lol'>"
    + "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 12))
    + "]><a>&l11;</a>"
)
QUADRATIC = f"<!DOCTYPE a [<!ENTITY q '{'q' * 50_000}'>]><a>{'&q;' * 50_000}</a>"
IN_ATTRIBUTE = "<!DOCTYPE a [<!ENTITY q 'x'>]><a b='&q;'/>"


def nested(depth: int) -> bytes:
    return b"<a>" * depth + b"</a>" * depth


@pytest.mark.parametrize("text", [LAUGHS, QUADRATIC, IN_ATTRIBUTE, "<!DOCTYPE a><a/>", "<!-- c --><!DOCTYPE a []><a/>"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_dtd_is_refused_in_every_encoding(text: str, encoding: str) -> None:
    started = time.process_time()
    with pytest.raises(FormatError, match=r"bomb\.eaf: holds a DTD .*remove that part"):
        parse_xml(text.encode(encoding), "bomb.eaf", FormatError)
    assert time.process_time() - started < 1


def test_an_external_entity_never_reads_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    for text in (
        f'<!DOCTYPE a [<!ENTITY x SYSTEM "{secret.as_uri()}">]><a>&x;</a>',
        f'<!DOCTYPE a SYSTEM "{secret.as_uri()}"><a/>',
        f'<!DOCTYPE a [<!ENTITY % x SYSTEM "{secret.as_uri()}"> %x;]><a/>',
    ):
        with pytest.raises(SubtitleError, match="holds a DTD") as caught:
            parse_xml(text.encode(), "a.ttml", SubtitleError)
        assert "the secret" not in str(caught.value)


def test_an_xinclude_is_kept_as_an_element_and_not_followed() -> None:
    data = b'<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd" parse="text"/></a>'
    assert etree.tostring(parse_xml(data, "a.xml", FormatError)) == data


def test_depth_is_counted_exactly() -> None:
    assert parse_xml(nested(MAX_DEPTH), "a.xml", FormatError).getroot().tag == "a"
    with pytest.raises(FormatError, match="nested deeper than 64"):
        parse_xml(nested(MAX_DEPTH + 1), "a.xml", FormatError)


def test_a_depth_of_100_000_is_refused_at_once() -> None:
    started = time.process_time()
    with pytest.raises(FormatError, match="nested too deep"):
        parse_xml(nested(100_000), "a.xml", FormatError)
    assert time.process_time() - started < 1


def test_a_huge_text_is_refused_and_a_large_one_is_read() -> None:
    large = b"<a>" + b"x" * 9_000_000 + b"</a>"
    assert len(parse_xml(large, "a.xml", FormatError).getroot().text or "") == 9_000_000
    for huge in (b"<a>" + b"x" * 11_000_000 + b"</a>", b"<a b='" + b"x" * 11_000_000 + b"'/>"):
        with pytest.raises(FormatError, match="more than 10 MB"):
            parse_xml(huge, "a.xml", FormatError)


def test_too_many_bytes_and_too_many_nodes_are_refused_before_a_tree_is_built() -> None:
    started = time.process_time()
    with pytest.raises(FormatError, match="larger than 100 MB"):
        parse_xml(b"<a>" + b" " * MAX_BYTES, "a.xml", FormatError)
    for crowd in (b"<a>" + b"<b/>" * _MAX_NODES + b"</a>", b"<a " + b"b=''" * _MAX_NODES + b"/>"):
        with pytest.raises(FormatError, match="more than 5,000,000 XML nodes"):
            parse_xml(crowd, "a.xml", FormatError)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("name", ["utf-8", "UTF-16", "utf-32", "ISO-8859-1", "windows-1252", "GB18030"])
def test_a_declared_encoding_is_read(name: str) -> None:
    data = f'<?xml version="1.0" encoding="{name}"?><a>häuser</a>'.encode(name)
    assert parse_xml(data, "a.xml", FormatError).getroot().text == "häuser"


@pytest.mark.parametrize("actual", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("declared", ["", "utf-8", "UTF-16", "utf-32"])
def test_a_unicode_file_is_read_whatever_it_declares(declared: str, actual: str) -> None:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    data = f"{declaration}<a>häuser</a>".encode(actual)
    assert parse_xml(data, "a.xml", FormatError).getroot().text == "häuser"


@pytest.mark.parametrize("name", ["utf-7", "IBM037", "cp500", "nonsense", "UTF-7-IMAP"])
def test_encodings_that_hide_markup_are_refused(name: str) -> None:
    data = f'<?xml version="1.0" encoding="{name}"?><a/>'.encode()
    with pytest.raises(FormatError, match=r"unknown encoding .*save the file as UTF-8"):
        parse_xml(data, "a.xml", FormatError)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not an XML file"),
        (b"   \n", "is not an XML file"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nHi", "is not an XML file"),
        ("<a/>".encode("cp037"), "is not an XML file"),
        (b"<?xml version='1.0'" + b" " * 5000 + b"encoding='utf-7'?><a/>", "declaration does not end"),
        (b"<a>\0</a>", "is not valid XML"),
        (b"<a><b></a>", "is not valid XML"),
        (b"<a><b>", "is not valid XML.*cut off"),
        (b"<a/><b/>", "is not valid XML"),
        (b"<a>&unknown;</a>", "is not valid XML"),
        (b"<a>\xff\xfe</a>", "is not valid XML"),
        (b'<?xml version="1.0" encoding="ascii"?><a>\xe9</a>', "is not valid XML"),
    ],
)
def test_damaged_files_are_refused_by_name(data: bytes, words: str) -> None:
    with pytest.raises(SubtitleError, match=rf"film\.ttml: .*{words}") as caught:
        parse_xml(data, "film.ttml", SubtitleError)
    assert "\n" not in str(caught.value)


def test_nothing_is_stripped() -> None:
    data = b"<!-- top --><a>\n  <!-- in -->\t<b c='&lt;'>&lt;x&gt;</b><?pi x?>  </a><!-- end -->"
    written = etree.tostring(parse_xml(data, "a.xml", FormatError))
    assert written.replace(b'"', b"'") == data


@pytest.mark.parametrize("ids", [("1", "2"), ("a", "a"), ("1", "1"), ("", ""), ("a b", "é:1")])
def test_odd_and_repeated_ids_are_attributes_like_others(ids: tuple[str, str]) -> None:
    data = f'<a xml:id="{ids[0]}"><b xml:id="{ids[1]}"/></a>'
    assert etree.tostring(parse_xml(data.encode(), "a.xml", FormatError), encoding="unicode") == data
    with pytest.raises(FormatError, match="holds a DTD"):
        parse_xml(f"<!DOCTYPE a [<!ATTLIST b c ID #IMPLIED>]>{data}".encode(), "a.xml", FormatError)


def test_every_truncation_is_refused() -> None:
    data = "<?xml version='1.0' encoding='utf-8'?><a b='c'><é>x</é><!-- d --></a>".encode()
    parse_xml(data, "a.xml", FormatError)
    for length in range(len(data)):
        with pytest.raises(FormatError, match=r"a\.xml: "):
            parse_xml(data[:length], "a.xml", FormatError)


@given(st.binary(max_size=200) | st.text(alphabet="<>/!?=[]'\"&;ax \0-", max_size=60).map(lambda t: ("<" + t).encode()))
def test_any_bytes_give_a_tree_or_the_promised_error(data: bytes) -> None:
    try:
        tree = parse_xml(data, "a.xml", FormatError)
    except FormatError as error:
        assert str(error).startswith("a.xml: ")
    else:
        assert tree.getroot() is not None
