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

The text formats: SubRip (SRT), WebVTT, SubStation Alpha (ASS, SSA) and MicroDVD.

Lenient where the meaning is clear (dots for commas, missing hours or numbers, missing blank lines) and never guessing
where it is not: a time line that cannot be read makes an `Unreadable`, it does not add its text to the cue before.
Every pattern is bounded or looks at each character once, so time grows with the size of the file only.
"""

from __future__ import annotations

import codecs
import html
import logging
import math
import re
import stat
import struct
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from itertools import accumulate, groupby, islice, pairwise
from pathlib import Path
from types import SimpleNamespace

from charset_normalizer import from_bytes
from lxml import etree
from ttconv.imsc import attributes as ttconv_attributes
from ttconv.imsc.attributes import TemporalAttributeParsingContext as Clock
from ttconv.stl import iso6937
from ttconv.time_code import SmpteTimeCode

from signspot.domain.recordings import Subtitle
from signspot.domain.time import MillisSpan, clock
from signspot.errors import InputError, SubtitleError, one_line, readable_size
from signspot.files.xml import parse_xml

_TIME = r"(-?)(?:(\d{1,9}):)?(\d{1,2}):(\d{1,2})(?:[.,:](\d{1,9}))?"
_TIME_LINE = re.compile(rf"\s{{0,99}}{_TIME}\s{{0,99}}-{{1,3}}\s?>\s{{0,99}}{_TIME}(?!\d)")
_ONE_TIME = re.compile(rf"\s{{0,99}}{_TIME}\s{{0,99}}$")
_MICRODVD = re.compile(r"\{(\d{1,9})\}\{(\d{0,9})\}")
_MICRODVD_CODE = re.compile(r"\{[A-Za-z]{1,2}:[^{}]*\}")
_ASS_BLOCK = re.compile(r"\{[^{}]*\}")
_ASS_DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
_ASS_FIELDS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")


def _read_blocks(text: str, *, is_vtt: bool) -> Iterator[_Cue | _Unreadable]:
    """Read SubRip or WebVTT.

    In WebVTT a cue ends at an empty line; notes, style sheets and the names of cues lie between cues. In SubRip
    everything up to the next time line belongs to the cue, except the number above that line.
    """
    number, times, lines, is_open = 0, "", list[str](), False
    for line in text.split("\n"):
        if "-->" in line or _TIME_LINE.match(line):
            if number:
                yield _cue(number, _TIME_LINE.match(times), _without_next_number(lines) if is_open else lines)
            number, times, lines, is_open = number + 1, line, [], True
        elif is_vtt and not line:
            is_open = False
        elif is_open:
            lines.append(line)
    if number:
        yield _cue(number, _TIME_LINE.match(times), lines)


def _read_substation(text: str) -> Iterator[_Cue | _Unreadable]:
    """Read the dialogue of an ASS or SSA file; comments and drawings are left out."""
    fields: tuple[str, ...] = _ASS_FIELDS
    number, in_events = 0, False
    for line in text.split("\n"):
        key, _, rest = line.partition(":")
        if line.startswith("["):
            in_events = line.lower().startswith("[events]")
        elif key == "Format" and in_events:
            fields = tuple(field.strip().lower() for field in rest.split(","))
        elif key == "Dialogue":
            number += 1
            values = dict(zip(fields, rest.split(",", len(fields) - 1), strict=False))
            written = values.get("text", "")
            if not _ASS_DRAWING.search(written):
                begins, ends = (_ONE_TIME.match(values.get(name, "")) for name in ("start", "end"))
                plain = re.sub(r"\\[Nn]", "\n", _ASS_BLOCK.sub("", written)).replace("\\h", " ")
                yield _cue(number, begins and ends and (*begins.groups(), *ends.groups()), [plain])


def _read_microdvd(text: str, frames_per_second: float | None, path: Path) -> Iterator[_Cue | _Unreadable]:
    """Read MicroDVD; frames become ms by `frames_per_second` or by the rate that the first line states."""
    number, rate = 0, frames_per_second
    for line in text.split("\n"):
        if not (frames := _MICRODVD.match(line)):
            continue
        words = line[frames.end() :]
        if rate is None:
            rate = _stated_rate(frames, words, path)
            continue
        number += 1
        if not frames[2]:
            yield _Unreadable(number, "has no end frame", words)
            continue
        start, stop = (Fraction(int(frame) * 1000) / Fraction(str(rate)) for frame in frames.groups())
        yield _Cue(number, start, stop, _MICRODVD_CODE.sub("", words).replace("|", "\n"))


def _cue(number: int, times: re.Match[str] | tuple[str | None, ...] | None, lines: list[str]) -> _Cue | _Unreadable:
    """A cue with the ten parts of its two times, if they could be made out."""
    parts = times.groups() if isinstance(times, re.Match) else times
    start, stop = (_milliseconds(parts[:5]), _milliseconds(parts[5:])) if parts else (None, None)
    if start is None or stop is None:
        return _Unreadable(number, "its time line cannot be read", "\n".join(lines))
    return _Cue(number, start, stop, "\n".join(lines))


def _without_next_number(lines: list[str]) -> list[str]:
    """Drop the number of the next cue: digits directly above its time line, or alone between blank lines."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    is_number = end > 0 and lines[end - 1].strip().isdecimal()
    is_apart = end == len(lines) or (end > 1 and not lines[end - 2].strip())
    return lines[: end - 1] if is_number and is_apart else lines


