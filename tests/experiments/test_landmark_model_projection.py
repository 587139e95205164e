"""Vectors of the trunk evened out: against the formula, and under the head's activation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from experiments.lib.landmark_model import (
    LandmarkLesson,
    ProjectionConfig,
    compared_by_trunk,
    evened_out,
    linear_head,
    train_landmark_model,
    word_cosines,
    word_directions,
)

from signspot.embedding.landmarks import window_at
from tests.experiments.test_landmark_model_training import SMALL, clips


def correlated(n: int = 400, d: int = 12) -> torch.Tensor:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(n, d)) * np.geomspace(4, 0.1, d) @ rng.normal(size=(d, d)) + 5
    return torch.from_numpy(rows.astype(np.float32))


WORDS = torch.arange(400) % 40


@pytest.mark.parametrize("evenness", [0.0, 0.25, 0.5])
def test_each_direction_is_divided_by_a_power_of_its_variance_within_words(evenness: float) -> None:
    vectors = correlated()
    mean, directions = evened_out(vectors, WORDS, 5, evenness)
    plain = vectors.double().numpy()
    means = np.stack([plain[WORDS.numpy() == word].mean(axis=0) for word in range(40)])
    variance, axes = np.linalg.eigh(np.cov((plain - means[WORDS.numpy()]).T))
    scaled = (plain - plain.mean(axis=0)) @ axes * (variance + 0.3 * variance.mean()) ** -evenness
    rows = (vectors.double() - mean) @ directions.T
    strongest = np.linalg.eigvalsh(np.cov(scaled.T))[::-1][:5]
    np.testing.assert_allclose(np.cov(rows.numpy().T), np.diag(strongest), atol=1e-5 * strongest[0])
    np.testing.assert_allclose(rows.mean(dim=0), 0, atol=1e-6)


def test_what_varies_within_words_counts_less() -> None:
    rng = np.random.default_rng(1)
    words = torch.arange(300) % 30
    rows = torch.from_numpy(np.c_[rng.normal(size=30)[words], 3 * rng.normal(size=300), 0.1 * rng.normal(size=300)])
    _, directions = evened_out(rows, words, 3, 0.5)
    length = directions.norm(dim=0)  # of what is left of each of the three numbers
    assert length[0] > 2 * length[1]


def test_the_head_computes_the_projection_in_spite_of_its_activation() -> None:
    vectors = correlated()
    mean, directions = evened_out(vectors, WORDS, 5, 0.25)
    plain = (vectors.double() - mean) @ directions.T
    expected = plain / plain.norm(dim=1, keepdim=True)
    with torch.no_grad():
        made = linear_head(mean, directions, 3)(vectors).embedding
    np.testing.assert_allclose(made, expected, atol=1e-4)


def test_directions_that_carry_nothing_stay_finite() -> None:
    rows = torch.zeros(6, 8)
    rows[:, 0] = torch.arange(6)
    _, directions = evened_out(rows, torch.tensor([0, 0, 0, 1, 1, 1]), 4, 0.5)
    assert torch.isfinite(directions).all()


def test_the_direction_of_a_word_avoids_what_varies_within_words() -> None:
    rng = np.random.default_rng(0)
    words = np.repeat(np.arange(3), 200)
    rows = np.eye(3)[words] + rng.normal(size=(600, 3)) * (0.05, 0.05, 2.0)  # the third number is noise
    made = word_directions(torch.from_numpy(rows), torch.from_numpy(words), 3).double().numpy()
    means = np.stack([rows[words == word].mean(axis=0) for word in range(3)])
    within = (
        sum((row - means[word])[:, None] * (row - means[word]) for row, word in zip(rows, words, strict=True)) / 599
    )
    plain = [np.linalg.inv(within + 0.3 * np.trace(within) / 3 * np.eye(3)) @ (mean - rows.mean(0)) for mean in means]
    np.testing.assert_allclose(made, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-5)
    assert abs(made[0] @ (0, 0, 1)) < 0.3 < abs(means[2] - means[0])[2]


def test_a_word_that_no_window_shows_is_refused() -> None:
    with pytest.raises(ValueError, match="draw more batches"):
        word_directions(torch.eye(3), torch.tensor([0, 0, 2]), 3)


def test_trained_words_are_told_apart_by_the_trunk_alone() -> None:
    lesson, short = LandmarkLesson(clips(0)), replace(SMALL, steps=25)
    trained, config = train_landmark_model(lesson, short), ProjectionConfig(batches=10)
    compared = compared_by_trunk(trained, lesson, short, config)
    assert compared.trunk is trained.trunk and compared.vocabulary == trained.vocabulary
    others = clips(7)
    windows = torch.from_numpy(np.stack([window_at(sign.points, 0, len(sign.span)) for sign in others]))
    with torch.no_grad():
        cosine = word_cosines(compared.head(compared.trunk(windows).embedding).embedding, compared.head)
    words = [compared.vocabulary.id_of(sign.word) for sign in others]
    assert (cosine.argmax(1).numpy() == words).mean() >= 0.6  # by chance 0.17
