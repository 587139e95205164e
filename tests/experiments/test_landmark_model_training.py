"""Training of the landmark model: losses against naive versions, batches that only depend on their number, learning."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from experiments.lib.landmark_model import (
    BodyChanges,
    LandmarkBatches,
    LandmarkLesson,
    LandmarkTraining,
    LandmarkTrainingConfig,
    RecordedSign,
    learning_rate,
    supervised_contrast,
    train_landmark_model,
    word_cosines,
)

from signspot.domain.recordings import Word
from signspot.domain.time import FrameSpan
from signspot.embedding.landmarks import window_at
from signspot.models.embedders import LandmarkEmbedder
from tests.models.signing import signing

SMALL = LandmarkTrainingConfig(
    steps=60,
    words_per_batch=4,
    warm_up=5,
    width=32,
    learning_rate=4e-3,
    made_up=0.1,
    changes=BodyChanges(strength=0.3, mirror=0.0),
)


def clips(seed: int, n_words: int = 6, signers: int = 3) -> list[RecordedSign]:
    """Words are places that the right hand goes to; signers differ in everything else."""
    made = []
    for word in range(n_words):
        for signer in range(signers):
            points = signing(1, 24, seed=seed + 100 * signer + word, gaps=False)[0].numpy().copy() * 4 - 2
            angle = 2 * math.pi * word / n_words
            time = np.linspace(0, 1, 24)[:, None]
            way = (1.5 * time * np.array([math.cos(angle), math.sin(angle)])).astype(np.float32)
            hand = points[:, 195:].reshape(24, 21, 3)
            hand[..., :2] = 0.2 * hand[..., :2] + way[:, None]
            points[:, 195:] = hand.reshape(24, -1)
            points[:, [44, 45, 48, 49]] = (0.5, 0, -0.5, 0)
            made.append(RecordedSign(Word(f"w{word}"), f"s{signer}", points, FrameSpan(0, 24)))
    return made


def test_the_contrast_agrees_with_a_naive_version() -> None:
    vectors = torch.nn.functional.normalize(torch.randn(6, 5, dtype=torch.float64), dim=1)
    words = [0, 0, 1, 1, 1, 0]
    terms = []
    for i in range(6):
        below = sum(math.exp(float(vectors[i] @ vectors[j]) / 0.1) for j in range(6) if j != i)
        same = [j for j in range(6) if j != i and words[j] == words[i]]
        terms.append(-sum(float(vectors[i] @ vectors[j]) / 0.1 - math.log(below) for j in same) / len(same))
    found = supervised_contrast(vectors, torch.tensor(words), 0.1)
    assert float(found) == pytest.approx(sum(terms) / 6, abs=1e-9)


def test_the_contrast_of_equal_vectors_is_the_logarithm_of_the_others() -> None:
    vectors = torch.ones(8, 4) / 2
    assert float(supervised_contrast(vectors, torch.arange(8) // 2, 0.1)) == pytest.approx(math.log(7), abs=1e-5)


def test_the_rate_rises_stays_and_falls() -> None:
    config = LandmarkTrainingConfig(steps=1000, warm_up=10, fall=0.4, learning_rate=1.0)
    rates = [learning_rate(step, config) for step in range(1000)]
    assert rates[0] == pytest.approx(0.1) and rates[10:600] == [1.0] * 590
    assert all(first > second for first, second in pairwise(rates[601:]))
    assert rates[-1] == pytest.approx(0.02, abs=1e-3)


def test_a_longer_training_begins_like_a_shorter_one() -> None:
    short, long = (LandmarkTrainingConfig(steps=steps, fall=0.4) for steps in (1000, 5000))
    assert [learning_rate(step, short) for step in range(600)] == [learning_rate(step, long) for step in range(600)]


def test_a_batch_depends_on_its_number_alone_and_shows_each_word_twice() -> None:
    batches = LandmarkBatches(LandmarkLesson(clips(0)), SMALL)
    later = batches.batch(7)
    batches.batch(3)
    again = LandmarkBatches(LandmarkLesson(clips(0)), SMALL).batch(7)
    assert torch.equal(later.windows, again.windows) and torch.equal(later.words, again.words)
    assert later.windows.shape == (8, 16, 258) and later.windows.isfinite().all()
    assert torch.equal(later.words[::2], later.words[1::2]) and len(later.words.unique()) == 4


@pytest.mark.parametrize(("share", "is_real"), [(0.0, True), (1.0, False)])
def test_made_up_words_have_numbers_of_their_own(share: float, is_real: bool) -> None:
    config = LandmarkTrainingConfig(words_per_batch=4, made_up=share)
    batch = LandmarkBatches(LandmarkLesson(clips(0)), config).batch(0)
    assert bool(batch.is_real.all()) == is_real and bool(batch.is_real.any()) == is_real


def test_it_learns_words_that_new_signers_show() -> None:
    networks = train_landmark_model(LandmarkLesson(clips(0)), SMALL)
    model = LandmarkEmbedder(networks.trunk, networks.head, name="small")
    new = clips(50_000)
    vectors = torch.from_numpy(model.embed(np.stack([window_at(sign.points, 0, 24) for sign in new])))
    right = torch.tensor([networks.vocabulary.id_of(sign.word) for sign in new])
    found = word_cosines(vectors, networks.head).argmax(1)
    assert (found == right).float().mean() > 0.6  # chance: one in six


def test_the_same_seed_learns_the_same() -> None:
    first, second = (LandmarkTraining(LandmarkLesson(clips(0)), SMALL) for _ in range(2))
    assert [first.step() for _ in range(3)] == [second.step() for _ in range(3)]


def test_synthetic_signs_take_the_place_of_real_ones_and_are_no_words() -> None:
    elsewhere = [replace(sign, word=Word("form"), signer=f"body {i}") for i, sign in enumerate(clips(9, n_words=1))]
    config = replace(SMALL, synthetic=1.0)
    batch = LandmarkBatches(LandmarkLesson(clips(0), elsewhere), config).batch(0)
    assert not batch.is_real.any() and torch.equal(batch.words[::2], batch.words[1::2])
    with pytest.raises(ValueError, match="no synthetic signs"):
        LandmarkBatches(LandmarkLesson(clips(0)), config)


def test_the_directions_of_the_words_have_length_one() -> None:
    training = LandmarkTraining(LandmarkLesson(clips(0)), SMALL)
    first = training.step()
    head = training.networks().head
    assert first.number == 1 and head.logits is not None and not head.logits.bias.any()
    torch.testing.assert_close(head.logits.weight.norm(dim=1), torch.ones(6))


@pytest.mark.parametrize("options", [{"steps": 0}, {"made_up": 2.0}, {"synthetic": -0.1}, {"fall": 0.0}])
def test_senseless_trainings_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no training"):
        LandmarkTrainingConfig(**options)  # type: ignore[arg-type]


def test_too_few_words_are_refused() -> None:
    with pytest.raises(ValueError, match="48 words a batch of 6"):
        LandmarkBatches(LandmarkLesson(clips(0)), LandmarkTrainingConfig())
