from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.tracks import FrameShape
from signspot.errors import InputError
from signspot.models.checkpoints import (
    Checkpoint,
    ModelCard,
    Trunk,
    _name_of,
    describe,
    load_checkpoint,
    save_checkpoint,
    state_of,
)
from signspot.models.embedders import (
    EmbedderSettings,
    LandmarkEmbedder,
    VideoEmbedder,
    embedder_from_checkpoint,
    landmark_embedder_from_checkpoint,
)
from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, S3D, I3DConfig, S3DConfig
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig
from tests.models.networks import moving_frames, tiny_head

TRUNKS = {
    "narrow i3d": lambda: I3D(I3DConfig(classes=5, width=0.125)),
    "i3d of two domains": lambda: I3D(I3DConfig(classes=5, width=0.125, domains=2)),
    "gated s3d": lambda: S3D(S3DConfig(classes=5, width=0.125, gated=True)),
    "landmarks": lambda: LandmarkEncoder(LandmarkEncoderConfig(classes=5, width=32, embedding_dim=128)),
}


def saved(path: Path, trunk: Trunk, head: Head | None) -> Path:
    parts = _name_of(trunk) + ("+mlp" if head else "")
    save_checkpoint(path, state_of(trunk, head), ModelCard(name="m", architecture=parts, config=describe(trunk, head)))
    return path


@pytest.mark.parametrize("kind", TRUNKS)
def test_any_network_is_built_again_from_its_card(tmp_path: Path, kind: str) -> None:
    trunk = TRUNKS[kind]()
    head = Head(HeadConfig(input_dim=128, hidden_dim=32, embedding_dim=16, domains=2, activation_after_last="released"))
    checkpoint = load_checkpoint(saved(tmp_path / "m.safetensors", trunk, head))
    again, head_again = checkpoint.networks()
    assert head_again is not None
    assert (again.config, head_again.config) == (trunk.config, head.config)
    before, after = state_of(trunk, head), state_of(again, head_again)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("kind", TRUNKS)
def test_weights_that_do_not_fit_the_card_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    trunk = TRUNKS[kind]()
    path = saved(tmp_path / "m.safetensors", trunk, None)
    checkpoint = load_checkpoint(path)
    wrong = replace(checkpoint.card, config={**checkpoint.card.config, "classes": 6})
    save_checkpoint(path, checkpoint.weights, wrong, overwrite=True)
    with pytest.raises(InputError, match=r"has wrong shapes: .*logits"):
        load_checkpoint(path)


@pytest.mark.parametrize("config", [{"width": 0.0}, {"width": "wide"}, {"classes": -1}, {"domains": 1.5}])
def test_a_card_that_describes_no_network_is_refused(tmp_path: Path, config: dict[str, object]) -> None:
    trunk = TRUNKS["narrow i3d"]()
    card = ModelCard(name="m", architecture="i3d", config={**describe(trunk), **config})  # type: ignore[dict-item]
    save_checkpoint(tmp_path / "m.safetensors", state_of(trunk), card)
    with pytest.raises(InputError, match=r"the card describes no network|has wrong shapes|lacks"):
        load_checkpoint(tmp_path / "m.safetensors")


def test_dictionary_clips_go_through_the_layers_of_their_domain() -> None:
    torch.manual_seed(0)
    trunk = I3D(I3DConfig(classes=5, width=0.125, domains=2))
    for name, buffer in trunk.named_buffers():
        if name.endswith("bn.1.running_mean"):
            buffer.fill_(0.1)
    head = Head(HeadConfig(input_dim=128, hidden_dim=32, embedding_dim=16, domains=2))
    model = VideoEmbedder(trunk, head, EmbedderSettings(name="m", frame_shape=FrameShape(64, 64)))
    clips = moving_frames(16)[None]
    of_dictionary = model.of_dictionary()
    rows = torch.from_numpy(np.moveaxis((clips / 255 - 0.5).astype(np.float32), -1, 1))
    with torch.inference_mode():
        for domain, sees in enumerate((model, of_dictionary)):
            vectors = trunk.eval()(rows, domain).embedding
            np.testing.assert_allclose(sees.trunk_vectors(clips), vectors.numpy(), rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(sees.embed(clips), head(vectors, domain).embedding.numpy(), atol=1e-4)
    assert np.abs(model.embed(clips) - of_dictionary.embed(clips)).max() > 0.01
    assert model.fingerprint == of_dictionary.fingerprint


def test_a_model_without_domains_is_its_own_twin() -> None:
    model = VideoEmbedder(TRUNKS["gated s3d"](), None, EmbedderSettings(name="m", frame_shape=FrameShape(64, 64)))  # type: ignore[arg-type]
    assert model.of_dictionary() is model


def test_two_heads_over_one_trunk_share_its_fingerprint() -> None:
    trunk = TRUNKS["narrow i3d"]()
    settings = EmbedderSettings(name="m", frame_shape=FrameShape(64, 64))
    plain, with_head = (VideoEmbedder(trunk, head, settings) for head in (None, tiny_head()))
    assert plain.trunk_fingerprint == with_head.trunk_fingerprint == plain.fingerprint != with_head.fingerprint


def test_a_landmark_model_gives_the_numbers_of_its_networks(tmp_path: Path) -> None:
    torch.manual_seed(0)
    trunk = LandmarkEncoder(LandmarkEncoderConfig(classes=5, width=32, embedding_dim=128)).eval()
    path = saved(tmp_path / "m.safetensors", trunk, tiny_head())
    model = landmark_embedder_from_checkpoint(path)
    clips = np.random.default_rng(0).random((300, 16, 258), dtype=np.float32)
    with torch.inference_mode():
        expected = tiny_head()(trunk(torch.from_numpy(clips)).embedding).embedding.numpy()
    np.testing.assert_allclose(model.embed(clips), expected, atol=1e-5)
    assert (model.dim, model.trunk_dim, model.name) == (16, 128, "m")
    assert model.fingerprint == LandmarkEmbedder(trunk, tiny_head(), name="other").fingerprint


def test_pictures_and_landmarks_are_not_confused(tmp_path: Path) -> None:
    landmarks = saved(tmp_path / "l.safetensors", TRUNKS["landmarks"](), None)
    pictures = saved(tmp_path / "p.safetensors", TRUNKS["narrow i3d"](), None)
    with pytest.raises(InputError, match="sees landmarks, not pictures"):
        embedder_from_checkpoint(landmarks)
    with pytest.raises(InputError, match="it sees pictures, not landmarks"):
        landmark_embedder_from_checkpoint(pictures)
    with pytest.raises(ValueError, match=r"instead of \(n, 16, 258\)"):
        landmark_embedder_from_checkpoint(landmarks).embed(np.zeros((2, 15, 258), np.float32))


def test_a_checkpoint_without_a_trunk_has_no_networks() -> None:
    weights = state_of(None, tiny_head())
    card = ModelCard(name="h", architecture="mlp", config=describe(None, tiny_head()))
    with pytest.raises(ValueError, match="there is no trunk, only a head"):
        Checkpoint(card, weights).networks()
