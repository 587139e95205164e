"""Write an answer in the formats people asked for; refuse early what could not be written later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path, PurePath

from signspot.domain.recordings import Entry, normalise
from signspot.domain.results import Provenance, Spotting, VideoAnswer
from signspot.domain.time import Progress, silent
from signspot.domain.tracks import Pixels
from signspot.embedding.model import Reading
from signspot.errors import FormatError, InputError
from signspot.evaluation.localisation import SignSpan
from signspot.figures.evaluation import LagFigure
from signspot.figures.overlay import write_overlay
from signspot.figures.similarity import SUFFIXES, plot_answer
from signspot.files.atomic import output_folder, refuse_existing, safe_name
from signspot.files.intake import bounded_lines, is_folder, open_text
from signspot.files.json import read_json, write_json
from signspot.formats.bobsl import OFFSETS, SplitAnnotations
from signspot.formats.captions import write_captions
from signspot.formats.challenge import write_challenge
from signspot.formats.elan import ElanDocument, ElanMedia, TierOptions, new_eaf
from signspot.formats.via import ViaSegment, read_via, write_via
from signspot.formats.vocabularies import ExternalVocabulary
from signspot.media.reader import VideoReader
from signspot.media.video import media_sha256
from signspot.spotting.annotate import SubtitleLag
from signspot.stores.corpus import TimedAnnotation, read_corpus
from signspot.stores.dictionary import read_dictionary
from signspot.stores.spottings import answer_record, read_spottings, spotting_record, write_spottings


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a format may need to know beside the findings."""

    videos: Mapping[str, Path] = field(default_factory=dict)  # by their ids
    answer: VideoAnswer | None = None  # what a search gave, with its curves
    now: datetime = field(default_factory=lambda: datetime.now(UTC).astimezone())
    elan: ElanDocument | None = None  # add to this file instead of starting a new one
    elan_media: ElanMedia | None = None  # which of its linked videos was searched
    vocabulary: ExternalVocabulary | None = None
    reading: Reading = Reading()
    lag: SubtitleLag | None = None  # of the signing behind its subtitles
    classes: Mapping[str, int] = field(default_factory=dict)  # the numbers of words, for the challenge
    record: object = None  # what JSON says; None: the answer, or a table of the findings
    overwrite: bool = False


_Writer = Callable[[Sequence[Spotting], Path, Context], tuple[str, ...] | None]  # gives what should be known


