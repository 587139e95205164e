from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from signspot.learning.batches import _balanced_epoch, _EpochShape, _ragged


def drawn_labels(n_passages: int, n_words: int, skew: float, seed: int) -> np.ndarray:
    """Lists that hypothesis would grow by itself are too short for a word to fill a whole item."""
    weights = np.arange(1.0, n_words + 1) ** -skew
    return np.random.default_rng(seed).choice(n_words, n_passages, p=weights / weights.sum())


label_lists = st.builds(
    drawn_labels, st.integers(1, 200), st.integers(1, 15), st.sampled_from([0, 0.5, 1, 3]), st.integers(0, 10**6)
)


def epoch_of(labels: np.ndarray, batch_size: int, seed: int = 0) -> np.ndarray:
    shape = _EpochShape.of(labels, batch_size, balanced=True)
    return _balanced_epoch(labels, shape, np.random.default_rng(seed))


def test_the_paper_has_611_steps_of_128_in_an_epoch() -> None:
    labels = np.arange(78_211) % 1064
    assert _EpochShape.of(labels, 128, balanced=True) == _EpochShape(611, 128)
    assert _EpochShape.of(labels, 128, balanced=False) == _EpochShape(611, 128)


@given(label_lists, st.integers(1, 12), st.integers(0, 5))
def test_no_minibatch_has_a_word_twice_and_all_are_full(labels: np.ndarray, batch_size: int, seed: int) -> None:
    epoch = epoch_of(labels, batch_size, seed)
    n_items = min(batch_size, len(set(labels.tolist())))
    assert epoch.shape == (max(1, len(labels) // n_items), n_items)
    for step in epoch:
        assert len(set(labels[step].tolist())) == n_items


@given(label_lists, st.integers(1, 12), st.integers(0, 5))
def test_a_passage_comes_again_only_where_frequent_words_lose_turns(
    labels: np.ndarray, batch_size: int, seed: int
) -> None:
    epoch = epoch_of(labels, batch_size, seed)
    visits = Counter(epoch.reshape(-1).tolist())
    passages_of = Counter(labels.tolist())
    turns_of = Counter(labels[epoch.reshape(-1)].tolist())
    n_steps = len(epoch)
    unseen = len(labels) - len(visits)
    lost = sum(max(0, count - n_steps) for count in passages_of.values())
    # Left out: what frequent words lose, and less than a minibatch that is not full.
    assert unseen <= lost + epoch.shape[1] - 1
    for word, count in passages_of.items():
        mine = [visits[p] for p in np.flatnonzero(labels == word).tolist()]
        assert max(mine) - min(mine) <= 1  # no passage of a word twice before all came once
        assert turns_of[word] <= n_steps
        if count >= n_steps and lost == 0:
            assert max(mine) == 1


def test_without_very_frequent_words_each_passage_comes_exactly_once() -> None:
    labels = np.repeat(np.arange(64), 10)
    epoch = epoch_of(labels, 16)
    assert sorted(epoch.reshape(-1).tolist()) == list(range(640))


def test_turns_that_a_frequent_word_loses_go_to_the_rarest() -> None:
    labels = np.repeat(np.arange(5), [90, 4, 3, 2, 1])  # 100 passages of 5 words, 2 items: 50 steps
    turns = np.bincount(labels[epoch_of(labels, 2)].reshape(-1))
    assert turns[0] == 50
    assert sorted(turns[1:].tolist()) == [12, 12, 13, 13]


def test_frequent_words_show_other_passages_in_other_epochs() -> None:
    labels = np.repeat(np.arange(5), [90, 4, 3, 2, 1])
    seen = {p for seed in range(12) for p in epoch_of(labels, 2, seed).reshape(-1).tolist()}
    assert seen == set(range(100))


def test_a_word_is_spread_over_the_epoch_and_meets_all_others() -> None:
    labels = np.repeat(np.arange(40), 20)
    epoch = epoch_of(labels, 8)  # 100 steps
    words = labels[epoch]
    where = np.flatnonzero((words == 3).any(axis=1))
    assert np.ptp(where) > 60
    partners = set(words[where].reshape(-1).tolist())
    assert len(partners) > 30


def test_epochs_of_one_seed_are_the_same_and_of_two_seeds_are_not() -> None:
    labels = np.arange(100) % 20
    assert (epoch_of(labels, 7, 1) == epoch_of(labels, 7, 1)).all()
    assert (epoch_of(labels, 7, 1) != epoch_of(labels, 7, 2)).any()


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=12))
def test_ragged_counts_up_from_every_start(parts: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([part[i] for part in parts], np.int64) for i in (0, 1))
    assert _ragged(starts, lengths).tolist() == [start + i for start, length in parts for i in range(length)]


def test_the_schedule_holds_at_the_size_of_the_paper() -> None:
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, 1065) ** 0.9
    labels = rng.choice(1064, 78_211, p=weights / weights.sum())
    epoch = epoch_of(labels, 128)
    assert (np.diff(np.sort(labels[epoch], axis=1), axis=1) > 0).all()
