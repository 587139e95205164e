from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Entry, normalise
from signspot.domain.results import Band
from signspot.domain.tracks import FloatArray, unit
from signspot.spotting.lookup import LookupLimits, guesses

LIMITS = LookupLimits(possible=0.8, clear=0.1)


def entries(words: str) -> tuple[Entry, ...]:
    return tuple(Entry(entry_id=f"{word}{number}", word=normalise(word)) for number, word in enumerate(words))


def at(*degrees: float) -> FloatArray:
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1).astype(np.float32)


def test_the_best_entry_speaks_for_its_word_and_words_come_in_order() -> None:
    found = guesses(at(0), entries("abac"), at(80, 20, 10, 40), LIMITS)
    assert [(guess.word, guess.entry.entry_id) for guess in found] == [("a", "a2"), ("b", "b1"), ("c", "c3")]
    assert found[0].cosine == pytest.approx(np.cos(np.radians(10)), abs=1e-6)


@pytest.mark.parametrize(
    ("angles", "bands"),
    [
        ((5, 60), [Band.LIKELY, Band.UNLIKELY]),
        ((5, 8), [Band.POSSIBLE, Band.POSSIBLE]),
        ((50, 60), [Band.UNLIKELY, Band.UNLIKELY]),
        ((5,), [Band.LIKELY]),
    ],
)
def test_a_band_says_whether_a_word_is_alone_has_rivals_or_is_only_the_least_bad(
    angles: tuple[float, ...], bands: list[Band]
) -> None:
    found = guesses(at(0), entries("abc"[: len(angles)]), at(*angles), LIMITS)
    assert [guess.band for guess in found] == bands


@pytest.mark.parametrize(("lead", "band"), [(0.04, Band.POSSIBLE), (0.06, Band.LIKELY)])
def test_a_word_that_leads_by_a_twentieth_is_likely_where_nothing_else_is_asked(lead: float, band: Band) -> None:
    """The lead that experiments/lookup measured the bands with."""
    angles = np.degrees(np.arccos((0.95, 0.95 - lead)))
    found = guesses(at(0), entries("ab"), at(*angles), LookupLimits(possible=0.8))
    assert [guess.band for guess in found] == [band, Band.POSSIBLE]


def test_the_mirror_image_wins_where_it_looks_more_alike_and_says_so() -> None:
    found = guesses(at(0, 90), entries("ab"), at(85, 30), LIMITS)
    assert [(guess.word, guess.is_mirrored) for guess in found] == [("a", True), ("b", False)]


def test_a_mirror_image_that_is_hardly_better_is_not_worth_a_word() -> None:
    (found,) = guesses(at(0, 1), entries("a"), at(10), LIMITS)
    assert found.cosine == pytest.approx(np.cos(np.deg2rad(9)), abs=1e-6) and not found.is_mirrored


def test_entries_without_a_direction_are_never_guessed() -> None:
    vectors = np.array([[0, 0], [np.nan, 1], [1, 0]], np.float32)
    assert [guess.word for guess in guesses(at(0), entries("abc"), vectors, LIMITS)] == ["c"]
    assert guesses(at(0), (), np.zeros((0, 2), np.float32), LIMITS) == ()


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 20), st.integers(1, 8))
def test_guesses_are_the_words_of_the_highest_cosines_and_each_comes_once(seed: int, n: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, queries = (unit(rng.normal(size=(k, 5)).astype(np.float32)) for k in (n, 2))
    names = "".join(rng.choice(list("abcdefgh"), n))
    found = guesses(queries, entries(names), vectors, LookupLimits(possible=0.5, count=count))
    best: dict[str, float] = {}
    for name, row in zip(names, vectors, strict=True):
        best[name] = max(best.get(name, -2), *(float(row @ query) for query in queries))
    expected = sorted(best.values(), reverse=True)[:count]
    np.testing.assert_allclose([guess.cosine for guess in found], expected, atol=1e-6)
    assert len({guess.word for guess in found}) == len(found)
