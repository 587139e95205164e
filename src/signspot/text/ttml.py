"""TTML and its relatives: EBU-TT, EBU-TT-D, IMSC, SMPTE-TT, DFXP.

ttconv reads the time expressions (clock times, frames, ticks, SMPTE time codes with dropped frames); the shorter ones
that many programs write, as in SMIL (20.841, 1:01.982) or with a comma, are brought into its form first. The elements
are walked here, in one pass over a tree that came through `safe_xml`. A paragraph is a cue; where its spans have times
of their own, spans that overlap stay together and others become cues of their own. Older namespaces are read alike.

Times inside a timed element count from its begin. Programs that do not know this count all from the start of the film;
a file is taken for one of theirs if, by the standard, something would begin after the end of what it is in, and so
never be shown, while counted from the start all have their place.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

from lxml import etree
from ttconv.imsc import attributes as ttconv_attributes

from signspot.errors import SubtitleError
from signspot.text.cues import Cue, CueSource, Unreadable
from signspot.text.safe_xml import parse_xml

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
    """Read a TTML file of any profile."""
    root = parse_xml(data, path, SubtitleError).getroot()
    if _name(root) != "tt":
        raise SubtitleError(path, f"is XML but no TTML: its first element is <{_name(root)}>", "name a subtitle file")
    clock = _clock(root, path)
    walk, remarks = _walked(root, clock), tuple[str, ...]()
    if walk.n_outside and not any(_in_turn(element) for element in root.iter()):
        other = _walked(root, clock, from_the_start=True)
        if other.n_outside * _MISPLACED <= other.n_nested:
            what = "its times count from the start of the film even inside timed parts, against the standard: so read"
            walk, remarks = other, (what,)
    return CueSource(_cues(walk.paragraphs), walk.start_of_programme(root), remarks)


def _walked(
    root: etree._Element, clock: ttconv_attributes.TemporalAttributeParsingContext, *, from_the_start: bool = False
) -> _Walk:
    walk = _Walk(clock, from_the_start=from_the_start)
    for body in root:
        if _name(body) == "body":
            walk.visit(body, _Place(Fraction(0)))
    return walk


def _in_turn(element: etree._Element) -> bool:
    return element.get("timeContainer") == "seq"  # what it holds is shown one after the other


def _name(element: etree._Element) -> str:
    """The name without its namespace; "" for comments and the like."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _clock(root: etree._Element, path: Path) -> ttconv_attributes.TemporalAttributeParsingContext:
    """The frame rate, tick rate and kind of time codes the file declares."""
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
    return ttconv_attributes.TemporalAttributeParsingContext(rate, ticks, base, drop)


class _Walk:
    """Collects paragraphs in the order of the file, resolving times against the elements around them."""

    def __init__(
        self, clock: ttconv_attributes.TemporalAttributeParsingContext, *, from_the_start: bool = False
    ) -> None:
        self._clock = clock
        self._from_the_start = from_the_start  # all times, whatever they are inside of
        self.paragraphs: list[_Paragraph] = []
        self.n_nested = 0  # elements with a begin inside an element with times
        self.n_outside = 0  # those of them that begin outside of it

    def start_of_programme(self, root: etree._Element) -> Fraction:
        """The time code of the first frame, in ms, as EBU-TT states it."""
        for element in root.iter("{*}documentStartOfProgramme"):
            try:
                return self._seconds((element.text or "").strip()) * 1000
            except ValueError:
                break
        return Fraction(0)

    def visit(self, element: etree._Element, place: _Place) -> Fraction | None:
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
                child_ends = self.visit(child, inner)
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
    """A time as TTML wants it: 20.841 are seconds, 1:01.982 lacks its hours, and a comma is a decimal point.

    >>> _standard("1:01,982")
    '00:01:01.982'
    """
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
