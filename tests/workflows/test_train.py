from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from signspot.domain.recordings import Synonyms
from signspot.errors import InputError, OutputExists
from signspot.learning.config import as_toml
from signspot.learning.head import Controls
from signspot.learning.material import Material, WordSplit, _write_synonyms
from signspot.learning.runs import Interrupted
from signspot.models.checkpoints import ModelCard, load_checkpoint, save_checkpoint
from signspot.models.embedders import embedder_from_checkpoint
from signspot.models.i3d import I3D, I3DConfig
from signspot.workflows.train import EmbeddingRun, compare_runs, train_embedding
from tests.learning.planted import planted
from tests.learning.small_runs import SMALL, WORLD


@pytest.fixture(scope="module")
def materials() -> tuple[Material, Material]:
    return planted(WORLD, seed=0, n_train=48, n_test=16)


@pytest.fixture
def request_(tmp_path: Path, materials: tuple[Material, Material]) -> EmbeddingRun:
    for name, material in zip(("train", "test"), materials, strict=True):
        material.write(tmp_path / name)
    (tmp_path / "run.toml").write_text(as_toml(SMALL))
    return EmbeddingRun(
        config=tmp_path / "run.toml", data=tmp_path / "train", test=tmp_path / "test", out=tmp_path / "run"
    )


def test_a_run_leaves_everything_a_reader_needs(request_: EmbeddingRun) -> None:
    told: list[str] = []
    trained = train_embedding(request_, tell=told.append)
    assert told[0].startswith("48 of 48 labelled passages, 8 words: 6 minibatches of 8")
    names = {path.name for path in request_.out.iterdir() if path.suffix}
    models = {"last.safetensors", "best.safetensors", "state.safetensors"}
    assert names == models | {"config.toml", "data.json", "environment.json", "curves.jsonl", "results.json"}
    assert trained.results == json.loads((request_.out / "results.json").read_text())
    assert len((request_.out / "curves.jsonl").read_text().splitlines()) == 3
    assert set(json.loads((request_.out / "data.json").read_text())) == {"train", "test"}


def test_the_record_of_a_run_repeats_it(request_: EmbeddingRun) -> None:
    train_embedding(replace(request_, changes=("seed=5", "learning_rate=0.02")))
    again = replace(request_, config=request_.out / "config.toml", out=request_.out.with_name("again"))
    train_embedding(again)
    first, second = (load_file(out / "last.safetensors") for out in (request_.out, again.out))
    assert all(torch.equal(second[name], tensor) for name, tensor in first.items())


def test_an_interrupted_run_continues_with_resume_only(request_: EmbeddingRun) -> None:
    steps = iter(range(100))
    with pytest.raises(Interrupted):
        train_embedding(request_, Controls(stop=lambda: next(steps) == 8))
    with pytest.raises(OutputExists, match="--resume"):
        train_embedding(request_)
    with pytest.raises(InputError, match=r"other options \(seed = 0, now 4\)"):
        train_embedding(replace(request_, start="resume", changes=("seed=4",)))
    assert train_embedding(replace(request_, start="resume")).results["epochs"] == 3
    told: list[str] = []
    assert train_embedding(replace(request_, start="resume"), tell=told.append).results["epochs"] == 3
    assert told == ["this run had finished: there is nothing left to train"]
    planted(WORLD, 9, 48, 16)[0].write(request_.data, overwrite=True)
    with pytest.raises(InputError, match="other data"):
        train_embedding(replace(request_, start="resume"))


def test_words_that_are_not_trained_are_never_labels(request_: EmbeddingRun, tmp_path: Path) -> None:
    split = WordSplit(WORLD.annotated[:5], WORLD.unannotated, 0, "by hand")
    split.write(tmp_path / "split.json")
    told: list[str] = []
    changes = (f"split={tmp_path / 'split.json'}", "training_words=train", "dictionary=limited")
    train_embedding(replace(request_, changes=changes), tell=told.append)
    assert "18 passages left out: the label is not a training word" in told
    assert {"train", "test", "split"} == set(json.loads((request_.out / "data.json").read_text()))
    with pytest.raises(InputError, match="training_words = train: needs a split file"):
        train_embedding(replace(request_, out=tmp_path / "other", changes=("training_words=train",)))
    assert not (tmp_path / "other").exists()


