"""Whether probabilities mean what they say: reliability bins and the expected calibration error.

Conventions: bins are half-open [low, high), the last also holds 1. An empty bin has count 0 and counts for nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Word
from signspot.domain.tracks import Bools, FloatArray, Floats, Ints
from signspot.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Promised and observed frequency in each of B bins."""

    counts: Ints  # (B,)
    promised: Floats  # (B,) the mean probability of a bin; 0 where it is empty
    observed: Floats  # (B,) the share of a bin that is right; 0 where it is empty

    @property
    def expected_error(self) -> float:
        """Expected calibration error: the gap between promise and observation, weighted by the counts."""
        return float((np.abs(self.promised - self.observed) * self.counts).sum() / self.counts.sum())


def reliability(probability: npt.ArrayLike, right: npt.ArrayLike, n_bins: int = 10) -> Reliability:
    """Sort `probability` (n,) in [0, 1] into bins of equal width and compare with `right` (n,) bool."""
    promise, truth = np.asarray(probability, dtype=np.float64), np.asarray(right, dtype=np.bool_)
    if promise.ndim != 1 or promise.shape != truth.shape or not len(promise) or n_bins < 1:
        shapes = f"{promise.shape} probabilities, {truth.shape} truths, {n_bins} bins"
        raise InputError("calibration", shapes, "give one probability and one truth for each detection")
    if not ((promise >= 0) & (promise <= 1)).all():
        raise InputError("calibration", "a probability is not between 0 and 1", "calibrate the scores first")
    edges = np.linspace(0, 1, n_bins + 1)
    bins = np.minimum(np.searchsorted(edges, promise, side="right") - 1, n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    promised = np.bincount(bins, weights=promise, minlength=n_bins) / np.maximum(counts, 1)
    observed = np.bincount(bins, weights=truth, minlength=n_bins) / np.maximum(counts, 1)
    return Reliability(counts.astype(np.int64), promised, observed)


# From evidence to a probability that a sign is there: logistic (Platt) and isotonic fits, and their false alarms. A
# candidate is a peak of a word's similarity curve. Its evidence is a row of numbers (see EVIDENCE); the fit says how
# often candidates like it were right where the truth is known. False alarms are counted for each hour of video and each
# word that is searched for in it: ten words in one hour are ten word-hours.

EVIDENCE = (  # the columns
    "cosine",
    "margin to other words",  # at the same moment: those searched for, and the words that the model knows
    "rise over its middle",  # of the word's cosines in all that was searched
    "log windows searched",
    "log entries",
    "log words",  # searched for at once
)
FEWEST = 200  # candidates of known truth; with fewer, a calibration would be a guess
_FEWEST_OF_EACH = 10
_RIDGE = 1.0  # keeps weights finite where the classes can be told apart without error
_MAX_STEPS = 100
_KEPT_ALARMS = 5000
_LARGEST_LOG_ODDS = 30.0


@dataclass(frozen=True, slots=True)
class Logistic:
    """log odds = bias + sum of weight * (value - centre) / scale over the columns."""

    centre: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    def __post_init__(self) -> None:
        numbers = np.array([*self.centre, *self.scale, *self.weights, self.bias], np.float64)
        if not len(self.centre) == len(self.scale) == len(self.weights) or not np.isfinite(numbers).all():
            raise ValueError("a logistic fit has a centre, a scale and a weight for each column, all finite")
        if min(self.scale, default=1.0) <= 0:
            raise ValueError("the scale of a column is positive")

    def log_odds(self, columns: Floats) -> Floats:
        """(n, k) -> (n,), within +-30: nothing is certain."""
        standard = (columns - np.array(self.centre)) / np.array(self.scale)
        raw = standard @ np.array(self.weights) + self.bias
        return np.asarray(np.clip(raw, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS))


def fit_logistic(columns: Floats, right: Bools) -> Logistic:
    """The fit of highest likelihood, with a small ridge on the weights, by Newton's method: (n, k) and (n,) bool."""
    if columns.ndim != 2 or right.shape != columns.shape[:1] or not np.isfinite(columns).all():
        raise InputError("calibration", f"evidence of shape {columns.shape}", "give one row of numbers a candidate")
    centre = columns.mean(axis=0)
    spread = columns.std(axis=0)
    scale = np.where(spread > 1e-9, spread, 1.0)  # a column that never changes says nothing: its weight stays 0
    rows = np.c_[(columns - centre) / scale, np.ones(len(columns))]
    ridge = np.r_[np.full(columns.shape[1], _RIDGE), 0.0]
    share = float(np.clip(right.mean(), 1e-6, 1 - 1e-6))
    weights = np.r_[np.zeros(columns.shape[1]), np.log(share / (1 - share))]
    for _ in range(_MAX_STEPS):
        step = _newton_step(rows, right, weights, ridge)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return Logistic(tuple(centre.tolist()), tuple(scale.tolist()), tuple(weights[:-1].tolist()), float(weights[-1]))


def _newton_step(rows: Floats, right: Bools, weights: Floats, ridge: Floats) -> Floats:
    """One step, halved until the likelihood does not fall."""
    probability = _probabilities(rows @ weights)
    gradient = rows.T @ (right - probability) - ridge * weights
    curvature = (rows * (probability * (1 - probability))[:, None]).T @ rows + np.diag(ridge + 1e-9)
    step = np.linalg.solve(curvature, gradient)
    before = _penalised(rows, right, weights, ridge)
    for _ in range(30):
        if _penalised(rows, right, weights + step, ridge) >= before - 1e-12 * abs(before):
            return np.asarray(step)
        step = step / 2
    return np.zeros_like(step)


def _penalised(rows: Floats, right: Bools, weights: Floats, ridge: Floats) -> float:
    raw = rows @ weights
    return float((right * raw - np.logaddexp(0, raw)).sum() - 0.5 * (ridge * weights**2).sum())


def _probabilities(log_odds: Floats) -> Floats:
    """(n,) -> (n,) in (0, 1)."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * np.asarray(log_odds, np.float64))))


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """A probability that rises with the log odds of a logistic fit: straight lines between knots."""

    log_odds: Floats  # (k,) rising
    probability: Floats  # (k,) never falling

    def __post_init__(self) -> None:
        fits = self.log_odds.shape == self.probability.shape and self.log_odds.ndim == 1 and len(self.log_odds) > 0
        if not fits or (np.diff(self.log_odds) <= 0).any() or (np.diff(self.probability) < 0).any():
            raise ValueError("knots rise, and their probabilities never fall")


def _fit_isotonic(log_odds: Floats, right: Bools) -> Isotonic:
    """Pool candidates (n,) until their frequencies never fall, one knot in the middle of each pool."""
    from scipy.optimize import isotonic_regression  # only here: it loads slowly

    order = np.argsort(log_odds, kind="stable")
    sorted_odds = np.asarray(log_odds, np.float64)[order]
    # Equal log odds are one pool from the start, whatever their order.
    levels, first, counts = np.unique(sorted_odds, return_index=True, return_counts=True)
    means = np.add.reduceat(right[order].astype(np.float64), first) / counts
    fitted = isotonic_regression(means, weights=counts).x
    starts = np.flatnonzero(np.r_[True, np.diff(fitted) > 1e-12])  # less is rounding: one pool
    stops = np.r_[starts[1:], len(levels)]
    middles = np.array(
        [np.average(levels[a:b], weights=counts[a:b]) for a, b in zip(starts, stops, strict=True)], np.float64
    )
    return Isotonic(middles, fitted[starts])


@dataclass(frozen=True, slots=True, eq=False)
class SearchSizes:
    """Of false alarms in searches for few words and for many: words compete, so the more, the fewer alarms each has."""

    alarm_words: Ints  # (n,) for how many words was searched where each alarm was
    words: Ints  # (k,) rising: for how many words was searched
    word_hours: Floats  # (k,) and how long

    def __post_init__(self) -> None:
        if self.words.shape != self.word_hours.shape or not len(self.words) or (np.diff(self.words) <= 0).any():
            raise ValueError("searches for so many words are counted once, for some hours")

    def like(self, n_words: int) -> Bools:
        """(k,) the searches for about as many words: half to twice, or the nearest if there is none."""
        factor = np.abs(np.log(self.words / max(1, n_words)))
        return np.asarray(factor <= max(float(np.log(2.0)) + 1e-9, float(factor.min())))


@dataclass(frozen=True, slots=True, eq=False)
class PresenceFit:
    """Evidence to probability, and the false alarms that were counted with it."""

    logistic: Logistic
    isotonic: Isotonic | None  # None: the logistic fit as it is
    alarms: Floats  # probabilities of the wrong candidates, falling, the highest 5,000 of them
    word_hours: float  # searched
    usual: float = 0.5  # the lowest probability that counts as found unless the user asks for something else
    searches: SearchSizes | None = None  # None: all searches were for as many words as the next will be
    usual_alarms: float | None = None  # per word and hour: no more than that unless the user asks for it; None: any

    def __post_init__(self) -> None:
        if not 0 < self.word_hours < np.inf or (np.diff(self.alarms) > 0).any():
            raise ValueError("false alarms are sorted from the surest down, of some hours of search")
        if self.searches is not None and self.searches.alarm_words.shape != self.alarms.shape:
            raise ValueError("every false alarm is one of a search for some words")
        if not 0 <= self.usual <= 1:
            raise ValueError(f"{self.usual} is no probability")
        if self.usual_alarms is not None and not 0 < self.usual_alarms < np.inf:
            raise ValueError(f"{self.usual_alarms} false alarms")

    def probability(self, columns: Floats) -> Floats:
        """(n, k) evidence -> (n,)."""
        return _probability(self.logistic, self.isotonic, columns)

    def _like(self, n_words: int | None) -> tuple[Floats, float]:
        """The false alarms of searches for about as many words, and the hours of these."""
        if self.searches is None or n_words is None:
            return self.alarms, self.word_hours
        like = self.searches.like(n_words)
        own = np.isin(self.searches.alarm_words, self.searches.words[like])
        return self.alarms[own], float(self.searches.word_hours[like].sum())

    def least_presence(self, alarms_per_hour: float, n_words: int | None = None) -> float:
        """The lowest probability to show, so that an hour of search for one of the words gives so many false alarms."""
        if not 0 < alarms_per_hour < np.inf:
            raise InputError("false alarms", f"{alarms_per_hour} an hour", "give a positive number, such as 1/h")
        alarms, word_hours = self._like(n_words)
        allowed = int(alarms_per_hour * word_hours)
        if allowed >= len(alarms):  # of the least sure ones nothing is known where there were too many to keep
            return 0.0 if len(self.alarms) < _KEPT_ALARMS else float(self.alarms[-1])
        # Above the first alarm that is one too many.
        return float(min(1.0, np.nextafter(alarms[allowed], 2.0)))

    def usual_presence(self, n_words: int | None = None) -> float:
        """The lowest probability that counts as found unless the user asks for something else."""
        if self.usual_alarms is None:
            return self.usual
        return max(self.usual, self.least_presence(self.usual_alarms, n_words))

    def false_alarms(self, least_presence: float, n_words: int | None = None) -> float:
        """As many false alarms an hour of search for one of the words gives, of findings from a probability on."""
        alarms, word_hours = self._like(n_words)
        return float((alarms >= least_presence).sum() / word_hours)

    @property
    def lowest_rate(self) -> float:
        """The fewest false alarms an hour that the search was long enough to count."""
        return 1 / self.word_hours


def _probability(logistic: Logistic, isotonic: Isotonic | None, columns: Floats) -> Floats:
    log_odds = logistic.log_odds(columns)
    if isotonic is None:
        return _probabilities(log_odds)
    return np.asarray(np.interp(log_odds, isotonic.log_odds, isotonic.probability))


def fit_presence(
    columns: Floats,
    right: Bools,
    word_hours: float,
    *,
    isotonic: bool = False,
    n_words: Ints | None = None,
    hours_of: Mapping[int, float] | None = None,
) -> PresenceFit:
    """Fit on candidates of known truth: evidence (n, k), `right` (n,), and how long was searched for how many words.

    Where searches were for few words and for many: `n_words` (n,) of each candidate's, and the hours of each number.
    """
    n_right = int(right.sum())
    if len(right) < FEWEST or min(n_right, len(right) - n_right) < _FEWEST_OF_EACH:
        what = f"{n_right} right and {len(right) - n_right} wrong candidates are too few to calibrate on"
        fix = f"annotate more: {FEWEST} candidates, at least {_FEWEST_OF_EACH} right and {_FEWEST_OF_EACH} wrong"
        raise InputError("calibration", what, fix)
    logistic = fit_logistic(columns, right)
    pooled = _fit_isotonic(logistic.log_odds(columns), right) if isotonic else None
    wrong = _probability(logistic, pooled, columns[~right])
    surest = np.argsort(-wrong, kind="stable")[:_KEPT_ALARMS]
    sizes = None
    if n_words is not None and hours_of is not None:
        words, hours = np.array(sorted(hours_of.items()), np.float64).T
        sizes = SearchSizes(n_words[~right][surest].astype(np.int64), words.astype(np.int64), hours)
    return PresenceFit(logistic, pooled, wrong[surest], word_hours, searches=sizes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """What turns cosines of one model into probabilities."""

    model: str
    fingerprint: str  # of the model: cosines of another mean something else
    plain: PresenceFit  # of a search that knows nothing of subtitles
    read: PresenceFit | None  # of a search around the subtitles that mention the word; None: not known
    cohort: FloatArray  # (n, d) unit rows: clips or directions of other words, which a sign must beat
    cohort_words: tuple[Word, ...]  # (n,)
    fitted_on: str  # what it was fitted on, for people
    lowest: float = -1.01  # no sign was found below this cosine: what lies there is not looked at

    def __post_init__(self) -> None:
        if self.cohort.ndim != 2 or len(self.cohort) != len(self.cohort_words):
            raise ValueError(f"{len(self.cohort_words)} words for vectors of shape {self.cohort.shape}")
        if not np.isfinite(self.cohort).all():
            raise ValueError("vectors that are not numbers")
        for fit in (self.plain, self.read):
            if fit is not None and len(fit.logistic.weights) != len(EVIDENCE):
                raise ValueError(f"a fit of {len(fit.logistic.weights)} columns instead of {len(EVIDENCE)}")

    @property
    def name(self) -> str:
        digest = hashlib.sha256(f"{self.fingerprint}\0{self.fitted_on}".encode(errors="surrogatepass"))
        for fit in (self.plain, self.read):
            digest.update(repr(None if fit is None else fit.logistic).encode())
        return f"{self.model}:{digest.hexdigest()[:10]}"

    def fit_for(self, *, is_read: bool) -> PresenceFit:
        return self.read if is_read and self.read is not None else self.plain


def absence_of(presence: npt.ArrayLike) -> float:
    """The probability that none of several candidates, with these probabilities (n,), is right: they are independent.

    >>> round(absence_of([0.5, 0.5]), 3), absence_of([])
    (0.25, 1.0)
    """
    return float(np.prod(1 - np.asarray(presence, np.float64)))
