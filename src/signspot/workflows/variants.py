"""Which variant of a word people use, where and when, and what might be a variant that the dictionary does not have.

Looking for one word in all videos of a source, and remembering what each finding looks like.

New examples of a word out of footage, and those that a person accepts as new clips of a dictionary.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

import numpy as np

from signspot.domain.recordings import Dictionary, Entry, Episode, Rights, Signer, Subtitle, Variant, Word
from signspot.domain.results import Provenance, Spotting, VideoAnswer, WordAnswer, told_bands
from signspot.domain.time import FRAME_MS, MillisSpan, clock
from signspot.domain.tracks import CLIP_LENGTH, EmbeddingTrack, FloatArray, Pixels, SignerLandmarks, unit
from signspot.embedding.model import Model, Reading
from signspot.embedding.pictures import LONGEST_ENTRY_FRAMES
from signspot.embedding.zoo import ModelChoice, calibration_for, opened_dictionary
from signspot.errors import FormatError, InputError, Notice, VideoError, notify_left_out
from signspot.figures.sheets import SheetRow, contact_sheet, skeletons
from signspot.figures.similarity import plot_answer
from signspot.files.atomic import atomic_output, explained, new_folder, refuse_folder, safe_name
from signspot.files.tables import RIGHTS_FIELDS, Fields, Record, csv_records, rights_fields, write_csv
from signspot.formats.pose import POSE_SUFFIX, read_pose
from signspot.media.frames import thumbnail, write_picture
from signspot.media.reader import VideoReader
from signspot.media.video import media_sha256
from signspot.media.writer import LONGEST_MS, Cutting, cut_out
from signspot.spotting.peaks import Occurrence, window_near
from signspot.spotting.search import Query, attributed
from signspot.spotting.variants import (
    Diversity,
    RecurringWindow,
    VariantMatch,
    by_variant,
    clusters,
    diverse,
    recurring_windows,
    variant_at,
)
from signspot.stores.corpus import read_corpus
from signspot.stores.dictionary import add_entries, manifest_of, read_dictionary
from signspot.stores.spottings import spotting_record, write_spottings
from signspot.text.subtitles import read_subtitles
from signspot.workflows.batch import Finished, each
from signspot.workflows.spot import SpotOptions, answered, mentions_of, prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class FootageRequest:
    """One word, where to look for it, and with what."""

    source: Path  # a video, or a folder or list (.csv, .json) of videos
    word: str
    dictionary: Path
    model: ModelChoice = ModelChoice()
    subtitles: Path | None = None  # of a single video; a corpus knows its own
    calibration: Path | None = None  # None: the one that is kept for the model, if any
    options: SpotOptions = SpotOptions()


@dataclass(frozen=True, slots=True, eq=False)
class _SearchedVideo:
    """One video after the search."""

    episode: Episode
    found: VideoAnswer  # of the one word
    occurrences: tuple[Occurrence, ...]
    track: EmbeddingTrack
    provenance: Provenance
    mentions: tuple[MillisSpan, ...] | None  # subtitles that mention the word; None: there are no subtitles
    silent: tuple[MillisSpan, ...] = ()  # subtitles that do not

    @property
    def answer(self) -> WordAnswer:
        return self.found.words[0]


@dataclass(frozen=True, slots=True)
class _FootageSearch:
    """A request with everything looked up that all videos share."""

    episodes: tuple[Episode, ...]
    query: Query
    model: Model
    options: SpotOptions

    @property
    def word(self) -> Word:
        return self.query.words[0].word

    @property
    def threshold(self) -> float:
        return self.options.rule(self.model).threshold


def _prepare_search(request: FootageRequest) -> _FootageSearch:
    dictionary = opened_dictionary(request.dictionary, request.options.reading)
    episodes = _episodes(request)
    recordings = (*(episode.video for episode in episodes), *(entry.video for entry in dictionary))
    opened = request.model.open(recordings, request.options.reading)
    calibration = calibration_for(opened.model, request.calibration, opened.name)
    options = replace(request.options, reading=opened.reading, calibration=calibration)
    return _FootageSearch(episodes, prepare([request.word], dictionary, opened.model, options), opened.model, options)


def _search_footage(prepared: _FootageSearch) -> Iterator[Finished[Episode, _SearchedVideo]]:
    """Every video, one after the other; one that cannot be read is an outcome too, unless it is the only one."""
    for one in each(prepared.episodes, partial(_searched, prepared), lambda episode: episode.video):
        if one.failure is not None and len(prepared.episodes) == 1:
            raise one.failure
        if one.result is not None:
            for text in filter(None, (*one.result.found.warnings, one.result.found.partial)):
                prepared.options.reading.notify(Notice(one.item.video_id, text))
        yield one


def _episodes(request: FootageRequest) -> tuple[Episode, ...]:
    source = request.source
    if not (source.is_dir() or source.suffix.lower() in (".csv", ".json")):
        return (Episode(video_id=source.stem, video=source, subtitles=request.subtitles),)
    if request.subtitles is not None:
        raise InputError(request.subtitles, "a corpus knows its own subtitles", "leave --subtitles out")
    found = read_corpus(source)
    notify_left_out(found.problems, request.options.reading.notify)
    if not found.episodes:
        raise InputError(source, "holds no videos", "name a video, or a folder of videos")
    return found.episodes


def _searched(prepared: _FootageSearch, episode: Episode) -> _SearchedVideo:
    """Search the whole video, and name the subtitle of a finding that mentions the word within reach."""
    options, model, query = prepared.options, prepared.model, prepared.query
    read = model.track(episode, options.reading)
    found = answered(episode, read, query, model, options)
    cues, said = _cues(episode)
    mentions = () if cues is None else mentions_of(cues, query.dictionary.vocabulary, options).get(prepared.word, ())
    spottings = attributed(found.words[0].spottings, mentions, options.padding_ms)
    found = replace(found, words=(replace(found.words[0], spottings=spottings),), warnings=(*found.warnings, *said))
    return _SearchedVideo(
        episode, found, tuple(Occurrence.of(one, episode, read.track) for one in spottings), read.track,
        read.provenance(model.name, query.dictionary.name),
        None if cues is None else tuple(cue.span_ms for cue in mentions),
        tuple(cue.span_ms for cue in cues or () if cue not in mentions),
    )  # fmt: skip


def _cues(episode: Episode) -> tuple[tuple[Subtitle, ...] | None, tuple[str, ...]]:
    if episode.subtitles is None:
        return None, ()
    read = read_subtitles(episode.subtitles)
    return read.subtitles, read.in_short


# Clips and pictures of findings, cut out of the footage where its rights allow that.
#
# What nobody allowed is not exported: of a video whose rights do not say so, a clip is written only if the user
# vouches for it, and of one that forbids it, or whose rights have expired, never. The same holds for showing pictures.
MOST_ROWS = 50  # of a contact sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class _EvidenceOptions:
    """Where clips go, and who answers for them."""

    folder: Path  # exists
    today: date
    rights_cleared: bool = False  # the user may cut clips out of videos that say nothing about their rights
    context_ms: int = 200  # shown before and after the sign
    least_ms: int = 0  # of a clip: a shorter sign is shown with more around it
    reading: Reading = Reading()


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """A finding with what can be shown of it."""

    occurrence: Occurrence
    clip: Path | None  # None: its rights do not allow one, or there are no pictures
    pictures: tuple[Pixels, ...]  # (96, W, 3) uint8; none where it may not be shown
    withheld: str = ""  # why there is no clip

    @property
    def spotting(self) -> Spotting:
        return self.occurrence.spotting


def _may(rights: Rights, action: str, today: date, *, rights_cleared: bool) -> bool:
    """Whether `action` (display, export_clips) is allowed: said so, or not said and the user vouches for it."""
    is_silent = getattr(rights, f"may_{action}") is None and (rights.expires is None or today < rights.expires)
    return rights.allows(action, today) or (is_silent and rights_cleared)


def _gather_evidence(occurrences: Sequence[Occurrence], options: _EvidenceOptions) -> tuple[_Evidence, ...]:
    gathered: dict[int, _Evidence] = {}
    by_video: dict[Path, list[int]] = {}
    for number, one in enumerate(occurrences):
        by_video.setdefault(one.episode.video, []).append(number)
    for video, numbers in by_video.items():
        if video.suffix.lower() == POSE_SUFFIX:
            landmarks = read_pose(video)
            gathered |= {number: _drawn(occurrences[number], number, landmarks, options) for number in numbers}
            continue
        cuttings = [_cutting(occurrences[number], number, options) for number in numbers]
        report = partial(options.reading.progress, f"cutting clips out of {video.name}")
        pictures = cut_out(video, cuttings, isolated=options.reading.isolated, progress=report)
        for number, cutting, shown in zip(numbers, cuttings, pictures, strict=True):
            gathered[number] = _evidence(occurrences[number], cutting, shown, options)
    return tuple(gathered[number] for number in range(len(occurrences)))


def _write_evidence_sheet(evidence: Sequence[_Evidence], path: Path, titles: Sequence[str], *, overwrite: bool) -> bool:
    """A picture with a row for each of the first findings that may be shown; False if there is none."""
    rows = [SheetRow(title, one.pictures) for one, title in zip(evidence, titles, strict=True) if one.pictures]
    if rows:
        write_picture(contact_sheet(rows[:MOST_ROWS]), path, overwrite=overwrite)
    return bool(rows)


def _clip_name(spotting: Spotting, number: int) -> str:
    """A file name that sorts by rank, says what it is, and is the same for the same finding."""
    readable = safe_name(f"{spotting.word}_{Path(spotting.video_id).name}")
    digest = hashlib.sha256(spotting.spotting_id.encode()).hexdigest()[:6]
    return f"{number + 1:03}_{readable}_{spotting.span_ms.start}ms_{digest}.mp4"


def _cutting(one: Occurrence, number: int, options: _EvidenceOptions) -> Cutting:
    span = one.spotting.span_ms
    span = MillisSpan.of(span.start, min(max(span.stop, span.start + 1), span.start + LONGEST_MS // 2))
    context = max(options.context_ms, -(-(options.least_ms - span.duration) // 2))
    span = span.padded(context, context)
    allowed = _may(one.episode.rights, "export_clips", options.today, rights_cleared=options.rights_cleared)
    return Cutting(span_ms=span, path=options.folder / _clip_name(one.spotting, number) if allowed else None)


def _evidence(one: Occurrence, cutting: Cutting, pictures: tuple[Pixels, ...], options: _EvidenceOptions) -> _Evidence:
    rights = one.episode.rights
    # Somebody's own footage may be looked at on their own screen unless its rights forbid it.
    shown = pictures if _may(rights, "display", options.today, rights_cleared=True) else ()
    withheld = ""
    if cutting.path is None:
        silent = rights.may_export_clips is None
        withheld = "its rights do not say that clips may be cut out" if silent else "its rights allow no clips"
    return _Evidence(one, cutting.path, shown, withheld)


def _drawn(one: Occurrence, number: int, landmarks: SignerLandmarks, options: _EvidenceOptions) -> _Evidence:
    span = landmarks.track.axis.frames_in(_cutting(one, number, options).span_ms)
    is_allowed = _may(one.episode.rights, "display", options.today, rights_cleared=True)
    shown = tuple(skeletons(landmarks, span)) if is_allowed else ()
    return _Evidence(one, None, shown, "its landmarks hold no pictures to cut out")


# Small pictures of dictionary clips, for those that may be shown.


def entry_pictures(entry: Entry, today: date, reading: Reading = Reading()) -> tuple[Pixels, ...]:
    """The frames (96, W, 3) uint8 of a clip that show the sign, or its landmarks drawn; none if it may not be shown."""
    if entry.video is None or not _may(entry.rights, "display", today, rights_cleared=True):
        return ()
    try:
        if entry.video.suffix.lower() == POSE_SUFFIX:
            return tuple(skeletons(read_pose(entry.video), entry.kept))
        frames = _thumbnails(entry.video, reading)
    except (VideoError, FormatError):  # its vector may come from somewhere else, and a picture is not worth a failure
        return ()
    kept = entry.kept
    return tuple(frames if kept is None else frames[kept.start : kept.stop])


def _thumbnails(video: Path, reading: Reading) -> list[Pixels]:
    with VideoReader(video, isolated=reading.isolated) as reader:
        return [thumbnail(frame.pixels) for frame in islice(reader, LONGEST_ENTRY_FRAMES)]


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
class _VariantUse:
    """One occurrence and its variant."""

    occurrence: Occurrence
    match: VariantMatch
    region: str  # of the dictionary entry that looks most like it; "" where the dictionary does not say

    @property
    def spotting(self) -> Spotting:
        return self.occurrence.spotting


@dataclass(frozen=True, slots=True, eq=False)
class _NewVariant:
    """Occurrences that look like each other and like no variant of the dictionary."""

    occurrences: tuple[Occurrence, ...]  # their cosine is that with the nearest known entry
    cosine: float  # mean within the cluster


@dataclass(frozen=True, slots=True)
class _Tally:
    """How often each variant is used by one signer, in one video, ..."""

    group: str
    counts: tuple[int, ...]  # in the order of the variants


@dataclass(frozen=True, slots=True, eq=False)
class VariantReport:
    """Everything that was found about the variants of a word."""

    word: Word
    variants: tuple[Variant, ...]
    uses: tuple[_VariantUse, ...]
    candidates: tuple[_NewVariant, ...]
    answers: tuple[VideoAnswer, ...]  # with one column for each variant, for the curves
    failures: tuple[Finished[Episode, _SearchedVideo], ...]
    n_unexplained: int | None  # passages that mention the word in which no variant was found; None: no subtitles

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(variant.name or UNNAMED for variant in self.variants)

    def tally(self, group: Callable[[_VariantUse], str]) -> tuple[_Tally, ...]:
        order = [variant.name for variant in self.variants]
        counted: dict[str, Counter[str]] = {}
        for use in self.uses:
            counted.setdefault(group(use), Counter())[use.match.variant] += 1
        return tuple(_Tally(name, tuple(counted[name][variant] for variant in order)) for name in sorted(counted))

    def record(self) -> dict[str, object]:
        return {
            "word": self.word,
            "variants": [variant.name for variant in self.variants],
            "occurrences": [
                spotting_record(use.spotting) | {"margin": use.match.margin, "region": use.region} for use in self.uses
            ],
            "tallies": {
                title: {tally.group: list(tally.counts) for tally in self.tally(group)}
                for title, group in GROUPS.items()
            },
            "candidates": [
                {
                    "mean_cosine": candidate.cosine,
                    "occurrences": [spotting_record(one.spotting) for one in candidate.occurrences],
                }
                for candidate in self.candidates
            ],
            "passages_without": self.n_unexplained,
            "failures": [str(failed.failure) for failed in self.failures],
        }

    def write(self, files: VariantFiles) -> tuple[Path, ...]:
        """Write everything into a new folder, whole or not at all."""
        rows = _rows(self)
        with new_folder(files.out, _OWN_FILES, overwrite=files.overwrite) as folder:
            (folder / CLIPS).mkdir()
            options = _EvidenceOptions(
                folder=folder / CLIPS, today=files.today, rights_cleared=files.rights_cleared, reading=files.reading
            )
            evidence = _gather_evidence([row.occurrence for row in rows], options)
            write_spottings((use.spotting for use in self.uses), folder / SPOTTINGS)
            cells = [_cells(row, one, folder) for row, one in zip(rows, evidence, strict=True)]
            write_csv(_HEADER, cells, folder / OCCURRENCES)
            write_csv(("group", "name", *self.names), _tally_cells(self), folder / TALLIES)
            _write_curves(self, folder / CURVES, files.reading)
            for name, wanted in ((SHEET, "variant"), (CANDIDATES, "candidate")):
                chosen = [(row, one) for row, one in zip(rows, evidence, strict=True) if row.group.startswith(wanted)]
                titles = [_title(row) for row, _ in chosen]
                _write_evidence_sheet([one for _, one in chosen], folder / name, titles, overwrite=False)
        order = (SPOTTINGS, OCCURRENCES, TALLIES, SHEET, CANDIDATES, CURVES, CLIPS)
        return tuple(files.out / name for name in order if (files.out / name).exists())


def _video_of(use: _VariantUse) -> str:
    return use.spotting.video_id


def _signer_of(use: _VariantUse) -> str:
    return use.occurrence.episode.signer or "(not known)"


def _minute_of(use: _VariantUse) -> str:
    return f"minute {use.spotting.span_ms.start // 60_000:04}"


GROUPS: Mapping[str, Callable[[_VariantUse], str]] = {
    "video": _video_of,
    "signer": _signer_of,
    "region": lambda use: use.region or "(not said)",  # of the form: nothing is known about the signer's own
    "time": _minute_of,
}


def find_variants(request: FootageRequest, options: VariantOptions = VariantOptions()) -> VariantReport:
    prepared = _prepare_search(request)
    searched: list[_SearchedVideo] = []
    failures: list[Finished[Episode, _SearchedVideo]] = []
    for outcome in _search_footage(prepared):
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


def _uses(video: _SearchedVideo) -> list[_VariantUse]:
    variants = by_variant(video.answer.similarity)
    regions = {entry.entry_id: entry.region for entry in video.answer.similarity.entries}
    return [
        _VariantUse(
            one,
            variant_at(variants, window_near(variants.grid, one.spotting.frame)),
            regions.get(one.spotting.entry_id, ""),
        )
        for one in video.occurrences
    ]


def _answer(video: _SearchedVideo) -> VideoAnswer:
    curves = by_variant(video.answer.similarity)
    stands_for = {entry.variant: entry.entry_id for entry in curves.entries}
    shown = tuple(_named_by_variant(one, stands_for) for one in video.answer.spottings)
    return replace(video.found, words=(WordAnswer(curves, shown),), warnings=())


def _named_by_variant(spotting: Spotting, stands_for: dict[str, str]) -> Spotting:
    return replace(spotting, entry_id=stands_for[spotting.variant])


@dataclass(frozen=True, slots=True, eq=False)
class _Gap:
    """A passage that mentions the word without any known variant in it."""

    video: _SearchedVideo
    windows: tuple[int, ...]  # of the track
    vectors: FloatArray  # (n, d) unit rows


def _unexplained(video: _SearchedVideo, options: VariantOptions) -> list[_Gap]:
    spans = [span.padded(options.reach_ms, options.reach_ms) for span in video.mentions or ()]
    found = [one.span_ms for one in video.answer.spottings]
    return [_gap(video, span, options) for span in spans if not any(span.overlaps(other) for other in found)]


def _gap(video: _SearchedVideo, span: MillisSpan, options: VariantOptions) -> _Gap:
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
    gaps: Sequence[_Gap], searched: Sequence[_SearchedVideo], prepared: _FootageSearch, options: VariantOptions
) -> tuple[_NewVariant, ...]:
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
    made: list[_NewVariant] = []
    for group in clusters(vectors, least):
        if len(group) < options.fewest:
            continue
        cosine = vectors[list(group)] @ vectors[list(group)].T
        mean = float((cosine.sum() - np.trace(cosine)) / (len(group) * (len(group) - 1)))
        made.append(_NewVariant(tuple(_new_occurrence(gaps, recurring[at], prepared) for at in group), mean))
    return tuple(made)


def _new_occurrence(gaps: Sequence[_Gap], one: RecurringWindow, prepared: _FootageSearch) -> Occurrence:
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


def _cells(row: _Row, one: _Evidence, folder: Path) -> tuple[str, ...]:
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


_MINED_TABLE, _MINED_SHEET = "mined.csv", "mined.png"
MINED_FILES = frozenset((_MINED_TABLE, _MINED_SHEET, CLIPS))
_ADDED_TO = "mined"  # a folder of the dictionary


@dataclass(frozen=True, slots=True, kw_only=True)
class MineOptions:
    """How many examples, and where they go."""

    out: Path  # a new folder
    diversity: Diversity = Diversity()
    today: date
    rights_cleared: bool = False
    mentioned_only: bool = False  # only where a subtitle mentions the word
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Mined:
    """What was found and written."""

    word: Word
    examples: tuple[_MinedExample, ...]
    n_found: int  # before the choice
    n_videos: int
    failures: tuple[Finished[Episode, _SearchedVideo], ...]
    written: tuple[Path, ...]
    bands: str = ""  # how many of those found are likely, possible, unlikely

    def record(self) -> dict[str, object]:
        return {
            "word": self.word, "found": self.n_found, "videos": self.n_videos,
            "examples": [_example_record(example) for example in self.examples],
            "failures": [str(failed.failure) for failed in self.failures],
            "written": [str(path) for path in self.written],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Accepted:
    """What became of the rows that a person accepted."""

    manifest: Path
    added: tuple[Entry, ...]
    known: tuple[str, ...]  # clips that the dictionary has already
    n_undecided: int  # rows that nobody has looked at
    warnings: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        return {
            "manifest": str(self.manifest),
            "added": [entry.entry_id for entry in self.added],
            "known": list(self.known),
            "undecided": self.n_undecided,
            "warnings": list(self.warnings),
        }


def mine(request: FootageRequest, options: MineOptions) -> Mined:
    prepared = _prepare_search(request)
    found: list[Occurrence] = []
    failures: list[Finished[Episode, _SearchedVideo]] = []
    for outcome in _search_footage(prepared):
        if outcome.result is None:
            failures.append(outcome)
            continue
        found += _wanted(outcome.result, mentioned_only=options.mentioned_only)
    chosen = diverse(found, options.diversity)
    with new_folder(options.out, MINED_FILES, overwrite=options.overwrite) as folder:
        (folder / CLIPS).mkdir()
        where = _EvidenceOptions(
            folder=folder / CLIPS,
            today=options.today,
            rights_cleared=options.rights_cleared,
            context_ms=0,  # the clip will be a dictionary entry: nothing but the sign, and at least a window
            least_ms=CLIP_LENGTH * FRAME_MS,
            reading=request.options.reading,
        )
        evidence = _gather_evidence(chosen, where)
        examples = tuple(_example(one, rank, folder) for rank, one in enumerate(evidence, start=1))
        _write_mined(examples, folder / _MINED_TABLE)
        titles = [f"{one.rank} {one.video_id} {one.cosine:.2f}" for one in examples]
        has_sheet = _write_evidence_sheet(evidence, folder / _MINED_SHEET, titles, overwrite=False)
    written = (options.out / _MINED_TABLE, *((options.out / _MINED_SHEET,) if has_sheet else ()))
    bands = told_bands(one.spotting for one in found)
    return Mined(prepared.word, examples, len(found), len(prepared.episodes), tuple(failures), written, bands)


def _example_record(example: _MinedExample) -> dict[str, object]:
    left_out = ("accepted", "rights")
    return {name: value for name, value in asdict(example).items() if name not in left_out}


def _wanted(video: _SearchedVideo, *, mentioned_only: bool) -> Sequence[Occurrence]:
    if not mentioned_only:
        return video.occurrences
    return [one for one in video.occurrences if one.spotting.provenance.subtitle is not None]


def _example(one: _Evidence, rank: int, folder: Path) -> _MinedExample:
    spotting, episode = one.spotting, one.occurrence.episode
    return _MinedExample(
        word=spotting.word, file=one.clip.relative_to(folder).as_posix() if one.clip is not None else "", rank=rank,
        cosine=spotting.cosine, start_ms=spotting.span_ms.start, stop_ms=spotting.span_ms.stop,
        spotting_id=spotting.spotting_id, video_id=spotting.video_id, entry_id=spotting.entry_id,
        variant=spotting.variant, type_id=spotting.type_id, signer=episode.signer, language=episode.language,
        rights=episode.rights, remark=one.withheld,
    )  # fmt: skip


def accept_mined(table: Path, dictionary: Path) -> _Accepted:
    """Copy the clips of accepted rows into the dictionary's folder and list them as entries; nothing else changes."""
    rows = _read_mined(table)
    old, manifest = _before(dictionary), manifest_of(dictionary)
    own = {entry.entry_id for entry in old}
    added: list[Entry] = []
    known: list[str] = []
    for row in rows:
        if row.accepted is not True:
            continue
        clip = _clip(row, table)
        name = f"{_ADDED_TO}/{safe_name(row.word)}-{media_sha256(clip)[:16]}.mp4"
        if name in own:
            known.append(row.file)
            continue
        own.add(name)
        added.append(_entry(row, name, manifest.parent))
        _copy(clip, manifest.parent / PurePosixPath(name))
    if added:
        add_entries(dictionary, old, added)
    undecided = sum(row.accepted is None for row in rows)
    new_words = sorted({entry.word for entry in added} - set(old.by_word))
    warnings = tuple(f"{word}: the dictionary had no entry of this word" for word in new_words)
    return _Accepted(manifest, tuple(added), tuple(known), undecided, warnings)


