"""An ELAN annotation file (EAF 2.7-3.0): what is in it, as values that never change.

Times are EAF times in milliseconds. A linked video may start elsewhere: media time = EAF time + TIME_ORIGIN, which
`ElanMedia` converts both ways.

ELAN annotation files (EAF 2.7-3.0): read, made new, given tiers, written.

    document = read_eaf(Path("L12.eaf"))
    media = document.resolve_media(Path("L12.eaf"))
    document.add_spottings(spottings).write(Path("L12.spot.eaf"))

A file is changed by editing its XML tree, so whatever is in it, known to us or not, stays: tiers, links to
vocabularies and lexicons, unaligned slots, comments. Only layout that XML does not keep changes: the file is written
in UTF-8 without byte order mark and with plain line feeds.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lxml import etree

from signspot.domain.results import Spotting
from signspot.domain.time import Millis, MillisSpan
from signspot.errors import FormatError, InputError, readable_size
from signspot.files.atomic import atomic_output
from signspot.files.intake import Oddities, read_whole, shown_by
from signspot.files.xml import MAX_XML_BYTES, parse_xml
from signspot.formats.vocabularies import ExternalVocabulary, VocabularyItem, file_url, items_of, plain_text, shortened

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
class _ElanVocabulary:
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
    vocabularies: tuple[_ElanVocabulary, ...] = ()
    warnings: tuple[str, ...] = ()
    unread: str = ""  # how many annotations have no time that can be known, and why; empty: all have
    xml: bytes = field(repr=False)  # UTF-8 with declaration

    def tier(self, tier_id: str) -> _ElanTier | None:
        return next((tier for tier in self.tiers if tier.tier_id == tier_id), None)

    def add_glosses(self, glosses: Iterable[tuple[MillisSpan, str]], tier: str) -> ElanDocument:
        """The document with glosses of the first linked video, none of which overlap, on a new tier without notes."""
        unit = UNITS_MS[self.time_unit]
        media = self.media[0] if self.media else ElanMedia("")
        placed = sorted((media.to_eaf(span), gloss) for span, gloss in glosses)
        layer = [
            _NewAnnotation(round(span.start / unit), round(span.stop / unit), gloss, "", ()) for span, gloss in placed
        ]
        if any(later.start < earlier.stop for earlier, later in pairwise(layer)):
            raise InputError(self.where, f"glosses of the tier {tier!r} overlap", "give them tiers of their own")
        tree = parse_xml(self.xml, self.where, FormatError)
        tiers = _NewTiers(tier, (), "", "", None)
        _TierAdder(tree.getroot(), self, tiers).add([layer])
        return _document_of(tree, self.where, ())

    def add_spottings(self, spottings: Iterable[Spotting], options: TierOptions | None = None) -> ElanDocument:
        """The document with the spottings on new tiers; what could not be added is in its warnings.

        The times of spottings are media times, so TIME_ORIGIN of the video is subtracted. What lies wholly before the
        annotated part is left out, what begins before it is cut.
        """
        options, odd = options or TierOptions(), Oddities()
        placed = list(_placed(self, spottings, options, odd))
        tree = parse_xml(self.xml, self.where, FormatError)
        link = _chosen_link(self, [one.spotting.type_id for one in placed], options.vocabulary, odd)
        tiers = _NewTiers(options.tier, _NOTES, "signspot", options.language, link)
        layers = [[_annotation(one, link, options) for one in layer] for layer in _layers(placed)]
        _TierAdder(tree.getroot(), self, tiers).add(layers)
        added = _document_of(tree, self.where, odd.lines())
        if len(added.xml) > MAX_XML_BYTES:
            what = f"would grow beyond {readable_size(MAX_XML_BYTES)} with {len(placed):,} spottings"
            raise FormatError(self.where, what, "ask for fewer words or a higher threshold")
        return added

    def resolve_media(self, eaf_path: Path) -> tuple[_ResolvedMedia, ...]:
        """Find every linked medium: by its relative or absolute URL, either in the other's place, or by its name."""
        folder = eaf_path.absolute().parent
        return tuple(
            _ResolvedMedia(one, _find(one.url.strip(), one.relative_url.strip(), folder)) for one in self.media
        )

    def write(self, path: Path, *, overwrite: bool = False) -> None:
        with atomic_output(path, overwrite=overwrite) as temporary:
            temporary.write_bytes(self.xml)


