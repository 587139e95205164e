from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from signspot.domain.tracks import Bools, Floats, Ints
from signspot.errors import InputError
from signspot.evaluation.measures import average_precision, chance_average_precision, class_means, ranks
from signspot.evaluation.protocol import _chance_recall_among_first, _recall_among_first

judged_lists = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=12)


def mean_average_precision(scores: Floats, right: Bools, classes: Ints | None = None) -> float:
    each = [average_precision(ranks(row)[truth], int(truth.sum())) for row, truth in zip(scores, right, strict=True)]
    return class_means(each, np.arange(len(each)) if classes is None else classes).mean


def ap_read_aloud(judged: list[tuple[int, bool]], n_relevant: int) -> float:
    """Walk down the ranking; at every right item note the precision so far."""
    down = sorted(enumerate(judged), key=lambda item: (-item[1][0], item[0]))
    noted, right_so_far = [], 0
    for rank, (_, (_, is_right)) in enumerate(down, start=1):
        if is_right:
            right_so_far += 1
            noted.append(right_so_far / rank)
    return sum(noted) / n_relevant if n_relevant else 0.0


@given(judged_lists, st.integers(0, 3))
def test_average_precision_is_what_a_walk_down_the_ranking_gives_ties_included(
    judged: list[tuple[int, bool]], n_missing: int
) -> None:
    scores, right = np.array([s for s, _ in judged], dtype=np.float64), np.array([r for _, r in judged])
    n_relevant = int(right.sum()) + n_missing
    assert average_precision(ranks(scores)[right], n_relevant) == pytest.approx(ap_read_aloud(judged, n_relevant))


@pytest.mark.parametrize("seed", range(20))
def test_average_precision_agrees_with_scikit_learn_where_no_scores_tie(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, right = rng.normal(size=500), rng.random(500) < rng.uniform(0.01, 0.9)
    ours = average_precision(ranks(scores)[right], int(right.sum()))
    assert ours == pytest.approx(average_precision_score(right, scores), abs=1e-9)


def test_map_over_many_queries_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    scores, right = rng.normal(size=(30, 200)), rng.random((30, 200)) < 0.1
    right[3] = False
    each = [average_precision_score(r, s) if r.any() else 0.0 for s, r in zip(scores, right, strict=True)]
    assert mean_average_precision(scores, right) == pytest.approx(np.mean(each), abs=1e-9)
    classes = np.arange(30) % 4
    by_class = [np.mean([ap for ap, c in zip(each, classes, strict=True) if c == one]) for one in range(4)]
    assert mean_average_precision(scores, right, classes) == pytest.approx(np.mean(by_class), abs=1e-9)


def test_a_map_computed_by_hand() -> None:
    scores = np.array([[0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.3, 0.4]])
    right = np.array([[True, False, True, False], [True, False, False, False]])
    assert mean_average_precision(scores, right) == pytest.approx(((1 + 2 / 3) / 2 + 1 / 4) / 2)


@pytest.mark.parametrize(("place", "expected"), [(0, 1.0), (1, 1 / 2), (2, 1 / 3)])
def test_of_equal_scores_the_earlier_item_ranks_higher(place: int, expected: float) -> None:
    assert average_precision(ranks(np.zeros(3))[[place]], 1) == pytest.approx(expected)


def test_items_at_minus_infinity_come_last_in_their_order() -> None:
    assert ranks(np.array([-np.inf, 0.5, -np.inf])).tolist() == [2, 1, 3]


@given(judged_lists, st.integers(1, 6))
def test_recall_is_the_share_of_the_relevant_in_the_first_k(judged: list[tuple[int, bool]], k: int) -> None:
    scores, right = np.array([s for s, _ in judged], dtype=np.float64), np.array([r for _, r in judged])
    down = sorted(range(len(judged)), key=lambda i: (-judged[i][0], i))
    n_relevant = int(right.sum())
    expected = sum(judged[i][1] for i in down[:k]) / min(k, n_relevant) if n_relevant else 0.0
    assert _recall_among_first(ranks(scores)[right], n_relevant, k) == pytest.approx(expected)


def test_all_of_the_first_five_being_right_is_a_recall_of_one_however_many_there_are() -> None:
    assert _recall_among_first([1, 2, 3, 4, 5], 10) == 1.0
    assert _recall_among_first([1, 2, 3, 4, 6], 10) == 0.8
    assert _recall_among_first([2], 3) == pytest.approx(1 / 3)


def test_nothing_relevant_scores_nothing() -> None:
    assert average_precision([], 0) == _recall_among_first([], 0) == 0.0
    assert chance_average_precision(10, 0) == _chance_recall_among_first(10, 0) == 0.0


def test_classes_weigh_the_same_and_empty_classes_are_not_there() -> None:
    means = class_means([1, 1, 1, 0], [3, 3, 3, 8])
    assert (means.classes.tolist(), means.values.tolist(), means.counts.tolist()) == ([3, 8], [1, 0], [3, 1])
    assert means.mean == 0.5
    assert np.isnan(class_means([], []).mean)


@pytest.mark.parametrize(("n_items", "n_relevant"), [(1, 1), (4, 1), (5, 2), (6, 3), (5, 5)])
def test_chance_is_the_mean_over_all_orders(n_items: int, n_relevant: int) -> None:
    placed = [np.array(places) + 1 for places in itertools.combinations(range(n_items), n_relevant)]
    ap = np.mean([average_precision(places, n_relevant) for places in placed])
    recall = np.mean([_recall_among_first(places, n_relevant, 2) for places in placed])
    assert chance_average_precision(n_items, n_relevant) == pytest.approx(ap)
    assert _chance_recall_among_first(n_items, n_relevant, k=2) == pytest.approx(recall)


def test_chance_with_uncertain_hits_is_the_mean_over_orders_and_hits() -> None:
    n_items, n_relevant, rate = 5, 3, 0.3
    ap = recall = 0.0
    orders = list(itertools.permutations(range(1, n_items + 1), n_relevant))
    for hits in itertools.product((False, True), repeat=n_relevant):
        likelihood = np.prod([rate if hit else 1 - rate for hit in hits]) / len(orders)
        for order in orders:
            right_ranks = [rank for rank, hit in zip(order, hits, strict=True) if hit]
            ap += likelihood * average_precision(right_ranks, n_relevant)
            recall += likelihood * _recall_among_first(right_ranks, n_relevant, 2)
    assert chance_average_precision(n_items, n_relevant, rate) == pytest.approx(ap)
    assert _chance_recall_among_first(n_items, n_relevant, rate, k=2) == pytest.approx(recall)


def test_scores_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="not one row of numbers"):
        ranks(np.array([0.1, np.nan]))
    with pytest.raises(InputError, match="give pairs"):
        class_means([1.0], [1, 2])
