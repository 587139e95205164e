"""A judge of forms, fitted to clips of signs whose form is known, several by different people of each form."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from signspot.domain.tracks import FloatArray
from signspot.evaluation.presence import Logistic, fit_logistic
from signspot.evaluation.ranking import Floats, Ints
from signspot.spotting.form_parts import HAND_NUMBERS, PARTS, ROW, FormJudge, judged_columns

_AXES = 30
_SIDE = (ROW - 1) // 2
_RIDGE = 0.02  # share of the mean variance: rare numbers of a hand would count too much
_USUAL = 90  # percent
# How many clips of either sign are compared with each other, out of four.
_SETS = (((0,), (1,)), ((0,), (2, 3)), ((0, 1), (2, 3)), ((0, 1, 2), (3,)))
_AT_ONCE = 64


def fit_judge(rows: FloatArray, alike: Ints, rng: np.random.Generator) -> FormJudge:
    """Fit to rows (n_forms, 4, 469); `alike` (p, 2) are forms that differ in one part, the hardest to tell apart."""
    if rows.ndim != 3 or rows.shape[1:] != (4, ROW) or len(rows) < 2 or not len(alike):
        raise ValueError(f"a judge cannot learn from rows of shape {rows.shape} and {len(alike)} pairs")
    shapes = rows[..., _SIDE - HAND_NUMBERS : _SIDE]  # of the hand that leads
    blank = FormJudge(_hand_axes(shapes), np.ones(len(PARTS)), Logistic((), (), (), 0.0))
    forms = np.arange(len(rows))
    elsewhere = (forms + rng.integers(1, len(rows), len(rows))) % len(rows)
    same = _compared(blank, rows, np.c_[forms, forms])
    others = _compared(blank, rows, np.concatenate([alike, np.c_[forms, elsewhere]]))
    usual = np.maximum(np.percentile(same, _USUAL, axis=0), 1e-6)
    columns = judged_columns(np.concatenate([same, others]) / usual)
    return FormJudge(blank.hand_axes, usual, fit_logistic(columns, np.arange(len(columns)) < len(same)))


def _hand_axes(shapes: FloatArray) -> FloatArray:
    """Linear discriminants of (n_forms, 4, 180), scaled so that clips of one form vary by 1: (180, k)."""
    centres = shapes.mean(axis=1)
    within = (shapes - centres[:, None]).reshape(-1, shapes.shape[2]).astype(np.float64)
    varying = within.T @ within / (len(within) * 3 / 4)
    between = np.cov(centres.T.astype(np.float64)) - varying / 4
    spread, axes = np.linalg.eigh(varying + _RIDGE * np.trace(varying) / len(varying) * np.eye(len(varying)))
    white = axes / np.sqrt(spread)
    _, best = np.linalg.eigh(white.T @ between @ white)
    kept: FloatArray = (white @ best[:, ::-1][:, :_AXES]).astype(np.float32)
    return kept


def _compared(judge: FormJudge, rows: FloatArray, pairs: Ints) -> Floats:
    """(4 p, 6) the distances of pairs of forms (p, 2), by one to three clips of each."""
    found: list[FloatArray] = []
    for start in range(0, len(pairs), _AT_ONCE):
        one, other = pairs[start : start + _AT_ONCE].T
        # All pairs of a block are compared and the wanted ones kept: faster than one pair at a time.
        wanted = np.arange(len(one))
        clips = {
            (ours, theirs): judge.distances(rows[one, ours], rows[other, theirs])[wanted, wanted]
            for ours, theirs in combinations(range(4), 2)
        }
        found += [np.mean([clips[pair] for pair in product(*chosen)], axis=0) for chosen in _SETS]
    return np.concatenate(found).astype(np.float64)
