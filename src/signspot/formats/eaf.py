"""ELAN annotation files (EAF 2.7-3.0): read, made new, given tiers, written.

    document = read_eaf(Path("L12.eaf"))
    media = resolve_media(document, Path("L12.eaf"))
    write_eaf(add_spottings(document, spottings), Path("L12.spot.eaf"))

A file is changed by editing its XML tree, so whatever is in it, known to us or not, stays: tiers, links to
vocabularies and lexicons, unaligned slots, comments. Only layout that XML does not keep changes: the file is written
in UTF-8 without byte order mark and with plain line feeds.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from lxml import etree

from signspot.atomic import atomic_output
from signspot.errors import FormatError
from signspot.formats.eaf_document import (
    ElanAnnotation,
    ElanDocument,
    ElanMedia,
    ElanReference,
    ElanTier,
    ElanVocabulary,
    document_of,
)
from signspot.formats.eaf_links import FoundBy, ResolvedMedia, resolve_media, resolve_vocabularies
from signspot.formats.eaf_spottings import TierOptions, add_glosses, add_spottings
from signspot.formats.eaf_tree import xml_text
from signspot.formats.ecv import file_url
from signspot.formats.intake import read_whole
from signspot.formats.places import shown_by
from signspot.text.safe_xml import MAX_BYTES, parse_xml

__all__ = [
    "ElanAnnotation",
    "ElanDocument",
    "ElanMedia",
    "ElanReference",
    "ElanTier",
    "ElanVocabulary",
    "FoundBy",
    "ResolvedMedia",
    "TierOptions",
    "add_glosses",
    "add_spottings",
    "new_eaf",
    "read_eaf",
    "resolve_media",
    "resolve_vocabularies",
    "write_eaf",
]

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_UNKNOWN_TYPE = "unknown"  # what ELAN writes
_MIME_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".mpg": "video/mpeg",
    ".mpeg": "video/mpeg",
    ".avi": "video/x-msvideo",
    ".webm": "video/webm",
    ".mkv": "video/x-matroska",
    ".wmv": "video/x-ms-wmv",
    ".ogv": "video/ogg",
    ".wav": "audio/x-wav",
}


def read_eaf(path: Path) -> ElanDocument:
    """Read an ELAN file; what is odd but readable is in the document's warnings."""
    return document_of(parse_xml(read_whole(path, MAX_BYTES), path, FormatError), path)


def write_eaf(document: ElanDocument, path: Path, *, overwrite: bool = False) -> None:
    """Write a document whole or not at all, in the EAF version it has."""
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(document.xml)


def new_eaf(video: Path, eaf_path: Path, *, date: datetime) -> ElanDocument:
    """An empty EAF 3.0 document that links `video`, to be written at `eaf_path`; for landmarks, the video beside them.

    URLs are written as ELAN writes and reads them, without percent-encoding: a name with "[", "]" or "%" is found by
    ELAN but is no valid URL to a strict checker of the schema.
    """
    video = shown_by(video)
    root = etree.Element("ANNOTATION_DOCUMENT", nsmap={"xsi": _XSI})
    root.set("AUTHOR", "signspot")
    root.set("DATE", date.isoformat(timespec="seconds"))
    root.set("FORMAT", "3.0")
    root.set("VERSION", "3.0")
    root.set(f"{{{_XSI}}}noNamespaceSchemaLocation", "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    header = etree.SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    media = etree.SubElement(header, "MEDIA_DESCRIPTOR", MEDIA_URL=xml_text(file_url(video)))
    media.set("MIME_TYPE", _MIME_TYPES.get(video.suffix.lower(), _UNKNOWN_TYPE))
    if relative := _relative_url(video, eaf_path):
        media.set("RELATIVE_MEDIA_URL", xml_text(relative))
    etree.SubElement(header, "PROPERTY", NAME="lastUsedAnnotationId").text = "0"
    etree.SubElement(root, "TIME_ORDER")
    etree.indent(root, space="    ")
    return document_of(parse_xml(etree.tostring(root), eaf_path, FormatError), eaf_path)


def _relative_url(video: Path, eaf_path: Path) -> str:
    try:
        relative = Path(os.path.relpath(video.absolute(), eaf_path.absolute().parent)).as_posix()
    except ValueError:  # another drive
        return ""
    return relative if relative.startswith("../") else f"./{relative}"
