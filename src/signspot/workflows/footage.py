"""Looking for one word in all videos of a source, and remembering what each finding looks like."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from pathlib import Path

from signspot.domain.landmarks import SignerLandmarks
from signspot.domain.recordings import Dictionary, Entry, Episode, Rights, Subtitle
from signspot.domain.results import Provenance, Spotting, WordAnswer
from signspot.domain.time import FRAME_MS, MediaProgress, MillisSpan, Progress
from signspot.domain.tracks import Embedder, EmbeddingTrack, Pixels
from signspot.domain.words import Vocabulary, Word
from signspot.embedding.entries import best_view
from signspot.embedding.model import LEFT_OUT, filed_under, store_at
from signspot.embedding.pictures import LONGEST_ENTRY_FRAMES, ExtractOptions, track_of
from signspot.embedding.zoo import chosen_model, kept_for, load_model
from signspot.errors import FormatError, InputError, SignspotError, VideoError, trouble_of
from signspot.figures.sheets import SheetRow, contact_sheet, skeletons
from signspot.files.atomic import safe_name
from signspot.formats.pose import POSE_SUFFIX, read_pose
from signspot.media.frames import thumbnail, write_picture
from signspot.media.reader import VideoReader
from signspot.media.writer import LONGEST_MS, Cutting, cut_out
from signspot.spotting.peaks import Occurrence, Refinement, occurrence, spottings_of
from signspot.spotting.similarity import similarity
from signspot.stores.corpus import read_corpus
from signspot.stores.dictionary import read_dictionary
from signspot.text.subtitles import read_subtitles
from signspot.text.words import find_words
from signspot.workflows.spot import Query, SpotOptions, prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class FootageRequest:
    """One word, where to look for it, and with what."""

    source: Path  # a video, or a folder or list (.csv, .json) of videos
    word: str
    dictionary: Path
    model: str = ""  # a name, or the path of a .safetensors file; "": what can see the videos and clips best
    backend: str = "auto"
    device: str = "cpu"
    subtitles: Path | None = None  # of a single video; a corpus knows its own
    options: SpotOptions = SpotOptions()


@dataclass(frozen=True, slots=True, eq=False)
class SearchedVideo:
    """One video after the search."""

    episode: Episode
    answer: WordAnswer
    occurrences: tuple[Occurrence, ...]
    track: EmbeddingTrack
    provenance: Provenance
    duration_ms: int
    mentions: tuple[MillisSpan, ...] | None  # subtitles that mention the word; None: there are no subtitles
    silent: tuple[MillisSpan, ...] = ()  # subtitles that do not
    partial: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedVideo:
    """A video that could not be searched."""

    episode: Episode
    failure: SignspotError


@dataclass(frozen=True, slots=True)
class Search:
    """A request with everything looked up that all videos share."""

    request: FootageRequest
    episodes: tuple[Episode, ...]
    dictionary: Dictionary
    query: Query
    model: Embedder
    threshold: float
    warnings: tuple[str, ...]

    @property
    def word(self) -> Word:
        """The word that is looked for."""
        return self.query.words[0].word


def prepare_search(request: FootageRequest, progress: Progress | None = None) -> Search:
    """Open model, dictionary and corpus, and embed the word's clips."""
    source = read_dictionary(request.dictionary)
    episodes, problems = _episodes(request)
    recordings = (*(episode.video for episode in episodes), *(entry.video for entry in source.dictionary))
    chosen = chosen_model(request.model, recordings)
    request = replace(request, options=replace(request.options, store=kept_for(chosen, request.options.store)))
    model = load_model(chosen.name, backend=request.backend, device=request.device)
    query = prepare([request.word], source.dictionary, model, request.options, progress)
    left_out = tuple(f"{LEFT_OUT}{problem}" for problem in source.problems if not problem.is_remark)
    threshold = model.threshold if request.options.threshold is None else request.options.threshold
    warnings = chosen.remarks + left_out + problems + query.warnings
    return Search(request, episodes, source.dictionary, query, model, threshold, warnings)


def search(prepared: Search, progress: Progress | None = None) -> Iterator[SearchedVideo | FailedVideo]:
    """Every video, one after the other; one that cannot be read is an outcome too, unless it is the only one."""
    for episode in prepared.episodes:
        try:
            yield _searched(episode, prepared, progress)
        except (SignspotError, ValueError) as error:
            if len(prepared.episodes) == 1:
                raise
            yield FailedVideo(episode, trouble_of(episode.video, error))


