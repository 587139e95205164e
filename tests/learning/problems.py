"""Small training problems with random numbers, and the same in the size of the paper's minibatches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from signspot.domain.recordings import Vocabulary, normalise
from signspot.learning.material import Material, Passages

FINGERPRINT = "f" * 64


@dataclass(frozen=True, kw_only=True)
class Sizes:
    n_words: int = 12
    n_labels: int = 8  # the first words of the vocabulary label passages
    n_passages: int = 60
    n_tracks: int = 4
    track_windows: int = 400
    passage_frames: int = 150
    words_per_passage: int = 5
    entries_per_word: int = 2
    dim: int = 6


def random_material(sizes: Sizes = Sizes(), seed: int = 0) -> Material:
    """Every row of a track says where it comes from: (track, window, random numbers...)."""
    rng = np.random.default_rng(seed)
    tracks = []
    for number in range(sizes.n_tracks):
        rows = rng.normal(size=(sizes.track_windows, sizes.dim)).astype(np.float16)
        rows[:, 0], rows[:, 1] = number, np.arange(sizes.track_windows)
        tracks.append(rows)
    n = sizes.n_passages
    start = rng.integers(0, sizes.track_windows + 15 - sizes.passage_frames + 1, n)
    label = rng.integers(0, sizes.n_labels, n)
    words = rng.integers(0, sizes.n_words, (n, sizes.words_per_passage))
    words[:, 0] = label
    entry_word = np.repeat(np.arange(sizes.n_words), sizes.entries_per_word)
    passages = Passages(
        names=tuple(f"video {i}, passage" for i in range(n)),
        track=rng.integers(0, sizes.n_tracks, n),
        start=start,
        stop=start + sizes.passage_frames,
        label=label,
        label_frame=start + rng.integers(25, sizes.passage_frames - 25, n),
        confidence=rng.uniform(0.5, 1, n).astype(np.float32),
        word_offsets=np.arange(n + 1) * sizes.words_per_passage,
        words=words.reshape(-1),
    )
    return Material(
        vocabulary=Vocabulary.of(normalise(f"word{i:05}") for i in range(sizes.n_words)),
        tracks=tuple(tracks),
        passages=passages,
        entry_ids=tuple(f"entry {i}" for i in range(len(entry_word))),
        entry_vectors=rng.normal(size=(len(entry_word), sizes.dim)).astype(np.float32),
        entry_word=entry_word,
        fingerprint=FINGERPRINT,
    )


def one_passage(
    *, frame: int, start: int = 0, stop: int = 200, words: tuple[int, ...] = (0, 1), n: int = 1
) -> Material:
    """`n` equal passages of one track whose label, word 0, is at `frame`."""
    material = random_material(Sizes(n_tracks=1))
    full = lambda value: np.full(n, value, np.int64)  # noqa: E731
    passages = Passages(
        names=tuple(f"passage {i}" for i in range(n)),
        track=full(0),
        start=full(start),
        stop=full(stop),
        label=full(0),
        label_frame=full(frame),
        confidence=np.ones(n, np.float32),
        word_offsets=np.arange(n + 1) * len(words),
        words=np.tile(np.array(words, np.int64), n),
    )
    return with_passages(material, passages)


def with_passages(material: Material, passages: Passages) -> Material:
    return Material(
        vocabulary=material.vocabulary,
        tracks=material.tracks,
        passages=passages,
        entry_ids=material.entry_ids,
        entry_vectors=material.entry_vectors,
        entry_word=material.entry_word,
        fingerprint=material.fingerprint,
    )
