"""Adding elements to an EAF tree so that everything else stays as it is, its layout included.

An added element takes over the line break and indentation of its place; taking it out again gives the old tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from lxml import etree

# The order the schema demands of the children of ANNOTATION_DOCUMENT.
_ORDER = (
    "LICENSE", "HEADER", "TIME_ORDER", "TIER", "LINGUISTIC_TYPE", "LOCALE", "LANGUAGE", "CONSTRAINT",
    "CONTROLLED_VOCABULARY", "LEXICON_REF", "REF_LINK_SET", "EXTERNAL_REF",
)  # fmt: skip
_RANK = {tag: rank for rank, tag in enumerate(_ORDER)}
# Attributes that give or use an xsd:ID: those ids are unique in the whole file, not only among their like. One that is
# used but not given belongs to something lost; a new element of that id would step into its place.
_IDS = (
    "ANNOTATION_ID", "TIME_SLOT_ID", "EXT_REF_ID", "LEX_REF_ID", "LINK_SET_ID", "REF_LINK_ID", "LANG_ID",
    "LANGUAGE_CODE", "STEREOTYPE", "TIME_SLOT_REF1", "TIME_SLOT_REF2", "ANNOTATION_REF", "PREVIOUS_ANNOTATION",
    "EXT_REF", "REF1", "REF2", "REFS",
)  # fmt: skip
_INDENT = "    "
_XML_SPACE = " \t\r\n"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Text with the characters that XML 1.0 cannot hold replaced by U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", text)


def taken_ids(root: etree._Element) -> set[str]:
    """Every id that the file gives or uses."""
    elements = root.iter(etree.Element)
    return {one for element in elements for name in _IDS if (ids := element.get(name)) for one in ids.split()}


def fresh_ids(prefix: str, taken: set[str], above: int = 0) -> Iterator[str]:
    """New ids: the prefix and numbers above all that are in use."""
    numbered = re.compile(re.escape(prefix) + r"([0-9]{1,9})")
    number = max((int(match[1]) for one in taken if (match := numbered.fullmatch(one))), default=0)
    number = max(number, above if above < 10**9 else 0)  # beyond that it is damage, not a count
    while True:
        number += 1
        if f"{prefix}{number}" not in taken:
            taken.add(f"{prefix}{number}")
            yield f"{prefix}{number}"


def add_in_order(root: etree._Element, element: etree._Element) -> None:
    """Add a child of ANNOTATION_DOCUMENT after its like, or where the schema wants the first of its kind."""
    rank = _RANK[element.tag]
    anchor = _last(root, lambda tag: tag == element.tag)
    if anchor is None:
        anchor = _last(root, lambda tag: _RANK.get(tag, rank) < rank)
    following = anchor.getnext() if anchor is not None else next(iter(root), None)
    if following is None:
        append(root, element)
    else:
        add_before(following, element)


def add_before(sibling: etree._Element, element: etree._Element) -> None:
    """Add an element before its sibling, on a line of its own if the sibling is."""
    element.tail = _layout_before(sibling)
    sibling.addprevious(element)


def append(parent: etree._Element, element: etree._Element) -> None:
    """Add an element as the last child, on a line of its own if the other children are."""
    last = next(parent.iterchildren(reversed=True), None)  # len() would count them all, each time
    if last is not None:
        element.tail, last.tail = last.tail, _layout_before(last)
    elif parent.text:
        element.tail = parent.text if not parent.text.strip(_XML_SPACE) else None
    elif outside := _layout_before(parent):
        parent.text, element.tail = outside + _INDENT, outside
    parent.append(element)


def lay_out(root: etree._Element, element: etree._Element) -> None:
    """Indent a new child of the root if the file is indented."""
    if root.text and not root.text.strip(_XML_SPACE):
        etree.indent(element, space=_INDENT, level=1)


def _last(root: etree._Element, fits: Callable[[str], bool]) -> etree._Element | None:
    return next((child for child in root.iterchildren(etree.Element, reversed=True) if fits(child.tag)), None)


def _layout_before(element: etree._Element) -> str | None:
    """The white space between an element and whatever stands before it."""
    before, parent = element.getprevious(), element.getparent()
    text = before.tail if before is not None else parent.text if parent is not None else None
    return text if text and not text.strip(_XML_SPACE) else None
