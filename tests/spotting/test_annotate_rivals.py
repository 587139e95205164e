from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from signspot.spotting.annotate import likely_windows, shares

COSINES = arrays.arrays(
    np.float32, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.floats(-1, 1, width=32)
)


def share_by_hand(row: np.ndarray, word: int) -> float:
    """The formula read aloud: e to the cosine in fifths, over the sum of all."""
    return float(np.exp(float(row[word]) / 0.2) / sum(np.exp(float(one) / 0.2) for one in row))


@given(COSINES)
def test_shares_are_the_formula_and_add_up_to_one(cosine: np.ndarray) -> None:
    found = shares(cosine)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(cosine)), abs=1e-5)
    for row, own in zip(cosine, found, strict=True):
        assert own == pytest.approx([share_by_hand(row, word) for word in range(len(row))], abs=1e-5)


def test_a_moment_that_another_word_resembles_more_is_left_to_it() -> None:
    eat, lunch = [0.2, 0.90, 0.2, 0.88, 0.2], [0.1, 0.95, 0.3, 0.20, 0.1]
    assert likely_windows(np.array([eat, lunch], np.float32).T).tolist() == [3, 1]
    assert likely_windows(np.array([eat], np.float32).T).tolist() == [1]  # alone, it is where it is most similar


@given(COSINES, st.integers(0, 4))
def test_the_order_of_the_words_does_not_matter(cosine: np.ndarray, turn: int) -> None:
    turned = likely_windows(np.roll(cosine, turn, axis=1))
    value = (cosine + 1) * shares(cosine)
    for word, window in enumerate(np.roll(turned, -turn)):
        assert value[window, word] == pytest.approx(value[:, word].max(), abs=1e-5)


def test_what_was_not_compared_is_nobody_s_rival_and_never_likely() -> None:
    cosine = np.array([[-np.inf, 0.5], [0.1, -np.inf], [-np.inf, -np.inf]], np.float32)
    assert shares(cosine).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert likely_windows(cosine).tolist() == [1, 0]
