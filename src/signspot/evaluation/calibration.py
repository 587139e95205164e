"""Whether probabilities mean what they say: reliability bins and the expected calibration error.

Conventions: bins are half-open [low, high), the last also holds 1. An empty bin has count 0 and counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from signspot.errors import InputError
from signspot.evaluation.ranking import Floats, Ints

N_BINS = 10
Binning = Literal["equal width", "equal count"]


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Promised and observed frequency in each of B bins."""

    edges: Floats  # (B + 1,) 0 to 1, rising
    counts: Ints  # (B,)
    promised: Floats  # (B,) the mean probability of a bin; 0 where it is empty
    observed: Floats  # (B,) the share of a bin that is right; 0 where it is empty

    @property
    def expected_error(self) -> float:
        """Expected calibration error: the gap between promise and observation, weighted by the counts."""
        return float((np.abs(self.promised - self.observed) * self.counts).sum() / self.counts.sum())

    @property
    def largest_error(self) -> float:
        """The gap of the worst bin."""
        return float(np.abs(self.promised - self.observed).max())


def reliability(
    probability: npt.ArrayLike, right: npt.ArrayLike, n_bins: int = N_BINS, binning: Binning = "equal width"
) -> Reliability:
    """Sort `probability` (n,) in [0, 1] into bins and compare with `right` (n,) bool.

    With bins of equal count, the edges are quantiles; equal probabilities stay together, so that fewer bins may remain.
    """
    promise, truth = np.asarray(probability, dtype=np.float64), np.asarray(right, dtype=np.bool_)
    if promise.ndim != 1 or promise.shape != truth.shape or not len(promise) or n_bins < 1:
        shapes = f"{promise.shape} probabilities, {truth.shape} truths, {n_bins} bins"
        raise InputError("calibration", shapes, "give one probability and one truth for each detection")
    if not ((promise >= 0) & (promise <= 1)).all():
        raise InputError("calibration", "a probability is not between 0 and 1", "calibrate the scores first")
    edges = np.linspace(0, 1, n_bins + 1)
    if binning == "equal count":
        edges = np.unique(np.concatenate([[0.0], np.quantile(promise, edges[1:-1], method="lower"), [1.0]]))
    bins = np.minimum(np.searchsorted(edges, promise, side="right") - 1, len(edges) - 2)
    counts = np.bincount(bins, minlength=len(edges) - 1)
    promised = np.bincount(bins, weights=promise, minlength=len(counts)) / np.maximum(counts, 1)
    observed = np.bincount(bins, weights=truth, minlength=len(counts)) / np.maximum(counts, 1)
    return Reliability(edges, counts.astype(np.int64), promised, observed)


def expected_calibration_error(probability: npt.ArrayLike, right: npt.ArrayLike, n_bins: int = N_BINS) -> float:
    """The expected calibration error with bins of equal width.

    >>> round(expected_calibration_error([0.9, 0.9, 0.1, 0.1], [True, False, False, False]), 6)
    0.25
    """
    return reliability(probability, right, n_bins).expected_error


def brier_score(probability: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """The mean squared difference between probability and truth: 0 is perfect, 0.25 is always saying a half."""
    promise, truth = np.asarray(probability, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if promise.ndim != 1 or promise.shape != truth.shape or not len(promise):
        raise InputError("calibration", f"{promise.shape} probabilities, {truth.shape} truths", "give pairs")
    return float(((promise - truth) ** 2).mean())
