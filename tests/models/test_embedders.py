from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from signspot.domain.tracks import FrameShape
from signspot.embedding.pictures import ClipNetwork
from signspot.errors import InputError
from signspot.media.frames import Normalisation, normalised
from signspot.models.backends import Program, TorchBackend, choose_backend
from signspot.models.checkpoints import Checkpoint, ModelCard, import_checkpoint, save_checkpoint
from signspot.models.embedders import EmbedderSettings, VideoEmbedder, _fingerprint_of, embedder_from_checkpoint
from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, I3DConfig, InceptionTrunk
from tests.models.networks import embedder_of, moving_frames, relative_error, tiny_head, tiny_i3d, tiny_s3d

ORACLES = Path(__file__).parents[3] / "shared" / "oracles"
needs_oracles = pytest.mark.skipif(not ORACLES.is_dir(), reason=f"the reference answers are not at {ORACLES}")
needs_openvino = pytest.mark.skipif(not importlib.util.find_spec("openvino"), reason="openvino is not installed")


@pytest.fixture(scope="module")
def oracle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("oracle_checkpoint", ORACLES / "checkpoint.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def released(oracle: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The formula weights in the released layout, imported as a user would."""
    folder = tmp_path_factory.mktemp("released")
    state = {name: torch.from_numpy(np.asarray(array)) for name, array in oracle.state_dict().items()}
    torch.save(state, folder / "i3d_mlp.pth.tar")
    import_checkpoint(folder / "i3d_mlp.pth.tar", folder / "released.safetensors")
    return folder / "released.safetensors"


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@needs_oracles
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("backend", ["torch", pytest.param("openvino", marks=needs_openvino)])
def test_an_imported_released_model_answers_as_the_released_network(
    oracle: ModuleType, released: Path, backend: str
) -> None:
    model = embedder_from_checkpoint(released, backend=backend)
    golden = np.load(ORACLES / "golden.npz")
    clips = np.moveaxis(oracle.clips(), 1, -1)
    trunk = model.trunk_vectors(clips)
    assert np.abs(trunk - golden["trunk"]).max() < 1e-4 * np.abs(golden["trunk"]).max()
    assert np.abs(model.head_vectors(trunk) - golden["embedding"]).max() < 1e-4 * np.abs(golden["embedding"]).max()
    assert (model.dim, model.frame_shape, model.threshold) == (256, FrameShape(256, 224), 0.4)


def test_it_is_a_network_with_unit_rows() -> None:
    model: ClipNetwork = embedder_of(tiny_i3d(), tiny_head())
    clips = moving_frames(48).reshape(3, 16, 64, 64, 3)
    vectors = model.head_vectors(model.trunk_vectors(clips))
    assert vectors.shape == (3, model.dim) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-5)


@pytest.mark.parametrize("backend", ["torch", pytest.param("openvino", marks=needs_openvino)])
@pytest.mark.parametrize("trunk", [tiny_i3d(), tiny_s3d(), tiny_s3d(gated=True)], ids=["i3d", "s3d", "s3d-g"])
def test_folding_batch_norm_changes_nothing(trunk: InceptionTrunk, backend: str) -> None:
    clips = moving_frames(80).reshape(5, 16, 64, 64, 3)
    with torch.inference_mode():
        plain = trunk(torch.from_numpy(np.moveaxis(normalised(clips), -1, 1))).embedding.numpy()
    model = embedder_of(trunk, backend=choose_backend(backend))
    assert relative_error(model.trunk_vectors(clips), plain) < 1e-4


def test_bytes_and_normalised_numbers_are_the_same_clip() -> None:
    model = embedder_of(tiny_i3d())
    clips = moving_frames(16)[None]
    assert model.embed(clips).tolist() == model.embed(normalised(clips)).tolist()


@pytest.mark.parametrize("count", [0, 1, 8, 9, 19])
def test_a_clip_has_the_same_vector_in_any_batch(count: int) -> None:
    model = embedder_of(tiny_i3d(), tiny_head())
    frames = moving_frames(16 + 19)
    clips = np.stack([frames[s : s + 16] for s in range(19)])[:count]
    alone = [model.embed(clip[None])[0] for clip in clips]
    assert model.embed(clips).shape == (count, 16)
    np.testing.assert_allclose(model.embed(clips), np.array(alone).reshape(count, 16), atol=1e-5)


