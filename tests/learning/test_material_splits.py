from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.errors import FormatError, InputError, OutputExists
from signspot.learning.material import WordSplit, draw_split
from tests.learning.problems import random_material

COUNTS = {Word(f"w{i:04}"): 5000 // (i + 1) for i in range(1064)}


@given(st.integers(2, 40), st.data(), st.integers(0, 99))
def test_a_split_has_every_word_once(n_words: int, data: st.DataObject, seed: int) -> None:
    counts = {Word(f"w{i}"): data.draw(st.integers(1, 9)) for i in range(n_words)}
    n_test = data.draw(st.integers(1, n_words - 1))
    split = draw_split(counts, n_test, seed)
    assert len(split.test) == n_test
    assert sorted((*split.train, *split.test)) == sorted(counts)
    assert split.words == frozenset(counts)


def test_test_words_are_as_frequent_as_all_words() -> None:
    split = draw_split(COUNTS, 264, seed=3)
    assert (len(split.train), len(split.test)) == (800, 264)
    by_frequency = sorted(COUNTS, key=lambda word: (-COUNTS[word], word))
    ranks = sorted(by_frequency.index(word) for word in split.test)
    # One of each four or five neighbours in the order of frequency.
    strata = np.array_split(np.arange(1064), 264)
    assert all(rank in stratum for rank, stratum in zip(ranks, strata, strict=True))


def test_the_same_seed_draws_the_same_words_whatever_their_order() -> None:
    shuffled = {word: COUNTS[word] for word in sorted(COUNTS, reverse=True)}
    assert draw_split(COUNTS, 264, seed=1) == draw_split(shuffled, 264, seed=1)
    assert draw_split(COUNTS, 264, seed=1) != draw_split(COUNTS, 264, seed=2)


@pytest.mark.parametrize("n_test", [0, -1, 5, 9])
def test_a_draw_that_leaves_nothing_is_refused(n_test: int) -> None:
    with pytest.raises(InputError, match=r"cannot be drawn from 5 labelled words|unseen words of 5"):
        draw_split({Word(c): 1 for c in "abcde"}, n_test, seed=0)


def test_labels_are_counted_from_a_confidence_on() -> None:
    material = random_material()
    counts = material.label_counts(0.75)
    for number, word in enumerate(material.vocabulary):
        sure = (material.passages.label == number) & (material.passages.confidence >= 0.75)
        assert counts.get(word, 0) == np.count_nonzero(sure)


def test_a_split_comes_back_as_it_was_written(tmp_path: Path) -> None:
    split = draw_split(COUNTS, 264, seed=3)
    split.write(tmp_path / "split.json")
    assert WordSplit.read(tmp_path / "split.json") == split
    with pytest.raises(OutputExists, match="exists already"):
        split.write(tmp_path / "split.json")


def test_a_split_may_be_written_by_hand_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    path.write_text('{"format": "signspot-split", "version": 1, "train": ["b", "a"], "test": ["c"]}')
    assert WordSplit.read(path) == WordSplit((Word("a"), Word("b")), (Word("c"),), 0, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": ["a", "c"]}, "1 words are for training and for the test, such as 'c'"),
        ({"train": []}, "no training words"),
        ({"test": []}, "no test words"),
        ({"train": ["a", "a"]}, "one comes twice"),
        ({"train": ["A"]}, "'A' under 'train' is not a word as signspot writes it"),
        ({"train": [""]}, "no word in ''"),
        ({"test": [3]}, "'3' under 'test' is not a word"),
        ({"test": "c"}, "'test' is not a list of words"),
        ({"test": None}, "'test' is not a list of words"),
        ({"seed": -1}, "not a whole number"),
        ({"seed": True}, "not a whole number"),
        ({"format": "other"}, "is not a manifest"),
    ],
)
def test_a_damaged_split_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    path = tmp_path / "split.json"
    WordSplit((Word("a"), Word("b")), (Word("c"),), 0, "by hand").write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(FormatError, match=message):
        WordSplit.read(path)
