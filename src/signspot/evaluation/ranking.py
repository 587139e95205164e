"""Rankings compared with truth: ranks, average precision, recall among the first k, averages over classes, chance.

Conventions: a ranking goes from the highest score down, ranks count from 1, and equal scores keep the order in which
the items are given. Average precision and recall lie between 0 and 1. What is `relevant` should come first; what is
`right` is relevant and was also found at the right time. An item that is relevant but not right pushes others down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import Floats, Ints
from signspot.errors import InputError

Scores = npt.NDArray[np.float32] | npt.NDArray[np.float64]

FIRST = 5  # Paper 4.2: R@5


@dataclass(frozen=True, slots=True, eq=False)
class ClassMeans:
    """The mean of every class that has a value, and their mean: every class weighs the same (Paper 4.2)."""

    classes: Ints  # (C,) ascending; a class without a value is not there and counts for nothing
    values: Floats  # (C,)
    counts: Ints  # (C,) how many values each mean is of

    @property
    def mean(self) -> float:
        return float(self.values.mean()) if len(self.values) else float("nan")


def class_means(values: npt.ArrayLike, classes: npt.ArrayLike) -> ClassMeans:
    """Average `values` (n,) within each of `classes` (n,)."""
    value, group = np.asarray(values, dtype=np.float64), np.asarray(classes, dtype=np.int64)
    if value.ndim != 1 or value.shape != group.shape:
        raise InputError("class means", f"values of shape {value.shape}, classes of shape {group.shape}", "give pairs")
    names, place, counts = np.unique(group, return_inverse=True, return_counts=True)
    sums = np.bincount(place, weights=value, minlength=len(names))
    return ClassMeans(names, sums / counts, counts.astype(np.int64))


def ranks(scores: Scores) -> Ints:
    """The rank of every item, 1 for the highest score; of equal scores the earlier item ranks higher. (n,) -> (n,)"""
    if scores.ndim != 1 or np.isnan(scores).any():
        fix = "leave out or correct what is not a number"
        raise InputError("ranking", "the scores are not one row of numbers", fix)
    place = np.empty(len(scores), dtype=np.int64)
    place[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return place


def average_precision(right_ranks: npt.ArrayLike, n_relevant: int) -> float:
    """The precision at the rank of each right item, summed, over `n_relevant`; 0 where nothing is right or relevant."""
    ordered = np.sort(np.asarray(right_ranks, dtype=np.int64))
    if not len(ordered) or not n_relevant:
        return 0.0
    return float((np.arange(1, len(ordered) + 1) / ordered).sum() / n_relevant)


def recall_among_first(right_ranks: npt.ArrayLike, n_relevant: int, k: int = FIRST) -> float:
    """The share of the relevant items that are right and rank among the first `k`; 0 where nothing is relevant.

    Where there are more than `k` relevant items, `k` of them are all that fit, and count as all.
    """
    if not n_relevant:
        return 0.0
    return int((np.asarray(right_ranks, dtype=np.int64) <= k).sum()) / min(k, n_relevant)


def chance_average_precision(n_items: int, n_relevant: int, hit_rate: float = 1.0) -> float:
    """The expected average precision of a random order, over all relevant items.

    Each of the `n_relevant` is right with probability `hit_rate`, whatever its rank. Summed over the ranks r: the item
    there is relevant and right with probability n q / N, and each of the r - 1 before it with (n - 1) q / (N - 1).
    """
    if not n_relevant:
        return 0.0
    rank = np.arange(1, n_items + 1)
    before = hit_rate * (n_relevant - 1) / max(1, n_items - 1) * (rank - 1)
    return float(hit_rate / n_items * ((1 + before) / rank).sum())


def chance_recall_among_first(n_items: int, n_relevant: int, hit_rate: float = 1.0, k: int = FIRST) -> float:
    """The expected `recall_among_first` of a random order."""
    if not n_relevant:
        return 0.0
    return min(k, n_items) * hit_rate * n_relevant / n_items / min(k, n_relevant)