def _milliseconds(parts: tuple[str | None, ...]) -> int | None:
    """Sign, hours, minutes, seconds, fraction -> ms; None for an impossible time such as 00:75:00."""
    sign, hours, minutes, seconds, fraction = parts
    if int(minutes or 0) > 59 or int(seconds or 0) > 59:
        return None
    whole = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    time = whole * 1000 + int((fraction or "0")[:3].ljust(3, "0"))
    return -time if sign else time


def _stated_rate(frames: re.Match[str], words: str, path: Path) -> float:
    """The frame rate, which by custom is the text of a first cue {1}{1}."""
    with suppress(ValueError):
        rate = float(words.strip().replace(",", "."))
        if frames.groups() in (("0", "0"), ("1", "1")) and 1 <= rate <= 1000:
            return rate
    what = "counts in frames and does not say how many make a second"
    raise SubtitleError(path, what, "give the frame rate of its video, such as 25")


# TTML and its relatives: EBU-TT, EBU-TT-D, IMSC, SMPTE-TT, DFXP. ttconv reads the time expressions (clock times,
# frames, ticks, SMPTE time codes with dropped frames); the shorter ones that many programs write, as in SMIL (20.841,
# 1:01.982) or with a comma, are brought into its form first. The elements are walked here, in one pass over a tree that
# came through `files.xml`. A paragraph is a cue; where its spans have times of their own, spans that overlap stay
# together and others become cues of their own. Older namespaces are read alike. Times inside a timed element count from
# its begin. Programs that do not know this count all from the start of the film; a file is taken for one of theirs if,
# by the standard, something would begin after the end of what it is in, and so never be shown, while counted from the
# start all have their place.

_PARAMETERS = "{http://www.w3.org/ns/ttml#parameter}"
_CONTAINERS = ("body", "div", "p", "span")
_NTSC = Fraction(1000, 1001)
_WITHOUT_UNIT = re.compile(r"(?:(?:(\d{1,9}):)?(\d{1,9}):)?(\d{1,9})(\.\d{0,99})?", re.ASCII)
_MISPLACED = 20  # of this many nested times, one may lie outside the element around it by mistake
_SLACK = Fraction(1, 2)  # seconds

# Without a handler Python prints the complaints of ttconv to the terminal; we make our own.
logging.getLogger("ttconv").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class _Run:
    """A piece of text with its times in seconds; no stop: shown for ever."""

    start: Fraction
    stop: Fraction | None
    text: str


@dataclass(slots=True)
class _Paragraph:
    runs: list[_Run] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an element stands: the time its own times count from, when its surroundings end, and its paragraph."""

    reference: Fraction
    stop: Fraction | None = None
    paragraph: _Paragraph | None = None
    problem: str = ""


def _read_ttml(data: bytes, path: Path) -> _CueSource:
    root = parse_xml(data, path, SubtitleError).getroot()
    if _name(root) != "tt":
        raise SubtitleError(path, f"is XML, but not TTML: its first element is <{_name(root)}>", "name a subtitle file")
    clock = _clock(root, path)
    walk, remarks = _Walk(root, clock, from_the_start=False), tuple[str, ...]()
    if walk.n_outside and not any(_in_turn(element) for element in root.iter()):
        other = _Walk(root, clock, from_the_start=True)
        if other.n_outside * _MISPLACED <= other.n_nested:
            what = "its times count from the start of the film even inside timed parts, against the standard: so read"
            walk, remarks = other, (what,)
    return _CueSource(_cues(walk.paragraphs), walk.start_of_programme(root), remarks)


def _in_turn(element: etree._Element) -> bool:
    return element.get("timeContainer") == "seq"  # what it holds is shown one after the other


def _name(element: etree._Element) -> str:
    """The name without its namespace; "" for comments and the like."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _clock(root: etree._Element, path: Path) -> Clock:
    stated = {etree.QName(key).localname: str(value) for key, value in root.attrib.items()}
    tt = SimpleNamespace(attrib={_PARAMETERS + name: value for name, value in stated.items()})
    try:
        rate = ttconv_attributes.FrameRateAttribute.extract(tt)
        ticks = Fraction(ttconv_attributes.TickRateAttribute.extract(tt))
        base = ttconv_attributes.TimeBaseAttribute.extract(tt)
        drop = ttconv_attributes.DropModeAttribute.extract(tt)
    except (ValueError, ZeroDivisionError) as error:
        raise SubtitleError(path, f"its times cannot be used: {error}", "convert it to media times or SRT") from error
    if "tickRate" not in stated and "frameRate" in stated:
        ticks = rate
    if rate <= 0 or ticks <= 0:
        raise SubtitleError(path, "declares a frame rate or tick rate of 0", "correct ttp:frameRate or ttp:tickRate")
    if drop is ttconv_attributes.DropMode.dropNTSC and rate.denominator != 1001:
        rate *= _NTSC  # frames are dropped because there are fewer than 30 in a second, whatever the file forgot to say
    return Clock(rate, ticks, base, drop)


