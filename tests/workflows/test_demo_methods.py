from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.tracks import FloatArray
from signspot.embedding.model import Reading
from signspot.learning.material import Material, WordSplit
from signspot.models.checkpoints import Checkpoint, ModelCard, describe, state_of
from signspot.models.i3d import I3D, I3DConfig
from signspot.workflows import demo as demo_methods
from signspot.workflows.demo import _METHODS, _compare_methods, _Experiment, _table_of, _threshold_of, _TrainedMethod
from tests.learning.planted import World, planted

WORLD = World(n_words=30, n_annotated=20)


def wide(vectors: FloatArray, dim: int) -> FloatArray:
    """The same cosines in more dimensions, as long as the trunk's vectors are."""
    return np.pad(vectors, ((0, 0), (0, dim - vectors.shape[1])))


def experiment(seed: int, *, epochs: int = 12, labels_of_test_words: int = 0) -> _Experiment:
    """A planted world; the first training passages may carry labels of test words, which nobody may learn from."""
    trunk = I3D(I3DConfig(classes=3, width=0.0625))
    card = ModelCard(name="t", architecture="i3d", config=describe(trunk), preprocessing={"side": 36, "crop": 32})
    train, test = (_padded(one, trunk.embedding_dim) for one in planted(WORLD, seed, n_train=300, n_test=60))
    label = train.passages.label.copy()
    label[:labels_of_test_words] = WORLD.n_words - 1
    split = WordSplit(WORLD.annotated, WORLD.unannotated, 0, "by hand")
    return _Experiment(
        train=replace(train, passages=replace(train.passages, label=label)),
        test=test,
        split=split,
        trunk=Checkpoint(card, state_of(trunk)),
        seed=seed,
        epochs=epochs,
    )


def _padded(material: Material, dim: int) -> Material:
    tracks = [wide(np.asarray(track, np.float32), dim) for track in material.tracks]
    return replace(material, tracks=tracks, entry_vectors=wide(material.entry_vectors, dim))


@dataclass(frozen=True)
class Margin:
    """Mean average precisions of words that were never annotated."""

    chance: float
    watch_lookup: float
    full_dictionary: float

    @classmethod
    def of(cls, trained: tuple[_TrainedMethod, ...]) -> Margin:
        scores = {row.name: row.mean_ap for row in _table_of(trained)}
        return cls(scores["chance"], scores["watch-lookup"], scores["full-dictionary"])


def quiet(step: str, done: float, total: float | None) -> None:
    assert 0 <= done <= (total or done)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[_TrainedMethod, ...]:
    torch.set_num_threads(1)
    return _compare_methods(experiment(0), tmp_path_factory.mktemp("heads"), Reading(progress=quiet))


def test_reading_finds_words_that_were_never_annotated(trained: tuple[_TrainedMethod, ...]) -> None:
    chance, *methods = _table_of(trained)
    scores = {row.name: row.mean_ap for row in methods}
    assert list(scores) == [method.name for method in _METHODS]
    assert scores["full-dictionary"] > 3 * chance.mean_ap
    assert scores["full-dictionary"] > scores["trunk alone"]
    assert chance.is_chance and 0 < chance.mean_ap < 0.2


@pytest.fixture(scope="module")
def margins(trained: tuple[_TrainedMethod, ...], tmp_path_factory: pytest.TempPathFactory) -> list[Margin]:
    """Of three seeds, each with a planted world, weights and minibatches of its own."""
    found = [Margin.of(trained)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_methods, "_METHODS", (_METHODS[2], _METHODS[-1]))
        for seed in (1, 2):
            found.append(
                Margin.of(_compare_methods(experiment(seed), tmp_path_factory.mktemp("heads"), Reading(progress=quiet)))
            )
    return found


def test_reading_every_word_clearly_beats_chance_and_watching_for_every_seed(margins: list[Margin]) -> None:
    for margin in margins:
        assert margin.full_dictionary > 2 * margin.chance, margins
        assert margin.full_dictionary > 1.2 * margin.watch_lookup, margins


def test_a_learned_model_gives_the_scores_of_the_table_when_it_is_loaded(trained: tuple[_TrainedMethod, ...]) -> None:
    for one in trained:
        assert (one.path is None) == (one.method.loss is None)
        rows = np.random.default_rng(0).random((5, one.model.network.trunk_dim), np.float32)
        again = demo_methods.embedder_from_checkpoint(one.path or experiment(0).trunk)
        if one.path is not None:
            np.testing.assert_array_equal(one.model.network.head_vectors(rows), again.head_vectors(rows))
            assert one.model.dim == 128


def test_labels_of_test_words_change_nothing(tmp_path: Path) -> None:
    """Passages that carry such a label are as good as absent."""
    torch.set_num_threads(1)
    labelled = experiment(0, epochs=1, labels_of_test_words=60)
    passages = labelled.train.passages
    kept = slice(60, None)
    offsets = passages.word_offsets[60:] - passages.word_offsets[60]
    without = replace(
        passages,
        names=passages.names[kept],
        word_offsets=offsets,
        words=passages.words[passages.word_offsets[60] :],
        **{
            name: getattr(passages, name)[kept]
            for name in ("track", "start", "stop", "label", "label_frame", "confidence")
        },
    )
    absent = replace(labelled, train=replace(labelled.train, passages=without))
    rows = np.random.default_rng(0).random((5, labelled.train.entry_vectors.shape[1]), np.float32)
    for one, other in zip(
        _compare_methods(labelled, tmp_path / "a", Reading()),
        _compare_methods(absent, tmp_path / "b", Reading()),
        strict=True,
    ):
        np.testing.assert_array_equal(one.model.network.head_vectors(rows), other.model.network.head_vectors(rows))


@dataclass
class Direct:
    """A model whose head does nothing but bring vectors to length 1."""

    name = "direct"
    fingerprint = "direct"
    threshold = 0.4
    trunk_dim = dim = 32

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        unit: FloatArray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def test_one_absent_word_in_five_passes_the_threshold() -> None:
    train, test = planted(WORLD, 3, n_train=40, n_test=5)
    split = WordSplit(WORLD.annotated, WORLD.unannotated, 0, "by hand")
    room = replace(experiment(3), train=train, test=test, split=split)
    model, peaks = Direct(), []
    for place in range(len(train.passages)):
        first, last = train.passages.word_offsets[place : place + 2]
        windows = model.head_vectors(np.asarray(train.tracks[place])[: train.passages.stop[place] - 15])
        for word in WORLD.unannotated:
            number = WORLD.vocabulary.id_of(word)
            if number not in train.passages.words[first:last]:
                entries = model.head_vectors(train.entry_vectors[train.entry_word == number])
                peaks.append(max(float(window @ entry) for window in windows for entry in entries))
    found = _threshold_of(model, room)  # type: ignore[arg-type]
    assert sum(peak > found for peak in peaks) / len(peaks) == pytest.approx(0.2, abs=0.01)
