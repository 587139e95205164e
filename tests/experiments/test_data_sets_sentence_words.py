"""Words in sentences without times: against hand-computed cases and a naive version."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from experiments.lib.data_sets import sentence_word_scores
from hypothesis import given
from hypothesis import strategies as st

from signspot.errors import InputError


def naive_precision(scores: list[float], right: list[bool]) -> float:
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    places = [place for place, i in enumerate(order, start=1) if right[i]]
    return sum(n / place for n, place in enumerate(places, start=1)) / len(places)


def test_a_case_by_hand() -> None:
    best = np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.3]])
    peak = np.array([[3.0, 9.0, 7.0], [1.0, 5.0, 2.0]])
    found = sentence_word_scores(best, peak, [[0, 2], [1, 2]])
    assert found.presence.tolist() == [1.0, 1.0]  # word 2 is in all sentences and asks nothing
    assert found.ranking.tolist() == [1.0, 1.0]
    assert found.in_order.tolist() == [True, False] and found.pair_sentence.tolist() == [0, 1]


@given(st.integers(0, 2**16))
def test_it_agrees_with_a_naive_version(seed: int) -> None:
    rng = np.random.default_rng(seed)
    best, peak = rng.integers(0, 5, (4, 6)) / 4, rng.integers(0, 5, (4, 6)).astype(float)
    words = [rng.integers(0, 6, rng.integers(0, 4)).tolist() for _ in range(4)]
    found = sentence_word_scores(best, peak, words)
    holds = [[word in signed for word in range(6)] for signed in words]
    columns = [[row[word] for row in holds] for word in range(6)]
    presence = [naive_precision(best[:, w].tolist(), c) for w, c in enumerate(columns) if any(c) and not all(c)]
    ranking = [naive_precision(best[s].tolist(), row) for s, row in enumerate(holds) if any(row)]
    order = [peak[s, a] < peak[s, b] for s, signed in enumerate(words) for a, b in pairwise(signed)]
    np.testing.assert_allclose(found.presence, presence)
    np.testing.assert_allclose(found.ranking, ranking)
    assert found.in_order.tolist() == order


def test_shapes_and_words_that_do_not_fit_are_refused() -> None:
    scores = np.zeros((2, 3))
    with pytest.raises(InputError, match="one row for each sentence"):
        sentence_word_scores(scores, scores, [[0]])
    with pytest.raises(InputError, match="a word that has no column"):
        sentence_word_scores(scores, scores, [[0], [3]])
