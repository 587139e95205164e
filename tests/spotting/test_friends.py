from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Entry, normalise
from signspot.domain.tracks import unit
from signspot.spotting.friends import FriendOptions, Gallery, Relation, friends


def gallery(words: list[str], seed: int, d: int = 32, language: str = "") -> Gallery:
    vectors = unit(np.random.default_rng(seed).normal(size=(len(words), d)).astype(np.float32))
    entries = tuple(
        Entry(entry_id=f"{language}{word}{number}", word=normalise(word), language=language)
        for number, word in enumerate(words)
    )
    return Gallery(entries, vectors)


def test_planted_cognates_differing_words_and_false_friends_are_told_apart() -> None:
    first = gallery(["apple", "bread", "chair", "dog", "egg", "fish"], 1, language="qaa")
    second = gallery(["apple", "bread", "lamp", "moon", "nest"], 2, language="qab")
    second.vectors[0] = first.vectors[0]  # apple is signed alike
    second.vectors[2] = first.vectors[3]  # the sign for dog means lamp
    found = friends(first, second, FriendOptions(least_closeness=0.5))
    said = {(pair.entry.word, pair.other.word): pair.relation for pair in found}
    assert said == {
        ("apple", "apple"): Relation.COGNATE,
        ("bread", "bread"): Relation.DIFFERENT_FORM,
        ("dog", "lamp"): Relation.FALSE_FRIEND,
    }
    assert [pair.relation for pair in found] == [Relation.FALSE_FRIEND, Relation.DIFFERENT_FORM, Relation.COGNATE]
    assert {pair.entry.language for pair in found} == {"qaa"} and {pair.other.language for pair in found} == {"qab"}


def test_what_the_model_does_not_call_alike_has_no_common_form() -> None:
    first, second = gallery(list("abc"), 1), gallery(list("xyz"), 2)
    axes = np.eye(32, dtype=np.float32)
    first.vectors[:], second.vectors[:] = axes[:3], axes[3:6]
    second.vectors[0] = 0.4 * axes[0] + 0.84**0.5 * axes[9]  # the closest of few words, and nothing like it
    for least, n_found in ((-1.0, 1), (0.45, 0), (0.39, 1)):
        assert len(friends(first, second, FriendOptions(least_closeness=0.25, least_cosine=least))) == n_found


def test_of_several_entries_the_two_most_similar_speak_for_their_words() -> None:
    first, second = gallery(["dog", "dog", "cat"], 1), gallery(["lamp", "moon", "lamp"], 2)
    second.vectors[2] = first.vectors[1]
    pair = friends(first, second, FriendOptions(least_closeness=0.5))[0]
    assert (pair.entry.entry_id, pair.other.entry_id) == ("dog1", "lamp2")
    assert pair.cosine == pytest.approx(1, abs=1e-6)


def test_a_sign_that_looks_like_everything_is_nobodys_false_friend() -> None:
    first, second = gallery(list("abcdefgh"), 1), gallery(list("stuvwxyz"), 2)
    axes = np.eye(32, dtype=np.float32)
    first.vectors[:], second.vectors[:] = axes[8:16], axes[:8]
    # A blurred sign, equally close to all of the other language, and a true pair of the same cosine.
    first.vectors[0] = unit(axes[:8].sum(axis=0))
    cosine = float(first.vectors[0, 0])
    first.vectors[1] = cosine * axes[1] + np.sqrt(1 - cosine**2) * axes[20]
    found = friends(first, second, FriendOptions(least_closeness=0.25))
    assert [(pair.entry.word, pair.other.word) for pair in found] == [("b", "t")]


@settings(max_examples=25)
@given(st.integers(0, 500), st.integers(1, 6), st.integers(1, 6))
def test_exchanging_the_dictionaries_exchanges_the_pairs(seed: int, n: int, m: int) -> None:
    first, second = gallery(list("abcdef")[:n], seed, 6), gallery(list("abcxyz")[:m], seed + 1, 6)
    options = FriendOptions(least_closeness=0.0)
    there = {(p.entry.word, p.other.word, p.relation) for p in friends(first, second, options)}
    back = {(p.other.word, p.entry.word, p.relation) for p in friends(second, first, options)}
    assert there == back


@settings(max_examples=25)
@given(st.integers(0, 500))
def test_asking_for_more_closeness_never_adds_a_false_friend(seed: int) -> None:
    first, second = gallery(list("abcdef"), seed, 6), gallery(list("uvwxyz"), seed + 1, 6)
    loose, strict = (
        {(p.entry.word, p.other.word) for p in friends(first, second, FriendOptions(least_closeness=least))}
        for least in (0.05, 0.3)
    )
    assert strict <= loose


def test_an_empty_dictionary_has_no_friends_and_nonsense_is_refused() -> None:
    empty = Gallery((), np.zeros((0, 4), np.float32))
    assert friends(empty, gallery(["a"], 0, 4)) == ()
    with pytest.raises(ValueError, match="vectors of shape"):
        Gallery((), np.zeros((1, 4), np.float32))
    with pytest.raises(ValueError, match="cannot be told"):
        FriendOptions(rank=0)
