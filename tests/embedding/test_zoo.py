"""The landmark model that comes with signspot: it loads, says what it is, and ranks a sign's own clip first."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from signspot.embedding.zoo import model_path
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
