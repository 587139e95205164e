from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from signspot.errors import InputError
from signspot.evaluation.calibration import reliability

probabilities = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


@pytest.mark.parametrize("seed", range(3))
def test_bins_agree_with_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    probability = rng.random(400) ** 3
    right = rng.random(400) < probability
    bins = reliability(probability, right)
    observed, promised = calibration_curve(right, probability, n_bins=10)
    filled = bins.counts > 0
    assert bins.observed[filled] == pytest.approx(observed, abs=1e-9)
    assert bins.promised[filled] == pytest.approx(promised, abs=1e-9)


def test_an_error_computed_by_hand() -> None:
    # [0.0, 0.5): promised 0.2, observed 1/2 of 2; [0.5, 1]: promised 0.9, observed 2/3 of 3.
    bins = reliability([0.1, 0.3, 0.8, 0.9, 1.0], [True, False, True, True, False], n_bins=2)
    assert bins.counts.tolist() == [2, 3]
    assert bins.expected_error == pytest.approx((2 * 0.3 + 3 * (0.9 - 2 / 3)) / 5)


@given(probabilities, st.integers(1, 12))
def test_every_probability_is_in_the_bin_whose_edges_hold_it(judged: list[tuple[float, bool]], n_bins: int) -> None:
    probability = np.array([p for p, _ in judged])
    bins, edges = reliability(probability, [r for _, r in judged], n_bins), np.linspace(0, 1, n_bins + 1)
    assert bins.counts.sum() == len(judged) and len(bins.counts) == n_bins
    for place, (low, high) in enumerate(pairwise(edges)):
        inside = (probability >= low) & ((probability < high) | ((high == 1) & (probability == 1)))
        assert bins.counts[place] == inside.sum()
    assert 0 <= bins.expected_error <= 1 + 1e-12  # a weighted mean, rounded


def test_certain_and_right_is_no_error_and_certain_and_wrong_is_all_of_it() -> None:
    assert reliability([1, 0, 1], [True, False, True]).expected_error == 0.0
    assert reliability([1, 0, 1], [False, True, False]).expected_error == 1.0


def test_probabilities_that_are_none_are_refused() -> None:
    for bad in (1.5, -0.1, np.nan):
        with pytest.raises(InputError, match="not between 0 and 1"):
            reliability([bad], [True])
    with pytest.raises(InputError, match="one probability and one truth"):
        reliability([], [])