class _Walk:
    """Collects paragraphs in the order of the file, resolving times against the elements around them."""

    def __init__(self, root: etree._Element, clock: Clock, *, from_the_start: bool = False) -> None:
        self._clock = clock
        self._from_the_start = from_the_start  # all times, whatever they are inside of
        self.paragraphs: list[_Paragraph] = []
        self.n_nested = 0  # elements with a begin inside an element with times
        self.n_outside = 0  # those of them that begin outside of it
        for body in root:
            if _name(body) == "body":
                self._visit(body, _Place(Fraction(0)))

    def start_of_programme(self, root: etree._Element) -> Fraction:
        """The time code of the first frame, in ms, as EBU-TT states it."""
        for element in root.iter("{*}documentStartOfProgramme"):
            try:
                return self._seconds((element.text or "").strip()) * 1000
            except ValueError:
                break
        return Fraction(0)

    def _visit(self, element: etree._Element, place: _Place) -> Fraction | None:
        """Read an element and what it holds; the time it ends by itself, None if never."""
        if _name(element) == "p":
            place = _Place(place.reference, place.stop, _Paragraph(problem=place.problem), place.problem)
            self.paragraphs.append(place.paragraph or _Paragraph())
        try:
            start, own_stop = self._times(element, place)
        except ValueError as error:
            start, own_stop = place.reference, None
            place = _Place(place.reference, place.stop, place.paragraph, str(error))
            if place.paragraph:
                place.paragraph.problem = str(error)
        inner = _Place(start, _earlier(own_stop, place.stop), place.paragraph, place.problem)
        implied = self._visit_children(element, inner)
        return implied if own_stop is None else own_stop

    def _visit_children(self, element: etree._Element, place: _Place) -> Fraction | None:
        in_turn = _in_turn(element)
        ends: Fraction | None = place.reference
        if not in_turn and self._add(place, element.text):
            ends = None
        for child in element:
            name = _name(child)
            if name in _CONTAINERS:
                reference = ends if in_turn else place.reference
                problem = place.problem if reference is not None else "follows a cue without an end"
                inner = _Place(reference or Fraction(0), place.stop, place.paragraph, problem)
                if problem and place.paragraph:
                    place.paragraph.problem = problem
                child_ends = self._visit(child, inner)
                ends = child_ends if in_turn else _later(ends, child_ends)
            elif name == "br" and not in_turn:
                self._add(place, "\n", is_break=True)
                ends = None
            if not in_turn and self._add(place, child.tail):
                ends = None
        return ends

    def _add(self, place: _Place, text: str | None, *, is_break: bool = False) -> bool:
        """Note text at its place; whether there was a place for text and any text."""
        if place.paragraph is None or not text:
            return False
        written = text if is_break else text.replace("\n", " ").replace("\r", " ")
        place.paragraph.runs.append(_Run(place.reference, place.stop, written))
        return True

    def _times(self, element: etree._Element, place: _Place) -> tuple[Fraction, Fraction | None]:
        begin, end, duration = (element.get(name) for name in ("begin", "end", "dur"))
        origin = Fraction(0) if self._from_the_start else place.reference
        start = origin + self._seconds(begin) if begin is not None else place.reference
        if begin is not None and (place.reference or place.stop is not None):
            is_late = place.stop is not None and start >= place.stop
            self.n_nested += 1
            self.n_outside += is_late or start < place.reference - _SLACK
        stop = origin + self._seconds(end) if end is not None else None
        return start, _earlier(stop, start + self._seconds(duration) if duration is not None else None)

    def _seconds(self, expression: str) -> Fraction:
        try:
            return Fraction(ttconv_attributes.parse_time_expression(self._clock, _standard(expression), True))
        except ValueError as error:
            raise ValueError(f"its time {expression[:40]!r} cannot be read") from error


def _standard(expression: str) -> str:
    """A time as TTML wants it: 20.841 are seconds, 1:01.982 lacks its hours, and a comma is a decimal point."""
    written = expression.strip().replace(",", ".")
    if not (parts := _WITHOUT_UNIT.fullmatch(written)):
        return written
    hours, minutes, seconds, fraction = parts.groups()
    rest = f"{seconds:0>2}{'' if fraction == '.' else fraction or ''}"
    if minutes is None:
        return f"{rest}s"
    if hours is None:  # then nothing keeps minutes below an hour
        hours, minutes = (str(part) for part in divmod(int(minutes), 60))
    return f"{hours:0>2}:{minutes:0>2}:{rest}"


