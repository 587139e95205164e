"""Words find the types of a lexicon, and entries get their ids."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.words import Word, normalise
from signspot.formats.vocabulary import ExternalVocabulary, LocalGloss, VocabularyItem, with_type_ids


def vocabulary(*glosses: str, language: str = "eng") -> ExternalVocabulary:
    """Types whose id is their gloss."""
    return ExternalVocabulary(
        "x.ecv", tuple(VocabularyItem(type_id=g, glosses=(LocalGloss(language, g),)) for g in glosses)
    )


def found(known: ExternalVocabulary, word: str) -> list[str]:
    return [item.type_id for item in known.items_for(Word(word))]


@pytest.mark.parametrize(
    ("glosses", "word", "types"),
    [
        (["HOUSE"], "house", ["HOUSE"]),
        (["HOUSE-A", "HOUSE-B"], "house", ["HOUSE-A", "HOUSE-B"]),
        (["HOUSE-A", "HOUSE-B"], "house-b", ["HOUSE-B"]),
        (["HOUSE", "HOUSE-B"], "house", ["HOUSE"]),  # an exact gloss is never joined by variants
        (["HOUSE-A"], "house", ["HOUSE-A"]),  # the first of a series may be alone
        (["VITAMIN-C"], "vitamin", []),
        (["VITAMIN-C"], "vitamin-c", ["VITAMIN-C"]),
        (["HOUSE1", "HOUSE2"], "house", ["HOUSE1", "HOUSE2"]),
        (["HOUSE02", "HOUSE03"], "house", ["HOUSE02", "HOUSE03"]),
        (["HAUS1A", "HAUS1B"], "haus", ["HAUS1A", "HAUS1B"]),
        (["HOUSE_1", "HOUSE:2"], "house", ["HOUSE_1", "HOUSE:2"]),
        (["COVID19"], "covid", []),
        (["ICE CREAM-A", "ICE CREAM-B"], "ice-cream", ["ICE CREAM-A", "ICE CREAM-B"]),
        (["T-SHIRT"], "t", []),
        (["HOUSE-AB"], "house", []),
        (["HOUSE-a"], "house", []),
        (["1984"], "19", []),
        (["10-A", "10-B"], "10", []),
        (["HOUSE123"], "house1", []),
        (["\U0001d800"], "\U0001d800", ["\U0001d800"]),
        (["!!!", "x" * 300], "x", []),
    ],
)  # fmt: skip
def test_the_rule_of_variants(glosses: list[str], word: str, types: list[str]) -> None:
    assert found(vocabulary(*glosses), word) == types


def test_turkish_glosses_are_lowered_by_turkish_rules() -> None:
    assert found(vocabulary("IŞIK", language="tur"), normalise("ışık", "tr")) == ["IŞIK"]


def test_a_type_is_found_by_its_id() -> None:
    known = vocabulary("HOUSE")
    assert known.item("HOUSE") == known.items[0]
    assert known.item("nothing") is None


def entry(word: str, variant: str = "", type_id: str = "") -> Entry:
    return Entry(entry_id=f"{word}/{variant}", word=Word(word), variant=variant, type_id=type_id)


@pytest.mark.parametrize(
    ("glosses", "one", "type_id"),
    [
        (["HOUSE-A", "HOUSE-B"], entry("house", "A"), "HOUSE-A"),
        (["HOUSE-A", "HOUSE-B"], entry("house", "b"), "HOUSE-B"),
        (["HOUSE1", "HOUSE2"], entry("house", "2"), "HOUSE2"),
        (["HOUSE-A", "HOUSE-B"], entry("house"), ""),  # either may be meant
        (["HOUSE-A", "HOUSE-B"], entry("house", "north"), ""),
        (["HOUSE"], entry("house", "north"), "HOUSE"),
        (["HOUSE"], entry("house"), "HOUSE"),
        (["HOUSE", "HOUSE-B"], entry("house"), "HOUSE"),
        (["HOUSE"], entry("house", "", "mine"), "mine"),
        (["TREE"], entry("house"), ""),
        (["TREE"], entry("house", "!" * 300), ""),
    ],
)  # fmt: skip
def test_entries_get_the_id_of_the_one_type_they_mean(glosses: list[str], one: Entry, type_id: str) -> None:
    (changed,) = with_type_ids(Dictionary.of("d", [one]), vocabulary(*glosses))
    assert changed.type_id == type_id


def test_nothing_else_of_a_dictionary_changes() -> None:
    before = Dictionary.of("d", [entry("b"), entry("a"), entry("a", "2")])
    after = with_type_ids(before, vocabulary("A", "C"))
    assert after.name == "d"
    assert [(e.entry_id, e.word, e.variant) for e in after] == [(e.entry_id, e.word, e.variant) for e in before]


@given(st.lists(st.text(max_size=20), max_size=12, unique=True))
def test_every_gloss_that_is_a_word_finds_its_type(glosses: list[str]) -> None:
    known = vocabulary(*glosses)
    for gloss in glosses:
        try:
            word = normalise(gloss)
        except ValueError:
            continue
        assert gloss in found(known, word)


@given(st.lists(st.sampled_from(["HOUSE", "HOUSE-A", "HOUSE-B", "house", "HOUSE 2", "HOUSE3", "TREE-A"]), max_size=8))
def test_variants_are_found_only_where_no_gloss_is_the_word(glosses: list[str]) -> None:
    exact = [g for g in dict.fromkeys(glosses) if g.lower() == "house"]
    stems = [g for g in dict.fromkeys(glosses) if g in ("HOUSE-A", "HOUSE-B", "HOUSE 2", "HOUSE3")]
    counts = exact or (stems if len(stems) > 1 or stems == ["HOUSE-A"] else [])
    assert found(vocabulary(*glosses), "house") == counts


def test_long_glosses_cost_no_time() -> None:
    start = time.process_time()
    vocabulary("1" * 100_000, "-" * 100_000 + "A", "a" * 100_000 + "-")
    assert time.process_time() - start < 1
