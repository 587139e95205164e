from __future__ import annotations

import random
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from num2words import num2words

from signspot.domain.recordings import Vocabulary, Word, normalise
from signspot.text.words import find_words, words_beside


def vocabulary(*words: str, language: str = "") -> Vocabulary:
    return Vocabulary.of(normalise(word, language) for word in words)


def found(text: str, *words: str, language: str = "en") -> list[tuple[str, str]]:
    """(word, the written form it was found in)"""
    mentions = find_words(text, vocabulary(*words, language=language), language)
    return [(mention.word, text[mention.start : mention.stop]) for mention in mentions]


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("I like APPLES, don't you?", ["apple"], [("apple", "APPLES")]),
        ("apples and an apple", ["apples", "apple"], [("apples", "apples"), ("apple", "apple")]),
        ("I thought so", ["think", "thought"], [("thought", "thought")]),
        ("I thought so", ["think"], [("think", "thought")]),
        ("She left and he won", ["leave", "win"], [("leave", "left"), ("win", "won")]),
        ("ice cream, ice-cream", ["ice cream"], [("ice-cream", "ice cream"), ("ice-cream", "ice-cream")]),
        ("Ice  cream", ["ice cream"], [("ice-cream", "Ice  cream")]),
        ("ice‑cream\nice\u00a0creams", ["ice cream"], [("ice-cream", "ice‑cream"), ("ice-cream", "ice\u00a0creams")]),
        ("ice. Cream", ["ice cream", "ice"], [("ice", "ice")]),
        ("ice -- cream", ["ice cream", "cream"], [("cream", "cream")]),
        ("He gave up", ["give up", "give", "up"], [("give-up", "gave up")]),
        ("new york city hall", ["new york", "new york city"], [("new-york-city", "new york city")]),
        ("new york town", ["new york city", "new", "york"], [("new", "new"), ("york", "york")]),
        ("Mary's dogs' bones", ["mary", "dog"], [("mary", "Mary's"), ("dog", "dogs")]),
        ("Mary’s", ["mary"], [("mary", "Mary’s")]),
        ("don’t", ["don't", "do", "not"], [("don't", "don’t")]),
        ("don't", ["do", "not"], [("do", "don't"), ("not", "don't")]),
        ("can't", ["not", "can"], [("can", "can't"), ("not", "can't")]),
        ("won't", ["not", "will"], [("will", "won't"), ("not", "won't")]),
        ("we're", ["we"], [("we", "we're")]),
        ("a well-known man", ["well", "know"], [("well", "well"), ("know", "known")]),
        ("a well-known man", ["well known", "well"], [("well-known", "well-known")]),
        ("and/or, r&b", ["and/or", "r&b", "or"], [("and/or", "and/or"), ("r&b", "r&b")]),
        ("C++ and C", ["c++", "c"], [("c++", "C++"), ("c", "C")]),
        ("and/or", ["or"], [("or", "or")]),
        ("the U.S.A.", ["usa"], [("usa", "U.S.A")]),
        ("snake_case", ["case"], [("case", "case")]),
        ("(apple) “apple” apple… *apple*", ["apple"], [("apple", "apple")] * 4),
        ("pineapple", ["apple"], []),
        ("", ["apple"], []),
    ],
)  # fmt: skip
def test_words_are_found_where_they_are_written(text: str, words: list[str], expected: list[tuple[str, str]]) -> None:
    assert found(text, *words) == expected


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("3 apples", ["three"], [("three", "3")]),
        ("the 21st", ["twenty-first", "first"], [("twenty-first", "21st")]),
        ("21", ["twenty-one", "one"], [("twenty-one", "21")]),
        ("21", ["twenty", "one"], [("twenty", "21"), ("one", "21")]),
        ("1,000 people", ["thousand"], [("thousand", "1,000")]),
        ("in 1984", ["nineteen", "eighty-four"], [("nineteen", "1984"), ("eighty-four", "1984")]),
        ("in 1984", ["1984", "nineteen"], [("1984", "1984")]),
        ("at 10.30", ["ten", "thirty", "point"], [("ten", "10.30"), ("thirty", "10.30")]),
        ("at 10:00", ["ten", "zero"], [("ten", "10:00")]),
        ("3.5 m", ["three", "point", "five"], [("three", "3.5"), ("point", "3.5"), ("five", "3.5")]),
        ("£5.", ["five"], [("five", "5")]),
        ("3 quarters", ["three quarters"], [("three-quarters", "3 quarters")]),
        ("101", ["and", "hundred"], [("hundred", "101")]),
        ("9" * 30, ["nine"], []),
        ("3D B12", ["three", "3d"], [("3d", "3D")]),
    ],
)
def test_numbers_are_read_as_people_say_them(text: str, words: list[str], expected: list[tuple[str, str]]) -> None:
    assert found(text, *words) == expected


