"""Fits held against scikit-learn's, and thresholds against counting."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.domain.tracks import Bools, Floats
from signspot.errors import InputError
from signspot.evaluation import calibration
from signspot.evaluation.calibration import (
    EVIDENCE,
    Calibration,
    Logistic,
    PresenceFit,
    SearchSizes,
    _fit_isotonic,
    _probabilities,
    absence_of,
    fit_logistic,
    fit_presence,
    reliability,
)


def examples(n: int = 4000, seed: int = 0) -> tuple[Floats, Bools]:
    """Evidence whose log odds of being right are known: 3 x - 2 y - 1."""
    rng = np.random.default_rng(seed)
    columns = np.c_[rng.normal(0.3, 0.5, n), rng.normal(0, 1, n), np.full(n, 7.0), rng.integers(0, 2, n)]
    return columns, rng.random(n) < _probabilities(3 * columns[:, 0] - 2 * columns[:, 1] - 1)


def test_the_logistic_fit_is_that_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    columns, right = examples()
    own = fit_logistic(columns, right)
    standard = (columns - np.array(own.centre)) / np.array(own.scale)
    theirs = linear_model.LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(standard, right)
    assert own.weights == pytest.approx(theirs.coef_[0].tolist(), abs=1e-4)
    assert own.bias == pytest.approx(theirs.intercept_[0], abs=1e-4)
    assert own.weights[2] == 0  # a column that never changes says nothing


def test_classes_that_never_overlap_give_finite_weights() -> None:
    columns = np.r_[np.full((100, 4), -1.0), np.full((100, 4), 1.0)]
    fit = fit_logistic(columns, np.arange(200) >= 100)
    sure = _probabilities(fit.log_odds(columns))
    assert sure[0] < 0.05
    assert sure[-1] > 0.95


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(-20, 20), st.booleans()), min_size=1, max_size=200))
def test_pools_are_those_of_exact_fractions(candidates: list[tuple[int, bool]]) -> None:
    pools: list[tuple[int, list[int]]] = []  # how many are right, and the log odds of all
    for level, group in groupby(sorted(candidates), key=lambda one: one[0]):
        right = [is_right for _, is_right in group]
        pools.append((sum(right), [level] * len(right)))
        while len(pools) > 1 and Fraction(pools[-2][0], len(pools[-2][1])) >= Fraction(pools[-1][0], len(pools[-1][1])):
            later, before = pools.pop(), pools.pop()
            pools.append((before[0] + later[0], before[1] + later[1]))
    odds, truth = np.array([one for one, _ in candidates], np.float64), np.array([one for _, one in candidates])
    fit = _fit_isotonic(odds, truth)
    assert fit.probability == pytest.approx([right / len(levels) for right, levels in pools], abs=1e-9)
    assert fit.log_odds == pytest.approx([sum(levels) / len(levels) for _, levels in pools], abs=1e-9)


def test_the_isotonic_fit_is_that_of_scikit_learn() -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    columns, right = examples()
    odds = fit_logistic(columns, right).log_odds(columns)
    order = np.argsort(odds, kind="stable")
    theirs = isotonic.isotonic_regression(right[order].astype(np.float64))
    assert _fit_isotonic(odds, right).probability == pytest.approx(theirs[np.diff(theirs, prepend=-1) > 1e-9], abs=1e-9)


def test_an_isotonic_fit_repairs_log_odds_that_promise_too_much() -> None:
    columns, right = examples()
    too_sure = 4 * fit_logistic(columns, right).log_odds(columns)
    fit = _fit_isotonic(too_sure, right)
    repaired = np.interp(too_sure, fit.log_odds, fit.probability)
    assert reliability(_probabilities(too_sure), right).expected_error > 0.05
    assert reliability(repaired, right).expected_error < 0.02


@pytest.mark.parametrize("is_isotonic", [False, True])
def test_promises_are_kept_on_evidence_that_was_not_fitted(is_isotonic: bool) -> None:
    fit = fit_presence(*examples(), word_hours=10, isotonic=is_isotonic)
    columns, right = examples(seed=1)
    assert reliability(fit.probability(columns), right).expected_error < 0.03


@settings(max_examples=25)
@given(st.floats(0.05, 300))
def test_a_threshold_gives_no_more_false_alarms_than_asked_for_and_one_less_would(rate: float) -> None:
    columns, right = examples(1000)
    fit = fit_presence(columns, right, word_hours=4)
    least = fit.least_presence(rate)
    wrong = fit.probability(columns[~right])
    allowed = int(rate * 4)
    assert (wrong >= least).sum() <= allowed
    if allowed < len(wrong):
        assert (wrong >= np.nextafter(least, -1)).sum() > allowed


def test_a_threshold_is_said_to_give_the_false_alarms_that_it_gave() -> None:
    columns, right = examples(1000)
    fit = fit_presence(columns, right, word_hours=4)
    wrong = fit.probability(columns[~right])
    for least in (0.2, 0.5, 0.9):
        assert fit.false_alarms(least) == pytest.approx((wrong >= least).sum() / 4)
    assert fit.false_alarms(fit.least_presence(3.0)) <= 3.0


def test_false_alarms_are_those_of_searches_for_about_as_many_words() -> None:
    """Ten hours for one word with ten alarms, ten for a hundred words with one: what is asked for holds for both."""
    sure = np.array([0.9, *(0.8 - 0.01 * place for place in range(10))])
    sizes = SearchSizes(np.array([100, *[1] * 10]), np.array([1, 100]), np.array([10.0, 10.0]))
    fit = PresenceFit(Logistic((0.0,), (1.0,), (1.0,), 0.0), None, sure, 20.0, searches=sizes)
    for n_words, alarms in ((1, 1.0), (2, 1.0), (60, 0.1), (5000, 0.1), (None, 0.55)):
        assert fit.false_alarms(0.7, n_words) == pytest.approx(alarms), n_words
    assert fit.least_presence(0.5, 1) == pytest.approx(0.75)  # five of ten alarms are allowed
    assert fit.least_presence(0.5, 100) == 0.0
    assert fit.least_presence(0.05, 200) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="every false alarm"):
        replace(fit, alarms=sure[:3])


def test_by_default_false_alarms_are_bounded_for_one_word_as_for_many() -> None:
    alarms = np.linspace(0.9, 0.1, 40)  # 30 of searches for one word, 10 of searches for a hundred
    sizes = SearchSizes(np.where(np.arange(40) % 4 < 3, 1, 100), np.array([1, 100]), np.array([2.0, 2.0]))
    nothing = Logistic((0.0,), (1.0,), (0.0,), 0.0)
    fit = PresenceFit(nothing, None, alarms, word_hours=4.0, searches=sizes, usual=0.2, usual_alarms=3.0)
    assert fit.usual_presence(1) > fit.usual_presence(100) >= 0.2
    for n_words in (1, 100):
        assert 2.0 <= fit.false_alarms(fit.usual_presence(n_words), n_words) <= 3.0
    assert replace(fit, usual=0.95).usual_presence(1) == 0.95, "and nothing that is less probable"
    assert replace(fit, usual_alarms=None).usual_presence(1) == 0.2
    with pytest.raises(ValueError, match="false alarms"):
        replace(fit, usual_alarms=0.0)


def test_alarms_that_were_too_many_to_keep_are_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_KEPT_ALARMS", 3)
    fit = PresenceFit(Logistic((0.0,), (1.0,), (0.0,), 0.0), None, np.array([0.9, 0.8, 0.7]), word_hours=1.0)
    assert fit.least_presence(2.0) == pytest.approx(0.7)
    assert fit.least_presence(50.0) == 0.7, "what lies below was not counted"


def test_a_fit_keeps_the_number_of_words_of_each_alarm() -> None:
    columns, right = examples(1000)
    n_words = np.where(columns[:, 0] > 0, 5, 50)
    fit = fit_presence(columns, right, word_hours=4, n_words=n_words, hours_of={50: 3.0, 5: 1.0})
    assert fit.searches is not None and fit.searches.words.tolist() == [5, 50]
    wrong = fit.probability(columns[~right])
    for size, hours in ((5, 1.0), (50, 3.0)):
        counted = (wrong[n_words[~right] == size] >= 0.3).sum() / hours
        assert fit.false_alarms(0.3, size) == pytest.approx(counted)


def test_too_little_truth_and_impossible_rates_are_refused() -> None:
    columns, right = examples(300)
    with pytest.raises(InputError, match="too few to calibrate on"):
        fit_presence(columns[:150], right[:150], word_hours=1)
    with pytest.raises(InputError, match="too few to calibrate on"):
        fit_presence(columns, np.zeros(300, np.bool_), word_hours=1)
    with pytest.raises(InputError, match="give a positive number"):
        fit_presence(columns, right, word_hours=1).least_presence(0)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_the_chance_that_nothing_is_there_is_the_product(presence: list[float]) -> None:
    expected = 1.0
    for one in presence:
        expected *= 1 - one
    assert absence_of(presence) == pytest.approx(expected)


def test_a_calibration_is_named_by_what_it_holds() -> None:
    fit, other = (
        fit_presence(np.pad(columns, ((0, 0), (0, len(EVIDENCE) - columns.shape[1]))), right, word_hours=1)
        for columns, right in (examples(), examples(seed=2))
    )
    assert _calibration(fit).name == _calibration(fit).name != _calibration(other).name
    assert _calibration(fit).fit_for(is_read=True) is fit  # near subtitles too, where nothing better is known


def _calibration(fit: PresenceFit) -> Calibration:
    return Calibration(
        model="m",
        fingerprint="f",
        plain=fit,
        read=None,
        cohort=np.eye(3, dtype=np.float32),
        cohort_words=(Word("a"), Word("b"), Word("c")),
        fitted_on="a test",
    )
