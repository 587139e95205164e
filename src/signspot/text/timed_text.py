r"""The text formats: SubRip (SRT), WebVTT, SubStation Alpha (ASS, SSA) and MicroDVD.

Lenient where the meaning is clear (dots for commas, missing hours or numbers, missing blank lines) and never guessing
where it is not: a time line that cannot be read makes an `Unreadable`, it does not add its text to the cue before.
Every pattern is bounded or looks at each character once, so time grows with the size of the file only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from signspot.text.cues import Cue, Unreadable

_TIME = r"(-?)(?:(\d{1,9}):)?(\d{1,2}):(\d{1,2})(?:[.,:](\d{1,9}))?"
_TIME_LINE = re.compile(rf"\s{{0,99}}{_TIME}\s{{0,99}}-{{1,3}}\s?>\s{{0,99}}{_TIME}(?!\d)")
_ONE_TIME = re.compile(rf"\s{{0,99}}{_TIME}\s{{0,99}}$")
_MICRODVD = re.compile(r"\{(\d{1,9})\}\{(\d{0,9})\}")
_MICRODVD_CODE = re.compile(r"\{[A-Za-z]{1,2}:[^{}]*\}")
_ASS_BLOCK = re.compile(r"\{[^{}]*\}")
_ASS_DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
_ASS_FIELDS: tuple[str, ...] = (
    "layer",
    "start",
    "end",
    "style",
    "name",
    "marginl",
    "marginr",
    "marginv",
    "effect",
    "text",
)
_NO_TIMES = "its time line cannot be read"


def has_time_line(line: str) -> bool:
    """Whether a line is the time line of an SRT or WebVTT cue."""
    return _TIME_LINE.match(line) is not None


def read_blocks(text: str, *, is_vtt: bool) -> Iterator[Cue | Unreadable]:
    """Read SubRip or WebVTT.

    In WebVTT a cue ends at an empty line; notes, style sheets and the names of cues lie between cues. In SubRip
    everything up to the next time line belongs to the cue, except the number above that line.
    """
    number, times, lines, is_open = 0, "", list[str](), False
    for line in text.split("\n"):
        if "-->" in line or has_time_line(line):
            if number:
                yield _block(number, times, _without_next_number(lines) if is_open else lines)
            number, times, lines, is_open = number + 1, line, [], True
        elif is_vtt and not line:
            is_open = False
        elif is_open:
            lines.append(line)
    if number:
        yield _block(number, times, lines)


def read_substation(text: str) -> Iterator[Cue | Unreadable]:
    """Read the dialogue of an ASS or SSA file; comments and drawings are no cues."""
    fields, number, in_events = _ASS_FIELDS, 0, False
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
                yield _cue(number, values.get("start", ""), values.get("end", ""), _substation_text(written))


def read_microdvd(text: str, frames_per_second: float | None) -> Iterator[Cue | Unreadable]:
    """Read MicroDVD; frames become ms by `frames_per_second` or by the rate the first line states.

    Raises ValueError if neither is known.
    """
    number, rate = 0, frames_per_second
    for line in text.split("\n"):
        if not (frames := _MICRODVD.match(line)):
            continue
        words = line[frames.end() :]
        if rate is None:
            rate = _stated_rate(frames, words)
            continue
        number += 1
        if not frames[2]:
            yield Unreadable(number, "has no end frame", words)
            continue
        start, stop = (Fraction(int(frame) * 1000) / Fraction(str(rate)) for frame in frames.groups())
        yield Cue(number, start, stop, _MICRODVD_CODE.sub("", words).replace("|", "\n"))


def _block(number: int, times: str, lines: list[str]) -> Cue | Unreadable:
    text = "\n".join(lines)
    if not (match := _TIME_LINE.match(times)):
        return Unreadable(number, _NO_TIMES, text)
    start, stop = _milliseconds(match.groups()[:5]), _milliseconds(match.groups()[5:])
    if start is None or stop is None:
        return Unreadable(number, _NO_TIMES, text)
    return Cue(number, start, stop, text)


def _without_next_number(lines: list[str]) -> list[str]:
    """Drop the number of the next cue: digits directly above its time line, or alone between blank lines."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    is_number = end > 0 and lines[end - 1].strip().isdecimal()
    is_apart = end == len(lines) or (end > 1 and not lines[end - 2].strip())
    return lines[: end - 1] if is_number and is_apart else lines


def _cue(number: int, start: str, stop: str, text: str) -> Cue | Unreadable:
    begins, ends = _ONE_TIME.match(start), _ONE_TIME.match(stop)
    if begins and ends:
        start_ms, stop_ms = _milliseconds(begins.groups()), _milliseconds(ends.groups())
        if start_ms is not None and stop_ms is not None:
            return Cue(number, start_ms, stop_ms, text)
    return Unreadable(number, _NO_TIMES, text)


def _milliseconds(parts: tuple[str | None, ...]) -> int | None:
    """Sign, hours, minutes, seconds, fraction -> ms; None for an impossible time such as 00:75:00."""
    sign, hours, minutes, seconds, fraction = parts
    if int(minutes or 0) > 59 or int(seconds or 0) > 59:
        return None
    whole = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    time = whole * 1000 + int((fraction or "0")[:3].ljust(3, "0"))
    return -time if sign else time


def _substation_text(written: str) -> str:
    plain = _ASS_BLOCK.sub("", written)
    return plain.replace("\\N", "\n").replace("\\n", "\n").replace("\\h", " ")


def _stated_rate(frames: re.Match[str], words: str) -> float:
    """The frame rate, which by custom is the text of a first cue {1}{1}."""
    rate = float(words.strip().replace(",", ".")) if frames.groups() in (("0", "0"), ("1", "1")) else 0.0
    if not 1 <= rate <= 1000:
        raise ValueError("no frame rate in the first line")
    return rate