def _document_of(tree: etree._ElementTree, where: str | Path, warnings: tuple[str, ...] = ()) -> ElanDocument:
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


def _integer(text: str | None) -> int | None:
    """A whole number as XML Schema writes it, or None."""
    text = (text or "").strip(" \t\r\n")
    return int(text) if _INTEGER.fullmatch(text) else None


def _format_version(root: etree._Element) -> str:
    schema = _SCHEMA_VERSION.search(root.get(_SCHEMA_LOCATION, ""))
    said = root.get("VERSION", "")
    return root.get("FORMAT") or (schema[1] if schema else said if _EAF_VERSION.fullmatch(said) else "3.0")


def _media(descriptor: etree._Element, odd: Oddities) -> ElanMedia:
    origin, url = descriptor.get("TIME_ORIGIN"), descriptor.get("MEDIA_URL", "")
    origin_ms = _integer(origin)
    if origin is not None and origin_ms is None:
        odd.note("media with a TIME_ORIGIN that is not a number, read as 0", url)
    relative, mime_type = descriptor.get("RELATIVE_MEDIA_URL", ""), descriptor.get("MIME_TYPE", "")
    return ElanMedia(url, relative, mime_type, origin_ms or 0)


def _vocabularies(root: etree._Element, references: _References) -> Iterator[_ElanVocabulary]:
    for element in root.iterchildren("CONTROLLED_VOCABULARY"):
        kind, url = references.get(element.get("EXT_REF", ""), ("", ""))
        yield _ElanVocabulary(element.get("CV_ID", ""), tuple(items_of(element)), url if kind == "ecv" else "")


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
            value = _integer(written)
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


_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_UNKNOWN_TYPE = "unknown"  # what ELAN writes
_MIME_TYPES = {
    ".mp4": "video/mp4", ".m4v": "video/mp4", ".mov": "video/quicktime", ".mpg": "video/mpeg", ".mpeg": "video/mpeg",
    ".avi": "video/x-msvideo", ".webm": "video/webm", ".mkv": "video/x-matroska", ".wmv": "video/x-ms-wmv",
    ".ogv": "video/ogg", ".wav": "audio/x-wav",
}  # fmt: skip


def read_eaf(path: Path) -> ElanDocument:
    """Read an ELAN file; what is odd but readable is in the document's warnings."""
    return _document_of(parse_xml(read_whole(path, MAX_XML_BYTES), path, FormatError), path)


