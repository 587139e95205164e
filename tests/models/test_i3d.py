"""I3D against the released network's own answers, its key layout and its parameter count."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, I3DConfig, reinitialise_batch_norm

ORACLES = Path(__file__).parents[3] / "shared" / "oracles"
needs_oracles = pytest.mark.skipif(not ORACLES.is_dir(), reason=f"the reference answers are not at {ORACLES}")


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def oracle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("oracle_checkpoint", ORACLES / "checkpoint.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def released(oracle: ModuleType) -> tuple[I3D, Head]:
    """Trunk and head with the formula weights, loaded strictly."""
    state = {name: torch.from_numpy(np.asarray(array)) for name, array in oracle.state_dict().items()}
    trunk = I3D().eval()
    head = Head(HeadConfig(activation_after_last="released", classes=1064)).eval()
    trunk.load_state_dict({name.removeprefix("i3d."): t for name, t in state.items() if name.startswith("i3d.")})
    head.load_state_dict({name.removeprefix("mlp."): t for name, t in state.items() if name.startswith("mlp.")})
    return trunk, head


def tiny(**options: object) -> I3D:
    torch.manual_seed(0)
    return I3D(I3DConfig(**{"classes": 5, "width": 0.125, **options}))


def clips(count: int = 2, frames: int = 16, side: int = 32) -> torch.Tensor:
    return torch.rand(count, 3, frames, side, side, generator=torch.Generator().manual_seed(1)) - 0.5


def relative_error(got: torch.Tensor, expected: np.ndarray) -> float:
    return float(np.abs(got.numpy() - expected).max() / np.abs(expected).max())


@needs_oracles
@pytest.mark.usefixtures("two_threads")
def test_trunk_and_head_agree_with_the_released_network(oracle: ModuleType, released: tuple[I3D, Head]) -> None:
    trunk, head = released
    golden = np.load(ORACLES / "golden.npz")
    with torch.inference_mode():
        output = trunk(torch.from_numpy(oracle.clips()))
        embedding = head(output.embedding).embedding
    assert relative_error(output.embedding, golden["trunk"]) < 1e-4
    assert relative_error(output.logits, golden["logits"]) < 1e-4
    assert relative_error(embedding, golden["embedding"]) < 1e-4


@needs_oracles
def test_names_and_shapes_are_those_of_the_released_checkpoint() -> None:
    keys = json.loads((ORACLES / "keys.json").read_text())
    head = Head(HeadConfig(classes=1064))
    ours = {f"i3d.{name}": list(t.shape) for name, t in I3D().state_dict().items()}
    ours |= {f"mlp.{name}": list(t.shape) for name, t in head.state_dict().items()}
    assert ours == keys


@needs_oracles
def test_a_middle_stage_is_an_entrance(oracle: ModuleType, released: tuple[I3D, Head]) -> None:
    trunk = released[0]
    maps = torch.from_numpy(oracle.clips(count=1))[..., :64, :64]
    with torch.inference_mode():
        whole = trunk(maps).embedding
        for name, stage in trunk.stages().items():
            maps = stage(maps, 0)
            if name == "Mixed_3b":
                resumed = trunk.summary(trunk.features(maps, after=name)).embedding
        last = trunk.summary(maps).embedding
    assert torch.equal(resumed, whole)
    assert torch.equal(last, whole)


def test_the_network_of_1064_words_has_13377864_parameters() -> None:
    assert sum(parameter.numel() for parameter in I3D().parameters()) == 13_377_864


def test_stages_shrink_as_the_design_says() -> None:
    """16 x 224: 8 x 112, 8 x 56, 8 x 28, 4 x 14, 2 x 7 (RELEASED_CODE 1.4)."""
    network, maps = tiny().eval(), clips(1, side=224)
    shapes = {}
    with torch.inference_mode():
        for name, stage in network.stages().items():
            maps = stage(maps, 0)
            shapes[name] = tuple(maps.shape[2:])
    first, *_, last = shapes
    assert (first, last, len(shapes)) == ("Conv3d_1a_7x7", "Mixed_5c", 16)
    assert shapes["Conv3d_1a_7x7"] == (8, 112, 112)
    assert shapes["Conv3d_2c_3x3"] == (8, 56, 56)
    assert shapes["Mixed_3c"] == (8, 28, 28)
    assert shapes["Mixed_4f"] == (4, 14, 14)
    assert shapes["Mixed_5c"] == (2, 7, 7)


@pytest.mark.parametrize(("width", "dim"), [(0.0625, 64), (0.125, 128), (0.25, 256), (0.5, 512), (1.0, 1024)])
def test_the_embedding_has_1024_numbers_times_the_width(width: float, dim: int) -> None:
    network = tiny(width=width).eval()
    assert network.embedding_dim == dim
    with torch.inference_mode():
        output = network(clips(1))
    assert output.embedding.shape == (1, dim) and output.logits.shape == (1, 5)


@pytest.mark.parametrize(("frames", "side"), [(1, 1), (7, 33), (16, 64), (16, 112), (20, 50), (64, 32)])
def test_clips_of_any_length_and_size_are_embedded(frames: int, side: int) -> None:
    with torch.inference_mode():
        output = tiny().eval()(clips(2, frames, side))
    assert output.embedding.shape == (2, 128)
    assert output.embedding.isfinite().all() and (output.embedding >= 0).all()


def test_no_clips_give_no_embeddings() -> None:
    with torch.inference_mode():
        assert tiny().eval()(clips(0)).embedding.shape == (0, 128)


def test_a_clip_is_embedded_the_same_in_any_batch() -> None:
    network, both = tiny().eval(), clips(2)
    with torch.inference_mode():
        together, again = network(both), network(both)
        alone = network(both[1:])
    assert torch.equal(together.embedding, again.embedding) and torch.equal(together.logits, again.logits)
    torch.testing.assert_close(together.embedding[1:], alone.embedding)


def test_dropout_touches_the_logits_in_training_only() -> None:
    network = tiny()
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    maps = torch.rand(1, 128, 2, 1, 1)
    first, second = network.train().summary(maps), network.summary(maps)
    assert torch.equal(first.embedding, second.embedding)
    assert not torch.equal(first.logits, second.logits)
    network.eval()
    assert torch.equal(network.summary(maps).logits, network.summary(maps).logits)


def test_every_parameter_receives_a_gradient() -> None:
    network = tiny().train()
    output = network(clips(2, side=64))
    (output.logits.square().sum() + output.embedding.square().sum()).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all() and parameter.grad.any(), name


def test_training_on_the_dictionary_leaves_the_other_domain_alone() -> None:
    network = tiny(domains=2)
    with torch.inference_mode():
        continuous, dictionary = network.eval()(clips(), 0).embedding, network(clips(), 1).embedding
        network.train()(3 * clips(4, side=64), domain=1)
        network.eval()
        assert torch.equal(network(clips(), 0).embedding, continuous)
        assert not torch.equal(network(clips(), 1).embedding, dictionary)


def test_reinitialising_batch_norm_forgets_all_but_the_convolutions() -> None:
    network, fresh = tiny(domains=2), tiny(domains=2)
    for domain in (0, 1):
        network.train()(clips(side=64), domain)
    for name, parameter in network.named_parameters():
        if ".bn." in name:
            torch.nn.init.normal_(parameter)
    reinitialise_batch_norm(network)
    for name, tensor in fresh.state_dict().items():
        assert torch.equal(network.state_dict()[name], tensor), name


@pytest.mark.parametrize("shape", [(3, 16, 32, 32), (1, 16, 32, 32, 3), (1, 3, 0, 32, 32)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"instead of \(B, 3, T, H, W\)"):
        tiny()(torch.zeros(shape))


def test_an_unknown_domain_or_stage_is_refused() -> None:
    with pytest.raises(ValueError, match="domain 1 of a network with 1"):
        tiny()(clips(), domain=1)
    with pytest.raises(ValueError, match="no stage 'Mixed_9z'"):
        tiny().features(clips(), after="Mixed_9z")


@pytest.mark.parametrize("options", [{"classes": 0}, {"width": 0.0}, {"width": 9.0}, {"domains": 0}, {"dropout": 1.0}])
def test_a_senseless_config_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"classes|width|domains|dropout"):
        I3DConfig(**options)
