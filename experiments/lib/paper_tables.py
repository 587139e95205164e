"""Tables of the paper on a made-up world: methods in rows, the paper's two protocols in columns, every run kept.

A trunk is trained on the landmarks of the training words of a column and frozen; heads are trained on its vectors; all
are tested on the same passages and dictionary entries of the test words (Paper 4.2). Whatever is finished lies in a
folder and is never done twice: a table that was killed goes on where it stood.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from signspot.cli.console import progress_bars
from signspot.domain.recordings import Dictionary, Entry, Synonyms, Vocabulary
from signspot.domain.time import FRAME_MS, FrameSpan, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, FloatArray, Floats, Ints, Vectors
from signspot.errors import FormatError, InputError, SignspotError
from signspot.evaluation.measures import Interval, class_interval, class_means, mean_interval
from signspot.evaluation.protocol import ProtocolScores
from signspot.files.atomic import atomic_output, make_folder
from signspot.files.json import read_json, write_json
from signspot.learning.clips import ClipPlace, RecordedClips
from signspot.learning.config import EmbeddingConfig, TrunkRunConfig, as_toml, read_config
from signspot.learning.head import Controls, HeadProgress, TrainingData, make_setup, score_head, train_head
from signspot.learning.material import Footage, LabelledPassage, Material, PassageOptions, Passages, WordSplit
from signspot.learning.runs import RunFolder, repeatable, usable_device
from signspot.learning.trunk import TrunkControls, TrunkData, TrunkProgress, train_trunk
from signspot.media.frames import MAX_SPEED, random_clips
from signspot.models.checkpoints import HEAD, build_head, load_checkpoint
from signspot.models.embedders import LandmarkEmbedder, landmark_embedder_from_checkpoint
from signspot.models.head import Head
from signspot.text.synonyms import english_synonyms, shared_sign_synonyms
from signspot.world.settings import chance, preset_named
from signspot.world.simulation import EpisodePerformance, World

Column = Literal["seen", "unseen"]  # are the test words among the training words (Paper 4.2)
Sources = Literal["dictionary", "continuous", "both"]
Measure = Literal["mAP", "R@5", "localisation"]
Told = Callable[[str, float, float], None]  # what is going on, how much is done, how much there is

_MEASURES: Mapping[Measure, str] = {"mAP": "mean_ap", "R@5": "recall", "localisation": "is_localised"}
_WORDS = 1_000_000  # more than any world has


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How the paper's settings are brought to a world of another size."""

    name: str
    preset: str
    footage_share: float = 1.0  # of the training episodes of the preset
    trunk: TrunkRunConfig
    batch_share: float  # of the paper's batch sizes: the share of its 1,064 words that the world has
    hidden_dim: int
    embedding_dim: int
    epochs: int  # of the head; the learning rate falls after 80 % and 90 % of them, as in the paper

    def world(self, seed: int) -> World:
        """A world of this size."""
        preset = preset_named(self.preset)
        return World.of(replace(preset, train_episodes=round(self.footage_share * preset.train_episodes)), seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row of a table: a trunk, and unless its vectors are compared as they are, how a head is trained on them."""

    name: str
    trunk: Sources = "both"
    config: str | None = None  # the file with the options of the head, without .toml; None: no head
    changes: tuple[str, ...] = ()  # key=value, after those of the file
    paper: tuple[float, ...] = ()  # the paper's numbers in percent, for as many columns of the table as it has


@dataclass(frozen=True, slots=True, eq=False)
class RunScores:
    """How one run did on every test passage."""

    words: Ints  # (P,)
    mean_ap: Floats  # (P,) average precision
    recall: Floats  # (P,) among the first five
    is_localised: Floats  # (P,) 1 where the known word is found at the right time

    def of(self, measure: Measure) -> Floats:
        """The column of a measure."""
        column: Floats = getattr(self, _MEASURES[measure])
        return column


@dataclass(frozen=True, slots=True)
class Places:
    """Where runs, the options of heads, and what else they need lie."""

    runs: Path
    configs: Path
    wordnet: Path | None = None  # WordNet's files; without them, methods that need English synonyms are left out


class WorldRuns:
    """All runs on one world, in a folder."""

    def __init__(self, world: World, scale: Scale, places: Places, told: Told) -> None:
        self._world, self._scale, self._told = world, scale, told
        self._folder, self._places = places.runs / f"{scale.name}-{world.seed}", places
        self._split = world_split(world)
        self._materials: dict[tuple[Sources, Column, str], Material] = {}
        self._clips: dict[Column, TrunkData] = {}

    def scores(self, method: Method, column: Column, seed: int) -> RunScores:
        """Train what is not there yet, and test it."""
        config = self._config(method, column, seed)
        path = self._scores_path(method, column, seed, config)
        if not path.exists():
            test = self._material(method.trunk, column, "test")
            head = None if config is None else self._head(method.trunk, column, config)
            stride = 1 if config is None else config.test_stride
            make_folder(path.parent)
            _write_scores(score_head(head, test, self._split.test, stride=stride), path)
        return _read_scores(path)

    def can_run(self, method: Method) -> bool:
        """Whether everything that a method needs is at hand."""
        config = self._config(method, "seen", 0)
        return config is None or config.synonyms != "english" or self._places.wordnet is not None

    def is_done(self, method: Method, column: Column, seed: int) -> bool:
        """Whether the scores of a run are there."""
        return self._scores_path(method, column, seed, self._config(method, column, seed)).exists()

    def _scores_path(self, method: Method, column: Column, seed: int, config: EmbeddingConfig | None) -> Path:
        home = self._folder / column / method.trunk / "scores"
        return home / ("trunk.json" if config is None else f"{_key(config)}.json")

    def _config(self, method: Method, column: Column, seed: int) -> EmbeddingConfig | None:
        """The options of a head, brought to the scale of the world."""
        if method.config is None:
            return None
        scale = self._scale
        config = read_config(self._places.configs / f"{method.config}.toml", EmbeddingConfig, method.changes)
        return replace(
            config,
            training_words="all" if column == "seen" else "train",
            batch_size=max(2, round(config.batch_size * scale.batch_share)),
            hidden_dim=scale.hidden_dim,
            embedding_dim=scale.embedding_dim,
            epochs=scale.epochs,
            decay_epochs=(round(0.8 * scale.epochs), round(0.9 * scale.epochs)),
            evaluate_every=scale.epochs,
            seed=seed,
            threads=1,
        )

    def _head(self, sources: Sources, column: Column, config: EmbeddingConfig) -> Head:
        """A trained head; how it is tested changes nothing about it."""
        config = replace(config, test_stride=1)
        run = RunFolder(self._folder / column / sources / "heads" / _key(config))
        if not run.results.exists():
            train = self._material(sources, column, "train")
            data = TrainingData(train=train, split=self._split, synonyms=self._synonyms(config))
            setup = make_setup(config, data)
            facts = {"trunk": train.fingerprint}
            with run.opened(config, facts, "resume" if run.config.exists() else "new"):
                train_head(config, setup, run, Controls(progress=self._watch_head))
        learned = load_checkpoint(run.last)
        head = build_head(learned.card.config)
        head.load_state_dict(learned.part(HEAD))
        return head.eval()

    def _synonyms(self, config: EmbeddingConfig) -> Synonyms | None:
        if config.synonyms == "english" and self._places.wordnet is not None:
            return english_synonyms(self._world.vocabulary, self._places.wordnet)
        return world_synonyms(self._world) if config.synonyms == "sign" else None

    def _material(self, sources: Sources, column: Column, split: str) -> Material:
        """The vectors of "train" or "test" by the trunk of a column."""
        key = (sources, column, split)
        if key not in self._materials:
            folder = self._folder / column / sources
            trunk = landmark_embedder_from_checkpoint(self._trunk(sources, column))
            with repeatable(1, usable_device("cpu")):
                made = make_world_material(self._world, split, trunk, folder / split, self._told)
            self._materials[key] = made
        return self._materials[key]

    def _trunk(self, sources: Sources, column: Column) -> Path:
        """A trained trunk. That of both sources goes on from that of the annotated clips (Paper App. C.1)."""
        run = RunFolder(self._folder / column / sources / "trunk")
        if not run.results.exists():
            config = replace(self._scale.trunk, sources=sources)
            if sources == "both":
                config = replace(config, stage1_epochs=0, initial_model=self._trunk("continuous", column))
            data = self._trunk_data(column, config)
            with run.opened(config, data.fingerprints(), "resume" if run.config.exists() else "new"):
                train_trunk(config, data, run, TrunkControls(progress=self._watch_trunk, workers=0))
        return run.last

    def _trunk_data(self, column: Column, config: TrunkRunConfig) -> TrunkData:
        if column not in self._clips:
            words = Vocabulary.of(self._split.words if column == "seen" else self._split.train)
            self._clips = {column: world_trunk_data(self._world, words, config, self._told)}  # one at a time in memory
        return self._clips[column]

    def _watch_head(self, moment: HeadProgress) -> None:
        self._told("training a head", _epochs_done(moment), moment.epochs)

    def _watch_trunk(self, moment: TrunkProgress) -> None:
        self._told(f"training a trunk, {moment.stage}", _epochs_done(moment), moment.epochs)


def mean_scores(runs: Sequence[RunScores]) -> RunScores:
    """Runs of several seeds on the same passages as one."""
    first = runs[0]
    if any(not np.array_equal(run.words, first.words) for run in runs):
        raise ValueError("runs on different test passages")
    means = {name: np.mean([getattr(run, name) for run in runs], axis=0) for name in _MEASURES.values()}
    return RunScores(first.words, **means)


def joined_scores(worlds: Sequence[RunScores]) -> RunScores:
    """The passages of several worlds as one test set: a word of two worlds is two words."""
    words = [run.words + number * _WORDS for number, run in enumerate(worlds)]
    columns = {name: np.concatenate([getattr(run, name) for run in worlds]) for name in _MEASURES.values()}
    return RunScores(np.concatenate(words), **columns)


def interval_of(scores: RunScores, measure: Measure) -> Interval:
    """A figure of the paper, and how far it would be off with other words."""
    values = scores.of(measure)
    return mean_interval(values, scores.words) if measure == "localisation" else class_interval(values, scores.words)


def figure_of(scores: RunScores, measure: Measure) -> float:
    """A figure of the paper: over words, but the accuracy of localisation over passages."""
    values = scores.of(measure)
    return float(values.mean()) if measure == "localisation" else class_means(values, scores.words).mean


def difference(first: RunScores, second: RunScores) -> RunScores:
    """The first minus the second, passage by passage: its interval tells whether one is better on the same words."""
    columns = {name: getattr(first, name) - getattr(second, name) for name in _MEASURES.values()}
    return RunScores(first.words, **columns)


def _epochs_done(moment: HeadProgress | TrunkProgress) -> float:
    return moment.epoch + moment.step / max(1, moment.steps)


def _key(config: EmbeddingConfig) -> str:
    """A short name for everything that changes what a head learns and how it is tested."""
    digest = hashlib.sha256(as_toml(config).encode()).hexdigest()[:12]
    return f"{config.loss}-{digest}-seed{config.seed}"


def _write_scores(scores: ProtocolScores, path: Path) -> None:
    passages = scores.passages
    content = {
        "words": passages.words.tolist(),
        "mean_ap": passages.ap.tolist(),
        "recall": passages.recall.tolist(),
        "is_localised": scores.is_localised.astype(float).tolist(),
        "chance": [scores.chance_mean_ap, scores.chance_recall_at_k, scores.chance_localisation],
    }
    write_json(content, path, overwrite=True)


def _read_scores(path: Path) -> RunScores:
    content = read_json(path)
    try:
        columns = {name: np.array(content[name], np.float64) for name in _MEASURES.values()}  # type: ignore[index]
        return RunScores(np.array(content["words"], np.int64), **columns)  # type: ignore[index]
    except (TypeError, KeyError, ValueError) as error:
        raise FormatError(path, f"holds no scores of a run ({error})", "delete it: the run is tested again") from error


# From the runs of a table of the paper to its cells: means over seeds, intervals over words.


# Everything is a quarter of the paper's: words (260 of 1,064), vectors, batches.
SMALL = Scale(
    name="small",
    preset="small",
    trunk=TrunkRunConfig(
        architecture="landmark",
        landmark_width=64,
        embedding_dim=256,
        reinitialise_batch_norm=False,
        batch_size=32,
        stage1_epochs=12,
        stage2_epochs=15,
        decay_epochs=(9, 12),
        optimiser="adamw",  # SGD learns little in so few steps
        learning_rate=1e-3,
        threads=1,
        evaluate_every=0,
    ),
    batch_share=260 / 1064,
    hidden_dim=256,
    embedding_dim=128,
    epochs=30,
)
PAPER = Scale(
    name="paper",
    preset="paper",
    trunk=TrunkRunConfig(
        architecture="landmark",
        reinitialise_batch_norm=False,
        batch_size=32,
        stage1_epochs=10,
        stage2_epochs=20,
        decay_epochs=(8, 15),
        optimiser="adamw",
        learning_rate=1e-3,
        evaluate_every=0,
    ),
    batch_share=1.0,
    hidden_dim=512,
    embedding_dim=256,
    epochs=50,
)
# For trying out that everything runs: its figures mean nothing.
DEMO = replace(
    SMALL, name="demo", preset="demo", trunk=replace(SMALL.trunk, stage1_epochs=2, stage2_epochs=2), epochs=10
)
# The paper's words, dictionary and batches; a quarter of its footage, and networks that two cores train in hours.
QUARTER = replace(
    PAPER,
    name="paper-quarter",
    footage_share=0.25,
    trunk=replace(PAPER.trunk, landmark_width=64, embedding_dim=256, threads=1),
    hidden_dim=256,
    embedding_dim=128,
    epochs=30,
)
SCALES = {scale.name: scale for scale in (DEMO, SMALL, QUARTER, PAPER)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table of the paper, or one of ours in its form."""

    name: str  # of its folder
    title: str
    paper: str = ""  # "Table 2"
    rows: tuple[Method, ...]
    columns: tuple[Column, ...] = ("seen", "unseen")
    measures: tuple[Measure, ...] = ("mAP", "R@5")
    differences: tuple[tuple[str, str], ...] = ()  # rows to subtract from each other, passage by passage


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """Which runs to take."""

    scale: str = "small"
    worlds: tuple[int, ...] = (0,)
    seeds: tuple[int, ...] = (0, 1, 2)
    finished_only: bool = False  # nothing is trained: the table has what there is
    places: Places


_Found = dict[tuple[str, Column], list[list[RunScores]]]  # of a row and a column: by world, by seed


class TableRuns:
    """The runs that a table asks for, done one after the other."""

    def __init__(self, table: PaperTable, request: TableRequest, told: Told) -> None:
        self._table, self._request, self._told = table, request, told
        scale = SCALES[request.scale]
        worlds = [scale.world(seed) for seed in request.worlds]
        self._worlds = [WorldRuns(world, scale, request.places, told) for world in worlds]
        self._data = "; ".join(world_name(world) for world in worlds)
        if scale.footage_share < 1:
            self._data += f"; of its footage the first {worlds[0].preset.train_episodes} training episodes"

    def results(self, verdict: str, command: str) -> ExperimentResults:
        """Do what is not done yet, then the table."""
        found = self._scores()
        table = self._table
        rows = [ResultRow(row.name, self._cells(row, found)) for row in table.rows]
        for first, second in table.differences:
            rows.append(ResultRow(f"{first} − {second}", self._difference(first, second, found)))
        return ExperimentResults(
            name=table.name,
            title=table.title if self._request.scale == SMALL.name else f"{table.title} ({self._request.scale})",
            paper=table.paper,
            data=self._data,
            command=command,
            conditions=self._conditions(),
            columns=tuple(f"{column} {measure}" for column in table.columns for measure in table.measures),
            rows=tuple(rows),
            verdict=verdict,
        )

    def _scores(self) -> _Found:
        """Of every row and column, of every world, the scores of its seeds."""
        # All rows with the first seed, then with the next: a table that is stopped early still has all its rows. The
        # last rows and columns, which everything is about, come first.
        wanted = [
            (world, column, row, seed)
            for seed in self._request.seeds
            for world in self._worlds
            for column in reversed(self._table.columns)
            for row in reversed(self._table.rows)
            if seed in self._seeds(row) and world.can_run(row)
        ]
        for number, (world, column, row, seed) in enumerate(() if self._request.finished_only else wanted):
            self._told(f"{self._table.name}: {row.name}, {column}, seed {seed}", number, len(wanted))
            world.scores(row, column, seed)
        found: _Found = {}
        for world in self._worlds:
            for row in self._table.rows:
                for column in self._table.columns:
                    done = [s for s in self._seeds(row) if world.is_done(row, column, s)]
                    if done:
                        runs = [world.scores(row, column, seed) for seed in done]
                        found.setdefault((row.name, column), []).append(runs)
        return found

    def _seeds(self, row: Method) -> tuple[int, ...]:
        """A trunk is trained once (as in Paper App. B.1, where the heads alone have seeds)."""
        return self._request.seeds[:1] if row.config is None else self._request.seeds

    def _cells(self, row: Method, found: _Found) -> dict[str, Measured]:
        cells = {}
        columns = [(column, measure) for column in self._table.columns for measure in self._table.measures]
        for (column, measure), paper in zip_longest(columns, row.paper):
            if worlds := found.get((row.name, column)):
                number = None if paper is None else paper / 100
                cells[f"{column} {measure}"] = measured(worlds, measure, number)
        return cells

    def _difference(self, first: str, second: str, found: _Found) -> dict[str, Measured]:
        """One method minus another on the same passages, over the seeds that both have."""
        cells: dict[str, Measured] = {}
        for column in self._table.columns:
            both = zip(found.get((first, column), ()), found.get((second, column), ()), strict=False)
            worlds = [[difference(a, b) for a, b in zip(x, y, strict=False)] for x, y in both]
            if worlds:
                cells |= {f"{column} {measure}": measured(worlds, measure, None) for measure in self._table.measures}
        return cells

    def _conditions(self) -> dict[str, str]:
        scale, request = SCALES[self._request.scale], self._request
        trunk = scale.trunk
        return {
            "seeds": f"{', '.join(map(str, request.seeds))} of the heads; one trunk for each column and source",
            "interval": "95 %, by drawing the test words again, of the mean over the seeds",
            "test": "the passages of the test episodes, by signers of their own, against all entries of the test words",
            "trunk": f"landmark encoder of width {trunk.landmark_width}, {trunk.embedding_dim} numbers, on detected "
            f"landmarks; {trunk.stage1_epochs} + {trunk.stage2_epochs} epochs",
            "head": f"{scale.hidden_dim} and {scale.embedding_dim} numbers, {scale.epochs} epochs, batch sizes "
            f"{scale.batch_share:.3f} of the paper's",
        }


def measured(worlds: Sequence[Sequence[RunScores]], measure: Measure, paper: float | None) -> Measured:
    """A cell: the mean over seeds of the test sets of all worlds together, one run for each seed."""
    joined = [joined_scores(runs) for runs in zip(*worlds, strict=False)]
    interval = interval_of(mean_scores(joined), measure)
    runs = tuple(figure_of(run, measure) for run in joined)
    return Measured(interval.estimate, runs, interval.low, interval.high, paper)


# A made-up signing world as something to learn from, without pictures: landmarks in, trunk and training material out.
#
# Nothing of the world is kept but vectors: every episode is performed when it is needed, so that a world may be larger
# than any disk. Vectors of an episode are written as they come; a run that was killed goes on with the next episode.


ToldSteps = Callable[[str, int, int], None]  # what is going on, how much is done, how much there is

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


def world_trunk_data(world: World, words: Vocabulary, config: TrunkRunConfig, told: ToldSteps) -> TrunkData:
    """The annotated clips and the dictionary clips of `words`, as a detector of landmarks sees them."""
    recordings: list[FloatArray] = []
    places: list[ClipPlace] = []
    episode_ids = world.episodes("train")
    for number, episode_id in enumerate(episode_ids):
        told("performing the training episodes", number, len(episode_ids))
        episode, points = _performed(world, episode_id)
        for annotation in episode.annotations:
            span = config.clip_options.window.around(annotation.frame)
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


def make_world_material(world: World, split: str, trunk: LandmarkEmbedder, folder: Path, told: ToldSteps) -> Material:
    """The material of "train" or "test" in `folder`: read if it is there, else made; killed at any moment, continued.

    The vocabulary is that of the whole dictionary.
    """
    if folder.exists():
        return Material.read(folder, verify=False)
    parts = folder.with_name(f"{folder.name}-parts")
    make_folder(parts)
    _claim(parts, trunk)
    passages = list(_embedded_episodes(world, split, trunk, parts, told))
    entries = tuple(Dictionary.of("world", world.dictionary_entries()))
    material = Material(
        vocabulary=world.vocabulary,
        tracks=_TrackFiles(tuple(parts / f"{name}.npy" for name in world.episodes(split))),
        passages=Passages.of(passages, world.vocabulary),
        entry_ids=tuple(entry.entry_id for entry in entries),
        entry_vectors=np.stack([_entry_vector(world, entry, trunk) for entry in entries]),
        entry_word=np.array([world.vocabulary.id_of(entry.word) for entry in entries], np.int64),
        fingerprint=trunk.trunk_fingerprint,
    )
    material.write(folder, synonyms={"sign": world_synonyms(world)})
    shutil.rmtree(parts, ignore_errors=True)
    return Material.read(folder, verify=False)


def episode_passages(episode: EpisodePerformance, vocabulary: Vocabulary) -> tuple[LabelledPassage, ...]:
    """The labelled passages of an episode, its subtitles read as those of any corpus."""
    axis = TimeAxis(np.arange(len(episode.performance), dtype=np.float64) * FRAME_MS)
    footage = Footage(episode.episode_id, axis, episode.subtitles, episode.annotations)
    return footage.labelled_passages(vocabulary, PassageOptions())[0]


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
    world: World, split: str, trunk: LandmarkEmbedder, parts: Path, told: ToldSteps
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


class _TrackFiles(Sequence[Vectors]):
    """Tracks in files of their own, opened when they are used: there are more than a process may have open."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, number: int) -> Vectors: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Vectors]: ...
    def __getitem__(self, number: int | slice) -> Vectors | Sequence[Vectors]:
        if isinstance(number, slice):
            return _TrackFiles(self._paths[number])
        rows: Vectors = np.load(self._paths[number], mmap_mode="r", allow_pickle=False)
        return rows


# Results of experiments: written by `experiments/NAME/run.py` as results.json, read by the page docs/results.md.
#
# A table has rows (methods) and columns (measures). Every cell keeps the value of each run, an interval, and, where
# the paper reports the same measure, its number.


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell: the mean of `runs`, the interval that the experiment's conditions describe, and the paper's number."""

    mean: float
    runs: tuple[float, ...] = ()  # one value for each seed
    low: float | None = None
    high: float | None = None
    paper: float | None = None  # in the same unit

    def __post_init__(self) -> None:
        numbers = (self.mean, *self.runs, *(n for n in (self.low, self.high, self.paper) if n is not None))
        if any(isinstance(n, bool) or not isinstance(n, int | float) or not math.isfinite(n) for n in numbers):
            raise ValueError(f"{self} holds what is no number")


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One method: its measures by column."""

    name: str
    cells: Mapping[str, Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResults:
    """One table."""

    name: str  # of the folder in experiments/
    title: str
    paper: str = ""  # "Table 2"; empty where the paper has no such table
    data: str  # "synthetic world: small, version 1, seed 0" or "real: boston104"
    command: str  # that makes this table again
    conditions: Mapping[str, str] = field(default_factory=dict)  # seeds, epochs, what the interval is, the machine...
    columns: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    verdict: str  # one honest sentence or two: the same order as the paper's or not, and why we think so
    is_percent: bool = True  # how the numbers, all shares of 1, are shown

    def __post_init__(self) -> None:
        for row in self.rows:
            if unknown := set(row.cells) - set(self.columns):
                raise ValueError(f"{row.name!r} has a cell of no column: {sorted(unknown)[0]!r}")


def write_results(results: ExperimentResults, path: Path) -> None:
    """Write a table, in place of an older one."""
    write_json(asdict(results), path, overwrite=True)


def read_results(path: Path) -> ExperimentResults:
    """Read a table that `write_results` wrote."""
    value = read_json(path)
    try:
        facts = dict(value)  # type: ignore[call-overload]
        rows = tuple(
            ResultRow(
                row["name"],
                {column: Measured(**(cell | {"runs": tuple(cell["runs"])})) for column, cell in row["cells"].items()},
            )
            for row in facts.pop("rows")
        )
        return ExperimentResults(rows=rows, columns=tuple(facts.pop("columns")), **facts)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise FormatError(path, f"is no table of results ({error})", "run the experiment again") from error


def markdown_of(results: ExperimentResults) -> str:
    """The table as Markdown: each cell ours [interval], then the paper's in parentheses; – where there is none."""
    head = ["method", *results.columns]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in results.rows:
        cells = [_shown(row.cells[column], results.is_percent) if column in row.cells else "–" for column in head[1:]]
        lines.append(f"| {' | '.join([row.name, *cells])} |")
    return "\n".join(lines) + "\n"


def _shown(cell: Measured, is_percent: bool) -> str:
    def number(value: float) -> str:
        return f"{100 * value:.1f}" if is_percent else f"{value:.3f}"

    text = number(cell.mean)
    if cell.low is not None and cell.high is not None:
        text += f" [{number(cell.low)}, {number(cell.high)}]"
    return text if cell.paper is None else f"{text} (paper: {number(cell.paper)})"


# What every experiments/NAME/run.py does: ask for the runs of its table, show how far they are, write results.json.


_FOLDER = "SIGNSPOT_EXPERIMENTS"  # where finished runs are kept


def run_table(table: PaperTable, script: str) -> None:
    """Make a table from the command line of its script; exits with the code of the error, if there is one."""
    try:
        home = Path(script).resolve().parent
        _run(table, home, _request(table, home))
    except SignspotError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def _run(table: PaperTable, home: Path, request: TableRequest) -> None:
    make_folder(request.places.runs)
    with progress_bars() as bars:
        last = [""]
        begun = time.monotonic()

        def told(step: str, done: float, total: float) -> None:
            bars(step, done, total)
            if not sys.stderr.isatty() and step != last[0]:  # a log gets a line for every step
                sys.stderr.write(f"{time.monotonic() - begun:.0f} s: {step}\n")
                last[0] = step

        name = "results.json" if request.scale == SMALL.name else f"results-{request.scale}.json"
        command = f"python experiments/{table.name}/run.py --scale {request.scale}"
        command += f" --seeds {_spaced(request.seeds)} --worlds {_spaced(request.worlds)}"
        results = TableRuns(table, request, told).results(_verdict(home, request.scale), command)
    write_results(results, home / name)


def _request(table: PaperTable, home: Path) -> TableRequest:
    parser = argparse.ArgumentParser(description=f"{table.title}. Finished runs are kept in ${_FOLDER}.")
    parser.add_argument("--scale", choices=tuple(SCALES), default=SMALL.name)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--worlds", type=int, nargs="+", default=[0], help="seeds of the worlds")
    parser.add_argument("--finished", action="store_true", help="train nothing: write what is there")
    parser.add_argument("--wordnet", type=Path, help="folder of WordNet's files, for English synonyms")
    given = parser.parse_args()
    runs = Path(os.environ.get(_FOLDER) or "build/experiments")
    return TableRequest(
        scale=given.scale,
        worlds=tuple(given.worlds),
        seeds=tuple(given.seeds),
        finished_only=given.finished,
        places=Places(runs, home.parents[1] / "configs" / "embedding", given.wordnet),
    )


def _verdict(home: Path, scale: str) -> str:
    """What the README of an experiment says about its results at a scale."""
    readme, heading = home / "README.md", "Verdict" if scale == SMALL.name else f"Verdict, {scale}"
    written = re.compile(rf"\*\*{heading}\.\*\*\s*(.+?)(?:\n\n|\Z)", re.DOTALL)
    found = written.search(readme.read_text(encoding="utf-8")) if readme.is_file() else None
    return " ".join(found[1].split()) if found else "Not judged yet."


def _spaced(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))
