"""A spotting as one flat row: the one list of columns that every table format and `--json` share.

Times are whole milliseconds of media time from 0:00 of the player; `start` is inside the sign, `stop` no longer is.
Words and ids are written and read as they are, without normalising: what was written comes back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from signspot.domain.corpus import Subtitle
from signspot.domain.results import Presence, Provenance, Spotting
from signspot.domain.spans import Millis, MillisSpan
from signspot.domain.words import Word

MAX_TEXT = 32_767  # characters; more does not fit into a cell of a spreadsheet
_MAX_INTEGER = 1 << 53  # beyond, a JSON reader may round
_MAX_COSINE = 1.001  # float32 rounding may exceed 1 a little

_INTEGER = re.compile(r"(-?[0-9]{1,16})(?:\.0*)?", re.ASCII)  # pandas writes 1200.0 where other rows are empty
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)


class Kind(Enum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"


class Role(Enum):
    """What a column is for when a table is read."""

    READ = "read"
    DERIVED = "derived"  # made from other columns; ignored in reading
    FOR_PEOPLE = "for people"  # derived, and only in CSV


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table: documented here and nowhere else."""

    name: str
    kind: Kind
    meaning: str
    optional: bool = False  # may be empty
    role: Role = Role.READ


COLUMNS = (
    Column("spotting_id", Kind.TEXT, "the same for the same finding, on any machine", role=Role.DERIVED),
    Column("video_id", Kind.TEXT, "which video"),
    Column("word", Kind.TEXT, "the word whose sign was found"),
    Column("start_ms", Kind.INTEGER, "where the sign starts, in ms of media time"),
    Column("stop_ms", Kind.INTEGER, "where the sign has ended, in ms of media time"),
    Column("start", Kind.TEXT, "start_ms as h:mm:ss.mmm", role=Role.FOR_PEOPLE),
    Column("stop", Kind.TEXT, "stop_ms as h:mm:ss.mmm", role=Role.FOR_PEOPLE),
    Column("frame", Kind.INTEGER, "the frame at the centre of the best window, counted from 0 at 25 per second"),
    Column("entry_id", Kind.TEXT, "the dictionary clip that fits best"),
    Column("variant", Kind.TEXT, "which form of the sign; empty where the dictionary does not say"),
    Column("type_id", Kind.TEXT, "the sign's id in an external vocabulary such as SignBank; empty if it has none"),
    Column("cosine", Kind.NUMBER, "how alike sign and clip are, from -1 to 1; no probability"),
    Column(
        "presence", Kind.NUMBER, "calibrated probability that the sign is there; empty: uncalibrated", optional=True
    ),
    Column("calibration", Kind.TEXT, "which calibration gave the presence"),
    Column("model", Kind.TEXT, "the model's name"),
    Column("fingerprint", Kind.TEXT, "the model's exact weights and settings"),
    Column("dictionary", Kind.TEXT, "the dictionary"),
    Column("media_sha256", Kind.TEXT, "the video file's content"),
    Column("source", Kind.TEXT, "how it was found: lookup, watch, read, mouthing, human"),
    Column("subtitle", Kind.TEXT, "the subtitle that led to the search"),
    Column("subtitle_start_ms", Kind.INTEGER, "its start; empty: no subtitle", optional=True),
    Column("subtitle_stop_ms", Kind.INTEGER, "its end; empty: no subtitle", optional=True),
)
STORED = tuple(column for column in COLUMNS if column.role is not Role.FOR_PEOPLE)
NEEDED = tuple(column for column in COLUMNS if column.role is Role.READ)

Cell = str | int | float | None


def row_of(spotting: Spotting) -> tuple[Cell, ...]:
    """The values of the columns in STORED; ValueError if they could not be read back."""
    from_model, presence = spotting.provenance, spotting.presence
    subtitle = from_model.subtitle
    texts = (
        spotting.video_id,
        spotting.word,
        spotting.entry_id,
        spotting.variant,
        spotting.type_id,
        presence.calibration if presence else "",
        from_model.model,
        from_model.fingerprint,
        from_model.dictionary,
        from_model.media_sha256,
        from_model.source,
        subtitle.text if subtitle else "",
    )
    _check_texts(texts)
    _check_numbers(spotting)
    return (
        spotting.spotting_id,
        *texts[:2],
        spotting.span_ms.start,
        spotting.span_ms.stop,
        spotting.frame,
        *texts[2:5],
        float(spotting.cosine),
        float(presence.probability) if presence else None,
        *texts[5:],
        subtitle.span_ms.start if subtitle else None,
        subtitle.span_ms.stop if subtitle else None,
    )