def _before(dictionary: Path) -> Dictionary:
    """What a dictionary holds; of a plain folder, without the clips that a run left there when it was stopped."""
    found = read_dictionary(dictionary).dictionary
    if manifest_of(dictionary).exists():
        return found
    own = [entry for entry in found if not entry.entry_id.startswith(f"{_ADDED_TO}/")]
    return Dictionary.of(found.name, own, found.folder)


def _clip(row: _MinedExample, table: Path) -> Path:
    if not row.file:
        raise FormatError(table, f"row {row.rank} is accepted but has no clip", row.remark or "mine it again")
    path = table.parent / PurePosixPath(row.file.replace("\\", "/"))
    if ".." in path.parts[len(table.parent.parts) :] or PurePosixPath(row.file).is_absolute():
        raise FormatError(table, f"{row.file[:100]!r} does not lie beside the table", "correct the row")
    if not path.is_file() or path.suffix.lower() != ".mp4":
        raise InputError(path, "the clip of an accepted row is not there", "put it back, or mine it again")
    return path


def _entry(row: _MinedExample, name: str, folder: Path) -> Entry:
    return Entry(
        entry_id=name, word=row.word, variant=row.variant, video=folder / PurePosixPath(name),
        signer=Signer(row.signer) if row.signer else None, language=row.language, type_id=row.type_id,
        rights=row.rights,
    )  # fmt: skip