def new_eaf(video: Path, eaf_path: Path, *, date: datetime) -> ElanDocument:
    """An empty EAF 3.0 document that links `video`, to be written at `eaf_path`; for landmarks, the video beside them.

    URLs are written as ELAN writes and reads them, without percent-encoding: a name with "[", "]" or "%" is found by
    ELAN but is no valid URL to a strict checker of the schema.
    """
    video = shown_by(video)
    about = {"AUTHOR": "signspot", "DATE": date.isoformat(timespec="seconds"), "FORMAT": "3.0", "VERSION": "3.0"}
    root = etree.Element("ANNOTATION_DOCUMENT", about, nsmap={"xsi": _XSI})
    root.set(f"{{{_XSI}}}noNamespaceSchemaLocation", "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    header = etree.SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    media = etree.SubElement(header, "MEDIA_DESCRIPTOR", MEDIA_URL=_xml_text(file_url(video)))
    media.set("MIME_TYPE", _MIME_TYPES.get(video.suffix.lower(), _UNKNOWN_TYPE))
    if relative := _relative_url(video, eaf_path):
        media.set("RELATIVE_MEDIA_URL", _xml_text(relative))
    etree.SubElement(header, "PROPERTY", NAME="lastUsedAnnotationId").text = "0"
    etree.SubElement(root, "TIME_ORDER")
    etree.indent(root, space="    ")
    return _document_of(parse_xml(etree.tostring(root), eaf_path, FormatError), eaf_path)


def _relative_url(video: Path, eaf_path: Path) -> str:
    try:
        relative = Path(os.path.relpath(video.absolute(), eaf_path.absolute().parent)).as_posix()
    except ValueError:  # another drive
        return ""
    return relative if relative.startswith("../") else f"./{relative}"


# Spottings as new tiers of an ELAN file; nothing that is there is touched.
#
#     signspot              the glosses, on the time line, linked to the vocabulary where there is one
#       signspot-confidence   one note for each: "cosine 0.713; presence 0.920"
#       signspot-source       one note for each: id, model, dictionary, entry, variant
#     signspot (2), ...     where two findings overlap, which ELAN does not allow on one tier; the surer one comes first
#
# In EAF 2.8 and later an annotation names its vocabulary entry in CVE_REF; in 2.7 in an EXTERNAL_REF of its own.

_NOTES = ("confidence", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class TierOptions:
    """How spottings become tiers."""

    tier: str = "signspot"  # the name of the new tier; a number follows if the name is taken
    media: ElanMedia | None = None  # the linked video that was searched; None: the first
    vocabulary: ExternalVocabulary | None = None  # None: the vocabularies that stand in the file
    language: str = ""  # of the glosses, as the vocabulary names it; empty: its first

    def __post_init__(self) -> None:
        if not self.tier.strip():
            raise InputError("tier", "the name of the new tier is empty", "name it, such as signspot")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A spotting and its time in the unit of the file."""

    spotting: Spotting
    start: int
    stop: int


def _placed(
    document: ElanDocument, spottings: Iterable[Spotting], options: TierOptions, odd: Oddities
) -> Iterator[_Placed]:
    unit = UNITS_MS[document.time_unit]
    media = options.media or (document.media[0] if document.media else ElanMedia(""))
    for spotting in spottings:
        span = media.to_eaf(spotting.span_ms)
        start = max(0, round(span.start / unit))
        stop = max(start + 1, round(span.stop / unit))  # an annotation without duration cannot be seen or clicked
        if span.stop <= 0:
            odd.note("spottings before the annotated part of the video, left out", spotting.word)
        elif stop > MAX_TIME_VALUE:
            odd.note("spottings later than an EAF file can say, left out", spotting.word)
        else:
            yield _Placed(spotting, start, stop)


def _layers(placed: Iterable[_Placed]) -> list[list[_Placed]]:
    """Split spottings so that none overlap within a layer; the first layer holds the surest of every moment."""
    layers: list[list[_Placed]] = [[]]
    for one in sorted(placed, key=_by_sureness):
        for layer in layers:
            at = bisect(layer, one.start, key=lambda other: other.start)
            if (at == 0 or layer[at - 1].stop <= one.start) and (at == len(layer) or one.stop <= layer[at].start):
                layer.insert(at, one)
                break
        else:
            layers.append([one])
    return layers


def _by_sureness(one: _Placed) -> tuple[float, int, int, str, str]:
    cosine = one.spotting.cosine
    return (math.inf if math.isnan(cosine) else -cosine, one.start, one.stop, one.spotting.word, one.spotting.entry_id)


def _annotation(one: _Placed, link: _VocabularyLink | None, options: TierOptions) -> _NewAnnotation:
    type_id = one.spotting.type_id
    linked = link.items.get(type_id) if link and type_id else None
    known = linked or (options.vocabulary.item(type_id) if options.vocabulary and type_id else None)
    value = (known.gloss(options.language) if known else "") or one.spotting.word
    return _NewAnnotation(one.start, one.stop, value, type_id if linked else "", _notes(one.spotting))


def _notes(spotting: Spotting) -> tuple[str, str]:
    confidence = f"cosine {spotting.cosine:.3f}"
    if spotting.presence is not None:
        confidence += f"; presence {spotting.presence.probability:.3f}"
    origin = spotting.provenance
    try:
        identity = spotting.spotting_id
    except UnicodeEncodeError:  # half a character, from a file name in no known encoding, has no bytes to hash
        identity = "spot:unknown"
    source = f"{identity}; model {origin.model}; dictionary {origin.dictionary}; entry {spotting.entry_id}"
    return confidence, f"{source}; variant {spotting.variant}" if spotting.variant else source


# Adding tiers to an EAF tree: a tier of aligned annotations and child tiers with a note on each of them.

_ASSOCIATION = "Symbolic_Association"
_ASSOCIATION_MEANING = "1-1 association with a parent annotation"  # ELAN's own words
_GLOSS_TYPE, _NOTE_TYPE = "signspot-gloss", "signspot-note"


@dataclass(frozen=True, slots=True)
class _NewAnnotation:
    """An annotation to add, with its time in the unit of the file and one note for each child tier."""

    start: int
    stop: int
    value: str
    cve_id: str  # the vocabulary entry to link; may be empty
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _NewTiers:
    """What the new tiers are called and where their glosses come from."""

    name: str
    notes: tuple[str, ...]  # the child tiers are called name-note
    annotator: str
    language: str
    link: _VocabularyLink | None


class _TierAdder:
    """Adds tiers to one tree; everything else in it stays."""

    def __init__(self, root: etree._Element, document: ElanDocument, tiers: _NewTiers) -> None:
        self._root, self._new = root, tiers
        self._has_cve_ref = _version_of(document) >= (2, 8)
        self._order = _RootOrder(root, _version_of(document))
        if tiers.link and not tiers.link.new_ecv_url:
            for linked in root.iterchildren("CONTROLLED_VOCABULARY"):
                if linked.get("CV_ID") == tiers.link.cv_id:
                    self._order.go_after(linked)
        self._last_used = root.find("HEADER/PROPERTY[@NAME='lastUsedAnnotationId']")
        elements = root.iter(etree.Element)
        taken = {one for element in elements for name in _IDS for one in element.get(name, "").split()}
        last_used = _integer(self._last_used.text) if self._last_used is not None else None
        self._newest_id = ""
        self._annotation_ids = _fresh_ids("a", taken, above=last_used or 0)
        self._slot_ids = _fresh_ids("ts", taken)
        self._reference_ids = _fresh_ids("er", taken)
        self._references = {
            (ref.get("TYPE", ""), ref.get("VALUE", "")): ref.get("EXT_REF_ID", "")
            for ref in root.iterchildren("EXTERNAL_REF")
        }

    def add(self, layers: Sequence[Sequence[_NewAnnotation]]) -> None:
        """Add one tier with its child tiers for each layer; the annotations of a layer must not overlap."""
        slots = self._add_slots([one for layer in layers for one in layer])
        gloss_type, note_type = self._add_gloss_type(), self._add_note_type()
        name = self._free_name(len(layers))
        for number, layer in enumerate(layers, start=1):
            ending = _ending(number)
            tiers = [self._tier(f"{name}{ending}", gloss_type)]
            tiers += [self._tier(f"{name}-{note}{ending}", note_type, f"{name}{ending}") for note in self._new.notes]
            for one in layer:
                self._annotate(one, tiers, next(slots))
            for tier in tiers:
                if self._root.text and not self._root.text.strip(_XML_SPACE):  # the file is indented
                    etree.indent(tier, space=_INDENT, level=1)
                self._order.add(tier)
        newest = int(self._newest_id.removeprefix("a") or 0)
        if self._last_used is not None and newest > (_integer(self._last_used.text) or 0):
            self._last_used.text = str(newest)

    def _add_slots(self, annotations: Sequence[_NewAnnotation]) -> Iterator[tuple[str, str]]:
        """Add two time slots for each annotation, among the others in order of time as ELAN writes them."""
        order = self._root.find("TIME_ORDER")
        if order is None:
            order = etree.Element("TIME_ORDER")
            self._order.add(order)
        ends = sorted(
            (time, i, end) for i, one in enumerate(annotations) for end, time in enumerate((one.start, one.stop))
        )
        slots: list[list[str]] = [["", ""] for _ in annotations]
        existing = iter(_in_time(order))
        value, following = next(existing, (0, None))
        for time, i, end in ends:
            while following is not None and value <= time and following.tag == "TIME_SLOT":
                value, following = next(existing, (0, None))
            slots[i][end] = next(self._slot_ids)
            slot = etree.Element("TIME_SLOT", TIME_SLOT_ID=slots[i][end], TIME_VALUE=str(time))
            _append(order, slot) if following is None else _add_before(following, slot)
        return ((first, last) for first, last in slots)

    def _free_name(self, n_layers: int) -> str:
        taken = {tier.get("TIER_ID") for tier in self._root.iterchildren("TIER")}
        base, parts = _xml_text(self._new.name), ("", *(f"-{note}" for note in self._new.notes))
        names = (base if number == 1 else f"{base}-{number}" for number in itertools.count(1))
        endings = [_ending(number) for number in range(1, n_layers + 1)]
        every = ((name, [f"{name}{part}{end}" for part in parts for end in endings]) for name in names)
        return next(name for name, ids in every if taken.isdisjoint(ids))

    def _tier(self, name: str, linguistic_type: str, parent: str = "") -> etree._Element:
        tier = etree.Element("TIER", TIER_ID=name, LINGUISTIC_TYPE_REF=linguistic_type)
        if self._new.annotator:
            tier.set("ANNOTATOR", _xml_text(self._new.annotator))
        if parent:
            tier.set("PARENT_REF", parent)
        elif self._new.link and self._has_cve_ref and self._new.language:
            declared = (one for one in self._root.iterchildren("LANGUAGE") if self._order.sees(one))
            if self._new.language in (one.get("LANG_ID") for one in declared):
                tier.set("LANG_REF", self._new.language)  # says which of the entry's values is meant
        return tier

    def _annotate(self, one: _NewAnnotation, tiers: Sequence[etree._Element], slots: tuple[str, str]) -> None:
        aligned = etree.SubElement(etree.SubElement(tiers[0], "ANNOTATION"), "ALIGNABLE_ANNOTATION")
        annotation_id = self._write(aligned, one.value)
        aligned.set("TIME_SLOT_REF1", slots[0])
        aligned.set("TIME_SLOT_REF2", slots[1])
        if one.cve_id and self._has_cve_ref:
            aligned.set("CVE_REF", _xml_text(one.cve_id))
        elif one.cve_id:
            aligned.set("EXT_REF", self._reference("cve_id", one.cve_id))
        for tier, note in zip(tiers[1:], one.notes, strict=True):
            reference = etree.SubElement(etree.SubElement(tier, "ANNOTATION"), "REF_ANNOTATION")
            self._write(reference, note)
            reference.set("ANNOTATION_REF", annotation_id)

    def _write(self, annotation: etree._Element, value: str) -> str:
        self._newest_id = next(self._annotation_ids)
        annotation.set("ANNOTATION_ID", self._newest_id)
        etree.SubElement(annotation, "ANNOTATION_VALUE").text = _xml_text(value)
        return self._newest_id

    def _add_gloss_type(self) -> str:
        attributes = {"TIME_ALIGNABLE": "true", "GRAPHIC_REFERENCES": "false"}
        link = self._new.link
        if link:
            attributes["CONTROLLED_VOCABULARY_REF"] = cv_id = _xml_text(link.cv_id)
            if link.new_ecv_url:
                reference = self._reference("ecv", link.new_ecv_url)
                self._order.add(etree.Element("CONTROLLED_VOCABULARY", CV_ID=cv_id, EXT_REF=reference))
        return self._linguistic_type(_GLOSS_TYPE, attributes)

    def _add_note_type(self) -> str:
        if all(element.get("STEREOTYPE") != _ASSOCIATION for element in self._root.iterchildren("CONSTRAINT")):
            constraint = etree.Element("CONSTRAINT", STEREOTYPE=_ASSOCIATION, DESCRIPTION=_ASSOCIATION_MEANING)
            self._order.add(constraint)
        attributes = {"TIME_ALIGNABLE": "false", "GRAPHIC_REFERENCES": "false", "CONSTRAINTS": _ASSOCIATION}
        return self._linguistic_type(_NOTE_TYPE, attributes)

    def _linguistic_type(self, base: str, attributes: dict[str, str]) -> str:
        """The name of a type with exactly these attributes: one of ours that is there, or a new one."""
        existing = {one.get("LINGUISTIC_TYPE_ID"): one for one in self._root.iterchildren("LINGUISTIC_TYPE")}
        used = {tier.get("LINGUISTIC_TYPE_REF") for tier in self._root.iterchildren("TIER")}  # maybe of a lost type
        names = (base if number == 1 else f"{base}-{number}" for number in itertools.count(1))
        for name in names:
            wanted, there = {"LINGUISTIC_TYPE_ID": name, **attributes}, existing.get(name)
            if there is None and name not in used:
                self._order.add(etree.Element("LINGUISTIC_TYPE", wanted))
                break
            if there is not None and dict(there.items()) == wanted and self._order.sees(there):
                break
        return name

    def _reference(self, kind: str, value: str) -> str:
        """The id of an EXTERNAL_REF with this value, added if it is not there."""
        value = _xml_text(value)
        if not self._references.get((kind, value)):
            reference_id = self._references[kind, value] = next(self._reference_ids)
            self._order.add(etree.Element("EXTERNAL_REF", EXT_REF_ID=reference_id, TYPE=kind, VALUE=value))
        return self._references[kind, value]


def _ending(number: int) -> str:
    return f" ({number})" if number > 1 else ""


def _in_time(order: etree._Element) -> Iterator[tuple[int, etree._Element]]:
    """The time slots that have a time; the first thing that is no time slot is the last: nothing goes after it."""
    for slot in order.iterchildren(etree.Element):
        value = _integer(slot.get("TIME_VALUE"))
        if value is not None or slot.tag != "TIME_SLOT":
            yield value or 0, slot
        if slot.tag != "TIME_SLOT":
            return


# Adding elements to an EAF tree so that everything else stays as it is, its layout included. An added element takes
# over the line break and indentation of its place; taking it out again gives the old tree.

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


def _xml_text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _fresh_ids(prefix: str, taken: set[str], above: int = 0) -> Iterator[str]:
    """New ids: the prefix and numbers above all that are in use."""
    numbered = re.compile(re.escape(prefix) + r"([0-9]{1,9})")
    number = max((int(match[1]) for one in taken if (match := numbered.fullmatch(one))), default=0)
    number = max(number, above if above < 10**9 else 0)  # beyond that it is damage, not a count
    while True:
        number += 1
        if f"{prefix}{number}" not in taken:
            taken.add(f"{prefix}{number}")
            yield f"{prefix}{number}"


class _RootOrder:
    """Where new children of ANNOTATION_DOCUMENT go, also in a file whose own children are not as the schema wants them.

    A checker of the schema may stop at the first child that is out of place and look at nothing after it. New elements
    go before that child, or, where they refer to something after it, to the end: it finds no more to complain about
    than it did.
    """

    def __init__(self, root: etree._Element, version: tuple[int, ...]) -> None:
        self._root, self._version = root, version
        self._at_end = False

    def sees(self, child: etree._Element) -> bool:
        sound = self._sound()
        return sound is None or self._at_end or child in sound

    def go_after(self, child: etree._Element) -> None:
        self._at_end = self._at_end or not self.sees(child)

    def add(self, element: etree._Element) -> None:
        """Add a child after its like, or where the schema wants the first of its kind."""
        rank, sound = _RANK[element.tag], self._sound()
        lost_order = element.tag == "TIME_ORDER" and _last(self._root, lambda tag: _RANK.get(tag, 0) > rank) is not None
        if lost_order or (sound is not None and self._at_end):
            _append(self._root, element)
            return
        if sound is not None:
            anchor = next((child for child in reversed(sound) if _RANK.get(child.tag, 0) <= rank), None)
        else:
            anchor = _last(self._root, lambda tag: tag == element.tag)
            if anchor is None:
                anchor = _last(self._root, lambda tag: _RANK.get(tag, rank) < rank)
        following = anchor.getnext() if anchor is not None else next(iter(self._root), None)
        if following is None:
            _append(self._root, element)
        else:
            _add_before(following, element)

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


def _add_before(sibling: etree._Element, element: etree._Element) -> None:
    """Add an element before its sibling, on a line of its own if the sibling is."""
    element.tail = _layout_before(sibling)
    sibling.addprevious(element)


def _append(parent: etree._Element, element: etree._Element) -> None:
    """Add an element as the last child, on a line of its own if the other children are."""
    last = next(parent.iterchildren(reversed=True), None)  # len() would count them all, each time
    if last is not None:
        element.tail, last.tail = last.tail, _layout_before(last)
    elif parent.text:
        element.tail = parent.text if not parent.text.strip(_XML_SPACE) else None
    elif outside := _layout_before(parent):
        parent.text, element.tail = outside + _INDENT, outside
    parent.append(element)


def _last(root: etree._Element, fits: Callable[[str], bool]) -> etree._Element | None:
    return next((child for child in root.iterchildren(etree.Element, reversed=True) if fits(child.tag)), None)


def _layout_before(element: etree._Element) -> str | None:
    before, parent = element.getprevious(), element.getparent()
    text = before.tail if before is not None else parent.text if parent is not None else None
    return text if text and not text.strip(_XML_SPACE) else None


# Which controlled vocabulary of an ELAN file the glosses of a new tier belong to. Linking is careful because ELAN is
# believed (not checked against ELAN itself) to find an external vocabulary by its CV_ID inside the ECV and, on opening
# a file, to replace the values of linked annotations by the entries' own. A link to the wrong vocabulary would then
# change glosses silently, so a vocabulary counts as the one given only if both its CV_ID and the file name of its ECV
# agree, and an id that several vocabularies use is never linked by guessing which is meant.

_FIRST_VERSION_WITH_ENTRY_IDS = (2, 7)


@dataclass(frozen=True, slots=True)
class _VocabularyLink:
    """The vocabulary of a tier; `new_ecv_url` is set if the file does not have it yet."""

    cv_id: str
    items: Mapping[str, VocabularyItem]  # by type id
    new_ecv_url: str = ""


def _version_of(document: ElanDocument) -> tuple[int, ...]:
    """The EAF version as numbers; 3.0 where it is none."""
    parts = document.format_version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() and len(part) < 5 for part in parts) else (3, 0)


def one_list(given: ExternalVocabulary, document: ElanDocument | None) -> ExternalVocabulary:
    """The vocabulary of an ECV that the tiers of `document` use, or its only one; refused where that is not clear."""
    if not given.url or len(given.lists) < 2:  # a table has ids that say everything
        return given
    name = None if document is None else _tiers_use(document, _groups(given.items), given)
    if document is None or name is None:
        what = f"holds {len(given.lists)} vocabularies: {shortened(given.lists)}"
        fix = f"choose one by its name, such as --vocabulary '{given.source}#{next(filter(None, given.lists))}'"
        raise FormatError(given.source, what, fix)
    said = f"the vocabulary {name!r} is taken, which the tiers of {document.where} use"
    return replace(given.only(name), warnings=(*given.warnings, said))


def _chosen_link(
    document: ElanDocument, type_ids: Sequence[str], given: ExternalVocabulary | None, odd: Oddities
) -> _VocabularyLink | None:
    """The vocabulary that holds most of the type ids, if it can be linked; otherwise the reason is noted."""
    if not any(type_ids) or (given is None and not document.vocabularies):
        return None
    groups = _groups(given.items if given else [item for cv in document.vocabularies for item in cv.items])
    if not any(type_id in items for items in groups.values() for type_id in type_ids):
        odd.note("vocabularies that hold none of the type ids, not linked", given.source if given else "of the file")
        return None
    groups = _told_apart(document, groups, given, type_ids, odd)
    counts = {name: sum(type_id in items for type_id in type_ids) for name, items in groups.items()}
    name = max(counts, key=lambda name: counts[name])
    if not counts[name]:
        return None
    if not name:
        odd.note("vocabularies without a name, not linked", given.source if given else "of the file")
        return None
    if _version_of(document) < _FIRST_VERSION_WITH_ENTRY_IDS:
        odd.note("formats without links to vocabulary entries", f"EAF {document.format_version}")
        return None
    if given is None:
        return _VocabularyLink(name, groups[name])
    return _link_to_given(document, name, given, groups[name], odd)


def _link_to_given(
    document: ElanDocument, name: str, given: ExternalVocabulary, items: Mapping[str, VocabularyItem], odd: Oddities
) -> _VocabularyLink | None:
    existing = next((cv for cv in document.vocabularies if cv.cv_id == name), None)
    if existing is not None:
        if _is_same(existing, given, items):
            return _VocabularyLink(name, items)
        odd.note("vocabularies whose name belongs to another one in this file, not linked", name)
        return None
    if not given.url:
        odd.note("tables that ELAN cannot load as a vocabulary, not linked; give the ECV", given.source)
        return None
    return _VocabularyLink(name, items, given.url)


def _is_same(existing: _ElanVocabulary, given: ExternalVocabulary, items: Mapping[str, VocabularyItem]) -> bool:
    if existing.ecv_url:
        return not given.url or _file_name(existing.ecv_url) == _file_name(given.url)
    known = {item.type_id: item for item in existing.items}
    # Lists that count their entries have the same ids and other glosses.
    for i, item in items.items():
        glosses = {gloss.text for gloss in known[i].glosses} if i in known else set()
        if i not in known or (item.glosses and not any(gloss.text in glosses for gloss in item.glosses)):
            return False
    return True


def _tiers_use(
    document: ElanDocument, groups: Mapping[str, Mapping[str, VocabularyItem]], given: ExternalVocabulary | None
) -> str | None:
    """Which one of these vocabularies the linguistic types of the file's tiers refer to; None: none, or several."""
    used = {tier.vocabulary for tier in document.tiers}
    here = (cv for cv in document.vocabularies if cv.cv_id in used and cv.cv_id in groups)
    found = {cv.cv_id for cv in here if given is None or _is_same(cv, given, groups[cv.cv_id])}
    return found.pop() if len(found) == 1 else None


def _told_apart(
    document: ElanDocument,
    groups: dict[str, dict[str, VocabularyItem]],
    given: ExternalVocabulary | None,
    type_ids: Sequence[str],
    odd: Oddities,
) -> dict[str, dict[str, VocabularyItem]]:
    """The vocabularies without the type ids that may be of several of them, unless the tiers tell which is meant."""
    counts = Counter(type_id for items in groups.values() for type_id in items)
    shared = {type_id for type_id in type_ids if counts[type_id] > 1}
    if shared and (name := _tiers_use(document, groups, given)) is not None:
        return {name: groups[name]}
    for type_id in sorted(shared):
        odd.note("type ids that several vocabularies use, not linked; choose one vocabulary", type_id)
    return {name: {i: item for i, item in items.items() if i not in shared} for name, items in groups.items()}


def _groups(items: Sequence[VocabularyItem]) -> dict[str, dict[str, VocabularyItem]]:
    groups: dict[str, dict[str, VocabularyItem]] = {}
    for item in items:
        if item.type_id:
            groups.setdefault(item.vocabulary, {}).setdefault(item.type_id, item)
    return groups


def _file_name(url: str) -> str:
    return unquote(url).replace("\\", "/").rpartition("/")[2].casefold()
