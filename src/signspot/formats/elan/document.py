"""An ELAN annotation file (EAF 2.7-3.0): what is in it, as values that never change.

Times are EAF times in milliseconds. A linked video may start elsewhere: media time = EAF time + TIME_ORIGIN, which
`ElanMedia` converts both ways.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lxml import etree

from signspot.domain.time import Millis, MillisSpan
from signspot.errors import FormatError
from signspot.files.intake import Oddities
from signspot.formats.vocabularies import VocabularyItem, items_of, plain_text

MAX_TIME_VALUE = 2**32 - 1  # TIME_VALUE is an xsd:unsignedInt
UNITS_MS = {"milliseconds": Fraction(1), "PAL-frames": Fraction(40), "NTSC-frames": Fraction(1001, 30)}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_EAF_VERSION = re.compile(r"[23]\.[0-9]")
_SCHEMA_VERSION = re.compile(r"EAFv([0-9.]+)\.xsd")
_SCHEMA_LOCATION = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"


@dataclass(frozen=True, slots=True)
class ElanMedia:
    """A linked video or sound file."""

    url: str
    relative_url: str = ""
    mime_type: str = ""
    time_origin_ms: int = 0

    @property
    def name(self) -> str:
        """The name of the file, by whichever URL says it; empty if neither does."""
        return (self.url.strip() or self.relative_url.strip()).replace("\\", "/").rstrip("/").rpartition("/")[2]

    def to_eaf(self, span: MillisSpan) -> MillisSpan:
        """The time of this file to EAF time, which is negative before the annotated part."""
        return MillisSpan(Millis(span.start - self.time_origin_ms), Millis(span.stop - self.time_origin_ms))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ElanAnnotation:
    """One annotation; one that refers to another has that one's time."""

    annotation_id: str
    span_ms: MillisSpan | None  # EAF time; None: not aligned to the time line
    value: str
    cve_ref: str = ""  # the id of the vocabulary entry it was chosen from
    language: str = ""
    parent_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ElanTier:
    """One tier with its annotations in the order of the file."""

    tier_id: str
    linguistic_type: str
    annotator: str = ""
    parent: str = ""
    language: str = ""
    vocabulary: str = ""  # the controlled vocabulary of its linguistic type
    annotations: tuple[_ElanAnnotation, ...] = ()


_References = dict[str, tuple[str, str]]  # id of an EXTERNAL_REF -> its type (ecv, cve_id, ...) and value


@dataclass(frozen=True, slots=True)
class ElanVocabulary:
    """A controlled vocabulary: its items stand in the file, or an ECV holds them."""

    cv_id: str
    items: tuple[VocabularyItem, ...] = ()
    ecv_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElanDocument:
    """A whole EAF file; `xml` is all of it, the rest is a view of it."""

    where: str  # the file it comes from, for messages
    format_version: str  # such as 3.0
    time_unit: str = "milliseconds"
    media: tuple[ElanMedia, ...] = ()
    tiers: tuple[_ElanTier, ...] = ()
    vocabularies: tuple[ElanVocabulary, ...] = ()
    warnings: tuple[str, ...] = ()
    unread: str = ""  # how many annotations have no time that can be known, and why; empty: all have
    xml: bytes = field(repr=False)  # UTF-8 with declaration

    def tier(self, tier_id: str) -> _ElanTier | None:
        return next((tier for tier in self.tiers if tier.tier_id == tier_id), None)


def document_of(tree: etree._ElementTree, where: str | Path, warnings: tuple[str, ...] = ()) -> ElanDocument:
    """The view of a parsed EAF; what is odd in it comes after `warnings`."""
    root = tree.getroot()
    if root.tag != "ANNOTATION_DOCUMENT":
        fix = "give it as the vocabulary" if root.tag == "CV_RESOURCE" else "give an .eaf file"
        raise FormatError(where, f"is not an ELAN annotation file (it is a <{root.tag}> file)", fix)
    odd = Oddities()
    header = root.find("HEADER")
    references: _References = {
        ref.get("EXT_REF_ID", ""): (ref.get("TYPE", ""), ref.get("VALUE", ""))
        for ref in root.iterchildren("EXTERNAL_REF")
    }
    time_unit = "milliseconds" if header is None else header.get("TIME_UNITS", "milliseconds")
    if time_unit not in UNITS_MS:
        odd.note("time units that EAF does not know, read as milliseconds", time_unit)
        time_unit = "milliseconds"
    reader = _Tiers(root, UNITS_MS[time_unit], references, odd)
    # "no" is what leaving it out means; None leaves it out, which the stubs do not know.
    standalone: Any = True if tree.docinfo.standalone else None
    return ElanDocument(
        where=str(where),
        format_version=_format_version(root),
        time_unit=time_unit,
        media=() if header is None else tuple(_media(m, odd) for m in header.iterchildren("MEDIA_DESCRIPTOR")),
        tiers=reader.read(),
        vocabularies=tuple(_vocabularies(root, references)),
        warnings=warnings + odd.lines(),
        unread=reader.unread(),
        xml=etree.tostring(tree, encoding="UTF-8", xml_declaration=True, standalone=standalone),
    )


