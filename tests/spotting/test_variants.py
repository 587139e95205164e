from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Entry, normalise
from signspot.domain.time import TimeAxis
from signspot.domain.tracks import FloatArray, SimilarityTrack, WindowGrid, unit
from signspot.spotting.variants import by_variant, clusters, recurring_windows, variant_at

APPLE = normalise("apple")


def track(cosine: list[list[float]], variants: str) -> SimilarityTrack:
    """One window a row, one entry a letter of `variants`."""
    n_frames = len(cosine) + 15
    entries = tuple(Entry(entry_id=f"e{i}", word=APPLE, variant=name) for i, name in enumerate(variants))
    axis = TimeAxis(np.arange(n_frames, dtype=np.float64) * 40)
    return SimilarityTrack(APPLE, "v", WindowGrid(n_frames), axis, entries, np.array(cosine, np.float32))


def rows(seed: int, n: int, d: int = 8) -> FloatArray:
    return unit(np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32))


def test_a_variant_scores_as_its_best_entry_and_the_first_entry_stands_for_it() -> None:
    joined = by_variant(track([[0.1, 0.9, 0.3, 0.2], [0.5, 0.4, 0.6, 0.7]], "abab"))
    assert [entry.entry_id for entry in joined.entries] == ["e0", "e1"]
    np.testing.assert_allclose(joined.cosine, [[0.3, 0.9], [0.6, 0.7]], rtol=1e-6)


def test_the_variant_of_a_window_is_the_best_and_its_margin_is_to_the_next_variant_not_the_next_entry() -> None:
    match = variant_at(by_variant(track([[0.9, 0.85, 0.4]], "aab")), 0)
    assert (match.variant, round(match.cosine, 4), round(match.margin or 0, 4)) == ("a", 0.9, 0.5)


def test_a_word_with_one_variant_has_no_margin_and_an_unusable_one_is_never_chosen() -> None:
    assert variant_at(by_variant(track([[0.9, 0.8]], "aa")), 0).margin is None
    match = variant_at(by_variant(track([[-np.inf, 0.1]], "ab")), 0)
    assert (match.variant, match.margin) == ("b", None)


def naive_clusters(vectors: FloatArray, least: float) -> list[tuple[int, ...]]:
    groups: list[tuple[int, ...]] = [(i,) for i in range(len(vectors))]
    while True:
        best, pair = -2.0, None
        for i in range(len(groups)):
            for j in range(i + 1, len(groups)):
                mean = np.mean([float(vectors[a] @ vectors[b]) for a in groups[i] for b in groups[j]])
                if mean > best + 1e-7:
                    best, pair = float(mean), (i, j)
        if pair is None or best < least:
            return sorted(groups, key=lambda group: (-len(group), group))
        joined = tuple(sorted(groups[pair[0]] + groups[pair[1]]))
        groups = [group for k, group in enumerate(groups) if k not in pair] + [joined]


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(0, 9), st.floats(-0.5, 0.95))
def test_clusters_are_those_of_average_linkage_written_naively(seed: int, n: int, least: float) -> None:
    vectors = rows(seed, n, 4)
    assert list(clusters(vectors, least)) == naive_clusters(vectors, least)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 12), st.floats(-1, 1))
def test_every_row_is_in_exactly_one_cluster(seed: int, n: int, least: float) -> None:
    assert sorted(number for group in clusters(rows(seed, n), least) for number in group) == list(range(n))


def test_too_many_rows_are_refused_before_they_take_minutes() -> None:
    with pytest.raises(ValueError, match="too many to cluster"):
        clusters(np.zeros((2001, 2), np.float32), 0.5)


def test_what_recurs_in_the_passages_is_found_and_what_is_signed_everywhere_is_not() -> None:
    secret, common = rows(1, 1, 64)[0], rows(2, 1, 64)[0]
    passages, places = [], [3, 11, 7, 5]
    for number, place in enumerate(places):
        windows = rows(10 + number, 15, 64)
        windows[place] = unit(secret + 0.1 * rows(20 + number, 1, 64)[0])
        windows[(place + 4) % 15] = common
        passages.append(windows)
    background = []
    for number in range(4):
        windows = rows(40 + number, 15, 64)
        windows[number] = common
        background.append(windows)
    assert [one.window for one in recurring_windows(passages, background)] == places
    # Without a background the pointing that everybody does wins: this is what it is for.
    assert [one.window for one in recurring_windows(passages, [])] == [(place + 4) % 15 for place in places]


def test_one_passage_alone_recurs_nowhere() -> None:
    assert recurring_windows([rows(0, 5)], [rows(1, 5)]) == ()
    assert recurring_windows([], []) == ()