def spotting_of(record: Mapping[str, object]) -> Spotting:
    """The spotting a row describes; ValueError says which column is wrong."""
    cells = {column.name: _cell(column, record) for column in NEEDED}
    integer = {name: value for name, value in cells.items() if isinstance(value, int)}
    text = {name: value for name, value in cells.items() if isinstance(value, str)}
    spotting = Spotting(
        video_id=text["video_id"],
        span_ms=MillisSpan(Millis(integer["start_ms"]), Millis(integer["stop_ms"])),
        frame=integer["frame"],
        word=Word(text["word"]),
        entry_id=text["entry_id"],
        variant=text["variant"],
        type_id=text["type_id"],
        cosine=float(cells["cosine"] or 0),
        presence=_presence(cells["presence"], text["calibration"]),
        provenance=Provenance(
            media_sha256=text["media_sha256"],
            model=text["model"],
            fingerprint=text["fingerprint"],
            dictionary=text["dictionary"],
            source=text["source"],
            subtitle=_subtitle(text["subtitle"], integer.get("subtitle_start_ms"), integer.get("subtitle_stop_ms")),
        ),
    )
    _check_texts(tuple(text.values()))
    _check_numbers(spotting)
    return spotting


def clock(time_ms: int) -> str:
    """A time as people write it.

    >>> clock(3_723_004), clock(-167)
    ('1:02:03.004', '-0:00:00.167')
    """
    minutes, ms = divmod(abs(time_ms), 60_000)
    return f"{'-' if time_ms < 0 else ''}{minutes // 60}:{minutes % 60:02}:{ms // 1000:02}.{ms % 1000:03}"


def cue_times(span_ms: MillisSpan) -> str:
    """When WebVTT shows a cue: never before 0:00, which no player reads, and for 1 ms at least, or it is never seen."""
    start = max(0, span_ms.start)
    return f"{clock(start).rjust(12, '0')} --> {clock(max(start + 1, span_ms.stop)).rjust(12, '0')}"


def _check_texts(texts: tuple[str, ...]) -> None:
    longest = max(texts, key=len)
    if len(longest) > MAX_TEXT:
        raise ValueError(f"a text of {len(longest)} characters, over {MAX_TEXT}: {longest[:20]!r}...")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half a character (a lone surrogate)") from error


def _check_numbers(spotting: Spotting) -> None:
    span, subtitle = spotting.span_ms, spotting.provenance.subtitle
    if span.start < 0 or spotting.frame < 0:
        raise ValueError(f"a negative time: start_ms {span.start}, frame {spotting.frame}")
    # A subtitle may start below zero: a shift for the signers' delay moves it there.
    furthest = max(span.stop, spotting.frame, *((-subtitle.span_ms.start, subtitle.span_ms.stop) if subtitle else ()))
    if furthest > _MAX_INTEGER:
        raise ValueError(f"a time or frame of {furthest} is beyond any video")
    if not abs(spotting.cosine) <= _MAX_COSINE:  # also true of NaN
        raise ValueError(f"cosine {spotting.cosine} is not between -1 and 1")


def _presence(probability: Cell, calibration: str) -> Presence | None:
    if probability is None:
        if calibration:
            raise ValueError(f"calibration is {calibration[:40]!r} but presence is empty")
        return None
    return Presence(float(probability), calibration)


def _subtitle(text: str, start_ms: int | None, stop_ms: int | None) -> Subtitle | None:
    if start_ms is None and stop_ms is None:
        if text:
            raise ValueError("a subtitle without its times")
        return None
    if start_ms is None or stop_ms is None:
        raise ValueError("a subtitle with only one of its times")
    return Subtitle(MillisSpan(Millis(start_ms), Millis(stop_ms)), text)


def _cell(column: Column, record: Mapping[str, object]) -> Cell:
    """One value, from text as in CSV or from a typed value as in JSON and Parquet."""
    value = record[column.name]
    if column.kind is Kind.TEXT:
        if value is None or isinstance(value, str):
            return value or ""
    elif value is None or value == "":
        if column.optional:
            return None
        raise ValueError(f"{column.name} is empty")
    elif column.kind is Kind.INTEGER:
        if (whole := _whole(value)) is not None:
            return whole
    elif (number := _number(value)) is not None:
        return number
    raise ValueError(f"{column.name} is {str(value)[:40]!r}, which is no {column.kind.value}")


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        match = _INTEGER.fullmatch(value)
        return int(match[1]) if match else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)
