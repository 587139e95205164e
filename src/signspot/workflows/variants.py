"""Which variant of a word people use, where and when, and what might be a variant that the dictionary does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np

from signspot.domain.recordings import Episode, Variant
from signspot.domain.results import Spotting, VideoAnswer, WordAnswer
from signspot.domain.time import MillisSpan, clock
from signspot.domain.tracks import EmbeddingTrack, FloatArray, unit
from signspot.domain.words import Word
from signspot.embedding.model import Reading
from signspot.figures.similarity import plot_answer
from signspot.files.atomic import new_folder, refuse_folder, safe_name
from signspot.files.tables import write_csv
from signspot.spotting.peaks import Occurrence, window_near
from signspot.spotting.variants import (
    RecurringWindow,
    VariantMatch,
    by_variant,
    clusters,
    recurring_windows,
    variant_at,
)
from signspot.stores.spottings import spotting_record, write_spottings
from signspot.workflows.batch import Finished
from signspot.workflows.footage import (
    Evidence,
    EvidenceOptions,
    FootageRequest,
    FootageSearch,
    SearchedVideo,
    gather_evidence,
    prepare_search,
    search_footage,
    write_evidence_sheet,
)

UNNAMED = "(no name)"  # of a variant that the dictionary does not tell from others


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantOptions:
    """What counts as a candidate for a new variant."""

    alike: float | None = None  # least mean cosine within a cluster; None: the threshold of the search
    fewest: int = 2  # occurrences in a cluster
    stride: int = 2  # frames between two windows that are compared with each other
    reach_ms: int = 2000  # looked at before and after a subtitle that mentions the word
    most_passages: int = 60  # compared with each other


@dataclass(frozen=True, slots=True, eq=False)
class VariantUse:
    """One occurrence and its variant."""

    occurrence: Occurrence
    match: VariantMatch
    region: str  # of the dictionary entry that looks most like it; "" where the dictionary does not say

    @property
    def spotting(self) -> Spotting:
        return self.occurrence.spotting


@dataclass(frozen=True, slots=True, eq=False)
class NewVariant:
    """Occurrences that look like each other and like no variant of the dictionary."""

    occurrences: tuple[Occurrence, ...]  # their cosine is that with the nearest known entry
    cosine: float  # mean within the cluster


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each variant is used by one signer, in one video, ..."""

    group: str
    counts: tuple[int, ...]  # in the order of the variants


@dataclass(frozen=True, slots=True, eq=False)
class VariantReport:
    """Everything that was found about the variants of a word."""

    word: Word
    variants: tuple[Variant, ...]
    uses: tuple[VariantUse, ...]
    candidates: tuple[NewVariant, ...]
    answers: tuple[VideoAnswer, ...]  # with one column for each variant, for the curves
    failures: tuple[Finished[Episode, SearchedVideo], ...]
    n_unexplained: int | None  # passages that mention the word in which no variant was found; None: no subtitles

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(variant.name or UNNAMED for variant in self.variants)

    def tally(self, group: Callable[[VariantUse], str]) -> tuple[Tally, ...]:
        order = [variant.name for variant in self.variants]
        counted: dict[str, Counter[str]] = {}
        for use in self.uses:
            counted.setdefault(group(use), Counter())[use.match.variant] += 1
        return tuple(Tally(name, tuple(counted[name][variant] for variant in order)) for name in sorted(counted))


def _video_of(use: VariantUse) -> str:
    return use.spotting.video_id


def _signer_of(use: VariantUse) -> str:
    return use.occurrence.episode.signer or "(not known)"


def _minute_of(use: VariantUse) -> str:
    return f"minute {use.spotting.span_ms.start // 60_000:04}"


GROUPS: Mapping[str, Callable[[VariantUse], str]] = {
    "video": _video_of,
    "signer": _signer_of,
    "region": lambda use: use.region or "(not said)",  # of the form: nothing is known about the signer's own
    "time": _minute_of,
}


