from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from signspot.domain.recordings import Entry, Word
from signspot.domain.time import TimeAxis
from signspot.domain.tracks import EntryVectors, RateTrack, WindowGrid, rates_of
from signspot.spotting.presence import Candidates, Cohort, Rivals
from signspot.spotting.search import similarity

WORD = Word("tea")


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def track(rates: list[np.ndarray]) -> RateTrack:
    n = len(rates[0])
    axis = TimeAxis(np.arange(n + 15) * 40.0)
    return RateTrack("v", WindowGrid(n + 15), axis, rates[0], "m", other_rates=tuple(rates[1:]))


def test_the_most_similar_length_counts_and_a_window_that_nobody_is_seen_in_never_does() -> None:
    rng = np.random.default_rng(0)
    rates = [unit(rng.normal(size=(9, 4))) for _ in range(3)]
    rates[1][2] = 0
    for one in rates:
        one[5] = 0
    entries = unit(rng.normal(size=(2, 4)))
    compared = similarity(
        track(rates), EntryVectors(WORD, tuple(Entry(entry_id=str(i), word=WORD) for i in (0, 1)), entries, "m")
    )
    for window in range(9):
        for entry in range(2):
            slowly = [float(one[window] @ entries[entry]) for one in rates if one[window].any()]
            expected = max(slowly, default=-np.inf)
            assert compared.cosine[window, entry] == pytest.approx(expected, abs=1e-6)
    words = EntryVectors(WORD, (Entry(entry_id="0", word=WORD),), entries[:1], "m")
    rivals = Rivals.of(track(rates), [words], Cohort(entries[1:], (Word("milk"),)))
    windows = np.array([0, 2, 8])
    found = Candidates(similarity(track(rates), words), windows, np.zeros(3))
    expected = np.max([one[windows] @ entries[1] for one in rates], axis=0)
    assert float(entries[0] @ entries[1]) < 0.6  # or it would be taken for the same sign
    np.testing.assert_allclose(rivals.highest(found, words), expected, atol=1e-6)


def test_rates_of_one_track_have_one_shape() -> None:
    rows = unit(np.ones((3, 4)))
    assert len(rates_of(track([rows, rows]))) == 2
    with pytest.raises(ValueError, match="another shape"):
        track([rows, rows[:2]])


def test_the_lengths_that_look_most_like_a_word_say_how_long_it_lasts() -> None:
    entry = unit(np.ones((1, 4)))
    near, far = entry[0], unit(np.array([[1.0, 1.0, 1.0, -1.0]]))[0]
    rows = [np.stack(some) for some in ((near, far, near, 0 * near), (far, near, near, 0 * near))]
    both = track(rows)
    words = EntryVectors(WORD, (Entry(entry_id="0", word=WORD),), entry, "m")
    assert similarity(both, words).lengths is None
    lengths = similarity(replace(both, lengths=(16, 34)), words).lengths
    assert lengths is not None
    np.testing.assert_allclose(lengths, [16, 34, 25, 25], atol=0.1)
    other = np.stack([-near, near])  # a second clip of the word, unlike the first
    two = EntryVectors(WORD, tuple(Entry(entry_id=str(i), word=WORD) for i in (0, 1)), other, "m")
    lengths = similarity(replace(both, lengths=(16, 34)), two).lengths
    assert lengths is not None
    np.testing.assert_allclose(lengths, [16, 34, 25, 25], atol=0.1)  # the clip that is most alike says it
    with pytest.raises(ValueError, match="3 lengths of 2 rates"):
        replace(both, lengths=(10, 16, 34))
