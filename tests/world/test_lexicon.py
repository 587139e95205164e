from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from signspot.errors import InputError
from signspot.world.lexicon import LANGUAGE, OTHER_LANGUAGE, Lemma, Lexicon, build_lexicon, english_lemmas
from signspot.world.settings import Difficulty, chance
from signspot.world.simulation import _spread_counts


@pytest.fixture(scope="module")
def lemmas() -> tuple[Lemma, ...]:
    return english_lemmas(1500, chance(0, "words"))


@pytest.fixture(scope="module")
def lexicon(lemmas: tuple[Lemma, ...]) -> Lexicon:
    return build_lexicon(lemmas, _spread_counts(1500, 2.8, 10, chance(0, "entries")), 0, Difficulty())


def test_every_word_has_one_to_four_variants_of_different_form(lexicon: Lexicon) -> None:
    for senses in lexicon.senses.values():
        forms = [lexicon.forms[sense.form_id] for sense in senses]
        assert 1 <= len(forms) <= 4 and len(set(forms)) == len(forms)


def test_forms_are_shared_only_by_planted_synonyms(lexicon: Lexicon) -> None:
    assert len(set(lexicon.forms.values())) == len(lexicon.forms)
    words: dict[str, list[str]] = {}
    for word, senses in lexicon.senses.items():
        for sense in senses:
            words.setdefault(sense.form_id, []).append(word)
    shared = sum(len(sharing) - 1 for sharing in words.values())
    assert shared == len(lexicon.synonyms) > 20
    for one, other in lexicon.synonyms:
        assert {s.form_id for s in lexicon.senses[one]} & {s.form_id for s in lexicon.senses[other]}


def test_minimal_pairs_are_planted(lexicon: Lexicon) -> None:
    share = len(lexicon.minimal_pairs) / len(lexicon.forms)
    assert 0.6 * Difficulty().minimal_pairs < share < 1.1 * Difficulty().minimal_pairs


def test_some_two_word_names_are_signed_as_both_parts(lexicon: Lexicon) -> None:
    strokes = Counter(
        len(lexicon.forms[senses[0].form_id].strokes) for word, senses in lexicon.senses.items() if "-" in word
    )
    assert strokes[1] > 50 and strokes[2] > 50
    known = {(stroke,) for form in lexicon.forms.values() for stroke in form.strokes if len(form.strokes) == 1}
    joined = [form.strokes for form in lexicon.forms.values() if len(form.strokes) == 2]
    assert sum({(first,), (last,)} <= known for first, last in joined) > 50


def test_the_second_language_has_cognates_and_false_friends(lexicon: Lexicon) -> None:
    own, other = lexicon.of_language(LANGUAGE), lexicon.of_language(OTHER_LANGUAGE)
    cognates = sum(other[word][0].form_id == own[word][0].form_id for word in own)
    assert 0.2 < cognates / len(own) < 0.3
    assert len(lexicon.false_friends) > 0.08 * len(own)
    for friend in lexicon.false_friends:
        assert friend.word != friend.other_word
        assert friend.form_id == other[friend.other_word][0].form_id
        assert friend.form_id in {sense.form_id for sense in own[friend.word]}
        assert friend.form_id not in {sense.form_id for sense in own[friend.other_word]}


def test_no_word_is_its_own_false_friend_even_where_words_are_few(lemmas: tuple[Lemma, ...]) -> None:
    friends = 0
    for seed in range(200):
        lexicon = build_lexicon(lemmas[:4], np.full(4, 3), seed, Difficulty(synonyms=0.3))
        friends += len(lexicon.false_friends)
        assert all(friend.word != friend.other_word for friend in lexicon.false_friends)
    assert friends > 20


def test_an_unknown_language_is_said(lexicon: Lexicon) -> None:
    with pytest.raises(InputError, match="not a language of the world"):
        lexicon.of_language("bfi")


def test_a_word_has_no_more_forms_than_entries(lemmas: tuple[Lemma, ...]) -> None:
    counts = np.ones(1500, dtype=np.int64)
    lexicon = build_lexicon(lemmas, counts, 0, Difficulty())
    assert all(len(senses) == 1 for senses in lexicon.senses.values())