def integer(text: str | None) -> int | None:
    """A whole number as XML Schema writes it, or None."""
    text = (text or "").strip(" \t\r\n")
    return int(text) if _INTEGER.fullmatch(text) else None


def _format_version(root: etree._Element) -> str:
    schema = _SCHEMA_VERSION.search(root.get(_SCHEMA_LOCATION, ""))
    said = root.get("VERSION", "")
    return root.get("FORMAT") or (schema[1] if schema else said if _EAF_VERSION.fullmatch(said) else "3.0")


def _media(descriptor: etree._Element, odd: Oddities) -> ElanMedia:
    origin, url = descriptor.get("TIME_ORIGIN"), descriptor.get("MEDIA_URL", "")
    origin_ms = integer(origin)
    if origin is not None and origin_ms is None:
        odd.note("media with a TIME_ORIGIN that is not a number, read as 0", url)
    relative, mime_type = descriptor.get("RELATIVE_MEDIA_URL", ""), descriptor.get("MIME_TYPE", "")
    return ElanMedia(url, relative, mime_type, origin_ms or 0)


def _vocabularies(root: etree._Element, references: _References) -> Iterator[ElanVocabulary]:
    for element in root.iterchildren("CONTROLLED_VOCABULARY"):
        kind, url = references.get(element.get("EXT_REF", ""), ("", ""))
        yield ElanVocabulary(element.get("CV_ID", ""), tuple(items_of(element)), url if kind == "ecv" else "")