def _episodes(request: FootageRequest) -> tuple[tuple[Episode, ...], tuple[str, ...]]:
    source = request.source
    if not (source.is_dir() or source.suffix.lower() in (".csv", ".json")):
        return (Episode(video_id=source.stem, video=source, subtitles=request.subtitles),), ()
    if request.subtitles is not None:
        raise InputError(request.subtitles, "a corpus knows its own subtitles", "leave --subtitles out")
    found = read_corpus(source)
    problems = tuple(f"left out: {problem}" for problem in found.problems if not problem.is_remark)
    if not found.episodes:
        raise InputError(source, "holds no videos", "name a video, or a folder of videos")
    return found.episodes, problems


def _searched(episode: Episode, prepared: Search, progress: Progress | None) -> SearchedVideo:
    options = prepared.request.options
    with store_at(options.store) as store:
        extract = ExtractOptions(stride=options.stride, isolated=options.isolated, box=options.box)
        read = track_of(episode, prepared.model, store=store, options=extract, progress=progress)
    compared = best_view(similarity(read.track, prepared.query.words[0]), prepared.query.n_views)
    provenance = Provenance(
        media_sha256=read.media_sha256,
        model=prepared.model.name,
        fingerprint=filed_under(prepared.model.fingerprint, read.box),
        dictionary=prepared.dictionary.name,
    )
    cues, warnings = _cues(episode)
    mentions = None if cues is None else _mentioning(cues, prepared)
    found = tuple(
        replace(one, provenance=replace(provenance, subtitle=_cue_at(one.span_ms, mentions)))
        for one in spottings_of(compared, prepared.threshold, provenance, Refinement() if options.refine else None)
    )
    return SearchedVideo(
        episode,
        WordAnswer(compared, found),
        tuple(occurrence(one, episode, read.track) for one in found),
        read.track,
        provenance,
        round(read.track.axis.time_of(-1)) + FRAME_MS,
        None if mentions is None else tuple(cue.span_ms for cue in mentions),
        tuple(cue.span_ms for cue in cues or () if cue not in (mentions or ())),
        read.remarks.partial,
        read.remarks.warnings + warnings,
    )


def _cues(episode: Episode) -> tuple[tuple[Subtitle, ...] | None, tuple[str, ...]]:
    if episode.subtitles is None:
        return None, ()
    read = read_subtitles(episode.subtitles)
    return read.subtitles, read.in_short


def _mentioning(cues: tuple[Subtitle, ...], prepared: Search) -> tuple[Subtitle, ...]:
    """The subtitles that mention the word. All words of the dictionary compete: "ice cream" is no mention of cream."""
    vocabulary: Vocabulary = prepared.dictionary.vocabulary
    language = prepared.request.options.language
    return tuple(
        cue for cue in cues if any(m.word == prepared.word for m in find_words(cue.text, vocabulary, language))
    )


def _cue_at(span: MillisSpan, mentions: tuple[Subtitle, ...] | None) -> Subtitle | None:
    """The subtitle within reach of a finding that mentions its word, the nearest of several."""
    reach = SpotOptions().padding_ms
    near = [cue for cue in mentions or () if cue.span_ms.padded(reach, reach).overlaps(span)]
    middle = span.start + span.stop
    return min(near, key=lambda cue: abs(cue.span_ms.start + cue.span_ms.stop - middle), default=None)


# Clips and pictures of findings, cut out of the footage where its rights allow that.
#
# What nobody allowed is not exported: of a video whose rights do not say so, a clip is written only if the user
# vouches for it, and of one that forbids it, or whose rights have expired, never. The same holds for showing pictures.


