"""The text formats: SubRip (SRT), WebVTT, SubStation Alpha (ASS, SSA) and MicroDVD.

Lenient where the meaning is clear (dots for commas, missing hours or numbers, missing blank lines) and never guessing
where it is not: a time line that cannot be read makes an `Unreadable`, it does not add its text to the cue before.
Every pattern is bounded or looks at each character once, so time grows with the size of the file only.
"""

from __future__ import annotations

import logging
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

from lxml import etree
from ttconv.imsc import attributes as ttconv_attributes
from ttconv.imsc.attributes import TemporalAttributeParsingContext as Clock
from ttconv.stl import iso6937
from ttconv.time_code import SmpteTimeCode

from signspot.errors import SubtitleError
from signspot.files.xml import parse_xml

_TIME = r"(-?)(?:(\d{1,9}):)?(\d{1,2}):(\d{1,2})(?:[.,:](\d{1,9}))?"
_TIME_LINE = re.compile(rf"\s{{0,99}}{_TIME}\s{{0,99}}-{{1,3}}\s?>\s{{0,99}}{_TIME}(?!\d)")
_ONE_TIME = re.compile(rf"\s{{0,99}}{_TIME}\s{{0,99}}$")
_MICRODVD = re.compile(r"\{(\d{1,9})\}\{(\d{0,9})\}")
_MICRODVD_CODE = re.compile(r"\{[A-Za-z]{1,2}:[^{}]*\}")
_ASS_BLOCK = re.compile(r"\{[^{}]*\}")
_ASS_DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
_ASS_FIELDS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")


def read_blocks(text: str, *, is_vtt: bool) -> Iterator[Cue | Unreadable]:
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


def read_substation(text: str) -> Iterator[Cue | Unreadable]:
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


def read_microdvd(text: str, frames_per_second: float | None, path: Path) -> Iterator[Cue | Unreadable]:
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
            yield Unreadable(number, "has no end frame", words)
            continue
        start, stop = (Fraction(int(frame) * 1000) / Fraction(str(rate)) for frame in frames.groups())
        yield Cue(number, start, stop, _MICRODVD_CODE.sub("", words).replace("|", "\n"))


def _cue(number: int, times: re.Match[str] | tuple[str | None, ...] | None, lines: list[str]) -> Cue | Unreadable:
    """A cue with the ten parts of its two times, if they could be made out."""
    parts = times.groups() if isinstance(times, re.Match) else times
    start, stop = (_milliseconds(parts[:5]), _milliseconds(parts[5:])) if parts else (None, None)
    if start is None or stop is None:
        return Unreadable(number, "its time line cannot be read", "\n".join(lines))
    return Cue(number, start, stop, "\n".join(lines))


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


def read_ttml(data: bytes, path: Path) -> CueSource:
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
    return CueSource(_cues(walk.paragraphs), walk.start_of_programme(root), remarks)


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


def _cues(paragraphs: list[_Paragraph]) -> Iterator[Cue | Unreadable]:
    number = 0
    for paragraph in paragraphs:
        if paragraph.problem:
            number += 1
            yield Unreadable(number, paragraph.problem, "".join(run.text for run in paragraph.runs))
            continue
        for group in _grouped(paragraph.runs):
            number += 1
            text = "".join(run.text for run in group)
            timed = [run for run in group if run.text.strip()] or group
            stops = [run.stop for run in timed if run.stop is not None]
            if len(stops) < len(timed):
                yield Unreadable(number, "has no end time", text)
            else:
                yield Cue(number, min(run.start for run in timed) * 1000, max(stops) * 1000, text)


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


def is_stl(data: bytes) -> bool:
    return data[3:6] == b"STL" and len(data) >= _HEADER_BYTES


def read_stl(data: bytes) -> CueSource:
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
    return CueSource(_stl_cues(data, rate), start or 0, tuple(remarks))


def _stl_cues(data: bytes, rate: Fraction) -> Iterator[Cue | Unreadable]:
    pending: Cue | Unreadable | None = None
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
        if status in _CONTINUES_A_SET and isinstance(pending, Cue) and stop is not None:
            pending = Cue(pending.number, pending.start_ms, max(pending.stop_ms, stop), f"{pending.text}\n{text}")
            continue
        if pending:
            yield pending
        number += 1
        if start is None or stop is None:
            pending = Unreadable(number, "its time code is impossible", text)
        else:
            pending = Cue(number, start, stop, text)
    if pending:
        yield pending
    if fields:
        yield Unreadable(number + 1, "its last block is missing", _text(b"".join(fields), data[12:14]))


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
class Cue:
    """One cue with its times in ms, the lines of its text separated by line breaks, markup included."""

    number: int  # counted from 1 in the order of the file
    start_ms: Exact
    stop_ms: Exact
    text: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A cue whose times cannot be made out, and why."""

    number: int
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class CueSource:
    """The cues of one file in its own order, read as they are asked for, and what its header says about them."""

    cues: Iterator[Cue | Unreadable]
    start_of_programme_ms: Exact = 0  # the time code of the programme's first frame
    remarks: tuple[str, ...] = ()
