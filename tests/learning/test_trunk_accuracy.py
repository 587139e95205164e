from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.learning.trunk import _class_accuracy


def scores_with_best(best: list[int], classes: int) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[best]


def test_a_rare_word_weighs_as_much_as_a_frequent_one_per_class_only() -> None:
    # Three clips of word 0, all right; one of word 1, wrong.
    accuracy = _class_accuracy(scores_with_best([0, 0, 0, 0], 10), np.array([0, 0, 0, 1]))
    assert accuracy.top1 == 0.75
    assert accuracy.class_top1 == 0.5
    assert accuracy.n_items == 4


def test_words_without_a_clip_do_not_count() -> None:
    accuracy = _class_accuracy(scores_with_best([7], 10), np.array([7]))
    assert (accuracy.top1, accuracy.class_top1, accuracy.class_top5) == (1, 1, 1)


def test_the_fifth_counts_and_the_sixth_does_not() -> None:
    scores = np.arange(10, 0, -1, dtype=np.float32)[None].repeat(2, axis=0)
    accuracy = _class_accuracy(scores, np.array([4, 5]))
    assert (accuracy.top1, accuracy.top5, accuracy.class_top5) == (0, 0.5, 0.5)


def test_of_equal_scores_the_first_word_wins() -> None:
    accuracy = _class_accuracy(np.zeros((2, 8), np.float32), np.array([0, 5]))
    assert (accuracy.top1, accuracy.top5) == (0.5, 0.5)


@given(st.integers(0, 10_000))
def test_accuracy_agrees_with_sorting_word_by_word(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(1, 30)), int(rng.integers(1, 12))
    scores = rng.integers(0, 4, (n, classes)).astype(np.float32)  # many ties
    labels = rng.integers(0, classes, n)
    right: dict[int, list[tuple[bool, bool]]] = {}
    for row, label in zip(scores.tolist(), labels.tolist(), strict=True):
        ranked = sorted(range(classes), key=lambda word: (-row[word], word))
        right.setdefault(label, []).append((label in ranked[:1], label in ranked[:5]))
    flat = [pair for pairs in right.values() for pair in pairs]
    accuracy = _class_accuracy(scores, labels)
    assert accuracy.top1 == pytest.approx(np.mean([one for one, _ in flat]))
    assert accuracy.top5 == pytest.approx(np.mean([five for _, five in flat]))
    assert accuracy.class_top1 == pytest.approx(np.mean([np.mean([o for o, _ in pairs]) for pairs in right.values()]))
    assert accuracy.class_top5 == pytest.approx(np.mean([np.mean([f for _, f in pairs]) for pairs in right.values()]))


@pytest.mark.parametrize(
    ("scores", "labels"),
    [(np.zeros((0, 3)), []), (np.zeros((1, 3)), [3]), (np.zeros((1, 3)), [-1]), (np.full((1, 3), np.nan), [0])],
)
def test_what_cannot_be_compared_is_refused(scores: np.ndarray, labels: list[int]) -> None:
    with pytest.raises(ValueError, match="scores"):
        _class_accuracy(scores.astype(np.float32), np.array(labels, np.int64))