@given(st.integers(0, 999))
def test_every_small_number_is_found_by_its_name(number: int) -> None:
    name = num2words(number).replace(" and ", " ")
    assert found(f"it is {number}.", name) == [(normalise(name), str(number))]


def test_other_languages_have_their_own_letters_lemmas_and_numbers() -> None:
    assert found("ISPANAK İyi", "ıspanak", "iyi", language="tr") == [("ıspanak", "ISPANAK"), ("iyi", "İyi")]
    assert found("ISPANAK", "ıspanak") == []
    assert found("Die Häuser, 21", "haus", "einundzwanzig", language="de") == [
        ("haus", "Häuser"),
        ("einundzwanzig", "21"),
    ]
    assert found("l'homme", "homme", language="fr") == [("homme", "l'homme")]
    assert found("apples 3", "apple", "apples", language="bfi") == [("apples", "apples")]


@pytest.mark.parametrize("word", ["café", "naïve", "Ångström", "हिन्दी", "한국"])
def test_composed_and_decomposed_letters_are_equal(word: str) -> None:
    for form in ("NFC", "NFD"):
        written = unicodedata.normalize(form, word)
        assert found(f"a {written}!", word, language="xx") == [(normalise(word), written)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Three apples, two pears", ["two", "pear"]),
        ("ICE cream? Mary's ice!", ["mary", "ice"]),
        ("the 21st, 3 of 1999", ["the", "21st", "of", "1999"]),
        ("three three apple", []),
        ("...", []),
    ],
)
def test_words_beside_the_vocabulary_are_those_that_are_not_found(text: str, expected: list[str]) -> None:
    assert list(words_beside(text, vocabulary("apple", "three", "ice cream"))) == expected


def test_sign_notations_are_words() -> None:
    hamnosys, signwriting = "\ue000\ue0e9\ue020", "\U0001d800\U0001da9b\U0001daa1"
    text = f"({hamnosys}) {signwriting}."
    assert found(text, hamnosys, signwriting) == [(hamnosys, hamnosys), (signwriting, signwriting)]


ODD = (
    st.text(max_size=200)
    | st.text(st.characters(), max_size=50)
    | st.text("aA1'’-.,:%_ ice\ud800\0\u0301", max_size=80)
)


@settings(deadline=None)
@given(ODD, st.sampled_from(["en", "tr", "de", "fr", "ko", "xx", "", "en-GB"]))
def test_any_text_gives_mentions_in_order_that_lie_inside_it(text: str, language: str) -> None:
    words = vocabulary("a", "ice", "1", "one", "i", "e", "a ice")
    mentions = find_words(text, words, language)
    assert mentions == find_words(text, words, language)
    assert all(0 <= mention.start < mention.stop <= len(text) and mention.word in words for mention in mentions)
    assert [mention.start for mention in mentions] == sorted(mention.start for mention in mentions)


@given(st.lists(st.sampled_from(["ice", "cream", "new", "york", "city", "up"]), max_size=12))
def test_phrases_agree_with_a_naive_longest_match(text: list[str]) -> None:
    words = vocabulary("ice cream", "new york", "new york city", "city", "cream", "up up", "york city up")
    expected, i = [], 0
    while i < len(text):
        lengths = [n for n in (3, 2, 1) if i + n <= len(text) and "-".join(text[i : i + n]) in words]
        expected += ["-".join(text[i : i + n]) for n in lengths[:1]]
        i += lengths[0] if lengths else 1
    assert [mention.word for mention in find_words(" ".join(text), words)] == expected


@pytest.mark.parametrize(
    "piece", ["a!", "'", "a'", "-", "1,", "a.b", " ", "+#", "a", "\ud800", "\0", "9", "a\u0301", "a-"]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    find_words("a" + piece * (100_000 // len(piece)) + "!", vocabulary("a", "a a"))
    assert time.process_time() - started < 3


def test_a_vocabulary_made_anew_gives_the_same_answer() -> None:
    assert found("an apple", "apple") == found("an apple", "apple") == [("apple", "apple")]
    assert found("an apple", "pear") == []


def test_twenty_thousand_words_a_second_with_the_vocabulary_of_the_paper() -> None:
    rng = random.Random(0)
    known = Vocabulary.of(Word(f"{rng.choice(['sign', 'house', 'ice'])}{i}") for i in range(9283))
    written = rng.choices(
        ["The", "apples", "running,", "houses", "thought", "Mary's", "government", "3", "sign77"], k=40_000
    )
    texts = [" ".join(written[i : i + 8]) for i in range(0, len(written), 8)]
    find_words(texts[0], known)
    started = time.process_time()
    for text in texts:
        find_words(text, known)
    assert len(written) / (time.process_time() - started) > 20_000
