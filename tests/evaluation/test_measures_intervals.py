from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.tracks import Ints
from signspot.errors import InputError
from signspot.evaluation.measures import (
    BootstrapOptions,
    Interval,
    _interval,
    class_interval,
    class_means,
    mean_interval,
    ratio_interval,
    unit_interval,
)

MANY = BootstrapOptions(draws=4000)


def statistic_interval(statistic: Callable[[Ints], float], units: Ints, options: BootstrapOptions) -> Interval:
    """The slow way: `statistic` of the row numbers of the units drawn, repeats included."""
    rows_of = [np.flatnonzero(units == unit) for unit in np.unique(units)]
    rng = np.random.default_rng(options.seed)
    draws = (rng.integers(len(rows_of), size=len(rows_of)) for _ in range(options.draws))
    drawn = [statistic(np.concatenate([rows_of[unit] for unit in draw])) for draw in draws]
    return _interval(statistic(np.arange(len(units))), np.array(drawn), len(rows_of), options)


def ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None and interval.high is not None
    return interval.low, interval.high


def test_the_interval_of_a_mean_is_that_of_the_normal_theory() -> None:
    values = np.random.default_rng(0).normal(size=400)
    low, high = ends(mean_interval(values, options=MANY))
    error = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - error, abs=0.15 * error)
    assert high == pytest.approx(values.mean() + error, abs=0.15 * error)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    options = BootstrapOptions(draws=400, level=0.9)
    held = 0
    for _ in range(300):
        effect = np.repeat(rng.normal(size=40), 5)  # 40 signers, each with 5 rows that are alike
        held += 0.0 in mean_interval(effect + 0.1 * rng.normal(size=200), np.repeat(np.arange(40), 5), options)
    assert 0.84 < held / 300 < 0.95


@pytest.mark.parametrize(("n_units", "at_least"), [(5, 0.86), (10, 0.91)])  # plain percentiles: 0.81 and 0.89
def test_intervals_over_few_units_are_wider_than_plain_percentiles(n_units: int, at_least: float) -> None:
    rng = np.random.default_rng(11)
    held = sum(0.0 in mean_interval(rng.normal(size=n_units)) for _ in range(600))
    assert at_least < held / 600 < 0.97


def test_rows_that_share_a_unit_do_not_count_as_independent() -> None:
    rng = np.random.default_rng(2)
    signer = np.repeat(np.arange(20), 50)
    values = rng.normal(size=20)[signer]
    by_row, by_signer = ends(mean_interval(values)), ends(mean_interval(values, signer))
    assert by_signer[1] - by_signer[0] > 4 * (by_row[1] - by_row[0])


def test_the_fast_way_and_the_slow_way_agree() -> None:
    rng = np.random.default_rng(3)
    values, classes, signer = rng.random(300), rng.integers(0, 20, 300), rng.integers(0, 9, 300)
    fast = unit_interval(values, classes, signer, MANY)
    slow = statistic_interval(lambda rows: class_means(values[rows], classes[rows]).mean, signer, MANY)
    assert fast.estimate == pytest.approx(slow.estimate, abs=1e-12)
    assert ends(fast) == pytest.approx(ends(slow), abs=0.006)
    alarms, hours = rng.integers(0, 9, 300), rng.random(300)
    ratio = ratio_interval(alarms, hours, signer, MANY)
    slow = statistic_interval(lambda rows: float(alarms[rows].sum() / hours[rows].sum()), signer, MANY)
    assert ratio.estimate == pytest.approx(slow.estimate)
    assert ends(ratio) == pytest.approx(ends(slow), abs=0.15)


def test_classes_are_drawn_whole() -> None:
    values, classes = np.array([0, 0, 0, 0, 1.0]), np.array([1, 1, 1, 1, 2])
    interval = class_interval(values, classes)
    assert interval.estimate == 0.5
    assert ends(interval) == (0.0, 1.0)  # a quarter of the draws hold only one of the two
    assert interval.n_units == 2


def test_a_class_no_drawn_signer_shows_counts_for_nothing() -> None:
    # Signer a shows only class 1, signer b only class 2: a draw of one signer twice has the mean of its class.
    interval = unit_interval([1.0, 0.0], [1, 2], ["a", "b"])
    assert (interval.estimate, *ends(interval)) == (0.5, 0.0, 1.0)


def test_one_unit_says_nothing_about_spread() -> None:
    interval = mean_interval([0.2, 0.4], ["a", "a"])
    assert (interval.estimate, interval.low, interval.high) == (pytest.approx(0.3), None, None)
    assert 17.0 in interval
    assert unit_interval([0.2, 0.4], [1, 2], ["a", "a"]).low is None


def test_the_same_seed_gives_the_same_interval_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    values, classes, signer = rng.random(200), rng.integers(0, 30, 200), rng.integers(0, 12, 200)
    once = unit_interval(values, classes, signer)
    assert unit_interval(values, classes, signer) == once
    assert unit_interval(values, classes, signer, BootstrapOptions(seed=1)) != once
    monkeypatch.setattr("signspot.evaluation.measures._CELLS", 1000)
    in_blocks = unit_interval(values, classes, signer)
    assert ends(in_blocks) == pytest.approx(ends(once), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.integers(1, 5))
def test_an_interval_stays_within_the_values_and_widens_with_the_level(values: list[float], n_units: int) -> None:
    units: Ints = np.arange(len(values)) % n_units
    narrow = mean_interval(values, units, BootstrapOptions(draws=50, level=0.5))
    wide = mean_interval(values, units, BootstrapOptions(draws=50, level=0.99))
    if wide.low is not None:
        narrow_low, narrow_high = ends(narrow)
        wide_low, wide_high = ends(wide)
        assert wide_low <= narrow_low <= narrow_high <= wide_high
        assert min(values) - 1e-9 <= wide_low and wide_high <= max(values) + 1e-9


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="one label for each value"):
        mean_interval([1.0, 2.0], ["a"])
    with pytest.raises(InputError, match="nothing to divide by"):
        mean_interval([])
    with pytest.raises(InputError, match="nothing to divide by"):
        ratio_interval([1, 2], [0, 0])
    with pytest.raises(InputError, match="0 draws"):
        BootstrapOptions(draws=0)
