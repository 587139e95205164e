"""Write an answer in the formats people asked for; refuse early what could not be written later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path, PurePath

from signspot.atomic import output_folder, refuse_existing
from signspot.domain.results import Spotting, VideoAnswer
from signspot.domain.tracks import Pixels
from signspot.domain.words import Vocabulary
from signspot.errors import InputError
from signspot.evaluation.overlap import SignSpan
from signspot.formats.bobsl import OFFSETS, SplitAnnotations, write_bobsl_spottings
from signspot.formats.captions import write_captions
from signspot.formats.challenge import write_challenge
from signspot.formats.corpus_source import TimedAnnotation
from signspot.formats.eaf import ElanDocument, ElanMedia, TierOptions, add_spottings, new_eaf, write_eaf
from signspot.formats.safe_json import write_json
from signspot.formats.tables import answer_record, write_spottings
from signspot.formats.via import write_via
from signspot.formats.vocabulary import ExternalVocabulary
from signspot.media.plot import SUFFIXES, plot_answer
from signspot.media.plot_presence import LagFigure, plot_lag
from signspot.media.reader import VideoReader
from signspot.media.writer import write_overlay
from signspot.spotting.subtitle_lag import SubtitleLag
from signspot.workflows.tracks import Progress


class Output(Enum):
    """A kind of output, by the ending its file has in a batch."""

    CSV = ".csv"
    JSON = ".json"
    JSONL = ".jsonl"
    PARQUET = ".parquet"
    VTT = ".vtt"
    SRT = ".srt"
    EAF = ".eaf"
    VIA = ".via.json"
    PLOT = ".png"
    VIDEO = ".overlay.mp4"
    BOBSL = ".bobsl.json"
    CHALLENGE = ".challenge.json"
    LAG = ".lag.png"


TABLES = frozenset({Output.CSV, Output.JSONL, Output.PARQUET})
SHARED = TABLES | {Output.JSON, Output.BOBSL, Output.CHALLENGE}  # one file for all videos of a batch
_ENDINGS = {  # programs tell these by their names
    kind: (kind.value,) for kind in (Output.CSV, Output.JSONL, Output.PARQUET, Output.VTT, Output.SRT, Output.EAF)
} | {Output.PLOT: SUFFIXES, Output.VIDEO: (".mp4",), Output.LAG: (".png",)}
_INPUT = "is an input and is never written to"


@dataclass(frozen=True, slots=True)
class Outputs:
    """Which files to write."""

    paths: Mapping[Output, Path] = field(default_factory=dict)
    overwrite: bool = False

    @property
    def tables(self) -> tuple[Path, ...]:
        """The outputs that hold all videos of a batch."""
        return tuple(path for kind, path in self.paths.items() if kind in TABLES)

    def for_video(self, video_id: str) -> Outputs:
        """The outputs of one video of a batch: each path but the shared ones is a folder with one file per video."""
        paths = {kind: folder / f"{video_id}{kind.value}" for kind, folder in self.paths.items() if kind not in SHARED}
        return Outputs(paths, self.overwrite)

    def make_folders(self, batch: tuple[str, ...]) -> None:
        """Create the folders that hold one file per video of a batch; they lie in folders as the videos do."""
        for kind, folder in self.paths.items():
            if kind not in SHARED:
                for place in dict.fromkeys((folder, *((folder / video_id).parent for video_id in batch))):
                    output_folder(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an output needs to know beside the answer."""

    video: Path
    now: datetime
    elan: ElanDocument | None = None  # add to this file instead of starting a new one
    elan_media: ElanMedia | None = None  # which of its linked videos was searched
    vocabulary: ExternalVocabulary | None = None
    isolated: bool = True
    progress: Progress | None = None
    lag: SubtitleLag | None = None  # of the signing behind its subtitles
    words: Vocabulary = Vocabulary(())  # whose places are the class numbers of the challenge
    record: Mapping[str, object] | None = None  # what JSON says; None: the answer alone


