"""A model that takes a minute to learn: a linear map of joints that brings signs of one word together.

Windows are the joints of world/measure.py and their speeds. Principal components, then whitening of what varies within
a word (linear discriminants), learned from the annotated signs of the training signers and the dictionary. No network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Entry
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, EmbeddingTrack, EntryVectors, FloatArray, WindowGrid
from signspot.media.frames import random_clips
from signspot.world.measure import body_joints, windows
from signspot.world.settings import chance
from signspot.world.simulation import EpisodePerformance, World

Told = Callable[[str], None]
_COMPONENTS, _DIM = 300, 120
_SPEED = 4.0  # weight of the speeds
_LAST_STARTS = (-11, -13, -15)  # an annotation marks the end of a sign: windows that begin so many frames before


@dataclass(frozen=True, slots=True, eq=False)
class JointModel:
    """A linear map to unit vectors."""

    mean: FloatArray
    linear: FloatArray
    name: str = "joints, linear discriminants"
    fingerprint: str = "joints-lda-1"

    def vectors(self, clips: FloatArray) -> FloatArray:
        """(n, 16 * 88) -> (n, 120), of any length."""
        mapped: FloatArray = (_with_speeds(clips) - self.mean) @ self.linear
        return mapped


def learned(world: World, told: Told) -> JointModel:
    """Learn the map from the training episodes and the dictionary."""
    clips, words = [], []
    for entry in world.dictionary_entries():
        own = _entry_clips(world, entry)
        clips.append(own)
        words += [world.vocabulary.id_of(entry.word)] * len(own)
    for episode in world.perform_episodes("train"):
        joints = body_joints(world.detected(episode.performance, episode.episode_id))
        rows = windows(joints, WindowGrid(len(joints)))
        for annotation in episode.annotations:
            starts = [annotation.frame + offset for offset in _LAST_STARTS]
            inside = [start for start in starts if 0 <= start < len(rows)]
            clips.append(rows[inside])
            words += [world.vocabulary.id_of(annotation.word)] * len(inside)
        told(f"learned from {episode.episode_id}")
    return _discriminants(np.concatenate(clips), np.array(words))


def entry_vectors(world: World, model: JointModel) -> Iterator[EntryVectors]:
    """One vector for every dictionary entry, word by word: the mean of its clips."""
    by_word: dict[str, list[Entry]] = {}
    for entry in world.dictionary_entries():
        by_word.setdefault(entry.word, []).append(entry)
    for own in by_word.values():
        means = np.stack([model.vectors(_entry_clips(world, entry)).mean(axis=0) for entry in own])
        yield EntryVectors(own[0].word, tuple(own), _unit(means), model.fingerprint)


def track_of(world: World, episode: EpisodePerformance, model: JointModel) -> EmbeddingTrack:
    """The vectors of an episode."""
    joints = body_joints(world.detected(episode.performance, episode.episode_id))
    grid = WindowGrid(len(joints))
    blocks = [model.vectors(windows(joints, grid)[first : first + 1000]) for first in range(0, len(grid), 1000)]
    axis = TimeAxis(np.arange(len(joints)) * float(FRAME_MS))
    return EmbeddingTrack(episode.episode_id, grid, axis, _unit(np.concatenate(blocks)), model.fingerprint)


def _entry_clips(world: World, entry: Entry) -> FloatArray:
    """(n_clips, 16 * 88) of the moving part, at random speeds and shifts (Paper 3.2)."""
    performance = world.perform_entry(entry)
    moving = performance.moving
    joints = body_joints(world.detected(performance, entry.entry_id))[moving.start : moving.stop]
    numbers = random_clips(len(joints), chance(world.seed, "clips", entry.entry_id))
    return np.concatenate([windows(joints[frames], WindowGrid(CLIP_LENGTH)) for frames in numbers])


def _with_speeds(clips: FloatArray) -> FloatArray:
    places = clips.reshape(len(clips), CLIP_LENGTH, -1)
    speeds = np.diff(places, axis=1) * np.float32(_SPEED)
    return np.concatenate([clips, speeds.reshape(len(clips), -1)], axis=1)


def _discriminants(clips: FloatArray, words: npt.NDArray[np.int64]) -> JointModel:
    rows = _with_speeds(clips)
    mean: FloatArray = rows.mean(axis=0)
    rows = rows - mean
    spread, axes = np.linalg.eigh((rows.T @ rows) / len(rows))
    kept = axes[:, -_COMPONENTS:] / np.sqrt(spread[-_COMPONENTS:] + 1e-3 * spread[-1])
    mapped = rows @ kept
    _, numbers = np.unique(words, return_inverse=True)
    counts = np.bincount(numbers)[:, None]
    centres = np.stack([np.bincount(numbers, column) for column in mapped.T], axis=1) / counts
    within = mapped - centres[numbers]
    spread, axes = np.linalg.eigh(within.T @ within / len(within))
    white = axes / np.sqrt(np.maximum(spread, 0) + 0.05 * spread.mean())
    _, best = np.linalg.eigh(np.cov((centres @ white).T))
    return JointModel(mean, (kept @ white @ best[:, -_DIM:]).astype(np.float32))


def _unit(rows: FloatArray) -> FloatArray:
    unit: FloatArray = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)).astype(np.float32)
    return unit
