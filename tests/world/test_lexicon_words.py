from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.recordings import Vocabulary
from signspot.errors import InputError
from signspot.text.words import find_words
from signspot.world.lexicon import Lemma, Pool, _past, _plain_lemmas, _plural, _with_s, english_lemmas
from signspot.world.settings import chance


def written_forms(lemma: Lemma) -> list[str]:
    inflect = {"noun": (str, _plural), "verb": (str, _with_s, _past), "adjective": (str,)}[lemma.kind]
    return [form(lemma.word).replace("-", " ") for form in inflect]


def test_every_word_and_inflection_is_read_back_as_the_word() -> None:
    lemmas = english_lemmas(9283, chance(0, "words"))
    vocabulary = Vocabulary.of(lemma.word for lemma in lemmas)
    assert len(vocabulary) == 9283
    wrong = [
        form
        for lemma in lemmas
        for form in written_forms(lemma)
        if [mention.word for mention in find_words(f"The {form} of", vocabulary)] != [lemma.word]
    ]
    assert wrong == []


def test_subtitles_are_read_back_as_the_words_they_were_made_of() -> None:
    lemmas = english_lemmas(9283, chance(1, "words"))
    vocabulary = Vocabulary.of(lemma.word for lemma in lemmas)
    pool, rng = Pool.of(lemmas, np.ones(len(lemmas))), chance(1, "sentences")
    for _ in range(400):
        sentence = pool.draw_sentence(rng)
        found = [mention.word for mention in find_words(sentence.text, vocabulary)]
        assert found == [lemma.word for lemma in sentence.lemmas], sentence.text


def test_frequent_words_are_plain() -> None:
    lemmas = english_lemmas(9283, chance(0, "words"))
    assert not any("-" in lemma.word for lemma in lemmas[:1064])
    assert {lemma.kind for lemma in lemmas[:60]} == {"noun", "verb", "adjective"}


def test_a_target_word_is_in_its_sentence() -> None:
    lemmas = english_lemmas(300, chance(0, "words"))
    pool, targets = Pool.of(lemmas, np.ones(300)), Pool.of(lemmas[:3], np.ones(3))
    for seed in range(50):
        sentence = pool.draw_sentence(chance(seed, "x"), targets)
        assert sentence.target is not None
        assert sentence.lemmas[sentence.target] in lemmas[:3]


def test_more_words_than_there_are_is_said() -> None:
    with pytest.raises(InputError, match="more than it has"):
        english_lemmas(10**6, chance(0, "words"))


def test_plain_words_are_distinct() -> None:
    words = [lemma.word for lemma in _plain_lemmas()]
    assert len(set(words)) == len(words) >= 1064