def test_synonyms_of_the_material_change_what_is_learned(request_: EmbeddingRun, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="made without sign synonyms"):
        train_embedding(replace(request_, changes=("synonyms=sign",)))
    words = WORLD.vocabulary.words
    _write_synonyms(Synonyms.of(zip(words[:8], words[8:], strict=True)), request_.data, "sign")
    train_embedding(request_)
    train_embedding(replace(request_, out=tmp_path / "sign", changes=("synonyms=sign",)))
    kept, discarded = (load_file(out / "last.safetensors") for out in (request_.out, tmp_path / "sign"))
    assert any(not torch.equal(kept[name], tensor) for name, tensor in discarded.items())


def widened(material: Material, dim: int, fingerprint: str) -> Material:
    """The same vectors with zeros behind, as if another trunk had made them."""
    missing = ((0, 0), (0, dim - material.entry_vectors.shape[1]))
    return replace(
        material,
        tracks=[np.pad(track, missing) for track in material.tracks],
        entry_vectors=np.pad(material.entry_vectors, missing),
        fingerprint=fingerprint,
    )


def test_with_its_trunk_a_run_leaves_a_model_that_embeds_video(
    request_: EmbeddingRun, tmp_path: Path, materials: tuple[Material, Material]
) -> None:
    torch.manual_seed(0)
    network = I3D(I3DConfig(classes=3, width=1 / 32))
    card = ModelCard(
        name="narrow",
        architecture="i3d",
        config={"classes": 3, "width": 1 / 32},
        preprocessing={"side": 40, "crop": 32},
    )
    trunk = tmp_path / "trunk.safetensors"
    save_checkpoint(trunk, {f"i3d.{name}": tensor for name, tensor in network.state_dict().items()}, card)
    with pytest.raises(InputError, match=r"trunk\.safetensors: is not the trunk that made the vectors"):
        train_embedding(replace(request_, trunk=trunk))
    embedder = embedder_from_checkpoint(load_checkpoint(trunk), backend="torch")
    for name, material in zip(("train", "test"), materials, strict=True):
        widened(material, 48, embedder.trunk_fingerprint).write(tmp_path / name, overwrite=True)
    train_embedding(replace(request_, trunk=trunk))
    model = embedder_from_checkpoint(load_checkpoint(request_.out / "best.safetensors"), backend="torch")
    assert model.trunk_fingerprint == embedder.trunk_fingerprint
    weights = load_file(request_.out / "best.safetensors")
    rows = torch.from_numpy(widened(materials[1], 48, "").entry_vectors)
    head = torch.nn.functional.leaky_relu(rows @ weights["mlp.res.0.weight"].T + weights["mlp.res.0.bias"], 0.2) + rows
    head = torch.nn.functional.leaky_relu(head @ weights["mlp.adaptor.0.weight"].T + weights["mlp.adaptor.0.bias"], 0.2)
    head = head @ weights["mlp.adaptor.2.weight"].T + weights["mlp.adaptor.2.bias"]
    expected = head / head.norm(dim=1, keepdim=True)
    torch.testing.assert_close(torch.from_numpy(model.head_vectors(rows.numpy())), expected, rtol=1e-4, atol=1e-5)


def test_runs_are_compared_by_what_differs_and_what_came_out(request_: EmbeddingRun, tmp_path: Path) -> None:
    train_embedding(request_)
    train_embedding(replace(request_, out=tmp_path / "other", changes=("loss=infonce", "seed=1")))
    steps = iter(range(100))
    with pytest.raises(Interrupted):
        train_embedding(replace(request_, out=tmp_path / "cut"), Controls(stop=lambda: next(steps) == 2))
    compared = compare_runs((request_.out, tmp_path / "other", tmp_path / "cut"))
    assert {row.name: row.values for row in compared.options} == {
        "loss": ("watch-read-lookup", "infonce", "watch-read-lookup"),
        "seed": (0, 1, 0),
    }
    results = {row.name: row.values for row in compared.results}
    assert results["state"] == (None, None, "not finished")
    assert results["final.mean_ap"][0] == json.loads((request_.out / "results.json").read_text())["final"]["mean_ap"]
    assert results["final.mean_ap"][2] is None
    with pytest.raises(InputError, match=r"is not a run folder: it has no config\.toml"):
        compare_runs((tmp_path,))


def test_missing_material_is_told_before_anything_is_written(request_: EmbeddingRun, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such folder"):
        train_embedding(replace(request_, data=tmp_path / "nowhere"))
    assert not request_.out.exists()
