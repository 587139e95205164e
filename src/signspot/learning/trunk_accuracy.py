"""How often a classifier is right: over clips, and over words (Paper App. B.7, Tab. "Trunk network architecture")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from signspot.domain.tracks import FloatArray
from signspot.learning.presenting import Presenter
from signspot.learning.trunk_learning import seen
from signspot.learning.trunk_stages import ClipTest
from signspot.models.networks import Trunk

_CLIPS_PER_STEP = 8
_ITEMS_PER_STEP = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAccuracy:
    """Shares from 0 to 1 of test items whose word is among the first or the first five."""

    n_items: int
    top1: float  # per instance
    top5: float
    class_top1: float  # the mean over the words of each word's share
    class_top5: float


def class_accuracy(scores: FloatArray, labels: npt.NDArray[np.int64]) -> ClassAccuracy:
    """Compare scores (n, classes) with labels (n,), each a column; of equal scores the first column wins.

    >>> class_accuracy(np.eye(2, dtype=np.float32)[[0, 0, 0, 1]], np.array([0, 0, 1, 1])).class_top1
    0.75
    """
    if scores.ndim != 2 or labels.shape != (len(scores),) or not len(scores):
        raise ValueError(f"scores of shape {scores.shape} for labels of shape {labels.shape}")
    if not np.isfinite(scores).all() or labels.min() < 0 or labels.max() >= scores.shape[1]:
        raise ValueError("scores that are not finite, or labels without a column")
    own = np.take_along_axis(scores, labels[:, None], axis=1)
    before = np.arange(scores.shape[1]) < labels[:, None]
    rank = ((scores > own) | ((scores == own) & before)).sum(axis=1)
    counts = np.bincount(labels)
    top1, top5 = (rank < 1), (rank < 5)
    of_class = [np.bincount(labels, right)[counts > 0] / counts[counts > 0] for right in (top1, top5)]
    return ClassAccuracy(
        n_items=len(scores),
        top1=float(top1.mean()),
        top5=float(top5.mean()),
        class_top1=float(of_class[0].mean()),
        class_top5=float(of_class[1].mean()),
    )


@torch.no_grad()
def accuracy_of(trunk: Trunk, test: ClipTest, presenter: Presenter, device: torch.device) -> ClassAccuracy:
    """Classify every item of a test set by the mean of its clips' probabilities; nothing is changed at random."""
    was_training = trunk.training
    trunk.eval()
    try:
        scores = list(_probabilities(trunk, test, presenter, device))
    finally:
        trunk.train(was_training)
    labels = np.array([test.source.label(i) for i in range(len(test.source))], np.int64)
    return class_accuracy(torch.cat(scores).numpy(), labels)


def _probabilities(trunk: Trunk, test: ClipTest, presenter: Presenter, device: torch.device) -> Iterator[Tensor]:
    """The probabilities (n, classes) of a few items at a time."""
    for first in range(0, len(test.source), _ITEMS_PER_STEP):
        items = range(first, min(first + _ITEMS_PER_STEP, len(test.source)))
        clips = [presenter.testing(test.source.test_clips(i)) for i in items]
        scores = []
        for some in torch.split(torch.from_numpy(np.concatenate(clips)), _CLIPS_PER_STEP):
            domains = torch.full((len(some),), test.domain, device=device)
            scores.append(seen(trunk, presenter.tensor(some.to(device)), domains).logits.float().softmax(dim=1))
        of_item = torch.split(torch.cat(scores).cpu(), [len(of_one) for of_one in clips])
        yield torch.stack([of_one.mean(dim=0) for of_one in of_item])
