"""The one door for XML from outside: ELAN files, external vocabularies, TTML subtitles.

Refused before a tree is built: more than 100 MB, more than 5 million nodes, a DTD (which is where entity bombs and
stolen files come from), and encodings that hide the "<" from the count. Refused by the parser: texts longer than
10 MB. Refused after it: elements nested deeper than 64. Nothing is ever fetched, expanded or left out: comments,
processing instructions and white space stay, so a tree can be written back as it was read. An xml:id is an attribute
like others: many programs number their subtitles "1", "2", which are no XML names, or repeat an id.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from lxml import etree

from signspot.errors import InputError, readable_size

MAX_XML_BYTES = 100_000_000
_MAX_NODES = 5_000_000  # elements, attributes, comments
MAX_DEPTH = 64

_BYTE_ORDER_MARKS = b"\xef\xbb\xbf\xfe\xff\0"  # any of these bytes, in any order
_DECLARED = re.compile(rb"<\?xml\b[^>]{0,400}?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)")
_WIDE = re.compile(rb"(utf|ucs|iso-10646-ucs)-?(16|32|2|4)(le|be)?", re.IGNORECASE)
# In all of these a "<" of the text is a byte "<" of the file. UTF-7 and EBCDIC are not like that.
_NARROW = re.compile(
    rb"utf-?8|(us-)?ascii|iso[-_]?8859-\d+|latin-?\d+|(windows-|cp)(125\d|874|932|949|950)|koi8-[ru]|mac\w*"
    rb"|shift[-_]jis|sjis|euc-(jp|kr|cn|tw)|gb2312|gbk|gb18030|big5|tis-620",
    re.IGNORECASE,
)
_DAMAGED = "the file looks damaged or hostile; get it again from its source"
_TOO_BIG_FOR_PARSER = etree.ErrorTypes.ERR_RESOURCE_LIMIT
_TOO_DEEP = etree.XPath(f"boolean({'/*' * (MAX_DEPTH + 1)})")


def parse_xml(data: bytes, where: str | Path, error: type[InputError]) -> etree._ElementTree:
    """Parse a whole XML file, or raise `error` naming `where`; comments and white space are kept."""
    encoding = _trusted_encoding(data, where, error)
    _check_size(data, where, error)
    _refuse_dtd(data, encoding, where, error)
    try:
        tree = etree.fromstring(data, _parser(encoding)).getroottree()
    except etree.XMLSyntaxError as problem:
        raise _explained(problem, where, error) from problem
    if _TOO_DEEP(tree):
        raise error(where, f"XML elements are nested deeper than {MAX_DEPTH}", _DAMAGED)
    return tree


class _Prolog:
    """Looks at what comes before the first element, and stops there."""

    def __init__(self) -> None:
        self.has_dtd = False

    def doctype(self, *_: object) -> None:
        self.has_dtd = True
        raise StopIteration

    def start(self, *_: object) -> None:
        raise StopIteration

    def close(self) -> None:
        """Nothing is built."""


def _parser(encoding: str | None, target: _Prolog | None = None) -> etree.XMLParser:
    # The stubs ask for a base class that lxml itself does not have.
    stop_at = cast("etree.ParserTarget | None", target)
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        collect_ids=False,  # nothing is looked up by xml:id here, and collecting them refuses odd and repeated ones
        encoding=encoding,
        target=stop_at,
    )


def _trusted_encoding(data: bytes, where: str | Path, error: type[InputError]) -> str | None:
    """The encoding to use instead of the declared one, or None where the file may speak for itself."""
    head = data[:2048].lstrip(_BYTE_ORDER_MARKS).replace(b"\0", b"")
    if not head.lstrip().startswith(b"<"):
        raise error(where, "is not an XML file", "XML starts with a '<'")
    if head.startswith(b"<?xml") and b"?>" not in head:
        raise error(where, "its XML declaration does not end", _DAMAGED)
    declared = _DECLARED.match(head)
    if declared is None or _NARROW.fullmatch(declared[1]):
        return None
    if not _WIDE.fullmatch(declared[1]):
        raise error(where, f"declares the unknown encoding {declared[1].decode()}", "save the file as UTF-8")
    # Some tools write UTF-8 below a declaration of UTF-16.
    return None if b"\0" in data[:4] else "utf-8"


def _check_size(data: bytes, where: str | Path, error: type[InputError]) -> None:
    if len(data) > MAX_XML_BYTES:
        raise error(where, f"is larger than {readable_size(MAX_XML_BYTES)}", "split it into smaller files")
    # An upper bound by counting bytes: building the tree first would already cost the memory.
    closing = 0 if b"\0" in data[:4] else data.count(b"</")
    if data.count(b"<") - closing + data.count(b"=") > _MAX_NODES:
        raise error(where, f"holds more than {_MAX_NODES:,} XML nodes", "split it into smaller files")


def _refuse_dtd(data: bytes, encoding: str | None, where: str | Path, error: type[InputError]) -> None:
    prolog = _Prolog()
    try:
        etree.fromstring(data, _parser(encoding, prolog))
    except StopIteration:
        pass
    except etree.XMLSyntaxError as problem:
        raise _explained(problem, where, error) from problem
    if prolog.has_dtd:
        raise error(where, "holds a DTD (<!DOCTYPE ...>), which can read or exhaust this computer", "remove that part")


def _explained(problem: etree.XMLSyntaxError, where: str | Path, error: type[InputError]) -> InputError:
    line = problem.lineno or 1
    if getattr(problem, "code", None) == _TOO_BIG_FOR_PARSER:
        return error(where, f"XML is nested too deep or holds a text of more than 10 MB (line {line})", _DAMAGED)
    return error(where, f"is not valid XML: {problem.msg.strip()}", "the file is damaged or cut off; get it again")
