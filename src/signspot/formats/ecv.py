"""ELAN external controlled vocabularies (.ecv), as SignBanks export them.

CV_RESOURCE
  LANGUAGE LANG_ID
  CONTROLLED_VOCABULARY CV_ID            one or more lists
    CV_ENTRY_ML CVE_ID EXT_REF           one type; the id may occur in every list
      CVE_VALUE LANG_REF DESCRIPTION     its gloss in one language
    CV_ENTRY CVE_ID DESCRIPTION EXT_REF  one type, before EAF 2.8
  EXTERNAL_REF EXT_REF_ID VALUE          some SignBanks write it inside the list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lxml import etree

from signspot.errors import FormatError
from signspot.formats.intake import read_whole
from signspot.formats.oddities import Oddities
from signspot.formats.vocabulary import ExternalVocabulary, LocalGloss, VocabularyItem
from signspot.text.safe_xml import MAX_BYTES, parse_xml

UNKNOWN_LANGUAGE = "und"  # ELAN's name for "not said"


def read_ecv(path: Path) -> ExternalVocabulary:
    """Read every list of an external vocabulary; entries without an id are left out with a warning."""
    root = parse_xml(read_whole(path, MAX_BYTES), path, FormatError).getroot()
    if root.tag != "CV_RESOURCE":
        raise FormatError(path, f"is no ELAN external vocabulary (it is a <{root.tag}> file)", "give the .ecv file")
    odd = Oddities()
    refs = {ref.get("EXT_REF_ID", ""): ref.get("VALUE", "") for ref in root.iter("EXTERNAL_REF")}
    items = tuple(_with_ids(root, refs, odd))
    if not items:
        raise FormatError(path, "holds no entries with an id", "export it again from the SignBank or from ELAN")
    return ExternalVocabulary(str(path), items, file_url(path), odd.lines())


def file_url(path: Path) -> str:
    """The URL of a file as ELAN writes and reads it: never percent-encoded."""
    absolute = path.absolute().as_posix()
    # //server/share, a Windows network path, keeps its two slashes.
    return f"file:{absolute}" if absolute.startswith("//") else f"file:///{absolute.lstrip('/')}"


def items_of(vocabulary: etree._Element, refs: Mapping[str, str]) -> Iterator[VocabularyItem]:
    """The entries of one CONTROLLED_VOCABULARY; `refs` maps the ids of external references to their values."""
    for entry in vocabulary.iterchildren("CV_ENTRY_ML", "CV_ENTRY"):
        values = list(entry.iterchildren("CVE_VALUE")) if entry.tag == "CV_ENTRY_ML" else [entry]
        yield VocabularyItem(
            type_id=entry.get("CVE_ID", ""),
            glosses=tuple(LocalGloss(v.get("LANG_REF", UNKNOWN_LANGUAGE), plain_text(v)) for v in values),
            description=next((v.get("DESCRIPTION", "") for v in values if v.get("DESCRIPTION")), ""),
            external_ref=refs.get(entry.get("EXT_REF", ""), ""),
            vocabulary=vocabulary.get("CV_ID", ""),
        )


def plain_text(element: etree._Element | None) -> str:
    """The text of an element without its comments; empty if there is none."""
    if element is None:
        return ""
    return str(element.xpath("string()")) if len(element) else element.text or ""


def _with_ids(root: etree._Element, refs: Mapping[str, str], odd: Oddities) -> Iterator[VocabularyItem]:
    seen: set[tuple[str, str]] = set()  # an id is that of one list only
    for vocabulary in root.iterchildren("CONTROLLED_VOCABULARY"):
        for item in items_of(vocabulary, refs):
            if not item.type_id:
                odd.note("entries without an id, left out", item.gloss())
            elif (item.vocabulary, item.type_id) in seen:
                odd.note("entries whose id occurs before, left out", item.type_id)
            else:
                seen.add((item.vocabulary, item.type_id))
                yield item