MOST_ROWS = 50  # of a contact sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceOptions:
    """Where clips go, and who answers for them."""

    folder: Path  # exists
    today: date
    rights_cleared: bool = False  # the user may cut clips out of videos that say nothing about their rights
    context_ms: int = 200  # shown before and after the sign
    least_ms: int = 0  # of a clip: a shorter sign is shown with more around it
    isolated: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A finding with what can be shown of it."""

    occurrence: Occurrence
    clip: Path | None  # None: its rights do not allow one, or there are no pictures
    pictures: tuple[Pixels, ...]  # (96, W, 3) uint8; none where it may not be shown
    withheld: str = ""  # why there is no clip

    @property
    def spotting(self) -> Spotting:
        """What was found."""
        return self.occurrence.spotting


def may(rights: Rights, action: str, today: date, *, rights_cleared: bool) -> bool:
    """Whether `action` (display, export_clips) is allowed: said so, or not said and the user vouches for it."""
    is_silent = getattr(rights, f"may_{action}") is None and (rights.expires is None or today < rights.expires)
    return rights.allows(action, today) or (is_silent and rights_cleared)


def gather_evidence(
    occurrences: Sequence[Occurrence], options: EvidenceOptions, progress: Progress | None = None
) -> tuple[Evidence, ...]:
    """Cut out every finding, each video read once; the order stays."""
    gathered: dict[int, Evidence] = {}
    by_video: dict[Path, list[int]] = {}
    for number, one in enumerate(occurrences):
        by_video.setdefault(one.episode.video, []).append(number)
    for video, numbers in by_video.items():
        if video.suffix.lower() == POSE_SUFFIX:
            landmarks = read_pose(video)
            gathered |= {number: _drawn(occurrences[number], number, landmarks, options) for number in numbers}
            continue
        cuttings = [_cutting(occurrences[number], number, options) for number in numbers]
        report = _reported(f"cutting clips out of {video.name}", progress)
        pictures = cut_out(video, cuttings, isolated=options.isolated, progress=report)
        for number, cutting, shown in zip(numbers, cuttings, pictures, strict=True):
            gathered[number] = _evidence(occurrences[number], cutting, shown, options)
    return tuple(gathered[number] for number in range(len(occurrences)))


def write_evidence_sheet(evidence: Sequence[Evidence], path: Path, titles: Sequence[str], *, overwrite: bool) -> bool:
    """A picture with a row for each of the first findings that may be shown; False if there is none."""
    rows = [SheetRow(title, one.pictures) for one, title in zip(evidence, titles, strict=True) if one.pictures][
        :MOST_ROWS
    ]
    if rows:
        write_picture(contact_sheet(rows), path, overwrite=overwrite)
    return bool(rows)


def clip_name(spotting: Spotting, number: int) -> str:
    """A file name that sorts by rank, says what it is, and is the same for the same finding."""
    readable = safe_name(f"{spotting.word}_{Path(spotting.video_id).name}")
    digest = hashlib.sha256(spotting.spotting_id.encode()).hexdigest()[:6]
    return f"{number + 1:03}_{readable}_{spotting.span_ms.start}ms_{digest}.mp4"


def _cutting(one: Occurrence, number: int, options: EvidenceOptions) -> Cutting:
    span = one.spotting.span_ms
    span = MillisSpan.of(span.start, min(max(span.stop, span.start + 1), span.start + LONGEST_MS // 2))
    context = max(options.context_ms, -(-(options.least_ms - span.duration) // 2))
    span = span.padded(context, context)
    allowed = may(one.episode.rights, "export_clips", options.today, rights_cleared=options.rights_cleared)
    return Cutting(span_ms=span, path=options.folder / clip_name(one.spotting, number) if allowed else None)


def _evidence(one: Occurrence, cutting: Cutting, pictures: tuple[Pixels, ...], options: EvidenceOptions) -> Evidence:
    rights = one.episode.rights
    # Somebody's own footage may be looked at on their own screen unless its rights forbid it.
    shown = pictures if may(rights, "display", options.today, rights_cleared=True) else ()
    withheld = ""
    if cutting.path is None:
        silent = rights.may_export_clips is None
        withheld = "its rights do not say that clips may be cut out" if silent else "its rights allow no clips"
    return Evidence(one, cutting.path, shown, withheld)


def _drawn(one: Occurrence, number: int, landmarks: SignerLandmarks, options: EvidenceOptions) -> Evidence:
    """What can be shown of landmarks that stand for a video."""
    span = landmarks.track.axis.frames_in(_cutting(one, number, options).span_ms)
    is_allowed = may(one.episode.rights, "display", options.today, rights_cleared=True)
    shown = tuple(skeletons(landmarks, span)) if is_allowed else ()
    return Evidence(one, None, shown, "its landmarks hold no pictures to cut out")


def _reported(step: str, progress: Progress | None) -> MediaProgress:
    def report(done_ms: float, expected_ms: float | None) -> None:
        if progress is not None:
            progress(step, done_ms, expected_ms)

    return report


# Small pictures of dictionary clips, for those that may be shown.


def entry_pictures(entry: Entry, today: date, *, isolated: bool = True) -> tuple[Pixels, ...]:
    """The frames (96, W, 3) uint8 of a clip that show the sign, or its landmarks drawn; none if it may not be shown."""
    if entry.video is None or not may(entry.rights, "display", today, rights_cleared=True):
        return ()
    try:
        if entry.video.suffix.lower() == POSE_SUFFIX:
            return tuple(skeletons(read_pose(entry.video), entry.kept))
        frames = _thumbnails(entry.video, isolated=isolated)
    except (VideoError, FormatError):  # its vector may come from somewhere else, and a picture is not worth a failure
        return ()
    kept = entry.kept
    return tuple(frames if kept is None else frames[kept.start : kept.stop])


def _thumbnails(video: Path, *, isolated: bool) -> list[Pixels]:
    with VideoReader(video, isolated=isolated) as reader:
        return [thumbnail(frame.pixels) for frame in islice(reader, LONGEST_ENTRY_FRAMES)]
