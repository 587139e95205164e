"""Which passages make up each minibatch of an epoch (Paper 3.2, "Minibatch sampling"; App. B.2).

An epoch has as many minibatches as the passages fill: 78,211 passages at 128 are 611. Balanced, a minibatch never shows
a word twice, so that every other item of it is a sure negative. Each passage then has its turn once an epoch, except:

- a word with more passages than there are minibatches shows a new random choice of them in every epoch;
- the turns that are lost that way go to the rarest words, whose passages come several times;
- what does not fill a minibatch is left for other epochs.

With fewer words than asked-for items, a minibatch has one passage of every word.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from signspot.learning.material import Ints


@dataclass(frozen=True, slots=True)
class EpochShape:
    """How many minibatches an epoch has, and how many items each of them."""

    n_steps: int
    n_items: int

    @classmethod
    def of(cls, labels: Ints, batch_size: int, *, balanced: bool) -> EpochShape:
        """The shape of an epoch over passages with these labels (P,), at least one."""
        n_items = min(batch_size, len(np.unique(labels)) if balanced else len(labels))
        return cls(max(1, len(labels) // n_items), n_items)


def plain_epoch(n_passages: int, shape: EpochShape, rng: np.random.Generator) -> Ints:
    """Passages in random order: (n_steps, n_items)."""
    return rng.permutation(n_passages)[: shape.n_steps * shape.n_items].reshape(shape.n_steps, shape.n_items)


def balanced_epoch(labels: Ints, shape: EpochShape, rng: np.random.Generator) -> Ints:
    """Passages such that no minibatch has two of one label: (n_steps, n_items) places in `labels`."""
    words, counts = np.unique(labels, return_counts=True)
    turns = _turns(counts, shape, rng)
    order = rng.permutation(len(words))
    dealt = np.repeat(order, turns[order])  # (n_items * n_steps,): the turns of one word stand together
    turn = ragged(np.zeros_like(turns), turns[order])
    shuffled = np.lexsort((rng.random(len(labels)), labels))
    passages = shuffled[(np.cumsum(counts) - counts)[dealt] + turn % counts[dealt]]
    epoch = np.empty((shape.n_steps, shape.n_items), np.int64)
    by_item = dealt.reshape(shape.n_items, shape.n_steps)
    steps = np.empty(0, np.int64)
    for item, mine in enumerate(by_item):
        # A word whose turns began as the item before may not come again in the minibatches that have it.
        taken = steps[by_item[item - 1] == mine[0]] if item else steps
        steps = _steps_avoiding(taken, int((mine == mine[0]).sum()), rng.permutation(shape.n_steps), rng)
        epoch[steps, item] = passages.reshape(by_item.shape)[item]
    return epoch


def ragged(starts: Ints, lengths: Ints) -> Ints:
    """starts[0], starts[0] + 1, ... for lengths[0] numbers, then the same from starts[1], and so on.

    >>> ragged(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    shift: Ints = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return shift + np.arange(len(shift))


def _turns(counts: Ints, shape: EpochShape, rng: np.random.Generator) -> Ints:
    """How often the turn of each word comes: (n_words,), at most n_steps each, n_steps * n_items in all."""
    total = shape.n_steps * shape.n_items

    def raised(level: int) -> Ints:
        return np.clip(counts, level, shape.n_steps)

    level = max(0, bisect_right(range(shape.n_steps + 1), total, key=lambda level: int(raised(level).sum())) - 1)
    turns = raised(level)
    missing = total - int(turns.sum())
    if missing > 0:
        turns[rng.choice(np.flatnonzero(turns == level), missing, replace=False)] += 1
    elif missing < 0:
        left_out = rng.choice(np.repeat(np.arange(len(turns)), turns), -missing, replace=False)
        turns = turns - np.bincount(left_out, minlength=len(turns))
    return turns


def _steps_avoiding(taken: Ints, n_first: int, steps: Ints, rng: np.random.Generator) -> Ints:
    """Reorder `steps` at random so that the first `n_first` are not among the `taken`."""
    if not len(taken):
        return steps
    is_taken = np.isin(steps, taken)
    ordered = np.concatenate([steps[~is_taken], steps[is_taken]])
    ordered[n_first:] = rng.permutation(ordered[n_first:])
    return ordered
