from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from signspot.domain.recordings import Entry, Word
from signspot.domain.time import TimeAxis
from signspot.domain.tracks import EmbeddingTrack, EntryVectors, WindowGrid
from signspot.spotting.search import similarities, similarity

WORD = Word("apple")
numbers = st.floats(-1e6, 1e6, width=32) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0])


def track(vectors: np.ndarray, fingerprint: str = "f") -> EmbeddingTrack:
    n_frames = len(vectors) + 15 if len(vectors) else 0
    return EmbeddingTrack("v", WindowGrid(n_frames), TimeAxis(np.arange(n_frames) * 40.0), vectors, fingerprint)


def entries(vectors: np.ndarray, fingerprint: str = "f") -> EntryVectors:
    filed = tuple(Entry(entry_id=str(i), word=WORD) for i in range(len(vectors)))
    return EntryVectors(WORD, filed, vectors, fingerprint)


def cosine_by_hand(a: list[float], b: list[float]) -> float:
    length_a, length_b = math.sqrt(sum(x * x for x in a)), math.sqrt(sum(x * x for x in b))
    if not (1e-6 < length_a < math.inf and 1e-6 < length_b < math.inf):
        return -math.inf
    return sum(x * y for x, y in zip(a, b, strict=True)) / length_a / length_b


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(0, 6), st.just(3)), elements=numbers),
    hnp.arrays(np.float32, st.tuples(st.integers(1, 4), st.just(3)), elements=numbers),
)
def test_every_cosine_is_the_formula_and_unusable_vectors_score_minus_infinity(
    windows: np.ndarray, references: np.ndarray
) -> None:
    result = similarity(track(windows), entries(references)).cosine
    for i, a in enumerate(windows.astype(float).tolist()):
        for j, b in enumerate(references.astype(float).tolist()):
            assert result[i, j] == pytest.approx(cosine_by_hand(a, b), abs=1e-5)


def test_a_window_that_is_not_a_number_never_wins() -> None:
    windows = np.array([[0, 0, 0], [np.nan, 1, 0], [0.6, 0.8, 0]], np.float32)
    result = similarity(track(windows), entries(np.array([[1, 0, 0]], np.float32)))
    assert result.best.argmax() == 2


def test_no_cosine_is_above_one_whatever_rounding_does() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 256)).astype(np.float32)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert (units @ units.T).max() > 1
    result = similarity(track(rows), entries(np.concatenate([rows, -rows]))).cosine
    assert result.max() == 1 and result.min() == -1


def test_tracks_of_different_models_are_not_compared() -> None:
    with pytest.raises(ValueError, match="windows by 'a', entries by 'b'"):
        similarity(track(np.ones((1, 3), np.float32), "a"), entries(np.ones((1, 3), np.float32), "b"))


def test_vectors_of_a_trunk_are_not_compared() -> None:
    before_the_head = dataclasses.replace(track(np.ones((2, 3), np.float32)), unit_rows=False)
    with pytest.raises(ValueError, match="v: vectors of a trunk are compared after the head"):
        similarity(before_the_head, entries(np.ones((1, 3), np.float32)))


def test_a_long_track_of_halves_is_compared_like_a_short_one() -> None:
    windows = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float16)
    references = np.eye(3, dtype=np.float32)
    cosine = similarity(track(windows), entries(references)).cosine
    exact = windows.astype(float) / np.linalg.norm(windows.astype(float), axis=1, keepdims=True)
    np.testing.assert_allclose(cosine, exact, atol=1e-6)


def test_many_words_at_once_are_what_they_are_one_by_one() -> None:
    rng = np.random.default_rng(0)
    windows = track(rng.normal(size=(40, 8)).astype(np.float32))
    words = [
        dataclasses.replace(entries(rng.normal(size=(n, 8)).astype(np.float32)), word=Word(f"w{n}"))
        for n in (3, 0, 250, 7, 300, 1)
    ]
    together = list(similarities(windows, words))
    assert [one.word for one in together] == [one.word for one in words]
    for one, word in zip(together, words, strict=True):
        assert one.entries == word.entries
        assert np.abs(one.cosine - similarity(windows, word).cosine).max(initial=0) < 1e-6
    with pytest.raises(ValueError, match="entries by"):
        list(similarities(windows, [words[0], dataclasses.replace(words[3], fingerprint="g")]))
