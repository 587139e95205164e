"""Words find the types of a lexicon, and entries get their ids."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Dictionary, Entry, Word, normalise
from signspot.errors import FormatError
from signspot.formats.vocabularies import ExternalVocabulary, VocabularyItem, _LocalGloss, with_type_ids


def vocabulary(*glosses: str, language: str = "eng") -> ExternalVocabulary:
    """Types whose id is their gloss."""
    return ExternalVocabulary(
        "x.ecv", tuple(VocabularyItem(type_id=g, glosses=(_LocalGloss(language, g),)) for g in glosses)
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


def two_lists() -> ExternalVocabulary:
    """Lists that both count from 1: only `tree` and `7` are without doubt."""
    entries = (("nouns", "1", "TREE"), ("nouns", "2", "HOUSE"), ("mouth", "1", "house"), ("mouth", "7", "open"))
    items = (VocabularyItem(type_id=i, glosses=(_LocalGloss("eng", g),), vocabulary=cv) for cv, i, g in entries)
    return ExternalVocabulary("x.ecv", tuple(items), "file:///x.ecv")


def test_an_id_that_several_lists_use_is_no_id() -> None:
    known = two_lists()
    assert known.item("1") is None
    assert known.item("7") == known.items[3]
    entries = Dictionary.of("d", [entry("tree"), entry("house"), entry("open")])
    assert [e.type_id for e in with_type_ids(entries, known)] == ["", "7", ""]  # in the order house, open, tree


def test_one_list_of_several_has_ids_of_its_own() -> None:
    known = two_lists()
    assert known.lists == ("nouns", "mouth")
    nouns = known.only("nouns")
    assert (nouns.lists, nouns.source, nouns.url) == (("nouns",), known.source, known.url)
    entries = Dictionary.of("d", [entry("house"), entry("tree")])
    assert [e.type_id for e in with_type_ids(entries, nouns)] == ["2", "1"]
    with pytest.raises(FormatError, match=r"x\.ecv: has no vocabulary 'noun', only nouns, mouth: choose one of these"):
        known.only("noun")


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
