"""Compute the vectors of videos once, so that later questions are answered at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from signspot.domain.recordings import Episode
from signspot.embedding.model import Model, Reading, VideoTrack
from signspot.embedding.zoo import ModelChoice, OpenedModel, open_model
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
class EmbeddedVideo:
    """The size of a track that is now in the store."""

    n_windows: int
    was_stored: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Embedding:
    """The model, and what becomes of each video."""

    model: Model
    outcomes: Iterator[Finished[Episode, EmbeddedVideo]]


def embed_files(request: EmbedRequest) -> Embedding:
    """Fill the store with the vectors of videos and folders of videos; those that are there cost nothing."""
    episodes = read_sources(request.sources, request.reading.notify)
    opened = open_model(request.model, (episode.video for episode in episodes), request.reading)
    # A store that the user named is used, whatever the model.
    opened = replace(opened, reading=replace(opened.reading, store=request.reading.store))
    FailureList(request.failures).refuse_foreign()
    return Embedding(opened.model, _outcomes(episodes, opened, request))


def _outcomes(
    episodes: tuple[Episode, ...], opened: OpenedModel, request: EmbedRequest
) -> Iterator[Finished[Episode, EmbeddedVideo]]:
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


def _start(choice: ModelChoice, reading: Reading) -> Work[Episode, EmbeddedVideo]:
    return _work(replace(open_model(choice, (), reading), reading=reading))


def _work(opened: OpenedModel) -> Work[Episode, EmbeddedVideo]:
    return lambda episode: _summary(opened.model.track(episode, opened.reading))


def _summary(made: VideoTrack) -> EmbeddedVideo:
    said = tuple(text for text in (*made.remarks.warnings, made.remarks.partial) if text)
    return EmbeddedVideo(len(made.track.grid), made.was_stored, said)


def _video(episode: Episode) -> Path:
    return episode.video