def check_outputs(outputs: Outputs, inputs: tuple[Path, ...], batch: tuple[str, ...] | None = None) -> None:
    """Refuse, before any work is done, outputs that exist, that stand for two things, or that are inputs.

    `batch` names the videos that each get a file of their own.
    """
    for video_id in batch or ():
        if PurePath(video_id).is_absolute() or ".." in PurePath(video_id).parts:
            raise InputError(video_id, "no output can be named after this video_id", "correct it in the list of videos")
    seen: set[Path] = set()
    given_files = {given.resolve() for given in inputs}
    for kind, path in outputs.paths.items():
        if path.resolve() in seen:
            raise InputError(path, "is named for two outputs", "give each output a name of its own")
        seen.add(path.resolve())
        # An ELAN file is the one thing people extend in place, and only when they say so.
        is_extended = kind is Output.EAF and path.suffix.lower() == Output.EAF.value
        if not is_extended and path.is_file() and any(_same(path, given) for given in inputs):
            raise InputError(path, _INPUT, "choose another name")
        if batch is None or kind in SHARED:
            _refuse_ending(kind, path)
            refuse_existing(path, overwrite=outputs.overwrite)
        else:
            _refuse_file(path)
            for existing in (path / f"{video_id}{kind.value}" for video_id in batch):
                if existing.resolve() in given_files:
                    raise InputError(existing, _INPUT, "choose another folder")
                if existing.exists():
                    refuse_existing(existing, overwrite=outputs.overwrite)


def _refuse_ending(kind: Output, path: Path) -> None:
    endings = _ENDINGS.get(kind)
    if endings is not None and path.suffix.lower() not in endings:
        what = f"is no name for the output --{kind.name.lower()}"
        raise InputError(path, what, f"use a name that ends in {' or '.join(endings)}")


def write_outputs(answer: VideoAnswer, outputs: Outputs, context: Context) -> tuple[str, ...]:
    """Write every output that was asked for, each whole or not at all; give what should be known about them."""
    spottings, overwrite = tuple(answer), outputs.overwrite
    warnings: tuple[str, ...] = ()
    for kind, path in outputs.paths.items():
        if kind in TABLES:
            write_spottings(spottings, path, overwrite=overwrite)
        elif kind is Output.JSON:
            write_json(context.record or answer_record(answer), path, overwrite=overwrite)
        elif kind is Output.VTT or kind is Output.SRT:
            write_captions(spottings, path, overwrite=overwrite)
        elif kind is Output.EAF:
            document = context.elan or new_eaf(context.video, path, date=context.now)
            options = TierOptions(vocabulary=context.vocabulary, media=context.elan_media)
            extended = add_spottings(document, spottings, options)
            write_eaf(extended, path, overwrite=overwrite)
            warnings += tuple(one for one in extended.warnings if one not in document.warnings)  # those are known
        elif kind is Output.VIA:
            write_via(spottings, {answer.video_id: context.video}, path, overwrite=overwrite)
        elif kind is Output.BOBSL or kind is Output.CHALLENGE:
            write_corpus_json(kind, spottings, context.words, path, overwrite=overwrite)
        elif kind is Output.LAG and context.lag is not None:
            lag = context.lag
            drawn = LagFigure(lag.times_ms, lag.lags_ms, lag.line_ms(lag.times_ms))
            plot_lag(drawn, answer.video_id, path, overwrite=overwrite)
        elif kind is Output.PLOT:
            plot_answer(answer, path, overwrite=overwrite)
        elif kind is Output.VIDEO:
            with VideoReader(context.video, isolated=context.isolated) as reader:
                write_overlay(_watched(reader, path, answer, context), answer, path, overwrite=overwrite)
    return warnings


def write_corpus_json(
    kind: Output, spottings: Sequence[Spotting], words: Vocabulary, path: Path, *, overwrite: bool = False
) -> None:
    """Findings of one or many videos as BOBSL publishes spottings, or as the 2022 challenge does.

    BOBSL's time is where the sign starts, as of its own dictionary spottings. A class of the challenge is the place of
    the word in the sorted vocabulary of the dictionary.
    """
    if kind is Output.BOBSL:
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
        write_bobsl_spottings(SplitAnnotations({"all": found}, OFFSETS), path, overwrite=overwrite)
        return
    spans: dict[str, list[SignSpan]] = {}
    for one in spottings:
        spans.setdefault(one.video_id, []).append(SignSpan(words.id_of(one.word), one.span_ms))
    write_challenge({video: tuple(signs) for video, signs in spans.items()}, path, overwrite=overwrite)


def _watched(reader: VideoReader, path: Path, answer: VideoAnswer, context: Context) -> Iterator[tuple[Pixels, float]]:
    for frame in reader:
        if context.progress is not None:
            context.progress(f"writing {path.name}", frame.time_ms, answer.duration_ms)
        yield frame.pixels, frame.time_ms


def _same(a: Path, b: Path) -> bool:
    return b.exists() and a.samefile(b)


def _refuse_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(folder, "is a file, but a folder of videos gives one output per video", "name a folder")
