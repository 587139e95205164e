"""Tables of the paper on a made-up world: methods in rows, the paper's two protocols in columns, every run kept.

A trunk is trained on the landmarks of the training words of a column and frozen; heads are trained on its vectors; all
are tested on the same passages and dictionary entries of the test words (Paper 4.2). Whatever is finished lies in a
folder and is never done twice: a table that was killed goes on where it stood.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from signspot.domain.words import Synonyms, Vocabulary
from signspot.errors import FormatError
from signspot.evaluation.intervals import Interval, class_interval, mean_interval
from signspot.evaluation.protocol import ProtocolScores
from signspot.evaluation.ranking import Floats, Ints, class_means
from signspot.features.store_disk import make_folder
from signspot.formats.safe_json import read_json, write_json
from signspot.learning.config import EmbeddingConfig, as_toml, read_config
from signspot.learning.device import repeatable, usable_device
from signspot.learning.head_scores import score_head
from signspot.learning.lesson import TrainingData, make_lesson
from signspot.learning.material import Material
from signspot.learning.pretrain import TrunkControls, TrunkMoment, train_trunk
from signspot.learning.run_folder import RunFolder
from signspot.learning.train import Controls, Moment, train_head
from signspot.learning.trunk_config import TrunkRunConfig
from signspot.learning.trunk_stages import TrunkData
from signspot.models.checkpoints import load_checkpoint
from signspot.models.head import Head
from signspot.models.landmark_embedder import landmark_embedder_from_checkpoint
from signspot.models.networks import HEAD, build_head
from signspot.text.synonyms import english_synonyms
from signspot.workflows.world_material import make_world_material, world_split, world_synonyms, world_trunk_data
from signspot.world.presets import preset_named
from signspot.world.simulation import World

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
            lesson = make_lesson(config, data)
            facts = {"trunk": train.fingerprint}
            with run.opened(config, facts, "resume" if run.config.exists() else "new"):
                train_head(config, lesson, run, Controls(progress=self._watch_head))
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

    def _watch_head(self, moment: Moment) -> None:
        self._told("training a head", _epochs_done(moment), moment.epochs)

    def _watch_trunk(self, moment: TrunkMoment) -> None:
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


def _epochs_done(moment: Moment | TrunkMoment) -> float:
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
