"""Models by name, and the landmark model that comes with signspot: it loads, and says what it is."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from signspot.embedding.landmarks import LandmarkModel
from signspot.embedding.pictures import ColourModel, PictureModel
from signspot.embedding.zoo import load_model, model_path, trunk_fingerprints
from signspot.errors import InputError
from signspot.models.checkpoints import load_checkpoint
from signspot.models.embedders import LandmarkEmbedder, landmark_embedder_from_checkpoint
from tests.models.signing import moved, signing

PATH = model_path("landmark-v1")


@pytest.fixture(scope="module")
def model() -> LandmarkEmbedder:
    return landmark_embedder_from_checkpoint(PATH)


def test_it_is_small_and_its_card_says_what_people_must_know() -> None:
    card = load_checkpoint(PATH).card
    assert PATH.stat().st_size <= 12_000_000
    assert card.name == "landmark-v1" and card.architecture == "landmark+mlp" and len(card.vocabulary) == 306
    assert card.config["threshold"] == 0.45 and "compared by the trunk" in card.created_from
    assert "C-UDA" in card.licence and "academic use only" in card.licence
    for words in ("American Sign Language", "no other sign language", "Not for identifying people", "near-duplicates"):
        assert words in card.training_data


def test_it_makes_256_numbers_of_length_one_whatever_is_missing(model: LandmarkEmbedder) -> None:
    points = signing(6).numpy()
    points[1, :, 132:] = 0
    points[2] = 0
    vectors = model.embed(points)
    assert vectors.shape == (6, 256) and np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-4)


def test_place_and_size_in_the_picture_do_not_matter(model: LandmarkEmbedder) -> None:
    points = signing(4, gaps=False)
    there = moved(points, 0.6, 0.2, -0.1)
    cosine = (model.embed(points.numpy()) * model.embed(there.numpy())).sum(axis=1)
    assert cosine.min() > 0.999
    assert not torch.equal(points, there)


def test_models_are_of_the_kind_that_their_cards_say() -> None:
    kinds = [type(load_model(name, backend="auto")) for name in ("colour", "landmark-v1", "world-v1")]
    assert kinds == [ColourModel, LandmarkModel, PictureModel]
    assert load_model(PATH).name == "landmark-v1"


@pytest.mark.parametrize(
    ("name", "choice", "words"),
    [
        ("landmark-v1", {"backend": "openvino"}, "--backend openvino: the model 'landmark-v1' runs in torch only"),
        (
            "landmark-v1",
            {"backend": "openvino-bf16"},
            "--backend openvino-bf16: .* runs in torch only: leave --backend",
        ),
        ("landmark-v1", {"device": "cuda"}, "--device cuda: the model 'landmark-v1' runs on the processor only"),
        ("landmark-v1", {"device": "cuda:1", "backend": "torch"}, "--device cuda:1: .* only: leave --device out"),
        ("colour", {"backend": "openvino"}, "--backend openvino: the model 'colour' runs in numpy only"),
        ("colour", {"backend": "torch"}, "--backend torch: the model 'colour' runs in numpy only"),
        ("colour", {"device": "cuda"}, "--device cuda: the model 'colour' runs on the processor only"),
        ("landmark-v1", {"backend": "fast"}, "no such backend: choose one of: auto, torch, openvino"),
        ("colour", {"device": "tpu"}, "no such device: choose cpu or cuda"),
    ],
)
def test_small_models_refuse_what_they_do_not_run_in(
    monkeypatch: pytest.MonkeyPatch, name: str, choice: dict[str, str], words: str
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)  # whether it is installed does not matter
    with pytest.raises(InputError, match=words):
        load_model(name, **choice)  # type: ignore[arg-type]


def test_small_models_take_what_they_run_in() -> None:
    assert load_model("landmark-v1", backend="torch").backend == "torch-fp32"
    assert load_model("colour", backend="auto", device="cpu").backend == "numpy"


def test_vectors_of_a_trunk_are_known_whatever_computed_them(model: LandmarkEmbedder) -> None:
    assert set(trunk_fingerprints(load_checkpoint(PATH))) == {model.trunk_fingerprint}
    pictures = load_checkpoint(model_path("world-v1"))
    exact = load_model("world-v1", backend="torch").trunk()
    assert exact is not None and exact.fingerprint in set(trunk_fingerprints(pictures))
