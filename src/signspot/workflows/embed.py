"""Compute the vectors of videos once, so that later questions are answered at once.

Body and hands of videos as .pose files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from signspot.domain.recordings import Episode
from signspot.embedding.detector import detector_name
from signspot.embedding.landmarks import VideoLandmarks, detected
from signspot.embedding.model import Model, Reading, VideoTrack
from signspot.embedding.zoo import ModelChoice, OpenedModel
from signspot.errors import InputError
from signspot.files.atomic import output_folder, refuse_existing
from signspot.files.intake import has_twin
from signspot.formats.pose import POSE_SUFFIX, write_pose
from signspot.interrupts import at_interruption
from signspot.stores.corpus import read_sources
from signspot.workflows.batch import Engine, FailureList, Finished, Work, each


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest:
    """Which videos, and by which model; the reading has a store."""

    sources: tuple[Path, ...]  # videos, and folders of videos
    model: ModelChoice = ModelChoice()
    reading: Reading
    jobs: int = 1
    failures: Path = Path("failures.jsonl")


@dataclass(frozen=True, slots=True)
class _EmbeddedVideo:
    """The size of a track that is now in the store."""

    n_windows: int
    was_stored: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Embedding:
    """The model, and what becomes of each video."""

    model: Model
    outcomes: Iterator[Finished[Episode, _EmbeddedVideo]]


def embed_files(request: EmbedRequest) -> _Embedding:
    """Fill the store with the vectors of videos and folders of videos; those that are there cost nothing."""
    episodes = read_sources(request.sources, request.reading.notify)
    opened = request.model.open((episode.video for episode in episodes), request.reading)
    # A store that the user named is used, whatever the model.
    opened = replace(opened, reading=replace(opened.reading, store=request.reading.store))
    FailureList(request.failures).refuse_foreign()
    return _Embedding(opened.model, _outcomes(episodes, opened, request))


def _outcomes(
    episodes: tuple[Episode, ...], opened: OpenedModel, request: EmbedRequest
) -> Iterator[Finished[Episode, _EmbeddedVideo]]:
    choice, reading = replace(request.model, name=opened.name), opened.reading.quiet()
    engine = Engine(request.jobs, partial(_start, choice, reading))
    report = partial(request.reading.progress, "embedding videos")
    outcomes = each(episodes, _work(opened), _video, engine, report)
    done: list[Episode] = []
    kept = f"what was computed is kept in {reading.store} and is not computed again"
    with at_interruption(lambda: kept if done and request.jobs > 1 else ""):  # alone, the store says so itself
        for outcome in FailureList(request.failures).watch(outcomes, _video):
            done.append(outcome.item)
            yield outcome


def _start(choice: ModelChoice, reading: Reading) -> Work[Episode, _EmbeddedVideo]:
    return _work(replace(choice.open((), reading), reading=reading))


def _work(opened: OpenedModel) -> Work[Episode, _EmbeddedVideo]:
    return lambda episode: _summary(opened.model.track(episode, opened.reading))


def _summary(made: VideoTrack) -> _EmbeddedVideo:
    said = tuple(text for text in (*made.remarks.warnings, made.remarks.partial) if text)
    return _EmbeddedVideo(len(made.track.grid), made.was_stored, said)


def _video(episode: Episode) -> Path:
    return episode.video


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkRequest:
    """Of which videos to write the landmarks, and where."""

    sources: tuple[Path, ...]  # videos, and folders of videos
    out: Path | None = None  # a folder; None: each beside its video
    reading: Reading = Reading()  # its box: None means what the source says, or the whole picture
    overwrite: bool = False  # find again what is there already
    jobs: int = 1
    failures: Path = Path("failures.jsonl")

    def file(self, video: Path) -> Path:
        """Where the landmarks of a video go."""
        name = f"{video.name if has_twin(video) else video.stem}{POSE_SUFFIX}"
        return video.with_name(name) if self.out is None else self.out / name


@dataclass(frozen=True, slots=True, eq=False)
class Landmarked:
    """The landmarks of one video."""

    file: Path
    made: VideoLandmarks | None  # None: the file was there already


def landmark_files(request: LandmarkRequest) -> Iterator[Finished[Episode, Landmarked]]:
    """Write a .pose file for every video; those that are there already cost nothing."""
    episodes = read_sources(request.sources, request.reading.notify)
    twice = [file for file, count in Counter(request.file(one.video) for one in episodes).items() if count > 1]
    if twice:
        raise InputError(twice[0], "would hold the landmarks of two videos", "give them one after the other")
    detector_name()  # says what is missing before anything is made
    FailureList(request.failures).refuse_foreign()
    if request.out is not None:
        output_folder(request.out)
    engine = Engine(request.jobs, partial(_landmark_work, replace(request, reading=request.reading.quiet())))
    report = partial(request.reading.progress, "finding landmarks")
    outcomes = each(episodes, _landmark_work(request), _video, engine, report)
    return FailureList(request.failures).watch(outcomes, _video)


def _landmark_work(request: LandmarkRequest) -> Work[Episode, Landmarked]:
    def write(episode: Episode) -> Landmarked:
        file = request.file(episode.video)
        if file.exists() and not request.overwrite:
            return Landmarked(file, None)
        refuse_existing(file, overwrite=request.overwrite)  # before minutes of work
        made = detected(episode.video, request.reading, request.reading.box or episode.box)
        write_pose(made.signer, file, overwrite=request.overwrite)
        return Landmarked(file, made)

    return write
