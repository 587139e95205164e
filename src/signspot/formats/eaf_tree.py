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
_ONCE = ("HEADER", "TIME_ORDER")
_SINCE = {"LICENSE": (2, 8), "LANGUAGE": (2, 8), "REF_LINK_SET": (3, 0)}
_NEWEST = (3, 0)
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


class RootOrder:
    """Where new children of ANNOTATION_DOCUMENT go, also in a file whose own children are not as the schema wants them.

    A checker of the schema may stop at the first child that is out of place and look at nothing after it. New elements
    go before that child, or, where they refer to something after it, to the end: it finds no more to complain about
    than it did.
    """

    def __init__(self, root: etree._Element, version: tuple[int, ...]) -> None:
        self._root, self._version = root, version
        self._at_end = False

    def sees(self, child: etree._Element) -> bool:
        """Whether elements that are added may refer to this child of the root."""
        sound = self._sound()
        return sound is None or self._at_end or child in sound

    def go_after(self, child: etree._Element) -> None:
        """From now on, add what may refer to this child."""
        self._at_end = self._at_end or not self.sees(child)

    def add(self, element: etree._Element) -> None:
        """Add a child after its like, or where the schema wants the first of its kind."""
        rank, sound = _RANK[element.tag], self._sound()
        lost_order = element.tag == "TIME_ORDER" and _last(self._root, lambda tag: _RANK.get(tag, 0) > rank) is not None
        if lost_order or (sound is not None and self._at_end):
            append(self._root, element)
            return
        if sound is not None:
            anchor = next((child for child in reversed(sound) if _RANK.get(child.tag, 0) <= rank), None)
        else:
            anchor = _last(self._root, lambda tag: tag == element.tag)
            if anchor is None:
                anchor = _last(self._root, lambda tag: _RANK.get(tag, rank) < rank)
        following = anchor.getnext() if anchor is not None else next(iter(self._root), None)
        if following is None:
            append(self._root, element)
        else:
            add_before(following, element)

    def _sound(self) -> list[etree._Element] | None:
        """The children before the first that is out of place; None if there is none, or it comes before TIME_ORDER."""
        sound: list[etree._Element] = []
        before = ""
        for child in self._root.iterchildren(etree.Element):
            if child.tag not in _RANK and self._version > _NEWEST:
                continue  # new since
            if not self._fits(child.tag, before):
                return sound if before and _RANK[before] >= _RANK["TIME_ORDER"] else None
            sound.append(child)
            before = child.tag
        return None

    def _fits(self, tag: str, before: str) -> bool:
        if tag not in _RANK or self._version < _SINCE.get(tag, (0,)):
            return False
        missing = [needed for needed in _ONCE if _RANK[before or _ORDER[0]] < _RANK[needed] < _RANK[tag]]
        return not missing and _RANK[tag] >= _RANK.get(before, 0) and not (tag == before and tag in _ONCE)


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
