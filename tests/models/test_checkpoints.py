from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import pickle
import random
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from signspot.errors import InputError, OutputExists
from signspot.models.checkpoints import (
    Checkpoint,
    ImportOptions,
    ModelCard,
    _recognised_weights,
    import_checkpoint,
    load_checkpoint,
    read_card,
    save_checkpoint,
    weights_sha256,
)
from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, I3DConfig

ORACLE = Path("/work/shared/oracles/checkpoint.py")
CARD = ModelCard(name="tiny", architecture="other", config={"width": 0.5, "gated": False}, vocabulary=("apple", "œuf"))
SOURCE = Path("model.pth.tar")


def released() -> dict[str, Tensor]:
    """The released layout, all names and shapes, filled with small numbers."""
    generator = torch.Generator().manual_seed(0)
    networks = {"i3d": I3D(I3DConfig()), "mlp": Head(HeadConfig(classes=1064))}
    state = {f"{part}.{name}": tensor for part, net in networks.items() for name, tensor in net.state_dict().items()}
    return {
        name: torch.rand(tensor.shape, generator=generator) if tensor.is_floating_point() else tensor
        for name, tensor in state.items()
    }


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    return released()


@pytest.fixture(scope="module")
def head(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in weights.items() if name.startswith("mlp.")}


def tiny() -> dict[str, Tensor]:
    return {"a.weight": torch.arange(12.0).reshape(3, 4), "b": torch.tensor(3), "c": torch.ones(2, dtype=torch.float16)}


def test_a_saved_model_comes_back_with_its_card(tmp_path: Path) -> None:
    card = save_checkpoint(tmp_path / "m.safetensors", tiny(), CARD)
    assert card == replace(CARD, weights_sha256=weights_sha256(tiny()))
    loaded = load_checkpoint(tmp_path / "m.safetensors")
    assert loaded.card == card == read_card(tmp_path / "m.safetensors")
    assert set(loaded.weights) == set(tiny())
    assert all(torch.equal(loaded.weights[name], tensor) for name, tensor in tiny().items())


def test_saving_the_same_model_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    backwards = dict(reversed(tiny().items()))
    save_checkpoint(tmp_path / "a.safetensors", tiny(), CARD)
    save_checkpoint(tmp_path / "b.safetensors", backwards, CARD)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path: Path) -> None:
    path, damaged = tmp_path / "m.safetensors", tmp_path / "damaged.safetensors"
    save_checkpoint(path, tiny(), CARD)
    whole, rng = path.read_bytes(), random.Random(0)
    for _ in range(400):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        damaged.write_bytes(flipped)
        with pytest.raises(InputError):
            load_checkpoint(damaged)
    for length in range(0, len(whole), 7):
        damaged.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load_checkpoint(damaged)


def test_an_existing_model_is_kept_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_checkpoint(path, tiny(), CARD)
    before = path.read_bytes()
    with pytest.raises(OutputExists, match="exists already"):
        save_checkpoint(path, {"a": torch.ones(1)}, CARD)
    assert path.read_bytes() == before
    save_checkpoint(path, {"a": torch.ones(1)}, CARD, overwrite=True)
    assert set(load_checkpoint(path).weights) == {"a"}