def test_without_a_head_the_trunk_gives_the_direction() -> None:
    model = embedder_of(tiny_i3d())
    clips = moving_frames(32).reshape(2, 16, 64, 64, 3)
    trunk = model.trunk_vectors(clips)
    np.testing.assert_allclose(model.embed(clips), trunk / np.linalg.norm(trunk, axis=1, keepdims=True), atol=1e-6)
    assert model.dim == 128


def test_the_networks_given_stay_as_they_are_and_later_changes_do_not_matter() -> None:
    trunk = tiny_i3d()
    before = {name: tensor.clone() for name, tensor in trunk.state_dict().items()}
    model = embedder_of(trunk)
    clips = moving_frames(16)[None]
    first = model.embed(clips)
    assert all(torch.equal(tensor, before[name]) for name, tensor in trunk.state_dict().items())
    with torch.no_grad():
        trunk.get_parameter("Conv3d_1a_7x7.conv3d.weight").zero_()
    assert model.embed(clips).tolist() == first.tolist()


def settings(**changed: object) -> EmbedderSettings:
    return EmbedderSettings(**{"name": "tiny", "frame_shape": FrameShape(64, 64), **changed})  # type: ignore[arg-type]


def test_the_fingerprint_changes_when_the_vectors_would() -> None:
    def fingerprint(**changed: object) -> str:
        return VideoEmbedder(tiny_i3d(), tiny_head(), settings(**changed)).fingerprint

    other_trunk, other_head = tiny_i3d(), tiny_head()
    with torch.no_grad():
        other_trunk.get_parameter("Mixed_5c.b0.conv3d.weight")[0, 0] += 1e-3
        other_head.get_parameter("adaptor.2.bias")[0] += 1e-3
    all_of_them = [
        fingerprint(),
        fingerprint(frame_shape=FrameShape(72, 64)),
        fingerprint(frame_shape=FrameShape(64, 64, keep_aspect=True)),
        fingerprint(frame_shape=FrameShape(64, 64, keep_aspect=True, signer_box=True)),
        fingerprint(normalisation=Normalisation(std=(0.5, 0.5, 0.5))),
        fingerprint(backend=TorchBackend(dtype=torch.bfloat16)),
        VideoEmbedder(other_trunk, tiny_head(), settings()).fingerprint,
        VideoEmbedder(tiny_i3d(), other_head, settings()).fingerprint,
        VideoEmbedder(tiny_i3d(), None, settings()).fingerprint,
    ]
    assert len(set(all_of_them)) == len(all_of_them)
    assert fingerprint() == fingerprint(name="another name", threshold=0.9)


def test_the_classifier_is_not_part_of_the_fingerprint() -> None:
    trunk, other = tiny_i3d(), tiny_i3d()
    with torch.no_grad():
        other.get_parameter("logits.conv3d.bias").add_(1)
    assert embedder_of(trunk).fingerprint == embedder_of(other).fingerprint


@pytest.mark.parametrize("shape", [(16, 64, 64, 3), (1, 15, 64, 64, 3), (1, 16, 32, 64, 3), (1, 3, 16, 64, 64)])
def test_clips_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"instead of \(n, 16, 64, 64, 3\)"):
        embedder_of(tiny_i3d()).embed(np.zeros(shape, np.uint8))


def test_a_head_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="a head for 64 numbers on a trunk of 128"):
        embedder_of(tiny_i3d(), tiny_head(64))


def tiny_checkpoint(path: Path, **card: object) -> Path:
    networks = {"s3d": tiny_s3d(gated=True), "mlp": tiny_head()}
    weights = {f"{part}.{name}": t for part, net in networks.items() for name, t in net.state_dict().items()}
    known: dict[str, object] = {
        "name": "small",
        "architecture": "s3d+mlp",
        "config": {"classes": 3, "width": 0.125, "gated": True, "threshold": 0.6}
        | {"head_input_dim": 128, "head_hidden_dim": 32, "head_embedding_dim": 16},
        "preprocessing": {"side": 72, "crop": 64, "keep_aspect": True, "mean": 0.4, "std": 0.25},
    }
    save_checkpoint(path, weights, ModelCard(**(known | card)))  # type: ignore[arg-type]
    return path


