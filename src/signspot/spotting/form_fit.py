"""A judge of forms, fitted to clips of signs whose form is known, several by different people of each form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from signspot.domain.tracks import FloatArray
from signspot.evaluation.presence import Logistic, fit_logistic
from signspot.evaluation.ranking import Bools, Floats, Ints
from signspot.spotting.form_judge import (
    MEANS,
    N_SHARES,
    N_SIDE,
    PARTS,
    Differences,
    FormJudge,
    Variants,
    evidence,
    variants_of,
)
from signspot.spotting.form_parts import ROW

_AXES = {"place": 8, "palm": 12, "shape": 20}  # of MEANS: what tells forms apart lies in so many directions
_RIDGE = 0.02  # share of the mean variance: rare numbers of a hand would count too much
_USUAL, _USUAL_PARTS = 90, 95  # percent
_CLIPS = (0.3, 0.3, 0.25, 0.15)  # how often a variant has one to four clips
_FORMS_AT_ONCE = 100  # about as many as a small dictionary has
_NEAREST = 4  # other forms that look most alike


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """Pairs of variants, and whether each pair is one form."""

    found: Differences  # in units of nothing: shares (p, 21), spread (p,), sizes (p, 2)
    same: Bools  # (p,)


def fit_judge(rows: FloatArray, alike: Ints, rng: np.random.Generator) -> FormJudge:
    """Fit to rows (n_forms, c, 782), c >= 2; `alike` (p, 2) are forms that differ in one part, the hardest to tell."""
    if rows.ndim != 3 or rows.shape[1] < 2 or rows.shape[2] != ROW or len(rows) < 2 or not len(alike):
        raise ValueError(f"a judge cannot learn from rows of shape {rows.shape} and {len(alike)} pairs")
    axes = {name: _axes(rows[..., numbers], _AXES[name]) for name, numbers in MEANS.items()}
    unit = np.stack([np.ones((2, 6)), np.zeros((2, 6))], axis=-1)
    blank = FormJudge(axes, unit, np.ones(N_SHARES), np.ones(len(PARTS)), Logistic((), (), (), 0.0))
    pairs = [_compared(blank, rows, alike, group, rng) for group in _groups(len(rows), alike)]
    found = Differences(
        *(np.concatenate([getattr(one.found, name) for one in pairs]) for name in Differences.__slots__)
    )
    same = np.concatenate([one.same for one in pairs])
    expected = _expected(found, same)
    shares = found.shares.astype(np.float64)
    for side in (0, 1):
        paths = slice(side * N_SIDE + len(MEANS), side * N_SIDE + N_SIDE - 1)
        shares[:, paths] /= expected[side, :, 0] + expected[side, :, 1] * found.sizes[:, side : side + 1]
    usual = np.maximum(np.percentile(shares[same], _USUAL, axis=0), 1e-3)
    told = Differences((shares / usual).astype(np.float32), found.spread, found.sizes)
    parts = np.maximum(np.percentile(told.largest[same], _USUAL_PARTS, axis=0), 1e-3)
    return FormJudge(axes, expected, usual, parts, fit_logistic(evidence(told), same))


def _axes(numbers: FloatArray, n_axes: int) -> FloatArray:
    """Linear discriminants of (n_forms, c, d), scaled so that clips of one form vary by 1: (d, k)."""
    n_forms, n_clips, n_numbers = numbers.shape
    centres = numbers.mean(axis=1)
    within = (numbers - centres[:, None]).reshape(-1, n_numbers).astype(np.float64)
    varying = within.T @ within / (n_forms * (n_clips - 1))
    between = np.cov(centres.T.astype(np.float64)) - varying / n_clips
    ridge = max(_RIDGE * np.trace(varying) / n_numbers, 1e-9)
    spread, axes = np.linalg.eigh(varying + ridge * np.eye(n_numbers))
    white = axes / np.sqrt(spread)
    _, best = np.linalg.eigh(white.T @ between @ white)
    kept: FloatArray = (white @ best[:, ::-1][:, :n_axes]).astype(np.float32)
    return kept


def _groups(n_forms: int, alike: Ints) -> Iterator[Ints]:
    """Forms in groups like small dictionaries, those that are alike in one of them."""
    family = np.arange(n_forms)
    for one, other in alike.tolist():
        family[family == family[other]] = family[one]
    order = np.argsort(family, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(family[order]) > 0])
    first = 0
    for start in [*starts[1:].tolist(), n_forms]:
        if start - first >= _FORMS_AT_ONCE or start == n_forms:
            yield order[first:start]
            first = start


def _compared(blank: FormJudge, rows: FloatArray, alike: Ints, group: Ints, rng: np.random.Generator) -> _Compared:
    """Two dictionaries of the same forms by other people: each form with itself, its like, and what looks like it."""
    number = {form: place for place, form in enumerate(group.tolist())}
    first, second = _drawn(rows[group], rng)
    found = blank.differences(first, second)
    n = len(group)
    wanted = np.zeros((n, n), dtype=bool)
    for one, other in alike.tolist():
        if one in number:
            wanted[number[one], number[other]] = wanted[number[other], number[one]] = True
    apart = found.shares[..., : len(MEANS)].max(axis=-1)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1)[:, : min(_NEAREST, n - 1)]
    np.put_along_axis(wanted, nearest, values=True, axis=1)
    np.fill_diagonal(wanted, val=True)
    chosen = Differences(found.shares[wanted], found.spread[wanted], found.sizes[wanted])
    return _Compared(chosen, np.eye(n, dtype=bool)[wanted])


def _drawn(rows: FloatArray, rng: np.random.Generator) -> tuple[Variants, Variants]:
    """Some clips of every form for one dictionary, some others for another; rows (n, c, 782)."""
    n_forms, n_clips, _ = rows.shape
    most = min(n_clips // 2, len(_CLIPS))
    odds = np.array(_CLIPS[:most]) / sum(_CLIPS[:most])
    sides: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for form in range(n_forms):
        halves = np.array_split(rng.permutation(n_clips), 2)
        for side, half in zip(sides, halves, strict=True):
            side.append(rows[form, half[: int(rng.choice(most, p=odds)) + 1]])
    return variants_of(sides[0]), variants_of(sides[1])


def _expected(found: Differences, same: Bools) -> Floats:
    """(2, 6, 2) what paths of one form differ by: a constant and a share of their size, by weighted least squares."""
    expected = np.empty((2, 6, 2))
    for side in (0, 1):
        size = found.sizes[same, side].astype(np.float64)
        weight = 1 / (0.002 + 0.05 * size)
        for pace in range(6):
            residue = found.shares[same, side * N_SIDE + len(MEANS) + pace]
            expected[side, pace] = _line(weight, weight * size, weight * residue)
    return np.maximum(expected, 1e-7)


def _line(constant: Floats, slope: Floats, wanted: Floats) -> Floats:
    """(2,) the factors, none below 0, with which two columns come nearest to what is wanted."""
    both, *_ = np.linalg.lstsq(np.stack([constant, slope], axis=1), wanted, rcond=None)
    if both.min() >= 0:
        return np.asarray(both)
    alone = [max(float(column @ wanted) / max(float(column @ column), 1e-12), 0.0) for column in (constant, slope)]
    return np.array([alone[0], 0.0] if both[1] < 0 else [0.0, alone[1]])
