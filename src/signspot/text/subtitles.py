"""Subtitle files -> cues of plain text in order of time, and a warning for everything that was left out or changed.

Formats: SubRip, WebVTT, SubStation Alpha, MicroDVD, TTML with its relatives, EBU STL. The content decides which,
the name of the file only where the content does not say.

Times are whole ms: (time - start of programme) * scale + shift. The rules for cues, in this order:

- A cue without words is dropped (sounds, empty cues): one warning says how many.
- Left out with a warning: times that cannot be read, negative times, an end before or at the start, longer than 10
  minutes or 10,000 characters, later than 100 hours, wholly before the video. A cue moved partly before the video
  begins with it. Where several are left out, a warning says how many and why, before they are named.
- Cues shown at exactly the same time are two lines or two speakers: joined into one. Exact duplicates are left out.
- Roll-up captions repeat lines of the cue before and add some, one cue after the other: there, the repeated lines are
  removed, a cue of repeats only lengthens it. Elsewhere, what comes twice is said or signed twice, and stays.
- Overlaps: of two cues, one that lies inside the other, or four fifths of it, is left out with a warning (the later
  one, where both do). Otherwise the end of the earlier one is cut back to the start of the later: no words are lost.

So the result is sorted, and no two cues overlap.
"""

from __future__ import annotations

import codecs
import math
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path

from signspot.domain.corpus import Subtitle
from signspot.domain.spans import MillisSpan
from signspot.errors import InputError, SubtitleError, readable_size
from signspot.text.arrange import Placed, Retiming, Warnings, arranged, clock, place
from signspot.text.cleaning import clean_lines
from signspot.text.cues import Cue, CueSource, Unreadable
from signspot.text.encodings import Decoded, decode, is_binary
from signspot.text.stl import is_stl, read_stl
from signspot.text.timed_text import read_blocks, read_microdvd, read_substation
from signspot.text.ttml import read_ttml

MAX_BYTES = 20_000_000
MAX_CUES = 200_000
MAX_TEXT = 10_000  # characters of one cue, markup included
FORMATS = "SRT, WebVTT, ASS/SSA, MicroDVD, TTML (EBU-TT-D, IMSC, DFXP) and EBU STL are read"

_SNIFFED_CHARACTERS = 1_000_000
_SIGNS = (
    ("substation", re.compile(r"^(?:\[(?:Script Info|V4\+? Styles|Events)\]|Dialogue:)", re.MULTILINE | re.IGNORECASE)),
    ("srt", re.compile(r"\d:\d{1,2}(?:[.,:]\d{1,9})?[ \t]{0,9}-{1,3} ?>", re.MULTILINE)),
    ("microdvd", re.compile(r"^\{\d{1,9}\}\{\d{1,9}\}", re.MULTILINE)),
)
_SUFFIXES = {
    ".srt": "srt", ".vtt": "vtt", ".ass": "substation", ".ssa": "substation", ".sub": "microdvd",
    ".ttml": "ttml", ".dfxp": "ttml", ".xml": "ttml",
}  # fmt: skip
_LATE_START_MS = 3_600_000
_FEW = 3  # cues named where a line is all there is room for


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtitleOptions:
    """How the times of a file relate to its video, and what the file does not say itself."""

    shift_ms: int = 0  # added last; positive: later
    scale: float = 1.0  # such as 25 / 23.976 for subtitles made for another frame rate
    start_of_programme_ms: int | None = None  # time code of the video's first frame; None: what the file's header says
    frames_per_second: float | None = None  # for MicroDVD, which counts frames
    encoding: str = ""  # overrides the guess

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and 0.1 <= self.scale <= 10):
            raise InputError("subtitle scale", f"{self.scale} is not between 0.1 and 10", "1 leaves times as they are")
        rate = self.frames_per_second
        if rate is not None and not (math.isfinite(rate) and 1 <= rate <= 1000):
            raise InputError("subtitle frame rate", f"{rate} is not between 1 and 1000", "give frames per second")
        if self.encoding and not _is_text_encoding(self.encoding):
            raise InputError("subtitle encoding", f"{self.encoding!r} is unknown", "try utf-8 or windows-1252")


@dataclass(frozen=True, slots=True)
class SubtitleFile:
    """The usable cues of a file, in order of time, and what the user should know about the others."""

    path: Path
    encoding: str
    subtitles: tuple[Subtitle, ...]
    warnings: tuple[str, ...] = ()
    in_short: tuple[str, ...] = ()  # the same, but few cues are named


def read_subtitles(path: Path, options: SubtitleOptions | None = None) -> SubtitleFile:
    """Read a subtitle file of any supported format, or raise SubtitleError saying what is wrong with it."""
    options = options or SubtitleOptions()
    data = _read_bytes(path)
    warnings = Warnings(path)
    decoded = Decoded("", "") if is_stl(data) else decode(data, options.encoding)
    source = _cue_source(data, decoded, path, options)
    for remark in filter(None, (decoded.remark, *source.remarks)):
        warnings.note(remark)
    cues = _limited(source.cues, path)
    retiming = _retiming(source, cues, options, warnings)
    placed = arranged(_placed(cues, retiming, warnings), warnings)
    if not cues:
        raise SubtitleError(path, "holds no cues", f"the file is damaged or no subtitle file; {FORMATS}")
    subtitles = tuple(Subtitle(MillisSpan.of(cue.start, cue.stop), " ".join(cue.lines)) for cue in placed)
    said = (warnings.all(len(cues)), warnings.all(len(cues), most=_FEW))
    return SubtitleFile(path, decoded.encoding or "EBU STL", subtitles, *said)


