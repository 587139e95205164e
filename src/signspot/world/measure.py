"""How the world compares with the corpora of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from signspot.domain.tracks import CLIP_LENGTH, FloatArray, WindowGrid
from signspot.evaluation.protocol import Gallery, ProtocolScores, TestPassage, score_passages
from signspot.world.people import HAND_NUMBERS, POSE_NUMBERS
from signspot.world.simulation import World

_CLIPS, _EPISODES = 200, 4  # entries and episodes that are performed to be measured


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number of the world beside the paper's."""

    name: str
    world: float
    paper: float
    source: str  # where the paper says so

    @property
    def deviation(self) -> float:
        return abs(self.world - self.paper) / self.paper


def world_statistics(world: World) -> tuple[Comparison, ...]:
    entries = [entry for entry in world.dictionary_entries() if entry.word in world.annotated_words]
    shown = [world.perform_entry(entry) for entry in entries[:: max(1, len(entries) // _CLIPS)]]
    episodes = list(islice(world.perform_episodes("train"), _EPISODES))
    durations = [len(token.span) for episode in episodes for token in episode.truth]
    words = [len(words) for episode in episodes for words in episode.subtitle_words]
    labels = [len(passage.annotations) for episode in episodes for passage in episode.passages]
    rows = (
        ("entries per annotated word", len(entries) / len(world.annotated_words), 2992 / 1064, "4.1"),
        ("frames of an entry", np.mean([len(clip) for clip in shown]), 78, "4.1"),
        ("frames of a trimmed entry", np.mean([len(clip.moving) for clip in shown]), 56, "4.1"),
        ("frames of a sign, 5th percentile", np.percentile(durations, 5), 7, "App. B.5"),
        ("frames of a sign, 95th percentile", np.percentile(durations, 95), 13, "App. B.5"),
        ("vocabulary words of a subtitle", np.mean(words), 8, "4.1"),
        ("annotations of a passage", np.mean(labels), 1, "4.1"),
    )
    return tuple(Comparison(name, float(value), paper, source) for name, value, paper, source in rows)


# The weakest baseline, by which the difficulty of the world was set: nearest neighbour on raw joints. A window of 16
# frames is the places of elbows, wrists and finger joints in shoulder widths from between the shoulders; a dictionary
# entry is 16 frames taken evenly from its moving part. Both minus the mean of the entries, as unit vectors, so that the
# cosine of the paper's protocol compares them. Nothing is learned.

_SHOULDERS, _ARMS = (11, 12), (13, 14, 15, 16)
_LEFT_WRIST = 15


def raw_joint_scores(world: World) -> ProtocolScores:
    entries = [entry for entry in world.dictionary_entries() if entry.word in world.test_words]
    clips = []
    for entry in entries:
        performance = world.perform_entry(entry)
        start, last = performance.moving.start, performance.moving.stop - 1
        frames = np.rint(np.linspace(start, last, CLIP_LENGTH)).astype(np.int64)
        joints = body_joints(world.detected(performance, entry.entry_id))
        clips.append(_in_shoulder_widths(joints[None, frames]))
    vectors = np.stack([clip.ravel() for clip in clips])
    mean: FloatArray = vectors.mean(axis=0)
    words = np.array([world.test_words.id_of(entry.word) for entry in entries])
    return score_passages(_passages(world, mean), Gallery(words, _unit(vectors - mean)))


def _passages(world: World, mean: FloatArray) -> Iterator[TestPassage]:
    for episode in world.perform_episodes("test"):
        joints = body_joints(world.detected(episode.performance, episode.episode_id))
        for number, passage in enumerate(episode.passages):
            label, span = passage.annotations[0], passage.span
            grid = WindowGrid(len(span))
            vectors = _unit(windows(joints[span.start : span.stop], grid) - mean)
            centres = span.start + grid.starts() + CLIP_LENGTH // 2
            name, signer = f"{episode.episode_id}/{number}", episode.performance.signer.signer_id
            yield TestPassage(name, world.test_words.id_of(label.word), label.frame, centres, vectors, signer)


def body_joints(points: FloatArray) -> FloatArray:
    """(n_frames, 258) landmarks -> (n_frames, 92) x and y of arms and hands in picture widths, and of the shoulders.

    A lost hand stays where it was seen last.
    """
    n = len(points)
    pose = points[:, :POSE_NUMBERS].reshape(n, 33, 4)[..., :2]
    parts = [pose[:, list(_SHOULDERS)], pose[:, list(_ARMS)]]
    for side in range(2):
        first = POSE_NUMBERS + side * HAND_NUMBERS
        hand = points[:, first : first + HAND_NUMBERS].reshape(n, 21, 3)[..., :2]
        seen = np.asarray(hand.any(axis=(1, 2)))
        latest = np.maximum.accumulate(np.where(seen, np.arange(n), 0))
        parts.append(np.where(seen[latest, None, None], hand[latest], pose[:, _LEFT_WRIST + side, None]))
    return np.concatenate(parts, axis=1, dtype=np.float32).reshape(n, -1)


def windows(joints: FloatArray, grid: WindowGrid) -> FloatArray:
    """(n_windows, d) all windows of 16 frames in shoulder widths from between the shoulders."""
    frames = np.minimum(grid.starts()[:, None] + np.arange(grid.length), len(joints) - 1)
    return _in_shoulder_widths(joints[frames])


def _in_shoulder_widths(clips: FloatArray) -> FloatArray:
    """(n, 16, 92) picture widths -> (n, 16 * 88); origin and unit are means over the clip."""
    places = clips.reshape(*clips.shape[:2], -1, 2)
    shoulders, rest = places[:, :, :2].mean(axis=1), places[:, :, 2:]  # (n, 2, 2), (n, 16, 46, 2)
    width = np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1)
    centred = (rest - shoulders.mean(axis=1)[:, None, None]) / width[:, None, None, None]
    return np.asarray(centred.reshape(len(clips), -1), dtype=np.float32)


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))
