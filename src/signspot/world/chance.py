"""Chance with names: the same seed and the same key give the same numbers, whatever else was drawn before."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt


def chance(seed: int, *key: str | int) -> np.random.Generator:
    """A generator of its own for everything that has a name, such as ("episode", 7).

    >>> chance(1, "episode", 7).integers(100) == chance(1, "episode", 7).integers(100)
    np.True_
    """
    parts = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in key]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(parts)))


def spread_counts(n: int, mean: float, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """(n,) int64 counts from 1 to `most`, many small and few large, whose mean is `mean` whatever n is.

    The quantiles of a geometric distribution in random order: a draw would miss the mean of a small world.
    """
    quantiles = (np.arange(n) + 0.5) / n
    low, high = 1e-9, 50.0
    for _ in range(60):  # the ceiling of `most` pulls the mean down, so the parameter is searched for
        middle = (low + high) / 2
        counts = _geometric(quantiles, middle, most)
        low, high = (middle, high) if counts.mean() < mean else (low, middle)
    return rng.permutation(counts)


def _geometric(quantiles: npt.NDArray[np.float64], excess: float, most: int) -> npt.NDArray[np.int64]:
    beyond = np.floor(np.log1p(-quantiles) / np.log(excess / (1 + excess)))
    counts: npt.NDArray[np.int64] = np.minimum(1 + beyond, most).astype(np.int64)
    return counts
