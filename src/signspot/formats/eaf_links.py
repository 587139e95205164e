"""The files an EAF links to: found on this computer or not at all, never fetched.

ELAN writes absolute URLs of the computer the file was made on (file:///C:/corpus/a b.mp4, not percent-encoded) and
URLs relative to the EAF (./a.mp4, ../video/a.mp4; older versions file:/./a.mp4). Other programs leave one of the two
empty, or write one in the place of the other. Network paths (//server/share) are
never touched: merely asking for one sends the user's credentials on some systems.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import unquote

from signspot.formats.eaf_document import ElanDocument, ElanMedia

_DRIVE = re.compile(r"/*([A-Za-z]:/.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters or more: one is a Windows drive


class FoundBy(Enum):
    """How a linked file was found."""

    RELATIVE = "relative URL"
    ABSOLUTE = "absolute URL"
    BESIDE = "same name beside the EAF"
    NOTHING = "not found"


@dataclass(frozen=True, slots=True)
class ResolvedMedia:
    """A linked medium and where it is on this computer; `path` is None if it is not here."""

    media: ElanMedia
    path: Path | None
    found_by: FoundBy


def resolve_media(document: ElanDocument, eaf_path: Path) -> tuple[ResolvedMedia, ...]:
    """Find every linked medium: by its relative URL, its absolute URL, either in the other's place, or by its name."""
    return tuple(
        ResolvedMedia(media, *_find(media.url, media.relative_url, eaf_path.absolute().parent))
        for media in document.media
    )


def resolve_vocabularies(document: ElanDocument, eaf_path: Path) -> tuple[Path, ...]:
    """The external vocabularies (ECV) of a file that are on this computer."""
    urls = dict.fromkeys(ref.value for ref in document.references if ref.kind == "ecv")
    found = (_find(url, url, eaf_path.absolute().parent)[0] for url in urls)
    return tuple(path for path in found if path is not None)


def _find(url: str, relative_url: str, folder: Path) -> tuple[Path | None, FoundBy]:
    url, relative_url = url.strip(), relative_url.strip()
    places = (
        (FoundBy.RELATIVE, _relative(relative_url, folder)),
        (FoundBy.ABSOLUTE, itertools.chain(_absolute(url), _absolute(relative_url))),
        (FoundBy.RELATIVE, (path for path in _relative(url, folder) if path.parent != folder)),
    )
    for found_by, paths in places:
        if (found := next(filter(_is_file, paths), None)) is not None:
            return found, found_by
    for name in dict.fromkeys(_name(link) for link in (relative_url, url)):
        for spelling in _spellings(name):
            if spelling not in ("", ".", "..") and "/" not in spelling and _is_file(folder / spelling):
                return folder / spelling, FoundBy.BESIDE
    return None, FoundBy.NOTHING


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


def _name(url: str) -> str:
    return url.replace("\\", "/").rpartition("/")[2]


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