def find_variants(request: FootageRequest, options: VariantOptions = VariantOptions()) -> VariantReport:
    prepared = prepare_search(request)
    searched: list[SearchedVideo] = []
    failures: list[Finished[Episode, SearchedVideo]] = []
    for outcome in search_footage(prepared):
        if outcome.result is None:
            failures.append(outcome)
        else:
            searched.append(outcome.result)
    gaps = [gap for video in searched for gap in _unexplained(video, options)]
    has_subtitles = any(video.mentions is not None for video in searched)
    return VariantReport(
        prepared.word, prepared.query.dictionary.variants(prepared.word),
        tuple(use for video in searched for use in _uses(video)), _candidates(gaps, searched, prepared, options),
        tuple(map(_answer, searched)), tuple(failures), len(gaps) if has_subtitles else None,
    )  # fmt: skip


def _uses(video: SearchedVideo) -> list[VariantUse]:
    variants = by_variant(video.answer.similarity)
    regions = {entry.entry_id: entry.region for entry in video.answer.similarity.entries}
    return [
        VariantUse(
            one,
            variant_at(variants, window_near(variants.grid, one.spotting.frame)),
            regions.get(one.spotting.entry_id, ""),
        )
        for one in video.occurrences
    ]


def _answer(video: SearchedVideo) -> VideoAnswer:
    curves = by_variant(video.answer.similarity)
    stands_for = {entry.variant: entry.entry_id for entry in curves.entries}
    shown = tuple(_named_by_variant(one, stands_for) for one in video.answer.spottings)
    return replace(video.found, words=(WordAnswer(curves, shown),), warnings=())


def _named_by_variant(spotting: Spotting, stands_for: dict[str, str]) -> Spotting:
    return replace(spotting, entry_id=stands_for[spotting.variant])


@dataclass(frozen=True, slots=True, eq=False)
class _Gap:
    """A passage that mentions the word without any known variant in it."""

    video: SearchedVideo
    windows: tuple[int, ...]  # of the track
    vectors: FloatArray  # (n, d) unit rows


def _unexplained(video: SearchedVideo, options: VariantOptions) -> list[_Gap]:
    spans = [span.padded(options.reach_ms, options.reach_ms) for span in video.mentions or ()]
    found = [one.span_ms for one in video.answer.spottings]
    return [_gap(video, span, options) for span in spans if not any(span.overlaps(other) for other in found)]


def _gap(video: SearchedVideo, span: MillisSpan, options: VariantOptions) -> _Gap:
    windows, vectors = _windows_in(video.track, span, options.stride)
    return _Gap(video, windows, vectors)


