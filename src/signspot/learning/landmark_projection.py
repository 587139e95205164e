"""What signs are compared by: the trunk's vector, evened out, instead of the vector of the head it was trained with.

A head learns to tell the trained words apart and forgets what these do not need; the trunk before it still knows it. On
words that no training had, the trunk's vector is clearly better (experiments/landmark_model/README.md). Its strongest
directions say little about the word, so they are weakened, and the weakest ones are dropped: principal components of
training windows, each divided by a root of its strength. That is linear, and fits into the head as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from signspot.learning.landmark_training import (
    LandmarkBatches,
    LandmarkLesson,
    LandmarkNetworks,
    LandmarkTrainingConfig,
)
from signspot.models.head import Head, HeadConfig
from signspot.models.landmark_encoder import LandmarkEncoder

_SLOPE = 0.2  # of the head's activation
_SHRINKAGE = 0.3  # how far the variance within words is taken to be the same in all directions
_FLOOR = 0.1  # of the mean strength: keeps the weakest directions from being blown up


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionConfig:
    """How the trunk's vectors are evened out."""

    batches: int = 120  # of training windows to fit it by
    evenness: float = 0.25  # the power of a direction's variance that it is divided by: 0 leaves it, 0.5 whitens
    seed: int = 77


def compared_by_trunk(
    networks: LandmarkNetworks,
    lesson: LandmarkLesson,
    training: LandmarkTrainingConfig,
    config: ProjectionConfig = ProjectionConfig(),
) -> LandmarkNetworks:
    """The same trunk under a head that evens its vectors out; the words' directions are told apart anew."""
    shown = replace(training, made_up=0.0, synthetic=0.0, seed=config.seed)
    batches = LandmarkBatches(LandmarkLesson(lesson.signs), shown)
    vectors, words = _seen(networks.trunk, batches, config.batches)
    mean, directions = evened_out(vectors, networks.head.config.embedding_dim, config.evenness)
    head = linear_head(mean, directions, len(batches.vocabulary)).eval()
    if head.logits is not None:
        with torch.no_grad():
            head.logits.weight.copy_(word_directions(head(vectors).embedding, words, len(batches.vocabulary)))
            head.logits.bias.zero_()
    return LandmarkNetworks(networks.trunk, head, batches.vocabulary)


def evened_out(vectors: Tensor, n_kept: int, evenness: float) -> tuple[Tensor, Tensor]:
    """The mean (d,) of vectors (n, d) and at most `n_kept` directions (k, d) to project on, strongest first, scaled."""
    rows = vectors.double().numpy()
    mean = rows.mean(axis=0)
    _, length, axes = np.linalg.svd((rows - mean) / math.sqrt(len(rows) - 1), full_matrices=False)
    strength = length[:n_kept] ** 2
    scale = (strength + _FLOOR * strength.mean()) ** -evenness
    return torch.from_numpy(mean), torch.from_numpy(axes[:n_kept] * scale[:, None])


def word_directions(rows: Tensor, words: Tensor, n_words: int) -> Tensor:
    """Unit rows (n_words, d) that tell words apart, from rows (n, d) of the words (n,): linear discriminants.

    What varies within words counts less; a word without a row is refused.
    """
    rows, n_rows = rows.double(), torch.bincount(words, minlength=n_words)
    if not n_rows.all():
        raise ValueError("a word that no window shows: draw more batches")
    means = torch.zeros(n_words, rows.shape[1], dtype=rows.dtype).index_add_(0, words, rows)
    means /= n_rows[:, None]
    within = torch.cov((rows - means[words]).T)
    limited = within + _SHRINKAGE * within.diagonal().mean() * torch.eye(len(within))
    return F.normalize(torch.linalg.solve(limited, (means - rows.mean(dim=0)).T).T, dim=1).float()


def linear_head(mean: Tensor, directions: Tensor, n_words: int) -> Head:
    """A head that computes `directions @ (vector - mean)` and brings it to length 1."""
    n_kept, n_numbers = directions.shape
    head = Head(HeadConfig(input_dim=n_numbers, hidden_dim=2 * n_kept, embedding_dim=n_kept, classes=n_words))
    # leaky(x) - leaky(-x) = (1 + slope) x: two halves of opposite sign undo the activation between the layers.
    both, one = torch.cat([directions, -directions]), torch.eye(n_kept) / (1 + _SLOPE)
    state = {
        "res.0.weight": torch.zeros(n_numbers, n_numbers),
        "res.0.bias": torch.zeros(n_numbers),
        "adaptor.0.weight": both,
        "adaptor.0.bias": -(both @ mean),
        "adaptor.2.weight": torch.cat([one, -one], dim=1),
        "adaptor.2.bias": torch.zeros(n_kept),
    }
    head.load_state_dict({name: tensor.float() for name, tensor in state.items()}, strict=False)
    return head


@torch.no_grad()
def _seen(trunk: LandmarkEncoder, batches: LandmarkBatches, n_batches: int) -> tuple[Tensor, Tensor]:
    """The trunk's vectors of training windows (n, 1024), and their words (n,)."""
    shown = [batches.batch(number) for number in range(n_batches)]
    vectors = torch.cat([trunk(batch.windows).embedding for batch in shown])
    return vectors, torch.cat([batch.words for batch in shown])