class _Tiers:
    """Reads the tiers of one file: time slots and references between annotations become times."""

    def __init__(self, root: etree._Element, unit_ms: Fraction, references: _References, odd: Oddities) -> None:
        self._root, self._unit_ms, self._odd = root, unit_ms, odd
        self._entry_ids = {ref_id: value for ref_id, (kind, value) in references.items() if kind == "cve_id"}
        types = list(root.iterchildren("LINGUISTIC_TYPE"))[::-1]  # of two with one name, the first counts
        self._cv_refs = {t.get("LINGUISTIC_TYPE_ID", ""): t.get("CONTROLLED_VOCABULARY_REF", "") for t in types}
        self._slots = self._read_slots()
        self._spans: dict[str, MillisSpan | None] = {}
        self._parents: dict[str, str] = {}

    def read(self) -> tuple[_ElanTier, ...]:
        self._read_annotation_times()
        tiers = tuple(self._tier(element) for element in self._root.iterchildren("TIER"))
        self._check_parents(tiers)
        return tiers

    def unread(self) -> str:
        elements = self._root.iterfind("TIER/ANNOTATION")
        kinds = ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION")
        annotations: list[etree._Element | None] = []
        for element in elements:
            annotations += list(element.iterchildren(*kinds)) or [None]
        reasons = self._trouble([one for one in annotations if one is not None])
        counts = Counter("they are empty" if one is None else reasons.get(one, "") for one in annotations)
        n_read = counts.pop("", 0)
        if not counts:
            return ""
        why = "; ".join(f"{n}: {reason}" for reason, n in counts.items()) if len(counts) > 1 else next(iter(counts))
        return f"{len(annotations) - n_read} of {len(annotations)} annotations cannot be read ({why})"

    def _trouble(self, annotations: list[etree._Element]) -> dict[etree._Element, str]:
        """What is wrong with annotations of either kind; those that refer to one without a time have none, too."""
        aligned = [one for one in annotations if one.tag == "ALIGNABLE_ANNOTATION"]
        pairs = [(one.get("TIME_SLOT_REF1", ""), one.get("TIME_SLOT_REF2", "")) for one in aligned]
        # A part of a subdivision has a slot without a time where the next part begins; only the ends of all have times.
        timed = {slot for slot, time in self._slots.items() if time is not None}
        begun, ended = _reached(timed, pairs), _reached(timed, ((stop, start) for start, stop in pairs))
        reasons: dict[etree._Element, str] = {}
        for one, (start, stop) in zip(aligned, pairs, strict=True):
            if start not in self._slots or stop not in self._slots:
                reasons[one] = "their time slots are missing"
            elif start not in begun or stop not in ended:
                reasons[one] = "their time slots have no time"
            elif start in timed and stop in timed and self._aligned_span(one, Oddities()) is None:
                reasons[one] = "they end before they start"
        referring = [(one.get("ANNOTATION_REF", ""), one) for one in annotations if one.tag == "REF_ANNOTATION"]
        links = [(parent, one.get("ANNOTATION_ID", "")) for parent, one in referring]
        readable = _reached({one.get("ANNOTATION_ID", "") for one in aligned if one not in reasons}, links)
        ids = {one.get("ANNOTATION_ID", "") for one in annotations}
        for parent, one in referring:
            if parent not in readable:
                reasons[one] = f"what they refer to {'cannot be read' if parent in ids else 'is missing'}"
        return reasons

    def _read_slots(self) -> dict[str, int | None]:
        """Slot id -> milliseconds, None where the slot is not aligned."""
        slots: dict[str, int | None] = {}
        for slot in self._root.iterfind("TIME_ORDER/TIME_SLOT"):
            slot_id, written = slot.get("TIME_SLOT_ID", ""), slot.get("TIME_VALUE")
            value = integer(written)
            if written is not None and (value is None or not 0 <= value <= MAX_TIME_VALUE):
                self._odd.note("time slots whose TIME_VALUE is no time, read as not aligned", slot_id)
                value = None
            if slot_id in slots:
                self._odd.note("time slots whose id occurs before, ignored", slot_id)
            else:
                slots[slot_id] = None if value is None else round(value * self._unit_ms)
        return slots

    def _read_annotation_times(self) -> None:
        for element in self._root.iterfind("TIER/ANNOTATION/*"):
            annotation_id = element.get("ANNOTATION_ID", "")
            if annotation_id in self._spans or annotation_id in self._parents:
                self._odd.note("annotations whose id occurs before", annotation_id)
            elif element.tag == "ALIGNABLE_ANNOTATION":
                self._spans[annotation_id] = self._aligned_span(element, Oddities())  # noted when its tier is read
            elif element.tag == "REF_ANNOTATION":
                self._parents[annotation_id] = element.get("ANNOTATION_REF", "")

    def _aligned_span(self, element: etree._Element, odd: Oddities) -> MillisSpan | None:
        annotation_id = element.get("ANNOTATION_ID", "")
        slots = element.get("TIME_SLOT_REF1", ""), element.get("TIME_SLOT_REF2", "")
        if any(slot not in self._slots for slot in slots):
            odd.note("annotations with a time slot that does not exist", annotation_id)
            return None
        start, stop = (self._slots[slot] for slot in slots)
        if start is None or stop is None:
            return None
        if stop < start:
            odd.note("annotations that end before they start, read as not aligned", annotation_id)
            return None
        return MillisSpan(Millis(start), Millis(stop))

    def _span(self, annotation_id: str) -> MillisSpan | None:
        """The time of the annotation that a chain of references ends in."""
        chain: dict[str, None] = {}
        current = annotation_id
        while current not in self._spans and current in self._parents and current not in chain:
            chain[current] = None
            current = self._parents[current]
        if current in chain:
            self._odd.note("annotations that refer to each other in a circle", current)
        elif current not in self._spans:
            self._odd.note("references to annotations that do not exist", current)
        span = self._spans.get(current)
        self._spans.update(dict.fromkeys(chain, span))
        return span

    def _tier(self, element: etree._Element) -> _ElanTier:
        annotations = (
            a for a in element.iterfind("ANNOTATION/*") if a.tag in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION")
        )
        return _ElanTier(
            tier_id=element.get("TIER_ID", ""),
            linguistic_type=element.get("LINGUISTIC_TYPE_REF", ""),
            annotator=element.get("ANNOTATOR", ""),
            parent=element.get("PARENT_REF", ""),
            language=element.get("LANG_REF", ""),
            vocabulary=self._cv_refs.get(element.get("LINGUISTIC_TYPE_REF", ""), ""),
            annotations=tuple(self._annotation(annotation) for annotation in annotations),
        )

    def _annotation(self, element: etree._Element) -> _ElanAnnotation:
        parent_id, aligned = element.get("ANNOTATION_REF", ""), element.tag == "ALIGNABLE_ANNOTATION"
        # EAF 2.7 names the vocabulary entry by an external reference of its own.
        old_refs = (self._entry_ids.get(ref, "") for ref in element.get("EXT_REF", "").split())
        return _ElanAnnotation(
            annotation_id=element.get("ANNOTATION_ID", ""),
            span_ms=self._aligned_span(element, self._odd) if aligned else self._span(parent_id),
            value=plain_text(element.find("ANNOTATION_VALUE")),
            cve_ref=element.get("CVE_REF", "") or next((ref for ref in old_refs if ref), ""),
            language=element.get("LANG_REF", ""),
            parent_id=parent_id,
        )

    def _check_parents(self, tiers: tuple[_ElanTier, ...]) -> None:
        parents: dict[str, str] = {}
        for tier in tiers:
            if tier.tier_id in parents:
                self._odd.note("tiers whose name occurs before", tier.tier_id)
            parents.setdefault(tier.tier_id, tier.parent)
        known: set[str] = {""}  # tiers whose parents lead to a tier without one
        for tier_id in parents:
            chain: dict[str, None] = {}
            current = tier_id
            while current not in known and current in parents and current not in chain:
                chain[current] = None
                current = parents[current]
            if current in chain:
                self._odd.note("tiers that are their own ancestors", current)
            elif current not in known:
                self._odd.note("parent tiers that do not exist", current)
            known.update(chain)