def _earlier(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return min((time for time in (one, other) if time is not None), default=None)


def _later(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else max(one, other)


def _cues(paragraphs: list[_Paragraph]) -> Iterator[_Cue | _Unreadable]:
    number = 0
    for paragraph in paragraphs:
        if paragraph.problem:
            number += 1
            yield _Unreadable(number, paragraph.problem, "".join(run.text for run in paragraph.runs))
            continue
        for group in _grouped(paragraph.runs):
            number += 1
            text = "".join(run.text for run in group)
            timed = [run for run in group if run.text.strip()] or group
            stops = [run.stop for run in timed if run.stop is not None]
            if len(stops) < len(timed):
                yield _Unreadable(number, "has no end time", text)
            else:
                yield _Cue(number, min(run.start for run in timed) * 1000, max(stops) * 1000, text)


def _grouped(runs: list[_Run]) -> list[list[_Run]]:
    """Runs that overlap in time stay together; white space stays with what is before it."""
    groups: list[list[_Run]] = []
    start, stop = Fraction(0), None
    for run in runs:
        is_apart = stop is not None and (run.start >= stop or (run.stop is not None and run.stop <= start))
        if not run.text.strip():
            if groups:
                groups[-1].append(run)
        elif not groups or is_apart:
            groups.append([run])
            start, stop = run.start, run.stop
        else:
            groups[-1].append(run)
            start, stop = min(start, run.start), _later(stop, run.stop)
    return groups


# EBU STL (EBU Tech 3264): the binary subtitles of broadcasters, 1,024 bytes of header and blocks of 128 bytes. Time
# codes and the ISO 6937 alphabet are ttconv's; the blocks are read here, one by one, so that a damaged block costs one
# cue with a warning and not the file, comments stay out, and a set of cumulative lines becomes one cue.

_HEADER_BYTES = 1024
_BLOCK = struct.Struct("<BHBB4B4BBBB112s")
_RATES = {
    b"STL23.01": Fraction(24000, 1001), b"STL24.01": Fraction(24), b"STL25.01": Fraction(25),
    b"STL30.01": Fraction(30000, 1001), b"STL50.01": Fraction(50),
}  # fmt: skip
_ALPHABETS = {b"01": "iso8859_5", b"02": "iso8859_6", b"03": "iso8859_7", b"04": "iso8859_8"}
_LAST_EXTENSION, _FIRST_RESERVED = 0xFF, 0xF0
_CONTINUES_A_SET = (2, 3)  # cumulative status: intermediate, last
_IS_COMMENT = 1
# Teletext colours occupy a cell and part words, 8A breaks the line; italics and underlining (80 to 85) take no room.
_CONTROLS = bytes.maketrans(bytes(range(0x20)) + b"\x8a", b" " * 0x20 + b"\n")
_WITHOUT_ROOM = bytes(set(range(0x7F, 0xA0)) - {0x8A})


def _is_stl(data: bytes) -> bool:
    return data[3:6] == b"STL" and len(data) >= _HEADER_BYTES


def _read_stl(data: bytes) -> _CueSource:
    """Read an EBU STL file; its header gives frame rate, alphabet and the time code of the programme's start."""
    name = data[3:11]
    remarks = []
    if name not in _RATES:
        remarks.append(f"its frame rate {name.decode('latin-1')} is unknown: read as 25 frames a second")
    if (len(data) - _HEADER_BYTES) % _BLOCK.size:
        remarks.append("the last block is cut off")
    rate = _RATES.get(name, Fraction(25))
    code = data[256:264]
    first = tuple(int(code[i : i + 2]) for i in range(0, 8, 2)) if code.isdigit() else ()
    start = _stl_milliseconds(first, rate)
    return _CueSource(_stl_cues(data, rate), start or 0, tuple(remarks))


def _stl_cues(data: bytes, rate: Fraction) -> Iterator[_Cue | _Unreadable]:
    pending: _Cue | _Unreadable | None = None
    number, fields = 0, list[bytes]()
    usable = (len(data) - _HEADER_BYTES) // _BLOCK.size * _BLOCK.size
    for block in _BLOCK.iter_unpack(data[_HEADER_BYTES : _HEADER_BYTES + usable]):
        extension, status, is_comment = block[2], block[3], block[14] == _IS_COMMENT
        if _FIRST_RESERVED <= extension < _LAST_EXTENSION or is_comment:
            continue
        fields.append(block[15].partition(b"\x8f")[0])
        if extension != _LAST_EXTENSION:
            continue
        text, fields = _text(b"".join(fields), data[12:14]), []
        start, stop = _stl_milliseconds(block[4:8], rate), _stl_milliseconds(block[8:12], rate)
        if status in _CONTINUES_A_SET and isinstance(pending, _Cue) and stop is not None:
            pending = _Cue(pending.number, pending.start_ms, max(pending.stop_ms, stop), f"{pending.text}\n{text}")
            continue
        if pending:
            yield pending
        number += 1
        if start is None or stop is None:
            pending = _Unreadable(number, "its time code is impossible", text)
        else:
            pending = _Cue(number, start, stop, text)
    if pending:
        yield pending
    if fields:
        yield _Unreadable(number + 1, "its last block is missing", _text(b"".join(fields), data[12:14]))


def _text(field: bytes, alphabet: bytes) -> str:
    plain = field.translate(_CONTROLS, _WITHOUT_ROOM)
    if alphabet in _ALPHABETS:
        return plain.decode(_ALPHABETS[alphabet], "replace")
    # The decoder of ttconv knows letters only, not line breaks.
    return "\n".join(str(iso6937.decode(line, errors="replace")[0]) for line in plain.split(b"\n"))


def _stl_milliseconds(code: tuple[int, ...], rate: Fraction) -> Exact | None:
    """Hours, minutes, seconds, frames -> ms; None if there is no such time code."""
    if len(code) != 4 or code[0] > 23 or code[1] > 59 or code[2] > 59 or code[3] >= rate:
        return None
    drops_frames = rate == Fraction(30000, 1001)
    return Fraction(SmpteTimeCode(*code, rate, drops_frames).to_temporal_offset()) * 1000


# What the readers of the single formats hand over: cues as the file states them, not yet judged or cleaned.

Exact = int | Fraction  # milliseconds, not yet rounded


@dataclass(frozen=True, slots=True)
class _Cue:
    """One cue with its times in ms, the lines of its text separated by line breaks, markup included."""

    number: int  # counted from 1 in the order of the file
    start_ms: Exact
    stop_ms: Exact
    text: str


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A cue whose times cannot be made out, and why."""

    number: int
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class _CueSource:
    """The cues of one file in its own order, read as they are asked for, and what its header says about them."""

    cues: Iterator[_Cue | _Unreadable]
    start_of_programme_ms: Exact = 0  # the time code of the programme's first frame
    remarks: tuple[str, ...] = ()


MAX_BYTES = 20_000_000
_MAX_CUES = 200_000
MAX_TEXT = 10_000  # characters of one cue, markup included
_FORMATS = "SRT, WebVTT, ASS/SSA, MicroDVD, TTML (EBU-TT-D, IMSC, DFXP) and EBU STL are read"

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
        try:
            "".encode(self.encoding or "utf-8")
        except (LookupError, ValueError) as error:
            what = f"{self.encoding!r} is unknown"
            raise InputError("subtitle encoding", what, "try utf-8 or windows-1252") from error


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
    warnings = _Warnings(path)
    decoded = _Decoded("", "") if _is_stl(data) else _decode(data, options.encoding)
    source = _cue_source(data, decoded, path, options)
    for remark in filter(None, (decoded.remark, *source.remarks)):
        warnings.note(remark)
    cues = list(islice(source.cues, _MAX_CUES + 1))
    if len(cues) > _MAX_CUES:
        raise SubtitleError(path, f"holds more than {_MAX_CUES:,} cues", "split it into smaller files")
    retiming = _retiming(source, cues, options, warnings)
    placed = _arranged(_placed(cues, retiming, warnings), warnings)
    if not cues:
        raise SubtitleError(path, "holds no cues", f"the file is damaged or no subtitle file; {_FORMATS}")
    subtitles = tuple(Subtitle(MillisSpan.of(cue.start, cue.stop), " ".join(cue.lines)) for cue in placed)
    said = (warnings.all(len(cues)), warnings.all(len(cues), most=_FEW))
    return SubtitleFile(path, decoded.encoding or "EBU STL", subtitles, *said)


def _read_bytes(path: Path) -> bytes:
    try:
        # Checked before opening: opening a pipe would wait for ever.
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise SubtitleError(path, "is a folder", "name a subtitle file")
        if not stat.S_ISREG(mode):
            raise SubtitleError(path, "is not a regular file", "name a subtitle file")
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


def _cue_source(data: bytes, decoded: _Decoded, path: Path, options: SubtitleOptions) -> _CueSource:
    if _is_stl(data):
        return _read_stl(data)
    if _is_binary(decoded.text):
        raise SubtitleError(path, "is a binary file and holds no subtitles", f"name the subtitle file; {_FORMATS}")
    text = decoded.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise SubtitleError(path, "is empty", "get the file again from its source")
    kind = _kind(text) or _SUFFIXES.get(path.suffix.lower())
    if kind in ("srt", "vtt"):
        return _CueSource(_read_blocks(text, is_vtt=kind == "vtt"))
    if kind == "substation":
        return _CueSource(_read_substation(text))
    if kind == "microdvd":
        return _CueSource(_read_microdvd(text, options.frames_per_second, path))
    if kind == "ttml":
        return _read_ttml(data if not options.encoding else text.encode(), path)
    raise SubtitleError(path, "is not in a subtitle format known here", _FORMATS)


def _kind(text: str) -> str | None:
    start = text[:4096].lstrip()
    if start.startswith("WEBVTT"):
        return "vtt"
    if re.match(r"<(?:\?xml|!--|!DOCTYPE|(?:\w{1,20}:)?tt[\s>])", start):
        return "ttml"
    head = text[:_SNIFFED_CHARACTERS]
    found = [(sign.start(), kind) for kind, pattern in _SIGNS if (sign := pattern.search(head))]
    return min(found)[1] if found else None


def _retiming(
    source: _CueSource, cues: list[_Cue | _Unreadable], options: SubtitleOptions, warnings: _Warnings
) -> _Retiming:
    scale = 1 if options.scale == 1 else Fraction(str(options.scale))  # 1.001 means 1001/1000
    first = min((cue.start_ms for cue in cues if isinstance(cue, _Cue)), default=0)
    if options.start_of_programme_ms is not None:
        return _Retiming(options.start_of_programme_ms, scale, options.shift_ms)
    # A header that would put cues before the video belongs to another version of the programme.
    start = source.start_of_programme_ms if source.start_of_programme_ms <= first else 0
    if start:
        at = clock(start, hours=True)
        warnings.note(f"its header says that the programme starts at {at}: times count from there")
    elif first >= _LATE_START_MS:
        moved = "if that is a time code, move them with --shift (-36000 for ten hours)"
        warnings.note(f"its first cue is at {clock(first, hours=True)}: {moved}")
    return _Retiming(start, scale, options.shift_ms)


def _placed(cues: list[_Cue | _Unreadable], retiming: _Retiming, warnings: _Warnings) -> Iterator[_Placed]:
    for cue in cues:
        if len(cue.text) > MAX_TEXT:
            what = f"more than {MAX_TEXT:,} characters"
            warnings.left_out(cue, f"holds {what}", f"they hold {what}")
            continue
        if not (lines := _clean_lines(cue.text)):
            warnings.wordless(cue)
            continue
        if isinstance(cue, _Unreadable):
            warnings.left_out(cue, cue.what, "their times cannot be read")
            continue
        start, stop = retiming.apply(cue.start_ms), retiming.apply(cue.stop_ms)
        if problem := _fault(cue, start, stop):
            warnings.left_out(cue, *problem)
            continue
        if start < 0:
            warnings.about(cue, "begins before the video: starts with it")
        yield _Placed(max(0, start), stop, lines, (cue,))


# From cues as a file states them to cues in order, without repeats and overlaps; the rules are in `subtitles`.

_MAX_DURATION_MS = 10 * 60_000
_MAX_TIME_MS = 100 * 3_600_000
_MAX_WARNINGS = 100  # about single cues, in one file
_ROLL_UP_GAP_MS = 100
_ROLL_UP_LINES = 4  # more lines than these are never shown at once
_ROLL_UP_STEPS = 3  # in a row are no accident
_ROLL_UP_NEIGHBOURS = 12  # steps before and after, by which fewer are judged
_MOSTLY = 0.8  # of a cue's length inside another; staggered captions overlap by about half


class _Warnings:
    """Collects what the user should know about one file; many complaints about cues become a number."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._general: list[str] = []
        self._cues: list[str] = []
        self._unnamed = 0
        self._left_out: dict[str, tuple[int, str]] = {}  # why -> how many cues, and which is the first
        self._wordless: tuple[int, str] = (0, "")

    def note(self, what: str) -> None:
        self._general.append(one_line(f"{self._name}: {what}"))

    def about(self, cue: _Cue | _Unreadable, what: str) -> None:
        if len(self._cues) >= _MAX_WARNINGS:
            self._unnamed += 1
            return
        words = " ".join(cue.text[:200].split())[:40]
        self._cues.append(one_line(f'{self._name}: {_named(cue)}: {what}: "{words}"'))

    def left_out(self, cue: _Cue | _Unreadable, what: str, why: str) -> None:
        """Say that a cue was left out, in the singular, and count it, in the plural."""
        count, first = self._left_out.get(why, (0, _named(cue)))
        self._left_out[why] = (count + 1, first)
        self.about(cue, f"{what}: left out")

    def wordless(self, cue: _Cue | _Unreadable) -> None:
        count, first = self._wordless
        self._wordless = (count + 1, first or _named(cue))

    def all(self, n_cues: int, most: int = _MAX_WARNINGS) -> tuple[str, ...]:
        """Every warning about a file of `n_cues`: about the whole file, then the first `most` about single cues."""
        unnamed = self._unnamed + len(self._cues[most:])
        more = (one_line(f"{self._name}: and {unnamed} more warnings of this kind"),) if unnamed else ()
        return (*self._general, *map(one_line, self._counted(n_cues)), *self._cues[:most], *more)

    def _counted(self, n_cues: int) -> Iterator[str]:
        if (n_left_out := sum(count for count, _ in self._left_out.values())) > 1:  # one is named, that is enough
            kinds = (
                f"{why} ({f'{count:,}, ' if count < n_left_out else ''}first: {first})"
                for why, (count, first) in self._left_out.items()
            )
            yield f"{self._name}: {n_left_out:,} of {n_cues:,} subtitles were left out: {', '.join(kinds)}"
        count, first = self._wordless
        if count:
            hold = "holds" if count == 1 else "hold"
            yield f"{self._name}: {count:,} of {n_cues:,} subtitles {hold} no words: left out (first: {first})"


def _named(cue: _Cue | _Unreadable) -> str:
    return f"cue {cue.number}{f' ({clock(cue.start_ms, hours=True)})' if isinstance(cue, _Cue) else ''}"


@dataclass(frozen=True, slots=True)
class _Retiming:
    """Times of the file -> times of the video: (time - start) * scale + shift."""

    start: Exact = 0
    scale: Exact = 1
    shift: Exact = 0

    def apply(self, time: Exact) -> int:
        return round((time - self.start) * self.scale + self.shift)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Good words at their time in the video, ms; `cues` is what the file said, several where cues were joined."""

    start: int
    stop: int
    lines: tuple[str, ...]
    cues: tuple[_Cue, ...]


def _fault(cue: _Cue, start: int, stop: int) -> tuple[str, str] | None:
    """What is wrong with the times of a cue, in the file or in the video, if anything: of one cue, and of several."""
    if cue.start_ms < 0 or cue.stop_ms < 0:
        return "its time is negative", "their times are negative"
    if max(cue.start_ms, cue.stop_ms) > _MAX_TIME_MS:
        return "lies beyond 100 hours", "they lie beyond 100 hours"
    if stop < start:
        return "ends before it starts", "they end before they start"
    if stop == start:
        return "has no length", "they have no length"
    if stop - start > _MAX_DURATION_MS:
        return "lasts longer than 10 minutes", "they last longer than 10 minutes"
    if stop <= 0:
        return "lies before the start of the video", "they lie before the start of the video"
    return ("lies beyond 100 hours", "they lie beyond 100 hours") if stop > _MAX_TIME_MS else None


def _arranged(cues: Iterable[_Placed], warnings: _Warnings) -> list[_Placed]:
    """Sort cues by time, join those shown together, and resolve repeats and overlaps."""
    in_order = sorted(cues, key=lambda cue: (cue.start, cue.stop, cue.cues[0].number))
    return _without_overlaps(_without_roll_up(_joined(in_order, warnings), warnings), warnings)


def _joined(cues: list[_Placed], warnings: _Warnings) -> list[_Placed]:
    together: dict[tuple[int, int], dict[tuple[str, ...], _Placed]] = {}
    for cue in cues:
        same_time = together.setdefault((cue.start, cue.stop), {})
        if cue.lines in same_time:
            first = same_time[cue.lines].cues[0].number
            warnings.left_out(cue.cues[0], f"repeats cue {first}", "they repeat another of the same time")
        else:
            same_time[cue.lines] = cue
    joined = []
    for group in (tuple(group.values()) for group in together.values()):
        lines, said = (line for cue in group for line in cue.lines), (one for cue in group for one in cue.cues)
        joined.append(replace(group[0], lines=tuple(lines), cues=tuple(said)))
    return joined


class _Step(Enum):
    """How a cue follows the one before."""

    APART = 0  # after a pause, or with other words
    SAME = 1  # at once, with the same lines: roll-up captions do so, and so does who says or signs a word twice
    ROLLED = 2  # at once, with the last lines of the cue before on top, or with only those: captions that roll up


def _without_roll_up(cues: list[_Placed], warnings: _Warnings) -> list[_Placed]:
    steps = [_Step.APART, *(_step(before, now) for before, now in pairwise(cues))]
    repeats = _repeats(steps)
    kept: list[_Placed] = []
    for number, cue in enumerate(cues):
        n_old = _n_repeated(cues[number - 1].lines, cue.lines) if repeats[number] else 0
        if n_old == len(cue.lines):
            longer = max(kept[-1].stop, cue.stop)
            kept[-1] = replace(kept[-1], stop=min(longer, kept[-1].start + _MAX_DURATION_MS))
        else:
            kept.append(replace(cue, lines=cue.lines[n_old:]))
    if any(repeats):
        warnings.note(f"{sum(repeats)} cues repeat lines of the cue before (roll-up captions): repeats removed")
    return kept


def _step(before: _Placed, now: _Placed) -> _Step:
    n_old = _n_repeated(before.lines, now.lines) if now.start - before.stop <= _ROLL_UP_GAP_MS else 0
    if not n_old:
        return _Step.APART
    return _Step.SAME if n_old == len(now.lines) == len(before.lines) else _Step.ROLLED


def _repeats(steps: list[_Step]) -> list[bool]:
    """Which cues repeat lines because captions roll up there, and not because something is said or signed twice.

    Captions that roll up do so cue after cue. So an unbroken run of repeats is of that kind if it rolls several times,
    or if most steps in it and around it roll. Steps with the same lines prove nothing: they are not counted.
    """
    telling = [number for number, step in enumerate(steps) if step is not _Step.SAME and number]
    n_rolled = [0, *accumulate(int(steps[number] is _Step.ROLLED) for number in telling)]
    answer = [False] * len(steps)
    for is_run, numbers in groupby(range(len(steps)), lambda number: steps[number] is not _Step.APART):
        if is_run:
            run = list(numbers)
            first = max(0, bisect_left(telling, run[0]) - _ROLL_UP_NEIGHBOURS)
            stop = min(len(telling), bisect_right(telling, run[-1]) + _ROLL_UP_NEIGHBOURS)
            rolled_around = n_rolled[stop] - n_rolled[first]
            rolls = sum(steps[number] is _Step.ROLLED for number in run)
            if rolls >= _ROLL_UP_STEPS or stop - first < 2 * rolled_around:
                answer[run[0] : run[-1] + 1] = [True] * len(run)
    return answer


def _n_repeated(before: tuple[str, ...], now: tuple[str, ...]) -> int:
    """How many lines the end of one cue and the start of the next have in common."""
    longest = min(len(before), len(now), _ROLL_UP_LINES)
    return next((n for n in range(longest, 0, -1) if before[-n:] == now[:n]), 0)


def _without_overlaps(cues: list[_Placed], warnings: _Warnings) -> list[_Placed]:
    kept: list[_Placed] = []
    cut: list[_Placed] = []
    for cue in cues:
        overlap = min(kept[-1].stop, cue.stop) - cue.start if kept else 0
        if overlap <= 0:
            kept.append(cue)
        elif overlap > _MOSTLY * (cue.stop - cue.start):
            _leave_out(cue, kept[-1], warnings)
        elif overlap > _MOSTLY * (kept[-1].stop - kept[-1].start):
            _leave_out(kept[-1], cue, warnings)
            kept[-1] = cue
        else:
            cut.append(kept[-1])
            kept[-1:] = [replace(kept[-1], stop=cue.start), cue]
    if cut:
        first = cut[0].cues[0]
        where = f"first: cue {first.number} ({clock(first.start_ms, hours=True)})"
        warnings.note(f"{len(cut)} cues overlap the next one: their ends were cut back ({where})")
    return kept


def _leave_out(loser: _Placed, winner: _Placed, warnings: _Warnings) -> None:
    for cue in loser.cues:
        warnings.left_out(cue, f"overlaps cue {winner.cues[0].number}", "they overlap another")


# What a cue says, without how it is shown: no tags, codes, speaker names, sounds or invisible characters. Sung words
# are kept, the notes around them are not. A description in brackets is dropped if it is written in capitals or begins
# or ends with a known sound; a short abbreviation after other words, as in "World Service (BBC)", is kept. HamNoSys
# (private use area) and SignWriting pass through untouched. Every pattern is bounded or linear.

_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]{1,20}>|\{\\[^{}]*\}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_NOTES = re.compile(r"[♩♪♫♬🎵🎶]|(?:^|(?<=\s))#+(?=\s|$)")
_BRACKETS = re.compile(r"\[[^\[\]]{0,150}\]|\([^()]{0,150}\)")
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    # Joiners make letters of Arabic and Indian scripts; elsewhere they are noise.
    "|(?<![\u0600-\u0dff])[\u200c\u200d]|[\u200c\u200d](?![\u0600-\u0dff])"
)
_CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f]")
_TURN = re.compile(r"\s*(?:>{2,}|[-–—](?=\s|[^\W\d])|[-–—]$)\s*")
_LABEL = re.compile(r"([^\W\d_][\w .,'’&/#-]{0,40}?)\s?:(?=\s|$)")
_NOT_A_SPEAKER = frozenset({"note", "warning", "ps", "p.s.", "nb", "n.b.", "ok", "okay", "attention", "danger"})
_ROLES = frozenset(
    {
        "all", "announcer", "anchor", "both", "boy", "caller", "child", "children", "commentator", "crowd", "girl",
        "host", "interpreter", "interviewer", "man", "narrator", "newsreader", "presenter", "reporter", "signer",
        "speaker", "teacher", "tv", "voice", "voiceover", "voice-over", "woman",
    }
)  # fmt: skip
_SOUNDS = frozenset(
    {
        "applause", "applauds", "applaudissements", "applaus", "barking", "beep", "beeping", "bell", "birdsong",
        "buzzing", "cheering", "cheers", "chuckles", "clapping", "coughs", "cries", "crying", "foreign", "gasps",
        "gelächter", "groans", "inaudible", "indistinct", "knocking", "laughing", "laughs", "laughter", "lachen",
        "music", "musik", "musique", "noise", "no audio", "playing", "rires", "ringing", "screaming", "screams",
        "sigh", "sighs", "silence", "singing", "siren", "sobbing", "speaks", "static", "thunder", "unintelligible",
        "whispering", "whispers", "whistle", "whistling",
    }
)  # fmt: skip
_ABBREVIATION = 5  # letters


def _clean_lines(text: str) -> tuple[str, ...]:
    """The lines of a cue as plain text, empty ones left out."""
    plain = _ENTITY.sub(lambda entity: html.unescape(entity[0]), _TAG.sub("", text))
    plain = _INVISIBLE.sub("", _CONTROL.sub(" ", plain.replace("\r\n", "\n").replace("\r", "\n")))
    plain = _BRACKETS.sub(_kept_brackets, _NOTES.sub(" ", plain))
    lines = (" ".join(_without_speaker(line).split()) for line in plain.split("\n") if line)
    return tuple(line for line in lines if line)


def _kept_brackets(brackets: re.Match[str]) -> str:
    inside = brackets[0][1:-1].strip()
    words = inside.lower().strip(".!… ").split()
    is_sound = not words or words[0] in _SOUNDS or words[-1] in _SOUNDS
    if is_sound or (inside.isupper() and not _is_abbreviation(brackets, inside)):
        return " " + "\n" * brackets[0].count("\n")
    return brackets[0]


def _is_abbreviation(brackets: re.Match[str], inside: str) -> bool:
    """Whether capitals in round brackets explain the word before them: Natural History Museum (NHM)."""
    before = brackets.string[max(0, brackets.start() - 2) : brackets.start()].strip()
    is_short = len(inside) <= _ABBREVIATION and inside.isalpha()
    return is_short and before.isalnum() and brackets[0].startswith("(")


def _without_speaker(line: str) -> str:
    turn = _TURN.match(line)
    rest = line[turn.end() :] if turn else line.lstrip()
    if not (label := _LABEL.match(rest)):
        return rest
    name = label[1]
    is_marked = turn is not None and ">" in turn[0]
    is_role = name.lower().rstrip(" #0123456789") in _ROLES
    is_name = name.isupper() and len(name) > 1 and name.lower() not in _NOT_A_SPEAKER
    return rest[label.end() :] if is_marked or is_role or is_name else rest


# Bytes of a subtitle file -> text, whatever program wrote them. Never fails, and says when it had to guess. In this
# order: the encoding the user names, a byte order mark, UTF-16 recognised by its zero bytes, UTF-8 (also with a few
# damaged bytes), a guess. The guess is windows-1252 where that reads as Latin text, since the statistics of
# charset-normalizer confuse it with its neighbours on short files; for other scripts charset-normalizer decides.

# UTF-32 first: its mark starts with the one of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_HEAD = 65_536  # bytes or characters looked at where a part tells enough
_GUESSED_FROM = 16_384
_SYMBOL_IN_WORD = re.compile(r"[^\W\d_][¡-©«-´¶-¹»-¿×÷][^\W\d_]")
_CONTROL_CHARACTERS = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\ufffd]")


@dataclass(frozen=True, slots=True)
class _Decoded:
    """The text of a file, the encoding it was read in, and a remark for the user where that is uncertain."""

    text: str
    encoding: str
    remark: str = ""


def _decode(data: bytes, encoding: str = "") -> _Decoded:
    """Turn bytes into text; `encoding` overrides every guess and must be one Python knows."""
    if encoding:
        return _decoded(data, encoding)
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _decoded(data, name)
    if name := _utf_16_without_mark(data):
        return _decoded(data, name)
    utf_8 = _decoded(data, "utf-8")
    replaced, ascii_only = utf_8.text.count("\ufffd"), utf_8.text.encode("ascii", "ignore")
    if not replaced or len(utf_8.text) - len(ascii_only) > 4 * replaced:
        return utf_8
    name = _guess(data)
    remark = f"its encoding is not stated; read as {name}: if letters look wrong, save it as UTF-8 or give --encoding"
    return _Decoded(data.decode(name, "replace"), name, remark)


def _is_binary(text: str) -> bool:
    """Whether decoded text is so full of control characters that nobody wrote it."""
    head = text[:_HEAD]
    return len(_CONTROL_CHARACTERS.findall(head)) * 20 > len(head)


def _decoded(data: bytes, name: str) -> _Decoded:
    text = data.decode(name, "replace")
    damaged = text.count("\ufffd")
    return _Decoded(text, name, f"{damaged} characters are damaged and cannot be read as {name}" if damaged else "")


def _utf_16_without_mark(data: bytes) -> str:
    """Digits, spaces and line ends have a zero byte in UTF-16, always on the same side."""
    head = data[:_HEAD]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 10 < len(head) or min(even, odd) * 10 > max(even, odd):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _guess(data: bytes) -> str:
    head = data[: data.rfind(b"\n", 0, _GUESSED_FROM) + 1 or _GUESSED_FROM]
    best = from_bytes(head).best()
    name = best.encoding if best else "cp1252"
    letters = {c for c in head.decode(name, "replace") if c > "\x7f" and c.isalpha()}
    if all(unicodedata.name(c, "").startswith("LATIN") for c in letters):
        western = head.decode("cp1252", "replace")
        if not _SYMBOL_IN_WORD.search(western) and "\ufffd" not in western:
            return "windows-1252"
    return name