def _table(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    write_spottings(spottings, path, overwrite=context.overwrite)


def _json(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    if context.record is None and context.answer is None:
        _table(spottings, path, context)
    else:
        record = answer_record(_searched(spottings, context)) if context.record is None else context.record
        write_json(record, path, overwrite=context.overwrite)


def _captions(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    write_captions(spottings, path, overwrite=context.overwrite)


def _eaf(spottings: Sequence[Spotting], path: Path, context: Context) -> tuple[str, ...]:
    (video,) = context.videos.values()
    document = context.elan or new_eaf(video, path, date=context.now)
    options = TierOptions(vocabulary=context.vocabulary, media=context.elan_media)
    extended = document.add_spottings(spottings, options)
    extended.write(path, overwrite=context.overwrite)
    return tuple(one for one in extended.warnings if one not in document.warnings)  # those are known


def _via(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    write_via(spottings, context.videos, path, overwrite=context.overwrite)


def _bobsl(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    """As BOBSL publishes spottings: its time is where the sign starts, as of its own dictionary spottings."""
    found = tuple(
        TimedAnnotation(
            video_id=one.video_id,
            word=one.word,
            time_ms=max(0, one.span_ms.start),
            confidence=min(1.0, max(0.0, one.cosine if one.presence is None else one.presence.probability)),
            source="dictionary",
        )
        for one in spottings
    )
    SplitAnnotations({"all": found}, OFFSETS).write(path, overwrite=context.overwrite)


def _challenge(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    spans: dict[str, list[SignSpan]] = {}
    for one in spottings:
        spans.setdefault(one.video_id, []).append(SignSpan(context.classes[one.word], one.span_ms))
    write_challenge({video: tuple(signs) for video, signs in spans.items()}, path, overwrite=context.overwrite)


def _plot(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    plot_answer(_searched(spottings, context), path, overwrite=context.overwrite)


def _video(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    answer, (video,) = _searched(spottings, context), context.videos.values()
    with VideoReader(video, isolated=context.reading.isolated) as reader:

        def frames() -> Iterator[tuple[Pixels, float]]:
            for frame in reader:
                context.reading.progress(f"writing {path.name}", frame.time_ms, answer.duration_ms)
                yield frame.pixels, frame.time_ms

        write_overlay(frames(), answer, path, overwrite=context.overwrite)


def _lag(spottings: Sequence[Spotting], path: Path, context: Context) -> None:
    answer, lag = _searched(spottings, context), context.lag
    if lag is not None:
        drawn = LagFigure(lag.times_ms, lag.lags_ms, lag.line_ms(lag.times_ms))
        drawn.plot(answer.video_id, path, overwrite=context.overwrite)


def _searched(spottings: Sequence[Spotting], context: Context) -> VideoAnswer:
    if context.answer is None:
        raise ValueError(f"{len(spottings)} findings without the curves of a search")
    return context.answer


@dataclass(frozen=True, slots=True)
class _Format:
    """One kind of output."""

    ending: str  # of its file in a batch
    help: str
    write: _Writer
    names: tuple[str, ...] = ()  # how a file must end, because programs tell it by its name; empty: as one likes
    is_shared: bool = False  # one file for all videos of a batch
    is_of_one: bool = False  # a file cannot hold several videos
    needs_search: bool = False  # shows more than the findings, so results cannot be exported to it


_ELAN_HELP = "A new ELAN file (of a batch: a folder); give yours as VIDEO to add tiers to a copy."


class Output(Enum):
    """The table of formats: a new one is a row here, and an option of the commands that write it."""

    CSV = _Format(".csv", "Table for a spreadsheet.", _table, (".csv",), is_shared=True)
    JSON = _Format(".json", "JSON.", _json, is_shared=True)
    JSONL = _Format(".jsonl", "One JSON object per line.", _table, (".jsonl",), is_shared=True)
    PARQUET = _Format(".parquet", "Parquet table.", _table, (".parquet",), is_shared=True)
    VTT = _Format(".vtt", "WebVTT subtitles.", _captions, (".vtt",), is_of_one=True)
    SRT = _Format(".srt", "SubRip subtitles.", _captions, (".srt",), is_of_one=True)
    EAF = _Format(".eaf", _ELAN_HELP, _eaf, (".eaf",), is_of_one=True)
    VIA = _Format(".via.json", "VGG VIA 3 project.", _via)
    PLOT = _Format(".png", "Picture of the similarity over time.", _plot, SUFFIXES, is_of_one=True, needs_search=True)
    VIDEO = _Format(
        ".overlay.mp4", "Video with the curves moving along.", _video, (".mp4",), is_of_one=True, needs_search=True
    )
    BOBSL = _Format(".bobsl.json", "As BOBSL publishes spottings.", _bobsl, is_shared=True)
    CHALLENGE = _Format(".challenge.json", "As in the 2022 challenge.", _challenge, is_shared=True)
    LAG = _Format(
        ".lag.png", "Picture of the subtitles' lag and drift.", _lag, (".png",), is_of_one=True, needs_search=True
    )

    def write(self, spottings: Sequence[Spotting], path: Path, context: Context) -> tuple[str, ...]:
        """Write findings, whole or not at all; give what should be known about the file."""
        return self.value.write(spottings, path, context) or ()


# What needs nothing but the answer and is told by its name.
_BY_NAME = tuple(kind for kind in Output if kind not in {Output.VIDEO, Output.BOBSL, Output.CHALLENGE, Output.LAG})
_INPUT = "is an input and is never written to"


@dataclass(frozen=True, slots=True)
class Outputs:
    """Which files to write."""

    paths: Mapping[Output, Path] = field(default_factory=dict)
    overwrite: bool = False

    def for_video(self, video_id: str) -> Outputs:
        """The outputs of one video of a batch: each path but the shared ones is a folder with one file per video."""
        paths = {kind: folder / f"{video_id}{kind.value.ending}" for kind, folder in self._own.items()}
        return Outputs(paths, self.overwrite)

    def make_folders(self, batch: tuple[str, ...]) -> None:
        """Create the folders that hold one file per video of a batch; they lie in folders as the videos do."""
        for folder in self._own.values():
            for place in dict.fromkeys((folder, *((folder / video_id).parent for video_id in batch))):
                output_folder(place)

    @property
    def shared(self) -> dict[Output, Path]:
        return {kind: path for kind, path in self.paths.items() if kind.value.is_shared}

    @property
    def _own(self) -> dict[Output, Path]:
        return {kind: path for kind, path in self.paths.items() if not kind.value.is_shared}

    def check(self, inputs: tuple[Path, ...], batch: tuple[str, ...] | None = None) -> None:
        """Refuse, before any work is done, outputs that exist, that stand for two things, or that are inputs.

        `batch` names the videos that each get a file of their own.
        """
        for video_id in batch or ():
            if PurePath(video_id).is_absolute() or ".." in PurePath(video_id).parts:
                raise InputError(
                    video_id, "no output can be named after this video_id", "correct it in the list of videos"
                )
        seen: set[Path] = set()
        given_files = {given.resolve() for given in inputs}
        for kind, path in self.paths.items():
            if path.resolve() in seen:
                raise InputError(path, "is named for two outputs", "give each output a name of its own")
            seen.add(path.resolve())
            # An ELAN file is the one thing people extend in place, and only when they say so.
            is_extended = kind is Output.EAF and path.suffix.lower() == Output.EAF.value.ending
            if not is_extended and path.is_file() and any(given.exists() and path.samefile(given) for given in inputs):
                raise InputError(path, _INPUT, "choose another name")
            if batch is None or kind.value.is_shared:
                _refuse_ending(kind, path)
                refuse_existing(path, overwrite=self.overwrite)
            else:
                if path.exists() and not path.is_dir():
                    raise InputError(
                        path, "is a file, but a folder of videos gives one output per video", "name a folder"
                    )
                for existing in (path / f"{video_id}{kind.value.ending}" for video_id in batch):
                    if existing.resolve() in given_files:
                        raise InputError(existing, _INPUT, "choose another folder")
                    if existing.exists():
                        refuse_existing(existing, overwrite=self.overwrite)


def _refuse_ending(kind: Output, path: Path) -> None:
    endings = kind.value.names
    if endings and path.suffix.lower() not in endings:
        what = f"is not a name for the output --{kind.name.lower()}"
        raise InputError(path, what, f"use a name that ends in {' or '.join(endings)}")


def write_answer(
    answer: VideoAnswer, path: Path | str, *, video: Path | str, overwrite: bool = False
) -> tuple[str, ...]:
    """Write what was found in a video as the name of the file says, and give what should be known about that file.

    ELAN (.eaf), captions (.vtt, .srt), tables (.csv, .jsonl, .parquet), .json, VGG VIA (.via.json), a plot (.png).
    """
    target, source = Path(path), Path(video)
    endings = {ending: kind for kind in _BY_NAME for ending in kind.value.names or (kind.value.ending,)}
    fitting = [ending for ending in endings if target.name.lower().endswith(ending)]
    if not fitting:
        raise InputError(target, "its name tells no format", f"use a name that ends in {' or '.join(endings)}")
    outputs = Outputs({endings[max(fitting, key=len)]: target}, overwrite)
    outputs.check((source,))
    return write_outputs(answer, outputs, Context(videos={answer.video_id: source}, now=datetime.now(UTC)))


def write_outputs(answer: VideoAnswer, outputs: Outputs, context: Context) -> tuple[str, ...]:
    """Write every output that was asked for, each whole or not at all; give what should be known about them."""
    context, found = replace(context, answer=answer, overwrite=outputs.overwrite), tuple(answer)
    return tuple(said for kind, path in outputs.paths.items() for said in kind.write(found, path, context))


# Results that were written in one format, in any other: tables, captions, ELAN, VIA, the spotting challenge.

_NAME_THEM = "say where they are with --videos"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Which results, and what to make of them."""

    results: Path  # a table of spottings (.csv, .json, .jsonl, .parquet) or a VIA project
    targets: Mapping[Output, Path]  # of several videos, captions and ELAN files go into a folder
    videos: Path | None = None  # a video, a folder or a list of videos: VIA and ELAN files name them
    classes: Path | None = None  # a text file, one word a line: the challenge numbers words by their line
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class _Exported:
    """What was written."""

    n_spottings: int
    n_videos: int
    written: tuple[Path, ...]
    classes: Mapping[str, int] = field(default_factory=dict)  # of the challenge
    warnings: tuple[str, ...] = ()


def _read_results(path: Path) -> Iterator[Spotting]:
    """The spottings of a result file of any kind that can be read, one at a time."""
    content = read_json(path) if path.suffix.lower() == ".json" else None
    if isinstance(content, dict) and {"project", "metadata", "view"} <= set(content):
        segments = read_via(path)
        stems = Counter(Path(file).stem for file in {segment.file for segment in segments})
        return (_of_segment(segment, is_alone=stems[Path(segment.file).stem] == 1) for segment in segments)
    return read_spottings(path)


def export(request: ExportRequest, progress: Progress = silent) -> _Exported:
    """Write the results in every format that was asked for, each file whole or not at all."""
    if not request.targets:
        raise InputError(request.results, "no format was asked for", "name an output, such as --eaf F.eaf")
    spottings = sorted(_read_results(request.results), key=lambda one: (one.video_id, one.span_ms, one.word))
    by_video: dict[str, list[Spotting]] = {}
    for one in spottings:
        by_video.setdefault(one.video_id, []).append(one)
    _refuse(request, by_video)
    videos = _videos(request, tuple(by_video))
    classes = _class_numbers(spottings, request.classes) if Output.CHALLENGE in request.targets else {}
    context = Context(videos=videos, classes=classes, overwrite=request.overwrite)
    written, warnings = list[Path](), list[str]()
    for number, (kind, path) in enumerate(request.targets.items()):
        progress("writing", number, len(request.targets))
        if not kind.value.is_of_one:
            warnings += kind.write(spottings, path, context)
            written.append(path)
            continue
        if len(by_video) != 1:
            output_folder(path)
        for video_id, file in _per_video_paths(kind, path, tuple(by_video)).items():
            own = {video_id: videos[video_id]} if video_id in videos else {}
            warnings += kind.write(by_video[video_id], file, replace(context, videos=own))
            written.append(file)
    return _Exported(len(spottings), len(by_video), tuple(written), classes, tuple(warnings))


def _of_segment(segment: ViaSegment, *, is_alone: bool) -> Spotting:
    """A segment of a VIA project: what it does not say stays empty."""
    text = segment.values.get("sign") or next(iter(segment.values.values()), "")
    try:
        word, cosine = normalise(text), float(segment.values.get("cosine") or 0)
    except ValueError as error:
        raise FormatError(segment.file, f"the segment {segment.segment_id[:40]!r}: {error}", "name its sign") from error
    return Spotting(
        video_id=Path(segment.file).stem if is_alone else Path(segment.file).name,
        span_ms=segment.span_ms,
        frame=(segment.span_ms.start + segment.span_ms.stop) // 80,
        word=word,
        entry_id="",
        cosine=max(-1.0, min(1.0, cosine)) if cosine == cosine else 0.0,
        provenance=Provenance(
            media_sha256="", model="", fingerprint="", dictionary="", source=segment.values.get("source") or "human"
        ),
    )


def _refuse(request: ExportRequest, by_video: Mapping[str, Sequence[Spotting]]) -> None:
    seen: set[Path] = set()
    for kind, path in request.targets.items():
        if path.resolve() in seen or path.resolve() == request.results.resolve():
            raise InputError(path, "is named twice, or is the input", "give each output a name of its own")
        seen.add(path.resolve())
        if kind.value.needs_search:
            raise InputError(path, "shows what only a search knows", f"use --{kind.name.lower()} of `signspot spot`")
        is_one_file = not kind.value.is_of_one or len(by_video) == 1
        if is_one_file:
            _refuse_ending(kind, path)
        elif path.exists() and not is_folder(path):
            raise InputError(path, "is a file, but several videos give one file each", "name a folder")
        for file in (path,) if is_one_file else _per_video_paths(kind, path, tuple(by_video)).values():
            if file.parent != path or path.exists():  # a folder that is made later holds nothing yet
                refuse_existing(file, overwrite=request.overwrite)


def _per_video_paths(kind: Output, path: Path, video_ids: Sequence[str]) -> dict[str, Path]:
    if len(video_ids) == 1:
        return {video_ids[0]: path}
    files = {video_id: path / f"{safe_name(video_id)}{kind.value.ending}" for video_id in video_ids}
    if len(set(files.values())) < len(files):
        raise InputError(path, "two videos would have files of the same name", "export them one after the other")
    return files


def _videos(request: ExportRequest, video_ids: Sequence[str]) -> dict[str, Path]:
    if not {Output.EAF, Output.VIA} & set(request.targets):
        return {}
    if request.videos is None:
        raise InputError(request.results, "ELAN files and VIA projects name the videos", _NAME_THEM)
    if is_folder(request.videos) or request.videos.suffix.lower() in (".csv", ".json"):
        known = {episode.video_id: episode.video for episode in read_corpus(request.videos).episodes}
        known |= {episode.stem: episode for episode in known.values() if episode.stem not in known}
    else:
        known = {request.videos.stem: request.videos}
        known |= {video_ids[0]: request.videos} if len(video_ids) == 1 else {}
    if missing := [video_id for video_id in video_ids if video_id not in known]:
        raise InputError(request.videos, f"has no video {missing[0][:80]!r}, which the results name", _NAME_THEM)
    return {video_id: known[video_id] for video_id in video_ids}


def _class_numbers(spottings: Sequence[Spotting], path: Path | None) -> dict[str, int]:
    """The number of each word: its line in a file, from 0, or else its place in the alphabet of the results."""
    if path is None:
        return {word: number for number, word in enumerate(sorted({one.word for one in spottings}))}
    with open_text(path) as file:
        lines = [line.strip() for line in bounded_lines(file, path)]
    try:
        numbers: dict[str, int] = {normalise(line): number for number, line in enumerate(lines) if line}
    except ValueError as error:
        raise FormatError(path, str(error), "one word a line") from error
    if missing := sorted({one.word for one in spottings} - set(numbers)):
        raise FormatError(path, f"has no line for {missing[0][:60]!r}, which was found", "add the word at the end")
    return numbers


# Who says so: everything a result rests on, and what else the same file says about that moment.

_PREFIX = "spot:"
_SHORTEST = 4  # characters of an id
_MOST_OTHERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyRequest:
    """Which result, and what to check it against."""

    results: Path
    spotting_id: str  # or its beginning
    video: Path | None = None  # is this the video that was searched?
    dictionary: Path | None = None  # what does it say about the entry?


@dataclass(frozen=True, slots=True)
class Why:
    """What a result rests on."""

    spotting: Spotting
    agreeing: tuple[Spotting, ...]  # other rows of the same word at the same time, such as a person's
    competing: tuple[Spotting, ...]  # rows of other words at the same time
    is_same_video: bool | None  # None: no video was given, or the result does not know its own
    entry: Entry | None  # None: no dictionary was given

    def as_json(self) -> dict[str, object]:
        entry, record = self.entry, None
        if entry is not None:
            record = {"entry_id": entry.entry_id, "word": entry.word, "variant": entry.variant}
            record |= {"video": str(entry.video or ""), "signer": entry.signer.signer_id if entry.signer else ""}
            record |= {"language": entry.language, "region": entry.region}
            record |= {"holder": entry.rights.holder, "licence": entry.rights.licence}
        return {
            "spotting": spotting_record(self.spotting),
            "agreeing": [spotting_record(one) for one in self.agreeing],
            "competing": [spotting_record(one) for one in self.competing],
            "is_same_video": self.is_same_video,
            "entry": record,
        }


def why(request: WhyRequest) -> Why:
    """Find a result by its id and gather what is known about it."""
    rows = list(_read_results(request.results))
    found = _found(rows, request)
    here = (one for one in rows if one is not found and one.video_id == found.video_id)
    at_once = [one for one in here if one.span_ms.overlaps(found.span_ms)]
    agreeing = tuple(one for one in at_once if one.word == found.word)[:_MOST_OTHERS]
    competing = tuple(one for one in at_once if one.word != found.word)[:_MOST_OTHERS]
    own, is_same_video = found.provenance.media_sha256, None
    if request.video is not None and own:
        is_same_video = media_sha256(request.video) == own
    return Why(found, agreeing, competing, is_same_video, _entry(found, request.dictionary))


def _found(rows: list[Spotting], request: WhyRequest) -> Spotting:
    wanted = request.spotting_id.strip().lower().removeprefix(_PREFIX)
    if len(wanted) < _SHORTEST:
        what = f"an id has at least {_SHORTEST} characters after 'spot:'"
        raise InputError(request.spotting_id, what, "copy it from the results")
    alike = [row for row in rows if row.spotting_id.removeprefix(_PREFIX).startswith(wanted)]
    matches = {row.spotting_id: row for row in reversed(alike)}
    if not matches:
        what = f"none of its {len(rows)} results has the id {request.spotting_id!r}"
        raise InputError(request.results, what, "copy the id from the column spotting_id")
    if len(matches) > 1:
        raise InputError(request.spotting_id, f"{len(matches)} results begin so", "give more characters of the id")
    return next(iter(matches.values()))


def _entry(found: Spotting, dictionary: Path | None) -> Entry | None:
    if dictionary is None:
        return None
    for entry in read_dictionary(dictionary).dictionary.entries(found.word):
        if entry.entry_id == found.entry_id:
            return entry
    what = f"has no entry {found.entry_id!r} of {found.word!r}"
    raise InputError(dictionary, what, "name the dictionary that the result was found with")
