"""Are two signs one form: part by part, by what is usual between clips of one form by different people.

All clips of a variant speak for it together. Where a hand is, how the palm is turned and its shape are means over the
clips, and the more clips, the smaller a difference counts; movements are compared clip by clip. A part differs where
the difference is larger than what 19 of 20 pairs of one form stay below; how much evidence each is, a `FormJudge` has
learned from forms that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from signspot.domain.tracks import FloatArray
from signspot.evaluation.presence import Logistic
from signspot.evaluation.ranking import Floats, Ints
from signspot.spotting.form_parts import PATH, PLACE, RAISED, SHAPE, SIDE, TURN
from signspot.spotting.form_paths import RATIO, SIZE, path_measures

MEANS = {"place": PLACE, "palm": TURN, "shape": SHAPE}  # the parts that are compared by means
N_SIDE = len(MEANS) + 7  # of one hand: those, six residues of the paths and the ratio of their sizes
N_SHARES = 2 * N_SIDE + 1  # and whether one sign has a second hand and the other has not
PARTS = ("place", "movement", "palm", "hand shape", "other hand")
_OF_PART = ((0,), tuple(range(len(MEANS), N_SIDE)), (1,), (2,), tuple(range(N_SIDE, N_SHARES)))  # of the shares
_LARGEST = 3  # so many parts that differ most are looked at once more
_FARTHEST = 5.0  # usual differences: beyond it, more makes no difference
_FLOOR = 0.02
N_EVIDENCE = 2 * (N_SHARES + _LARGEST) + 2


@dataclass(frozen=True, slots=True, eq=False)
class Variants:
    """Signs as a judge compares them: the clips of all variants, and which belong together."""

    rows: FloatArray  # (n_clips, 782)
    clips: tuple[Ints, ...]  # of each variant

    def means(self, numbers: FloatArray) -> FloatArray:
        """(n_clips, d) -> (n_variants, d)."""
        return np.stack([numbers[own].mean(axis=0) for own in self.clips])

    @property
    def spread(self) -> FloatArray:
        """(n_variants,) how uncertain a mean is: one over the number of clips."""
        return np.array([1 / len(own) for own in self.clips], np.float32)


def variants_of(rows: Sequence[FloatArray]) -> Variants:
    """From the rows (n, 782) of each variant."""
    ends = np.cumsum([len(own) for own in rows])
    clips = tuple(np.arange(end - len(own), end) for own, end in zip(rows, ends.tolist(), strict=True))
    return Variants(np.concatenate(rows), clips)


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """What a judge looks at, for all pairs of variants."""

    shares: FloatArray  # (n, m, 21) in usual differences
    spread: FloatArray  # (n, m) of the means that were compared
    sizes: FloatArray  # (n, m, 2) of the movements of both hands, in squared shoulder widths

    @property
    def largest(self) -> FloatArray:
        """(n, m, 5) the largest share of each of PARTS."""
        return np.stack([self.shares[..., list(own)].max(axis=-1) for own in _OF_PART], axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class FormJudge:
    """How likely two variants are one form, by how they differ."""

    axes: dict[str, FloatArray]  # of MEANS: (d, k), numbers -> numbers in which clips of one form vary by 1
    expected: Floats  # (2, 6, 2) residues of the paths of either hand: constant, and for each unit of their size
    usual: Floats  # (21,) what nine of ten pairs of one form stay below
    usual_parts: Floats  # (5,) what 19 of 20 pairs of one form stay below, of the largest shares
    logistic: Logistic  # of `evidence`

    def differences(self, first: Variants, second: Variants) -> Differences:
        """Compare all variants of one dictionary with all of another."""
        spread = first.spread[:, None] + second.spread
        shares = np.zeros((len(first.clips), len(second.clips), N_SHARES), np.float32)
        raised, other_raised = (one.means(one.rows[:, [SIDE + RAISED]])[:, 0] for one in (first, second))
        sizes = np.empty((*spread.shape, 2), np.float32)
        for side in (0, 1):
            own = shares[..., side * N_SIDE : (side + 1) * N_SIDE]
            for number, (name, numbers) in enumerate(MEANS.items()):
                means = (one.means(_part(one, side, numbers) @ self.axes[name]) for one in (first, second))
                own[..., number] = _squared(*means) / (self.axes[name].shape[1] * spread)
            measures = _pooled(first, second, path_measures(_part(first, side, PATH), _part(second, side, PATH)))
            sizes[..., side] = measures[..., SIZE]
            constant, slope = self.expected[side].T.astype(np.float32)
            own[..., len(MEANS) : N_SIDE - 1] = measures[..., :RATIO] / (constant + slope * measures[..., SIZE:])
            own[..., N_SIDE - 1] = np.abs(measures[..., RATIO])
        shares[..., N_SIDE:] *= np.minimum(raised[:, None], other_raised)[..., None]
        shares[..., -1] = np.abs(raised[:, None] - other_raised)
        shares /= self.usual.astype(np.float32)
        return Differences(shares, spread, sizes)

    def parts(self, found: Differences) -> FloatArray:
        """(n, m, 5) in the order of PARTS: above 1 where a part differs."""
        parts: FloatArray = (found.largest / self.usual_parts).astype(np.float32)
        return parts

    def log_odds(self, found: Differences) -> Floats:
        """(n, m): above 0 where one form is likelier than two."""
        columns = evidence(found)
        odds: Floats = self.logistic.log_odds(columns.reshape(-1, columns.shape[-1])).reshape(columns.shape[:-1])
        return odds


def evidence(found: Differences) -> Floats:
    """(..., 50): each share on two scales, so also the largest ones, and how sure they are.

    Two forms may differ in one part only, so what differs most says most.
    """
    shares = found.shares.astype(np.float64)
    largest = -np.sort(-shares, axis=-1)[..., :_LARGEST]
    every = np.concatenate([shares, largest], axis=-1)
    sure = np.stack([found.spread, found.sizes[..., 0]], axis=-1).astype(np.float64)
    return np.concatenate([np.log(every + _FLOOR), np.minimum(every, _FARTHEST), np.log(sure + _FLOOR)], axis=-1)


def agreement(parts: FloatArray) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of PARTS agree and which differ, by their shares (5,)."""
    differ = [name for name, share in zip(PARTS, parts.tolist(), strict=True) if share > 1]
    return tuple(name for name in PARTS if name not in differ), tuple(differ)


def _part(signs: Variants, side: int, numbers: slice) -> FloatArray:
    """A part of one hand of all clips."""
    return signs.rows[:, side * SIDE + numbers.start : side * SIDE + numbers.stop]


def _pooled(first: Variants, second: Variants, measures: FloatArray) -> FloatArray:
    """Means over all pairs of clips of two variants: (n_clips, m_clips, k) -> (n, m, k)."""
    halves = np.stack([measures[own].mean(axis=0) for own in first.clips])
    return np.stack([halves[:, own].mean(axis=1) for own in second.clips], axis=1)


def _squared(one: FloatArray, other: FloatArray) -> FloatArray:
    """(n, d) and (m, d) -> (n, m) squared distances."""
    apart: FloatArray = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.maximum(apart, 0)
