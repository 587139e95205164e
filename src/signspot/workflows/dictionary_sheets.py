"""What people look at after a build: a page, contact sheets, and tables of what was left out and what comes twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from signspot.domain.dictionary import Entry
from signspot.domain.spans import FRAME_RATE
from signspot.formats.clip_facts import ClipFacts
from signspot.formats.dictionary_page import Card, DictionaryPage, write_page
from signspot.formats.places import Problem
from signspot.formats.spreadsheet import write_csv
from signspot.media.contact_sheet import SheetRow, contact_sheet
from signspot.media.thumbnails import TILE_HEIGHT, TILES, read_strip, write_picture
from signspot.workflows.dictionary_folder import DUPLICATES, PAGE, PROBLEMS, SHEETS
from signspot.workflows.tracks import Progress

_ROWS_PER_SHEET = 50


@dataclass(frozen=True, slots=True)
class Finished:
    """An entry whose files are all in the folder."""

    entry: Entry
    clip: Path
    sha256: str  # of the clip
    facts: ClipFacts
    thumbnails: Path | None  # None: the clip may not be shown
    face_group: int | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """An entry whose clip is that of another entry, or looks like a copy of it."""

    entry: Entry
    other: Entry
    kind: str  # "the same file" or "nearly the same"
    cosine: float  # of their signatures
    left_out: bool = False  # the same bytes under the same word add nothing

    def __str__(self) -> str:
        words = f"{self.entry.entry_id} ({self.entry.word}) and {self.other.entry_id} ({self.other.word})"
        return f"{words}: {self.kind}" + (", left out" if self.left_out else f" ({self.cosine:.2f})")


@dataclass(frozen=True, slots=True)
class Sheets:
    """Everything there is to show."""

    folder: Path
    finished: Sequence[Finished]
    duplicates: Sequence[Duplicate]
    problems: Sequence[Problem]


def write_problems(problems: Iterable[Problem], path: Path, *, overwrite: bool = False) -> None:
    """Write the list of what was left out or is odd."""
    rows = ((p.where, p.what, p.fix, "no" if p.is_remark else "yes") for p in problems)
    write_csv(("file", "reason", "what_to_do", "left_out"), rows, path, overwrite=overwrite)


def write_sheets(sheets: Sheets, progress: Progress | None = None) -> None:
    """Write the page, the contact sheets and the tables; those of an earlier run are replaced."""
    write_problems(sheets.problems, sheets.folder / PROBLEMS, overwrite=True)
    write_csv(
        ("entry_id", "word", "same_as", "same_as_word", "kind", "cosine", "left_out"),
        (_row(duplicate) for duplicate in sheets.duplicates),
        sheets.folder / DUPLICATES,
        overwrite=True,
    )
    write_page(_page(sheets), sheets.folder / PAGE, overwrite=True)
    _write_pictures(sheets, progress)


def _row(duplicate: Duplicate) -> tuple[str, ...]:
    entry, other = duplicate.entry, duplicate.other
    left_out = "yes" if duplicate.left_out else "no"
    words = (entry.entry_id, entry.word, other.entry_id, other.word)
    return (*words, duplicate.kind, f"{duplicate.cosine:.3f}", left_out)


def _page(sheets: Sheets) -> DictionaryPage:
    alike: dict[str, list[str]] = {}
    for duplicate in sheets.duplicates:
        for one, other in ((duplicate.entry, duplicate.other), (duplicate.other, duplicate.entry)):
            alike.setdefault(one.entry_id, []).append(f"{duplicate.kind}: {other.entry_id}")
    cards = tuple(_card(one, sheets.folder, alike.get(one.entry.entry_id, [])) for one in sheets.finished)
    problems = tuple(str(problem) for problem in sheets.problems)
    return DictionaryPage(sheets.folder.resolve().name, cards, problems, tuple(map(str, sheets.duplicates)))


def _card(one: Finished, folder: Path, alike: list[str]) -> Card:
    kept, n_frames = one.facts.kept, one.facts.n_frames
    length = f"{len(kept) / FRAME_RATE:.1f} s"
    cut = f"{length}, cut {kept.start} + {n_frames - kept.stop} frames" if len(kept) < n_frames else length
    is_shown = one.thumbnails is not None
    return Card(
        entry=one.entry,
        picture=one.thumbnails.relative_to(folder).as_posix() if one.thumbnails is not None else "",
        clip=one.clip.relative_to(folder).as_posix() if is_shown else "",
        n_tiles=one.facts.n_tiles,
        aspect=one.facts.tile_width / TILE_HEIGHT,
        span_ms=one.facts.kept_ms,
        notes=(cut, *one.facts.remarks, *alike),
        face_group=one.face_group,
    )


def _write_pictures(sheets: Sheets, progress: Progress | None) -> None:
    shown = [one for one in sheets.finished if one.thumbnails is not None]
    n_sheets = -(-len(shown) // _ROWS_PER_SHEET)
    for number in range(n_sheets):
        part = shown[number * _ROWS_PER_SHEET : (number + 1) * _ROWS_PER_SHEET]
        rows = [
            SheetRow(_title(one.entry), read_strip(one.thumbnails, one.facts.n_tiles)) for one in part if one.thumbnails
        ]
        picture = contact_sheet(rows, columns=TILES, tile_height=TILE_HEIGHT)
        write_picture(picture, sheets.folder / f"{SHEETS}{number + 1:03}.png", overwrite=True)
        if progress is not None:
            progress("drawing contact sheets", number + 1, n_sheets)
    # A shorter dictionary has fewer sheets than the run before.
    for old in sheets.folder.glob(f"{SHEETS}[0-9][0-9][0-9]*.png"):
        if int(old.stem.removeprefix(SHEETS)) > n_sheets:
            old.unlink()


def _title(entry: Entry) -> str:
    return f"{entry.word} {entry.variant}".strip()