def _is_text_encoding(name: str) -> bool:
    try:
        return isinstance("".encode(name), bytes) and bool(codecs.lookup(name))
    except (LookupError, ValueError):
        return False


def _read_bytes(path: Path) -> bytes:
    try:
        # Checked before opening: opening a pipe would wait for ever.
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise SubtitleError(path, "is a folder", "name a subtitle file")
        if not stat.S_ISREG(mode):
            raise SubtitleError(path, "is no regular file", "name a subtitle file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise SubtitleError(path, "does not exist", "check the name") from error
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SubtitleError(path, f"cannot be read ({what})", "check the name and its permissions") from error
    if len(data) > MAX_BYTES:
        what = f"is larger than {readable_size(MAX_BYTES)}"
        raise SubtitleError(path, what, "is this the subtitle file? else split it")
    if not data:
        raise SubtitleError(path, "is empty", "get the file again from its source")
    return data


def _cue_source(data: bytes, decoded: Decoded, path: Path, options: SubtitleOptions) -> CueSource:
    """Choose the reader by what the file holds."""
    if is_stl(data):
        return read_stl(data)
    if is_binary(decoded.text):
        raise SubtitleError(path, "is a binary file and holds no subtitles", f"name the subtitle file; {FORMATS}")
    text = decoded.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise SubtitleError(path, "is empty", "get the file again from its source")
    kind = _kind(text) or _SUFFIXES.get(path.suffix.lower())
    if kind in ("srt", "vtt"):
        return CueSource(read_blocks(text, is_vtt=kind == "vtt"))
    if kind == "substation":
        return CueSource(read_substation(text))
    if kind == "microdvd":
        return CueSource(_microdvd(text, path, options))
    if kind == "ttml":
        return read_ttml(data if not options.encoding else text.encode(), path)
    raise SubtitleError(path, "is in no subtitle format known here", FORMATS)


def _kind(text: str) -> str | None:
    """The format by content; of several signs the first one in the file counts."""
    start = text[:4096].lstrip()
    if start.startswith("WEBVTT"):
        return "vtt"
    if re.match(r"<(?:\?xml|!--|!DOCTYPE|(?:\w{1,20}:)?tt[\s>])", start):
        return "ttml"
    head = text[:_SNIFFED_CHARACTERS]
    found = [(sign.start(), kind) for kind, pattern in _SIGNS if (sign := pattern.search(head))]
    return min(found)[1] if found else None


def _microdvd(text: str, path: Path, options: SubtitleOptions) -> Iterator[Cue | Unreadable]:
    try:
        yield from read_microdvd(text, options.frames_per_second)
    except ValueError as error:
        what = "counts in frames and does not say how many make a second"
        raise SubtitleError(path, what, "give the frame rate of its video, such as 25") from error


def _limited(cues: Iterator[Cue | Unreadable], path: Path) -> list[Cue | Unreadable]:
    read = list(islice(cues, MAX_CUES + 1))
    if len(read) > MAX_CUES:
        raise SubtitleError(path, f"holds more than {MAX_CUES:,} cues", "split it into smaller files")
    return read


def _retiming(
    source: CueSource, cues: list[Cue | Unreadable], options: SubtitleOptions, warnings: Warnings
) -> Retiming:
    scale = 1 if options.scale == 1 else Fraction(str(options.scale))  # 1.001 means 1001/1000
    first = min((cue.start_ms for cue in cues if isinstance(cue, Cue)), default=0)
    if options.start_of_programme_ms is not None:
        return Retiming(options.start_of_programme_ms, scale, options.shift_ms)
    # A header that would put cues before the video belongs to another version of the programme.
    start = source.start_of_programme_ms if source.start_of_programme_ms <= first else 0
    if start:
        warnings.note(f"its header says that the programme starts at {clock(start)}: times count from there")
    elif first >= _LATE_START_MS:
        moved = "if that is a time code, move them with --shift (-36000 for ten hours)"
        warnings.note(f"its first cue is at {clock(first)}: {moved}")
    return Retiming(start, scale, options.shift_ms)


def _placed(cues: list[Cue | Unreadable], retiming: Retiming, warnings: Warnings) -> Iterator[Placed]:
    for cue in cues:
        if len(cue.text) > MAX_TEXT:
            what = f"more than {MAX_TEXT:,} characters"
            warnings.left_out(cue, f"holds {what}", f"they hold {what}")
            continue
        if not (lines := clean_lines(cue.text)):
            warnings.wordless(cue)
            continue
        if isinstance(cue, Unreadable):
            warnings.left_out(cue, cue.what, "their times cannot be read")
        elif placed := place(cue, lines, retiming, warnings):
            yield placed
