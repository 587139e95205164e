"""How the world compares with the corpora of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from signspot.world.simulation import World

_CLIPS = 200  # entries performed to measure their length


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number of the world beside the paper's."""

    name: str
    world: float
    paper: float
    source: str  # where the paper says so

    @property
    def deviation(self) -> float:
        """How far the world is off, as a share of the paper's number."""
        return abs(self.world - self.paper) / self.paper


def world_statistics(world: World, n_episodes: int = 4) -> tuple[Comparison, ...]:
    """Compare a world with the paper, from its dictionary and the first `n_episodes` training episodes."""
    return (*_of_dictionary(world), *_of_broadcast(world, n_episodes))


def _of_dictionary(world: World) -> Iterator[Comparison]:
    entries = [entry for entry in world.dictionary_entries() if entry.word in world.annotated_words]
    shown = [world.perform_entry(entry) for entry in entries[:: max(1, len(entries) // _CLIPS)]]
    yield Comparison("entries per annotated word", len(entries) / len(world.annotated_words), 2992 / 1064, "4.1")
    yield Comparison("frames of an entry", _mean([len(clip) for clip in shown]), 78, "4.1")
    yield Comparison("frames of a trimmed entry", _mean([len(clip.moving) for clip in shown]), 56, "4.1")


def _of_broadcast(world: World, n_episodes: int) -> Iterator[Comparison]:
    episodes = [
        (episode.truth, episode.subtitle_words, episode.passages)
        for episode in islice(world.perform_episodes("train"), n_episodes)
    ]
    durations = [len(token.span) for truth, _, _ in episodes for token in truth]
    words = [len(words) for _, subtitles, _ in episodes for words in subtitles]
    labels = [len(passage.annotations) for _, _, passages in episodes for passage in passages]
    yield Comparison("frames of a sign, 5th percentile", float(np.percentile(durations, 5)), 7, "App. B.5")
    yield Comparison("frames of a sign, 95th percentile", float(np.percentile(durations, 95)), 13, "App. B.5")
    yield Comparison("vocabulary words of a subtitle", _mean(words), 8, "4.1")
    yield Comparison("annotations of a passage", _mean(labels), 1, "4.1")


def _mean(numbers: list[int]) -> float:
    return float(np.mean(numbers))