def test_models_without_boxes_keep_the_fingerprint_they_had_before_there_were_any() -> None:
    model = VideoEmbedder(tiny_i3d(), None, settings())
    how = {
        "frames": {"side": 64, "crop": 64, "keep_aspect": False},
        "normalisation": asdict(Normalisation()),
        "backend": TorchBackend().name,
    }
    assert model.fingerprint == _fingerprint_of({"trunk": model.trunk}, how)


@pytest.mark.parametrize("said", [{}, {"signer_box": False}, {"signer_box": True}])
def test_the_card_says_whether_a_model_looks_at_signers(tmp_path: Path, said: dict[str, bool]) -> None:
    frames = {"side": 72, "crop": 64, "keep_aspect": True} | said
    model = embedder_from_checkpoint(tiny_checkpoint(tmp_path / "m.safetensors", preprocessing=frames), backend="torch")
    assert model.frame_shape.signer_box == said.get("signer_box", False)


def test_a_model_of_our_own_comes_back_with_its_settings(tmp_path: Path) -> None:
    model = embedder_from_checkpoint(tiny_checkpoint(tmp_path / "m.safetensors"), backend="torch")
    normalisation = Normalisation((0.4, 0.4, 0.4), (0.25, 0.25, 0.25))
    shape = FrameShape(72, 64, keep_aspect=True)
    by_hand = VideoEmbedder(tiny_s3d(gated=True), tiny_head(), settings(frame_shape=shape, normalisation=normalisation))
    clips = moving_frames(16)[None]
    assert model.embed(clips).tolist() == by_hand.embed(clips).tolist()
    assert model.fingerprint == by_hand.fingerprint
    assert (model.name, model.threshold, model.frame_shape) == ("small", 0.6, shape)


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ({"config": {"classes": 4, "width": 0.125, "gated": True}}, "has wrong shapes"),
        ({"config": {"classes": "many"}}, "the card describes no network"),
        ({"preprocessing": {"clip_length": 64}}, "clips of 64 frames"),
        ({"preprocessing": {"signer_box": True}}, "signer_box needs keep_aspect"),
        ({"preprocessing": {"side": 10, "crop": 64}}, "cannot crop 64 pixels from 10"),
        ({"preprocessing": {"side": "big"}}, "frames of big by 224 pixels"),
        ({"preprocessing": {"mean": "grey"}}, "do not fit together"),
    ],
)
def test_a_card_that_does_not_fit_is_an_error_of_the_file(tmp_path: Path, card: dict[str, object], words: str) -> None:
    path = tiny_checkpoint(tmp_path / "m.safetensors", **card)
    with pytest.raises(InputError, match=words):
        embedder_from_checkpoint(path, backend="torch")


def test_a_head_alone_is_no_model() -> None:
    head = Head(HeadConfig())
    weights = {f"mlp.{name}": tensor for name, tensor in head.state_dict().items()}
    with pytest.raises(InputError, match="there is no trunk, only a head"):
        embedder_from_checkpoint(Checkpoint(ModelCard(name="head", architecture="mlp"), weights), backend="torch")


@pytest.mark.parametrize(
    ("width", "crop", "rows"), [(1.0, 224, 2), (0.25, 224, 8), (0.25, 112, 32), (0.25, 64, 64), (0.0625, 32, 64)]
)
def test_a_small_network_takes_more_rows_at_a_time(width: float, crop: int, rows: int) -> None:
    """A step takes about the memory of two clips of a full-size network."""
    model = VideoEmbedder(I3D(I3DConfig(classes=2, width=width)), None, settings(frame_shape=FrameShape(crop, crop)))
    assert model.rows_per_step == rows


def test_few_clips_are_not_filled_up_to_a_long_batch() -> None:
    """A program computes all rows it was compiled for: the five clips of a dictionary entry must not cost 64."""
    compiled: list[int] = []

    class Noted(TorchBackend):
        def compiled(self, network: torch.nn.Module, examples: tuple[torch.Tensor, ...]) -> Program:
            compiled.append(len(examples[0]))
            return lambda clips: (torch.zeros(len(clips), 64),)

    for count, rows in ((1, 8), (5, 8), (31, 8), (32, 64), (70, 64)):
        model = embedder_of(I3D(I3DConfig(classes=2, width=0.0625)), side=32, backend=Noted())
        assert len(model.trunk_vectors(np.zeros((count, 16, 32, 32, 3), np.uint8))) == count
        assert compiled.pop() == rows and not compiled
