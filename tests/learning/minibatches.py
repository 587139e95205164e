"""Random minibatches of every odd shape, and the minibatch of the paper's figure."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from signspot.learning.batches import BACKGROUND, Minibatch
from signspot.models.head import unit_rows

N_WORDS = 6
WORDS = st.integers(0, N_WORDS - 1)


@st.composite
def minibatches(draw: st.DrawFn, max_items: int = 4) -> Minibatch:
    """Items with or without a label, background words and segments; repeats; entries that an item lacks; any order."""
    entry_word = [word for word in range(N_WORDS) for _ in range(draw(st.integers(0, 3)))]
    n_items = draw(st.integers(1, max_items))
    segments: list[tuple[int, int]] = []
    rows: list[tuple[int, int, bool]] = []
    for item in range(n_items):
        labels = draw(st.lists(WORDS, max_size=2 if draw(st.integers(0, 9)) == 9 else 1))
        segments += [(item, word) for word in labels]
        segments += [(item, BACKGROUND)] * draw(st.integers(0, 3))
        label_is_background_too = draw(st.integers(0, 9)) == 9
        for mention, word in enumerate([*labels, *draw(st.lists(WORDS, max_size=4))]):
            is_foreground = word in labels and (mention < len(labels) or not label_is_background_too)
            own = [entry for entry, its_word in enumerate(entry_word) if its_word == word]
            if draw(st.integers(0, 9)) == 9:
                own = own[1:]
            rows += [(item, entry, is_foreground) for entry in own]
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    dim = draw(st.integers(1, 4))
    return Minibatch(
        n_items=n_items,
        segments=unit_rows(torch.from_numpy(rng.normal(size=(len(segments), dim)))),
        segment_item=numbers([item for item, _ in segments]),
        segment_word=numbers([word for _, word in segments]),
        entries=unit_rows(torch.from_numpy(rng.normal(size=(len(entry_word), dim)))),
        entry_word=numbers(entry_word),
        row_entry=numbers([entry for _, entry, _ in rows]),
        row_item=numbers([item for item, _, _ in rows]),
        row_is_foreground=torch.tensor([is_foreground for *_, is_foreground in rows], dtype=torch.bool),
    )


@st.composite
def relations(draw: st.DrawFn) -> Tensor | None:
    """Words to discard: none, pairs of words, or a relation between all words."""
    pairs = numbers(draw(st.lists(st.tuples(WORDS, WORDS), max_size=4))).reshape(-1, 2)
    matrix = torch.zeros(N_WORDS, N_WORDS, dtype=torch.bool)
    matrix[pairs[:, 0], pairs[:, 1]] = True
    return draw(st.sampled_from([None, pairs, matrix]))


def numbers(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def cosines(batch: Minibatch) -> Tensor:
    """(S, R) of every segment with every dictionary row."""
    return unit_rows(batch.segments) @ unit_rows(batch.entries).T[:, batch.row_entry]


FRIEND, NAME, WHAT, LANGUAGE, SPEAK = range(5)


def figure(seed: int = 0) -> Minibatch:
    """The minibatch of the paper's figure: "what is your friend's name?", friend labelled; speak, language labelled.

    Two entries for each word but `what`, which has one; one labelled and two unlabelled segments for each item.
    """
    entry_word = numbers([FRIEND, FRIEND, NAME, NAME, WHAT, LANGUAGE, LANGUAGE, SPEAK, SPEAK])
    random = torch.Generator().manual_seed(seed)
    return Minibatch(
        n_items=2,
        segments=unit_rows(torch.randn(6, 8, generator=random, dtype=torch.float64)),
        segment_item=numbers([0, 0, 0, 1, 1, 1]),
        segment_word=numbers([FRIEND, -1, -1, LANGUAGE, -1, -1]),
        entries=unit_rows(torch.randn(9, 8, generator=random, dtype=torch.float64)),
        entry_word=entry_word,
        row_entry=torch.arange(9),
        row_item=numbers([0, 0, 0, 0, 0, 1, 1, 1, 1]),
        row_is_foreground=(entry_word == FRIEND) | (entry_word == LANGUAGE),
    )
