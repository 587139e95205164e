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
import html
import math
import re
import stat
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import accumulate, groupby, islice, pairwise
from pathlib import Path

from charset_normalizer import from_bytes

from signspot.domain.recordings import Subtitle
from signspot.domain.time import MillisSpan, clock
from signspot.errors import InputError, SubtitleError, one_line, readable_size
from signspot.text import subtitle_formats as formats
from signspot.text.subtitle_formats import Cue, CueSource, Exact, Unreadable, is_stl

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
    decoded = _Decoded("", "") if is_stl(data) else _decode(data, options.encoding)
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


def _cue_source(data: bytes, decoded: _Decoded, path: Path, options: SubtitleOptions) -> CueSource:
    if is_stl(data):
        return formats.read_stl(data)
    if _is_binary(decoded.text):
        raise SubtitleError(path, "is a binary file and holds no subtitles", f"name the subtitle file; {_FORMATS}")
    text = decoded.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise SubtitleError(path, "is empty", "get the file again from its source")
    kind = _kind(text) or _SUFFIXES.get(path.suffix.lower())
    if kind in ("srt", "vtt"):
        return CueSource(formats.read_blocks(text, is_vtt=kind == "vtt"))
    if kind == "substation":
        return CueSource(formats.read_substation(text))
    if kind == "microdvd":
        return CueSource(formats.read_microdvd(text, options.frames_per_second, path))
    if kind == "ttml":
        return formats.read_ttml(data if not options.encoding else text.encode(), path)
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
    source: CueSource, cues: list[Cue | Unreadable], options: SubtitleOptions, warnings: _Warnings
) -> _Retiming:
    scale = 1 if options.scale == 1 else Fraction(str(options.scale))  # 1.001 means 1001/1000
    first = min((cue.start_ms for cue in cues if isinstance(cue, Cue)), default=0)
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


def _placed(cues: list[Cue | Unreadable], retiming: _Retiming, warnings: _Warnings) -> Iterator[_Placed]:
    for cue in cues:
        if len(cue.text) > MAX_TEXT:
            what = f"more than {MAX_TEXT:,} characters"
            warnings.left_out(cue, f"holds {what}", f"they hold {what}")
            continue
        if not (lines := _clean_lines(cue.text)):
            warnings.wordless(cue)
            continue
        if isinstance(cue, Unreadable):
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

    def about(self, cue: Cue | Unreadable, what: str) -> None:
        if len(self._cues) >= _MAX_WARNINGS:
            self._unnamed += 1
            return
        words = " ".join(cue.text[:200].split())[:40]
        self._cues.append(one_line(f'{self._name}: {_named(cue)}: {what}: "{words}"'))

    def left_out(self, cue: Cue | Unreadable, what: str, why: str) -> None:
        """Say that a cue was left out, in the singular, and count it, in the plural."""
        count, first = self._left_out.get(why, (0, _named(cue)))
        self._left_out[why] = (count + 1, first)
        self.about(cue, f"{what}: left out")

    def wordless(self, cue: Cue | Unreadable) -> None:
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


def _named(cue: Cue | Unreadable) -> str:
    return f"cue {cue.number}{f' ({clock(cue.start_ms, hours=True)})' if isinstance(cue, Cue) else ''}"


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
    cues: tuple[Cue, ...]


def _fault(cue: Cue, start: int, stop: int) -> tuple[str, str] | None:
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
