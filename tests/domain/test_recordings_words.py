from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Synonyms, Vocabulary, Word, normalise


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Apple", "apple"),
        ("  ICE   Cream! ", "ice-cream"),
        ("“don’t”", "don't"),
        ("cafe\u0301", "caf\u00e9"),
        ("STRASSE", "strasse"),
        ("HOUSE-A", "house-a"),
        ("-'a", "a"),
        ("'-'rock'-'", "rock"),
        ("\ue000\ue00c", "\ue000\ue00c"),  # HamNoSys
        ("\U0001d800\U0001d9ff", "\U0001d800\U0001d9ff"),  # SignWriting
    ],
)
def test_a_word_is_filed_under_one_form(text: str, word: str) -> None:
    assert normalise(text) == word


def test_turkish_keeps_its_two_letters_i() -> None:
    assert normalise("IRMAK", "tr") == "ırmak"
    assert normalise("İZMİR", "tr") == "izmir"
    assert normalise("İZMİR") == "izmir"


@pytest.mark.parametrize("text", ["", "  ", "...", "- -", "x" * 500, "\ud800"])
def test_what_is_no_word_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="word"):
        normalise(text)


@given(st.text(max_size=60), st.sampled_from(["", "en", "tr"]))
def test_normalising_twice_changes_nothing_more(text: str, language: str) -> None:
    try:
        word = normalise(text, language)
    except ValueError:
        return
    assert normalise(word, language) == word
    assert unicodedata.is_normalized("NFC", word)
    assert not any(c.isspace() for c in word)


def test_a_vocabulary_knows_its_words_and_what_looks_like_them() -> None:
    vocabulary = Vocabulary.of([Word("tree"), Word("apple"), Word("ice-cream"), Word("apple")])
    assert list(vocabulary) == ["apple", "ice-cream", "tree"]
    assert vocabulary.id_of(Word("tree")) == 2
    assert vocabulary.near("aple") == ("apple",)
    with pytest.raises(ValueError, match="once"):
        Vocabulary((Word("a"), Word("a")))


def test_synonyms_go_both_ways() -> None:
    synonyms = Synonyms.of([(Word("big"), Word("large")), (Word("big"), Word("big"))])
    assert synonyms.of_word(Word("large")) == {"big"}
    assert synonyms.of_word(Word("big")) == {"large"}