def _reached(starts: set[str], links: Iterable[tuple[str, str]]) -> set[str]:
    """Everything that links lead to from `starts`, which are part of it."""
    following: dict[str, list[str]] = {}
    for here, there in links:
        following.setdefault(here, []).append(there)
    reached, waiting = set(starts), list(starts)
    while waiting:
        new = set(following.pop(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    return reached


# The files an EAF links to: found on this computer or not at all, never fetched. ELAN writes absolute URLs of the
# computer the file was made on (file:///C:/corpus/a b.mp4, not percent-encoded) and URLs relative to the EAF (./a.mp4,
# ../video/a.mp4; older versions file:/./a.mp4). Other programs leave one of the two empty, or write one in the place of
# the other. Network paths (//server/share) are never touched: merely asking for one sends the user's credentials on
# some systems.

_DRIVE = re.compile(r"/*([A-Za-z]:/.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters or more: one is a Windows drive


@dataclass(frozen=True, slots=True)
class _ResolvedMedia:
    """A linked medium and where it is on this computer; `path` is None if it is not here."""

    media: ElanMedia
    path: Path | None


def resolve_media(document: ElanDocument, eaf_path: Path) -> tuple[_ResolvedMedia, ...]:
    """Find every linked medium: by its relative URL, its absolute URL, either in the other's place, or by its name."""
    folder = eaf_path.absolute().parent
    return tuple(
        _ResolvedMedia(one, _find(one.url.strip(), one.relative_url.strip(), folder)) for one in document.media
    )


def _find(url: str, relative_url: str, folder: Path) -> Path | None:
    names = dict.fromkeys(link.replace("\\", "/").rpartition("/")[2] for link in (relative_url, url))
    beside = (spelling for name in names for spelling in _spellings(name))
    places = itertools.chain(
        _relative(relative_url, folder),
        _absolute(url),
        _absolute(relative_url),
        (path for path in _relative(url, folder) if path.parent != folder),
        (folder / name for name in beside if name not in ("", ".", "..") and "/" not in name),
    )
    return next(filter(_is_file, places), None)


def _relative(url: str, folder: Path) -> Iterator[Path]:
    written = url.replace("\\", "/").removeprefix("file:")
    written = re.sub(r"^/+(?=\.{1,2}/)", "", written)
    for spelling in _spellings(written):
        if spelling and not spelling.startswith("/") and not _SCHEME.match(spelling) and not _DRIVE.match(spelling):
            yield folder / spelling


def _absolute(url: str) -> Iterator[Path]:
    written = url.replace("\\", "/")
    if written.lower().startswith("file:"):
        # file:/x, file:///x and, from some tools, file:////x name the same file; file://x/y is a server.
        written = re.sub(r"^///+", "/", written[5:])
    for spelling in _spellings(written):
        drive = _DRIVE.fullmatch(spelling)
        path = Path(drive[1] if drive else spelling)
        if path.is_absolute() and not spelling.startswith("//"):
            yield path


def _spellings(written: str) -> Iterator[str]:
    """A path as it may stand on the disk: percent-decoded or not, composed or decomposed (macOS)."""
    seen: set[str] = set()
    for text in (unquote(written), written):
        for spelling in (text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)):
            # A decoded backslash would be a separator on Windows again.
            if spelling not in seen and "\\" not in spelling:
                seen.add(spelling)
                yield spelling


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # names that are too long, folders that may not be entered
        return False