def _copy(clip: Path, target: Path) -> None:
    try:
        target.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise explained(error, target.parent) from error
    if target.exists() and _digest(target) == _digest(clip):  # of a run that was stopped before the list was written
        return
    with atomic_output(target) as temporary:
        shutil.copyfile(clip, temporary)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The table of mined examples: one row for each clip, with a column `accepted` for a person to fill in.
#
# Beside the clip stands all that is known about it, so that an accepted row becomes an entry of a dictionary later and
# on another machine, as long as the clip lies where the table says.
_TEXTS = ("spotting_id", "video_id", "entry_id", "variant", "type_id", "signer", "language", "remark")
_FIELDS = Fields(
    ("accepted", "word", "file"), ("rank", "start_ms", "stop_ms", "cosine", "word_language", *_TEXTS, *RIGHTS_FIELDS)
)
_COLUMNS = (
    "accepted", "rank", "word", "variant", "cosine", "file", "video_id", "start_ms", "stop_ms", "signer", "language",
    "entry_id", "type_id", "spotting_id", *RIGHTS_FIELDS, "remark",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _MinedExample:
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


def _write_mined(examples: Iterable[_MinedExample], path: Path, *, overwrite: bool = False) -> None:
    write_csv(_COLUMNS, (_mined_cells(example) for example in examples), path, overwrite=overwrite)


def _read_mined(path: Path) -> tuple[_MinedExample, ...]:
    """Read a table again, as a spreadsheet may have left it."""
    found: list[_MinedExample] = []
    records = csv_records(path, _FIELDS)
    serious = [problem for problem in records.problems if problem.severity == "warning"]
    if serious:
        raise FormatError(serious[0].where, serious[0].what, serious[0].fix)
    for row in records.rows:
        try:
            found.append(_example_of(row))
        except ValueError as error:
            raise FormatError(row.where, str(error), "correct the row") from error
    return tuple(found)


def _mined_cells(example: _MinedExample) -> list[str]:
    said = {True: "yes", False: "no", None: ""}
    values: dict[str, object] = {name: getattr(example, name) for name in _COLUMNS if hasattr(example, name)}
    rights = rights_fields(example.rights)
    values |= {name: said[value] if isinstance(value, bool) else value for name, value in rights.items()}
    values |= {"accepted": said[example.accepted], "cosine": f"{example.cosine:.4f}"}
    return [str(values.get(name, "")) for name in _COLUMNS]


def _example_of(row: Record) -> _MinedExample:
    rights, problems = row.rights()
    if problems:
        raise ValueError(problems[0].what)
    start, stop, rank, cosine = (row.number(name) or 0 for name in ("start_ms", "stop_ms", "rank", "cosine"))
    texts = {name: row.text(name) for name in _TEXTS}
    return _MinedExample(
        word=row.word(row.text("language")), file=row.text("file"), accepted=row.claim("accepted"), rank=int(rank),
        cosine=float(cosine), start_ms=int(start), stop_ms=int(stop), rights=rights, **texts,
    )  # fmt: skip
