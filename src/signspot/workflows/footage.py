"""Looking for one word in all videos of a source, and remembering what each finding looks like."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path

from signspot.domain.recordings import Entry, Episode, Rights, Subtitle
from signspot.domain.results import Provenance, Spotting, VideoAnswer, WordAnswer
from signspot.domain.time import MillisSpan
from signspot.domain.tracks import EmbeddingTrack, Pixels, SignerLandmarks
from signspot.domain.words import Word
from signspot.embedding.entries import opened_dictionary
from signspot.embedding.model import Model, Reading
from signspot.embedding.pictures import LONGEST_ENTRY_FRAMES
from signspot.embedding.zoo import ModelChoice, calibration_for, open_model
from signspot.errors import FormatError, InputError, Notice, VideoError, notify_left_out
from signspot.figures.sheets import SheetRow, contact_sheet, skeletons
from signspot.files.atomic import safe_name
from signspot.formats.pose import POSE_SUFFIX, read_pose
from signspot.media.frames import thumbnail, write_picture
from signspot.media.reader import VideoReader
from signspot.media.writer import LONGEST_MS, Cutting, cut_out
from signspot.spotting.peaks import Occurrence, occurrence
from signspot.spotting.search import Query, attributed
from signspot.stores.corpus import read_corpus
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
class SearchedVideo:
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
class FootageSearch:
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


def prepare_search(request: FootageRequest) -> FootageSearch:
    dictionary = opened_dictionary(request.dictionary, request.options.reading)
    episodes = _episodes(request)
    recordings = (*(episode.video for episode in episodes), *(entry.video for entry in dictionary))
    opened = open_model(request.model, recordings, request.options.reading)
    calibration = calibration_for(opened.model, request.calibration, opened.name)
    options = replace(request.options, reading=opened.reading, calibration=calibration)
    return FootageSearch(episodes, prepare([request.word], dictionary, opened.model, options), opened.model, options)


def search_footage(prepared: FootageSearch) -> Iterator[Finished[Episode, SearchedVideo]]:
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


def _searched(prepared: FootageSearch, episode: Episode) -> SearchedVideo:
    """Search the whole video, and name the subtitle of a finding that mentions the word within reach."""
    options, model, query = prepared.options, prepared.model, prepared.query
    read = model.track(episode, options.reading)
    found = answered(episode, read, query, model, options)
    cues, said = _cues(episode)
    mentions = () if cues is None else mentions_of(cues, query.dictionary.vocabulary, options).get(prepared.word, ())
    spottings = attributed(found.words[0].spottings, mentions, options.padding_ms)
    found = replace(found, words=(replace(found.words[0], spottings=spottings),), warnings=(*found.warnings, *said))
    return SearchedVideo(
        episode, found, tuple(occurrence(one, episode, read.track) for one in spottings), read.track,
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
class EvidenceOptions:
    """Where clips go, and who answers for them."""

    folder: Path  # exists
    today: date
    rights_cleared: bool = False  # the user may cut clips out of videos that say nothing about their rights
    context_ms: int = 200  # shown before and after the sign
    least_ms: int = 0  # of a clip: a shorter sign is shown with more around it
    reading: Reading = Reading()


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
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


def gather_evidence(occurrences: Sequence[Occurrence], options: EvidenceOptions) -> tuple[Evidence, ...]:
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
        report = partial(options.reading.progress, f"cutting clips out of {video.name}")
        pictures = cut_out(video, cuttings, isolated=options.reading.isolated, progress=report)
        for number, cutting, shown in zip(numbers, cuttings, pictures, strict=True):
            gathered[number] = _evidence(occurrences[number], cutting, shown, options)
    return tuple(gathered[number] for number in range(len(occurrences)))


def write_evidence_sheet(evidence: Sequence[Evidence], path: Path, titles: Sequence[str], *, overwrite: bool) -> bool:
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


def _cutting(one: Occurrence, number: int, options: EvidenceOptions) -> Cutting:
    span = one.spotting.span_ms
    span = MillisSpan.of(span.start, min(max(span.stop, span.start + 1), span.start + LONGEST_MS // 2))
    context = max(options.context_ms, -(-(options.least_ms - span.duration) // 2))
    span = span.padded(context, context)
    allowed = _may(one.episode.rights, "export_clips", options.today, rights_cleared=options.rights_cleared)
    return Cutting(span_ms=span, path=options.folder / _clip_name(one.spotting, number) if allowed else None)


def _evidence(one: Occurrence, cutting: Cutting, pictures: tuple[Pixels, ...], options: EvidenceOptions) -> Evidence:
    rights = one.episode.rights
    # Somebody's own footage may be looked at on their own screen unless its rights forbid it.
    shown = pictures if _may(rights, "display", options.today, rights_cleared=True) else ()
    withheld = ""
    if cutting.path is None:
        silent = rights.may_export_clips is None
        withheld = "its rights do not say that clips may be cut out" if silent else "its rights allow no clips"
    return Evidence(one, cutting.path, shown, withheld)


def _drawn(one: Occurrence, number: int, landmarks: SignerLandmarks, options: EvidenceOptions) -> Evidence:
    span = landmarks.track.axis.frames_in(_cutting(one, number, options).span_ms)
    is_allowed = _may(one.episode.rights, "display", options.today, rights_cleared=True)
    shown = tuple(skeletons(landmarks, span)) if is_allowed else ()
    return Evidence(one, None, shown, "its landmarks hold no pictures to cut out")


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