def _windows_in(track: EmbeddingTrack, span: MillisSpan, stride: int) -> tuple[tuple[int, ...], FloatArray]:
    """The windows whose centre lies in a span, every `stride`-th, and their vectors."""
    grid = track.grid
    centres = np.minimum(grid.starts() + grid.length // 2, grid.n_frames - 1)
    times = track.axis.times_ms[centres]
    windows = np.flatnonzero((times >= span.start) & (times < span.stop))[::stride]
    return tuple(windows.tolist()), unit(np.asarray(track.vectors[windows], np.float32))


def _candidates(
    gaps: Sequence[_Gap], searched: Sequence[SearchedVideo], prepared: FootageSearch, options: VariantOptions
) -> tuple[NewVariant, ...]:
    """What recurs in passages that mention the word, where no known variant is, sorted into clusters."""
    gaps = [gap for gap in gaps if len(gap.windows)][: options.most_passages]
    background = [
        _windows_in(video.track, span.padded(options.reach_ms, options.reach_ms), options.stride)[1]
        for video in searched
        for span in video.silent[: options.most_passages]
    ][: options.most_passages]
    recurring = recurring_windows([gap.vectors for gap in gaps], background)
    if not recurring:
        return ()
    vectors = np.stack([gaps[one.passage].vectors[one.window] for one in recurring])
    least = prepared.threshold if options.alike is None else options.alike
    made: list[NewVariant] = []
    for group in clusters(vectors, least):
        if len(group) < options.fewest:
            continue
        cosine = vectors[list(group)] @ vectors[list(group)].T
        mean = float((cosine.sum() - np.trace(cosine)) / (len(group) * (len(group) - 1)))
        made.append(NewVariant(tuple(_new_occurrence(gaps, recurring[at], prepared) for at in group), mean))
    return tuple(made)


def _new_occurrence(gaps: Sequence[_Gap], one: RecurringWindow, prepared: FootageSearch) -> Occurrence:
    """A window as a finding of the word, with the cosine of the known entry that comes nearest."""
    gap = gaps[one.passage]
    window, similarity = gap.windows[one.window], gap.video.answer.similarity
    nearest = int(similarity.cosine[window].argmax())
    spotting = Spotting(
        video_id=gap.video.episode.video_id, span_ms=similarity.axis.millis_of(similarity.grid.span(window)),
        frame=similarity.grid.centre(window), word=prepared.word, entry_id=similarity.entries[nearest].entry_id,
        cosine=float(similarity.cosine[window, nearest]), provenance=replace(gap.video.provenance, source="read"),
    )  # fmt: skip
    return Occurrence(spotting, gap.video.episode, gap.vectors[one.window])


# What people look at after a search for variants: tables, curves over time, and clips to judge by.
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
    reading: Reading = Reading()
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


def write_variants(report: VariantReport, files: VariantFiles) -> tuple[Path, ...]:
    """Write everything into a new folder, whole or not at all."""
    rows = _rows(report)
    with new_folder(files.out, _OWN_FILES, overwrite=files.overwrite) as folder:
        (folder / CLIPS).mkdir()
        options = EvidenceOptions(
            folder=folder / CLIPS, today=files.today, rights_cleared=files.rights_cleared, reading=files.reading
        )
        evidence = gather_evidence([row.occurrence for row in rows], options)
        write_spottings((use.spotting for use in report.uses), folder / SPOTTINGS)
        cells = [_cells(row, one, folder) for row, one in zip(rows, evidence, strict=True)]
        write_csv(_HEADER, cells, folder / OCCURRENCES)
        write_csv(("group", "name", *report.names), _tally_cells(report), folder / TALLIES)
        _write_curves(report, folder / CURVES, files.reading)
        for name, wanted in ((SHEET, "variant"), (CANDIDATES, "candidate")):
            chosen = [(row, one) for row, one in zip(rows, evidence, strict=True) if row.group.startswith(wanted)]
            titles = [_title(row) for row, _ in chosen]
            write_evidence_sheet([one for _, one in chosen], folder / name, titles, overwrite=False)
    order = (SPOTTINGS, OCCURRENCES, TALLIES, SHEET, CANDIDATES, CURVES, CLIPS)
    return tuple(files.out / name for name in order if (files.out / name).exists())


def variant_record(report: VariantReport) -> dict[str, object]:
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
        row.group, row.variant, row.margin, f"{spotting.cosine:.4f}", spotting.video_id, clock(span.start, 3),
        clock(span.stop, 3), str(span.start), str(span.stop), one.occurrence.episode.signer, row.region,
        spotting.entry_id, one.clip.relative_to(folder).as_posix() if one.clip is not None else "", one.withheld,
        spotting.spotting_id,
    )  # fmt: skip


def _title(row: _Row) -> str:
    name = f"variant {row.variant}".strip() if row.group == "variant" else row.group
    return f"{name} {row.occurrence.spotting.cosine:.2f}"


def _tally_cells(report: VariantReport) -> list[Sequence[str]]:
    return [
        (title, tally.group, *map(str, tally.counts))
        for title, group in GROUPS.items()
        for tally in report.tally(group)
    ]


def _write_curves(report: VariantReport, folder: Path, reading: Reading) -> None:
    """One picture for each video in which the word was found, as the paper shows variants (Paper 4.4)."""
    folder.mkdir()
    shown = [answer for answer in report.answers if any(True for _ in answer)][:_MOST_CURVES]
    shown = shown or list(report.answers[:1])
    for number, answer in enumerate(shown, start=1):
        reading.progress("drawing curves", number, len(shown))
        plot_answer(answer, folder / f"{number:03}_{safe_name(answer.video_id)}.png")
