"""Small embedded test sets, made up by a seed."""

from __future__ import annotations

import numpy as np

from signspot.domain.tracks import FloatArray, Ints
from signspot.evaluation.protocol import Gallery, TestPassage


def unit_rows(rng: np.random.Generator, n: int, d: int = 16) -> FloatArray:
    rows = rng.normal(size=(n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def random_gallery(rng: np.random.Generator, words: Ints, d: int = 16) -> Gallery:
    return Gallery(words, unit_rows(rng, len(words), d))


def random_passages(rng: np.random.Generator, words: Ints, n_windows: int = 100, d: int = 16) -> list[TestPassage]:
    """Passages whose windows have nothing to do with their word."""
    return [
        TestPassage(
            passage_id=f"p{i}",
            word=int(word),
            label_frame=int(rng.integers(30, n_windows - 10)),
            centres=np.arange(8, 8 + n_windows),
            vectors=unit_rows(rng, n_windows, d),
            signer=f"s{i % 5}",
        )
        for i, word in enumerate(words)
    ]


def true_passages(rng: np.random.Generator, gallery: Gallery, words: Ints) -> list[TestPassage]:
    """Passages that show every entry of their word, exactly, at the annotated frame and around it."""
    d = gallery.vectors.shape[1]
    passages = []
    for i, word in enumerate(words):
        shown = gallery.vectors[gallery.words == word]
        vectors = unit_rows(rng, 100, d)
        vectors[40 : 40 + len(shown)] = shown
        label = 8 + 40 + len(shown) - 1  # all of them lie at most 20 frames before it
        passages.append(TestPassage(f"p{i}", int(word), label, np.arange(8, 108), vectors, f"s{i % 5}"))
    return passages
