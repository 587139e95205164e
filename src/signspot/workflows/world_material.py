"""A made-up signing world as something to learn from, without pictures: landmarks in, trunk and training material out.

Nothing of the world is kept but vectors: every episode is performed when it is needed, so that a world may be larger
than any disk. Vectors of an episode are written as they come; a run that was killed goes on with the next episode.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

from signspot.atomic import atomic_output
from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.spans import FRAME_MS, FrameSpan, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, FloatArray
from signspot.domain.words import Synonyms, Vocabulary
from signspot.errors import InputError
from signspot.features.store_disk import make_folder
from signspot.formats.safe_json import read_json, write_json
from signspot.learning.clips import ClipPlace, RecordedClips
from signspot.learning.material import Material, Track
from signspot.learning.material_files import read_material, write_material
from signspot.learning.passages import Footage, LabelledPassage, PassageOptions, labelled_passages, passage_columns
from signspot.learning.splits import WordSplit
from signspot.learning.trunk_config import TrunkRunConfig
from signspot.learning.trunk_stages import TrunkData
from signspot.media.sampling import MAX_SPEED, random_clips
from signspot.models.landmark_embedder import LandmarkEmbedder
from signspot.text.synonyms import shared_sign_synonyms
from signspot.world.broadcast import EpisodePerformance
from signspot.world.chance import chance
from signspot.world.simulation import World

Told = Callable[[str, int, int], None]  # what is going on, how much is done, how much there is

# A small world is performed once for all its trunks; a large one again for each: about 1 GB is kept at most.
_KEPT_EPISODES, _KEPT_ENTRIES = 80, 2000


def world_split(world: World) -> WordSplit:
    """The words annotators know, without and within the test words."""
    train = tuple(word for word in world.annotated_words if word not in world.test_words)
    return WordSplit(train, tuple(world.test_words), world.seed, "one of each stratum of frequency, by the world")


def world_synonyms(world: World) -> Synonyms:
    """Words that the dictionary files the same form under (Paper App. B.4, sign synonyms)."""
    return shared_sign_synonyms(Dictionary.of("world", world.dictionary_entries()))


def world_name(world: World) -> str:
    """What to call a world beside a figure."""
    return f"synthetic world: {world.preset.name}, version {world.preset.version}, seed {world.seed}"


def world_trunk_data(world: World, words: Vocabulary, config: TrunkRunConfig, told: Told) -> TrunkData:
    """The annotated clips and the dictionary clips of `words`, as a detector of landmarks sees them."""
    recordings: list[FloatArray] = []
    places: list[ClipPlace] = []
    episode_ids = world.episodes("train")
    for number, episode_id in enumerate(episode_ids):
        told("performing the training episodes", number, len(episode_ids))
        episode, points = _performed(world, episode_id)
        for annotation in episode.annotations:
            span = config.clip_window.around(annotation.frame)
            if annotation.word in words and span.stop <= len(points):
                name = f"{episode_id}, frame {annotation.frame}"
                whole = FrameSpan(0, len(span))
                places.append(
                    ClipPlace(name, words.id_of(annotation.word), len(recordings), whole, annotation.confidence)
                )
                recordings.append(points[span.start : span.stop].copy())  # the episode itself is let go
    return TrunkData(
        vocabulary=words,
        continuous=RecordedClips(recordings, tuple(places)),
        dictionary=_dictionary_clips(world, words, 1.0 if config.dictionary_sampling == "consecutive" else MAX_SPEED),
        description=world_name(world),
    )


def make_world_material(world: World, split: str, trunk: LandmarkEmbedder, folder: Path, told: Told) -> Material:
    """The material of "train" or "test" in `folder`: read if it is there, else made; killed at any moment, continued.

    The vocabulary is that of the whole dictionary.
    """
    if folder.exists():
        return read_material(folder, verify=False)
    parts = folder.with_name(f"{folder.name}-parts")
    make_folder(parts)
    _claim(parts, trunk)
    passages = list(_embedded_episodes(world, split, trunk, parts, told))
    entries = tuple(Dictionary.of("world", world.dictionary_entries()))
    material = Material(
        vocabulary=world.vocabulary,
        tracks=_TrackFiles(tuple(parts / f"{name}.npy" for name in world.episodes(split))),
        passages=passage_columns(passages, world.vocabulary),
        entry_ids=tuple(entry.entry_id for entry in entries),
        entry_vectors=np.stack([_entry_vector(world, entry, trunk) for entry in entries]),
        entry_word=np.array([world.vocabulary.id_of(entry.word) for entry in entries], np.int64),
        fingerprint=trunk.trunk_fingerprint,
    )
    write_material(material, folder, synonyms={"sign": world_synonyms(world)})
    shutil.rmtree(parts, ignore_errors=True)
    return read_material(folder, verify=False)


def episode_passages(episode: EpisodePerformance, vocabulary: Vocabulary) -> tuple[LabelledPassage, ...]:
    """The labelled passages of an episode, its subtitles read as those of any corpus."""
    axis = TimeAxis(np.arange(len(episode.performance), dtype=np.float64) * FRAME_MS)
    footage = Footage(episode.episode_id, axis, episode.subtitles, episode.annotations)
    return labelled_passages(footage, vocabulary, PassageOptions()).passages


def _dictionary_clips(world: World, words: Vocabulary, max_speed: float) -> RecordedClips:
    entries = [entry for entry in world.dictionary_entries() if entry.word in words]
    recordings = [_moving_points(world, entry) for entry in entries]
    places = tuple(
        ClipPlace(entry.entry_id, words.id_of(entry.word), number, FrameSpan(0, len(recordings[number])))
        for number, entry in enumerate(entries)
    )
    return RecordedClips(recordings, places, max_speed)


@lru_cache(maxsize=_KEPT_EPISODES)
def _performed(world: World, episode_id: str) -> tuple[EpisodePerformance, FloatArray]:
    """An episode, and its landmarks (n_frames, 258) as a detector gives them."""
    episode = world.perform_episode(episode_id)
    return episode, world.detected(episode.performance, episode_id)


@lru_cache(maxsize=_KEPT_ENTRIES)
def _moving_points(world: World, entry: Entry) -> FloatArray:
    """(n_frames, 258) of an entry without its still ends, as the paper trims them (4.1)."""
    performance = world.perform_entry(entry)
    moving = performance.moving
    return world.detected(performance, entry.entry_id)[moving.start : moving.stop]


def _entry_vector(world: World, entry: Entry, trunk: LandmarkEmbedder) -> FloatArray:
    """(d,) the mean over clips of random speed and shift (Paper 3.2)."""
    points = _moving_points(world, entry)
    clips = points[random_clips(len(points), chance(world.seed, "clips", entry.entry_id))]
    vector: FloatArray = trunk.trunk_vectors(clips).mean(axis=0)
    return vector


def _embedded_episodes(
    world: World, split: str, trunk: LandmarkEmbedder, parts: Path, told: Told
) -> Iterator[tuple[LabelledPassage, ...]]:
    """The passages of every episode, once its vectors are in its file."""
    episode_ids = world.episodes(split)
    for number, episode_id in enumerate(episode_ids):
        told(f"embedding the {split} episodes", number, len(episode_ids))
        episode, points = _performed(world, episode_id)
        path = parts / f"{episode_id}.npy"
        if not path.exists():
            rows = trunk.trunk_vectors(_windows(points))
            with atomic_output(path) as temporary:
                np.save(temporary, rows.astype(np.float16), allow_pickle=False)
        yield episode_passages(episode, world.vocabulary)


def _windows(points: FloatArray) -> FloatArray:
    """(n_frames, 258) -> (n_windows, 16, 258), a view."""
    view: npt.NDArray[np.float32] = np.lib.stride_tricks.sliding_window_view(points, CLIP_LENGTH, axis=0)
    return view.transpose(0, 2, 1)


def _claim(parts: Path, trunk: LandmarkEmbedder) -> None:
    """Refuse to mix vectors of two trunks."""
    card = parts / "trunk.json"
    if card.exists() and read_json(card) != trunk.trunk_fingerprint:
        raise InputError(parts, "holds vectors of another trunk", "delete the folder, or name another")
    write_json(trunk.trunk_fingerprint, card, overwrite=True)


class _TrackFiles(Sequence[Track]):
    """Tracks in files of their own, opened when they are used: there are more than a process may have open."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, number: int) -> Track: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Track]: ...
    def __getitem__(self, number: int | slice) -> Track | Sequence[Track]:
        if isinstance(number, slice):
            return _TrackFiles(self._paths[number])
        rows: Track = np.load(self._paths[number], mmap_mode="r", allow_pickle=False)
        return rows
