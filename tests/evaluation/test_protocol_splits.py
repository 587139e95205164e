from __future__ import annotations

import numpy as np
import pytest

from signspot.errors import InputError
from signspot.evaluation.protocol import draw_unseen_words


def test_unseen_words_are_spread_over_all_frequencies() -> None:
    frequency = np.random.default_rng(0).permutation(np.arange(1, 1065))
    unseen = draw_unseen_words(frequency, seed=3)
    assert len(set(unseen.tolist())) == 264
    rank = np.sort(1064 - frequency[unseen])  # 0 for the most frequent
    # 1064 words are 8 runs of five, then 256 of four; one of each is drawn.
    assert (rank[:8] // 5).tolist() == list(range(8))
    assert ((rank[8:] - 40) // 4).tolist() == list(range(256))


def test_the_draw_depends_on_the_seed_alone() -> None:
    frequency = np.random.default_rng(1).integers(0, 50, size=300)
    drawn = draw_unseen_words(frequency, 60, seed=5)
    assert drawn.tolist() == draw_unseen_words(frequency, 60, seed=5).tolist() == sorted(drawn.tolist())
    assert drawn.tolist() != draw_unseen_words(frequency, 60, seed=6).tolist()
    assert (frequency[drawn] > 0).all()


def test_more_words_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="3 unseen words of 2 that have annotations"):
        draw_unseen_words(np.array([4, 0, 1]), 3)