def test_a_model_with_a_broken_number_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not saved: not a number in a\.weight"):
        save_checkpoint(tmp_path / "m.safetensors", {"a.weight": torch.tensor([1.0, float("nan")])}, CARD)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_is_not_loaded_and_the_way_to_import_it_is_named(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "my model.safetensors"
    path.write_bytes(pickle.dumps({"a": 1}, protocol))
    with pytest.raises(InputError, match=r"this is a pickle: run `signspot models import '.*my model.safetensors'`"):
        load_checkpoint(path)
    for is_zip in (True, False):
        torch.save({}, path, _use_new_zipfile_serialization=is_zip)
        with pytest.raises(InputError, match="this is a pickle"):
            load_checkpoint(path)


def test_weights_without_a_card_and_other_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(InputError, match="holds weights but no model card"):
        load_checkpoint(path)
    path.write_text("hello")
    with pytest.raises(InputError, match=r"is not a .safetensors file"):
        load_checkpoint(path)
    for missing in (tmp_path, tmp_path / "missing.safetensors"):
        with pytest.raises(InputError, match="is not a file"):
            load_checkpoint(missing)
    with pytest.raises(InputError, match=r"name it m\.safetensors"):
        save_checkpoint(tmp_path / "m.pth", tiny(), CARD)


def wrapped(prefix: str) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    return lambda weights: {prefix + name: tensor for name, tensor in weights.items()}


@pytest.mark.parametrize(
    "stored_as",
    [
        wrapped(""),
        wrapped("module."),
        wrapped("state_dict/"),
        wrapped("state_dict/module."),
        wrapped("model/state_dict/module.module."),
        lambda weights: {name.replace(".", ".module.", 1): tensor for name, tensor in weights.items()},
        lambda weights: {name.replace(".", "/", 1): tensor for name, tensor in weights.items()},
    ],
)
def test_any_nesting_of_wrappers_and_prefixes_is_understood(
    weights: dict[str, Tensor], stored_as: Callable[[dict[str, Tensor]], dict[str, Tensor]]
) -> None:
    momentum = {"optimizer/state/0/momentum_buffer": torch.ones(3)}
    found, others = _recognised_weights(SOURCE, stored_as(weights) | momentum)
    assert others == tuple(momentum)
    assert set(found) == set(weights)
    assert all(torch.equal(found[name], tensor) for name, tensor in weights.items())


@pytest.mark.parametrize("part", ["i3d", "mlp"])
def test_one_network_alone_is_recognised_with_and_without_its_prefix(weights: dict[str, Tensor], part: str) -> None:
    alone = {name: tensor for name, tensor in weights.items() if name.startswith(f"{part}.")}
    for stored in (alone, {name.removeprefix(f"{part}."): tensor for name, tensor in alone.items()}):
        assert set(_recognised_weights(SOURCE, stored)[0]) == set(alone)


@pytest.mark.parametrize("classes", [1, 27, 400, 966, 1233, 2000, 2281])
def test_any_number_of_words_is_taken(weights: dict[str, Tensor], classes: int) -> None:
    trunk = {name: tensor for name, tensor in weights.items() if name.startswith("i3d.")}
    trunk["i3d.logits.conv3d.weight"] = torch.zeros(classes, 1024, 1, 1, 1)
    trunk["i3d.logits.conv3d.bias"] = torch.zeros(classes)
    assert len(_recognised_weights(SOURCE, trunk)[0]["i3d.logits.conv3d.bias"]) == classes


def test_half_and_double_precision_become_single_and_counters_may_be_missing(weights: dict[str, Tensor]) -> None:
    stored = {name: tensor.half() for name, tensor in weights.items() if not name.endswith("num_batches_tracked")}
    stored["mlp.res.0.bias"] = weights["mlp.res.0.bias"].double()
    found, _ = _recognised_weights(SOURCE, stored)
    assert set(found) == set(weights)
    assert {tensor.dtype for tensor in found.values()} == {torch.float32, torch.int64}
    assert torch.equal(found["mlp.res.0.bias"], weights["mlp.res.0.bias"])


def test_a_head_without_its_classifier_is_taken(head: dict[str, Tensor]) -> None:
    bare = {name: tensor for name, tensor in head.items() if "logits" not in name}
    assert set(_recognised_weights(SOURCE, bare)[0]) == set(bare)


def _with(name: str, tensor: Tensor) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    return lambda head: head | {name: tensor}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: {n: t for n, t in h.items() if n != "mlp.res.0.bias"}, r"lacks mlp\.res\.0\.bias"),
        (_with("mlp.res.1.weight", torch.ones(2)), r"holds unexpected tensors: mlp\.res\.1\.weight"),
        (_with("mlp.res.0.bias", torch.ones(7)), r"wrong shapes: mlp\.res\.0\.bias \(\(7,\) instead of \(1024,\)\)"),
        (_with("mlp.logits.bias", torch.ones(7)), r"wrong shapes: mlp\.logits\.bias"),
        (_with("mlp.res.0.bias", torch.full((1024,), float("nan"))), r"is not a number.* in mlp\.res\.0\.bias"),
        (_with("mlp.res.0.bias", torch.full((1024,), 1e300, dtype=torch.float64)), "is not a number"),
        (_with("mlp.res.0.bias", torch.ones(1024, dtype=torch.int8)), r"wrong type of numbers in mlp\.res\.0\.bias"),
        (_with("module.mlp.res.0.bias", torch.ones(1024)), r"holds mlp\.res\.0\.bias twice"),
        (lambda h: {"fc.weight": torch.ones(2)}, r"holds no I3D and no head, but fc\.weight"),
        (lambda h: {}, "holds no I3D and no head"),
    ],
)
def test_what_does_not_fit_the_network_is_refused_by_name(
    head: dict[str, Tensor], change: Callable[[dict[str, Tensor]], dict[str, Tensor]], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        _recognised_weights(SOURCE, change(head))


def test_a_negative_variance_is_refused(weights: dict[str, Tensor]) -> None:
    name = "i3d.Conv3d_1a_7x7.bn.running_var"
    with pytest.raises(InputError, match="negative variance"):
        _recognised_weights(SOURCE, weights | {name: -weights[name]})


def oracle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("released_checkpoint", ORACLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not ORACLE.exists(), reason="the released layout is not at hand")
def test_a_file_in_the_released_layout_is_imported_whole(tmp_path: Path) -> None:
    numbers = oracle().state_dict()
    path, to = tmp_path / "i3d_mlp.pth.tar", tmp_path / "wrl.safetensors"
    torch.save({name: torch.from_numpy(np.asarray(array)) for name, array in numbers.items()}, path)
    report = import_checkpoint(path, to, ImportOptions(licence="research only"))
    assert report.summary == "i3d+mlp: zip pickle, 352 tensors, 0 foreign objects, shapes match"
    loaded = load_checkpoint(to)
    assert set(loaded.weights) == set(numbers)
    assert all(np.array_equal(loaded.weights[name].numpy(), array) for name, array in numbers.items())
    assert loaded.card.created_from.startswith("i3d_mlp.pth.tar sha256:")
    assert (loaded.card.name, loaded.card.licence, loaded.card.config["classes"]) == ("wrl", "research only", 1064)
    I3D(I3DConfig()).load_state_dict(loaded.part("i3d"))
    Head(HeadConfig(classes=1064, activation_after_last="released")).load_state_dict(loaded.part("mlp"))


def test_a_legacy_file_of_a_training_run_is_imported_and_its_extras_are_named(
    tmp_path: Path, head: dict[str, Tensor]
) -> None:
    state = {f"module.{name}": tensor.half() for name, tensor in head.items()}
    run = {"epoch": 9, "arch": "MLP", "state_dict": state, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}}
    path, to = tmp_path / "mlp.pth.tar", tmp_path / "mlp.safetensors"
    torch.save(run, path, _use_new_zipfile_serialization=False)
    report = import_checkpoint(path, to)
    assert (
        report.summary
        == "mlp: legacy pickle, 8 tensors, 0 foreign objects, shapes match; ignored arch, epoch, optimizer"
    )
    assert all(torch.equal(load_checkpoint(to).weights[name], tensor.half().float()) for name, tensor in head.items())


