"""The table of mined examples: one row for each clip, with a column `accepted` for a person to fill in.

Beside the clip stands all that is known about it, so that an accepted row becomes an entry of a dictionary later and on
another machine, as long as the clip lies where the table says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from signspot.domain.corpus import Rights
from signspot.domain.words import Word
from signspot.errors import FormatError
from signspot.formats.records import RIGHTS_FIELDS, Fields, Record, csv_records, rights_fields
from signspot.formats.spreadsheet import write_csv

_TEXTS = ("spotting_id", "video_id", "entry_id", "variant", "type_id", "signer", "language", "remark")
_FIELDS = Fields(
    ("accepted", "word", "file"),
    ("rank", "start_ms", "stop_ms", "cosine", "word_language", *_TEXTS, *RIGHTS_FIELDS),
)
_COLUMNS = (
    "accepted", "rank", "word", "variant", "cosine", "file", "video_id", "start_ms", "stop_ms", "signer", "language",
    "entry_id", "type_id", "spotting_id", *RIGHTS_FIELDS, "remark",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedExample:
    """One row."""

    word: Word
    file: str  # the clip, a path from the table; "" where its rights allow none
    accepted: bool | None = None  # None: nobody has looked at it
    rank: int = 0
    cosine: float = 0.0
    start_ms: int = 0
    stop_ms: int = 0
    spotting_id: str = ""
    video_id: str = ""
    entry_id: str = ""  # the dictionary clip it was found by
    variant: str = ""
    type_id: str = ""
    signer: str = ""
    language: str = ""
    rights: Rights = field(default_factory=Rights)
    remark: str = ""


def write_mined(examples: Iterable[MinedExample], path: Path, *, overwrite: bool = False) -> None:
    """Write the table."""
    write_csv(_COLUMNS, (_cells(example) for example in examples), path, overwrite=overwrite)


def read_mined(path: Path) -> tuple[MinedExample, ...]:
    """Read a table again, as a spreadsheet may have left it."""
    found: list[MinedExample] = []
    records = csv_records(path, _FIELDS)
    serious = [problem for problem in records.problems if not problem.is_remark]
    if serious:
        raise FormatError(serious[0].where, serious[0].what, serious[0].fix)
    for row in records.rows:
        try:
            found.append(_example(row))
        except ValueError as error:
            raise FormatError(row.where, str(error), "correct the row") from error
    return tuple(found)


def _cells(example: MinedExample) -> list[str]:
    said = {True: "yes", False: "no", None: ""}
    values: dict[str, object] = {name: getattr(example, name) for name in _COLUMNS if hasattr(example, name)}
    rights = rights_fields(example.rights)
    values |= {name: said[value] if isinstance(value, bool) else value for name, value in rights.items()}
    values |= {"accepted": said[example.accepted], "cosine": f"{example.cosine:.4f}"}
    return [str(values.get(name, "")) for name in _COLUMNS]


def _example(row: Record) -> MinedExample:
    rights, problems = row.rights()
    if problems:
        raise ValueError(problems[0].what)
    start, stop, rank, cosine = (row.number(name) or 0 for name in ("start_ms", "stop_ms", "rank", "cosine"))
    texts = {name: row.text(name) for name in _TEXTS}
    return MinedExample(
        word=row.word(row.text("language")),
        file=row.text("file"),
        accepted=row.claim("accepted"),
        rank=int(rank),
        cosine=float(cosine),
        start_ms=int(start),
        stop_ms=int(stop),
        rights=rights,
        **texts,
    )
