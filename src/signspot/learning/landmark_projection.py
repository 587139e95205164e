"""What signs are compared by: the trunk's vector, evened out, instead of the vector of the head it was trained with.

A head learns to tell the trained words apart and forgets what these do not need; the trunk before it still knows it. On
words that no training had, the trunk's vector is clearly better (experiments/landmark_model/README.md). What varies
most between two windows of one word says little about the word, so it is weakened: every direction is divided by a root
of its variance within words, and of what comes out the principal components of training windows are kept. That is
linear, and fits into the head as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
_FLOOR = 0.3  # of the mean variance within words: keeps the steadiest directions from being blown up


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionConfig:
    """How the trunk's vectors are evened out."""

    batches: int = 120  # of training windows to fit it by
    evenness: float = 0.25  # the power of its variance within words that a direction is divided by: 0.5 whitens
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
    mean, directions = evened_out(vectors, words, networks.head.config.embedding_dim, config.evenness)
    head = linear_head(mean, directions, len(batches.vocabulary)).eval()
    if head.logits is not None:
        with torch.no_grad():
            head.logits.weight.copy_(word_directions(head(vectors).embedding, words, len(batches.vocabulary)))
            head.logits.bias.zero_()
    return LandmarkNetworks(networks.trunk, head, batches.vocabulary)


def evened_out(vectors: Tensor, words: Tensor, n_kept: int, evenness: float) -> tuple[Tensor, Tensor]:
    """The mean (d,) of vectors (n, d) of the words (n,), and up to `n_kept` scaled directions (k, d) to project on."""
    rows = vectors.double()
    mean = rows.mean(dim=0)
    variance, axes = torch.linalg.eigh(_within(rows, words))
    scaled = axes * (variance.clamp_min(0) + _FLOOR * variance.mean()) ** -evenness
    kept = torch.linalg.svd((rows - mean) @ scaled, full_matrices=False).Vh[:n_kept]
    return mean, kept @ scaled.T


def word_directions(rows: Tensor, words: Tensor, n_words: int) -> Tensor:
    """Unit rows (n_words, d) that tell words apart, from rows (n, d) of the words (n,): linear discriminants.

    What varies within words counts less; a word without a row is refused.
    """
    rows = rows.double()
    if not torch.bincount(words, minlength=n_words).all():
        raise ValueError("a word that no window shows: draw more batches")
    within = _within(rows, words)
    limited = within + _SHRINKAGE * within.diagonal().mean() * torch.eye(len(within))
    return F.normalize(torch.linalg.solve(limited, (_means(rows, words) - rows.mean(dim=0)).T).T, dim=1).float()


def _means(rows: Tensor, words: Tensor) -> Tensor:
    """(n_words, d) the mean of the rows (n, d) of each of the words (n,)."""
    n_rows = torch.bincount(words)
    return rows.new_zeros(len(n_rows), rows.shape[1]).index_add_(0, words, rows) / n_rows.clamp_min(1)[:, None]


def _within(rows: Tensor, words: Tensor) -> Tensor:
    """(d, d) how rows (n, d) vary around the mean of their word."""
    return torch.cov((rows - _means(rows, words)[words]).T)


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