def test_weights_in_a_plain_safetensors_file_are_imported_and_get_a_card(
    tmp_path: Path, head: dict[str, Tensor]
) -> None:
    path, to = tmp_path / "plain.safetensors", tmp_path / "ours.safetensors"
    save_file({name: tensor.bfloat16() for name, tensor in head.items()}, path)
    words = tuple(f"word{i}" for i in range(1064))
    report = import_checkpoint(path, to, ImportOptions(vocabulary=words, training_data="BSL-1K"))
    loaded = load_checkpoint(to)
    assert isinstance(loaded, Checkpoint) and loaded.card == report.card and loaded.card.vocabulary == words
    with pytest.raises(InputError, match="2 words given for a classifier of 1064"):
        import_checkpoint(path, tmp_path / "x.safetensors", ImportOptions(vocabulary=("a", "b")))


def test_a_wrong_hash_or_a_taken_name_stops_the_import_at_once(tmp_path: Path) -> None:
    path, to = tmp_path / "m.pth", tmp_path / "m.safetensors"
    torch.save({"a": torch.ones(1)}, path)
    with pytest.raises(InputError, match=r"has the sha256 .*not the one given"):
        import_checkpoint(path, to, ImportOptions(sha256="0" * 64))
    to.write_text("mine")
    with pytest.raises(OutputExists):
        import_checkpoint(path, to)
    assert to.read_text() == "mine"


def test_a_model_of_ours_is_imported_under_another_name(tmp_path: Path, head: dict[str, Tensor]) -> None:
    words = tuple(f"word{i}" for i in range(1064))
    config = {"head_classes": 1064, "head_activation_after_last": "released", "threshold": 0.3}
    ours = replace(CARD, architecture="mlp", config=config, vocabulary=words, licence="CC0", created_from="run 7")
    save_checkpoint(tmp_path / "best.safetensors", head, ours)
    report = import_checkpoint(tmp_path / "best.safetensors", tmp_path / "kept.safetensors")
    kept = load_checkpoint(tmp_path / "kept.safetensors")
    assert kept.card == report.card == replace(ours, name="kept", weights_sha256=kept.card.weights_sha256)
    assert all(torch.equal(kept.weights[name], tensor) for name, tensor in head.items())
    assert report.summary == "mlp: model of signspot, 8 tensors, 0 foreign objects, shapes match"
    options = ImportOptions(licence="mine", overwrite=True)
    import_checkpoint(tmp_path / "best.safetensors", tmp_path / "kept.safetensors", options)
    assert read_card(tmp_path / "kept.safetensors").licence == "mine"


def written_by_hand(path: Path, weights: dict[str, Tensor], card: ModelCard) -> None:
    """A file whose checksums are right, whatever is in it."""
    text = json.dumps(asdict(replace(card, weights_sha256=weights_sha256(weights))), sort_keys=True)
    signed = {"card": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    save_file(weights, path, {"signspot": json.dumps(signed)})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused_in_any_model_of_ours(tmp_path: Path, bad: float) -> None:
    path = tmp_path / "m.safetensors"
    written_by_hand(path, tiny() | {"a.weight": torch.tensor([1.0, bad])}, CARD)
    for read in (load_checkpoint, lambda path: import_checkpoint(path, tmp_path / "new.safetensors")):
        with pytest.raises(InputError, match=r"holds NaN, an infinite number or a negative variance in a\.weight"):
            read(path)
    written_by_hand(path, tiny(), replace(CARD, config={"threshold": bad}))
    with pytest.raises(InputError, match="model card that is not one of ours"):
        load_checkpoint(path)
