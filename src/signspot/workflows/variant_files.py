"""What people look at after a search for variants: tables, curves over time, and clips to judge by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from signspot.formats.new_folder import new_folder, refuse_folder
from signspot.formats.spotting_rows import clock
from signspot.formats.spreadsheet import write_csv
from signspot.formats.tables import spotting_record, write_spottings
from signspot.media.plot import plot_answer
from signspot.spotting.occurrences import Occurrence
from signspot.workflows.evidence import Evidence, EvidenceOptions, gather_evidence, safe_name, write_evidence_sheet
from signspot.workflows.tracks import Progress
from signspot.workflows.variants import GROUPS, VariantReport

SPOTTINGS, OCCURRENCES, TALLIES = "spottings.csv", "occurrences.csv", "tallies.csv"
SHEET, CANDIDATES, CURVES, CLIPS = "variants.png", "candidates.png", "curves", "clips"
_OWN_FILES = frozenset((SPOTTINGS, OCCURRENCES, TALLIES, SHEET, CANDIDATES, CURVES, CLIPS))
_MOST_CURVES = 200  # videos
_MOST_CLIPS = 200  # of known variants
_HEADER = (
    "group", "variant", "margin", "cosine", "video_id", "start", "stop", "start_ms", "stop_ms", "signer", "region",
    "entry_id", "clip", "remark", "spotting_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class VariantFiles:
    """Where to write, and who answers for the clips."""

    out: Path
    today: date
    rights_cleared: bool = False
    isolated: bool = True
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    """One occurrence in the table of evidence."""

    group: str  # "variant", or "candidate 1", ...
    variant: str
    margin: str
    region: str
    occurrence: Occurrence


def refuse_variant_folder(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that exists, or that holds anything else, before any work is done."""
    refuse_folder(out, _OWN_FILES, overwrite=overwrite)


def write_variants(report: VariantReport, files: VariantFiles, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write everything into a new folder, whole or not at all."""
    rows = _rows(report)
    with new_folder(files.out, _OWN_FILES, overwrite=files.overwrite) as folder:
        (folder / CLIPS).mkdir()
        options = EvidenceOptions(
            folder=folder / CLIPS, today=files.today, rights_cleared=files.rights_cleared, isolated=files.isolated
        )
        evidence = gather_evidence([row.occurrence for row in rows], options, progress)
        write_spottings((use.spotting for use in report.uses), folder / SPOTTINGS)
        cells = [_cells(row, one, folder) for row, one in zip(rows, evidence, strict=True)]
        write_csv(_HEADER, cells, folder / OCCURRENCES)
        write_csv(("group", "name", *report.names), _tally_cells(report), folder / TALLIES)
        _write_curves(report, folder / CURVES, progress)
        for name, wanted in ((SHEET, "variant"), (CANDIDATES, "candidate")):
            chosen = [(row, one) for row, one in zip(rows, evidence, strict=True) if row.group.startswith(wanted)]
            titles = [_title(row) for row, _ in chosen]
            write_evidence_sheet([one for _, one in chosen], folder / name, titles, overwrite=False)
    order = (SPOTTINGS, OCCURRENCES, TALLIES, SHEET, CANDIDATES, CURVES, CLIPS)
    return tuple(files.out / name for name in order if (files.out / name).exists())


def variant_record(report: VariantReport) -> dict[str, object]:
    """For scripts."""
    return {
        "word": report.word,
        "variants": [variant.name for variant in report.variants],
        "occurrences": [
            spotting_record(use.spotting) | {"margin": use.match.margin, "region": use.region} for use in report.uses
        ],
        "tallies": {
            title: {tally.group: list(tally.counts) for tally in report.tally(group)} for title, group in GROUPS.items()
        },
        "candidates": [
            {
                "mean_cosine": candidate.cosine,
                "occurrences": [spotting_record(one.spotting) for one in candidate.occurrences],
            }
            for candidate in report.candidates
        ],
        "passages_without": report.n_unexplained,
        "failures": [str(failed.failure) for failed in report.failures],
        "warnings": list(report.warnings),
    }


def _rows(report: VariantReport) -> list[_Row]:
    """The surest occurrences of known variants, variant by variant, then the candidates."""
    uses = sorted(report.uses, key=lambda use: (use.match.variant, -use.spotting.cosine))[:_MOST_CLIPS]
    known = [
        _Row(
            "variant",
            use.match.variant,
            "" if use.match.margin is None else f"{use.match.margin:.4f}",
            use.region,
            use.occurrence,
        )
        for use in uses
    ]
    new = [
        _Row(f"candidate {number}", "", "", "", one)
        for number, candidate in enumerate(report.candidates, start=1)
        for one in candidate.occurrences
    ]
    return known + new


def _cells(row: _Row, one: Evidence, folder: Path) -> tuple[str, ...]:
    spotting = one.spotting
    span = spotting.span_ms
    return (
        row.group,
        row.variant,
        row.margin,
        f"{spotting.cosine:.4f}",
        spotting.video_id,
        clock(span.start),
        clock(span.stop),
        str(span.start),
        str(span.stop),
        one.occurrence.episode.signer,
        row.region,
        spotting.entry_id,
        one.clip.relative_to(folder).as_posix() if one.clip is not None else "",
        one.withheld,
        spotting.spotting_id,
    )


def _title(row: _Row) -> str:
    name = f"variant {row.variant}".strip() if row.group == "variant" else row.group
    return f"{name} {row.occurrence.spotting.cosine:.2f}"


def _tally_cells(report: VariantReport) -> list[Sequence[str]]:
    return [
        (title, tally.group, *map(str, tally.counts))
        for title, group in GROUPS.items()
        for tally in report.tally(group)
    ]


def _write_curves(report: VariantReport, folder: Path, progress: Progress | None) -> None:
    """One picture for each video in which the word was found, as the paper shows variants (Paper 4.4)."""
    folder.mkdir()
    shown = [answer for answer in report.answers if any(True for _ in answer)][:_MOST_CURVES]
    shown = shown or list(report.answers[:1])
    for number, answer in enumerate(shown, start=1):
        if progress is not None:
            progress("drawing curves", number, len(shown))
        plot_answer(answer, folder / f"{number:03}_{safe_name(answer.video_id)}.png")
