"""Which words are trained and which are tested: a file, so that every run and every reader has the same.

The training and the test words of a split have none in common. Whether the test words are seen in training is not the
split's business: the paper trains on both parts (264 of 1,064 words seen) or on the training words only (Paper 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.words import Word, normalise
from signspot.errors import FormatError, InputError
from signspot.evaluation.splits import draw_unseen_words
from signspot.formats.records import read_manifest
from signspot.formats.safe_json import write_json
from signspot.learning.material import Material

_FORMAT = "signspot-split"
_CORRECT = "correct the file, or draw the split again"


@dataclass(frozen=True, slots=True)
class WordSplit:
    """Training and test words, both sorted, and where the choice comes from."""

    train: tuple[Word, ...]
    test: tuple[Word, ...]
    seed: int
    drawn: str  # how, in words

    def __post_init__(self) -> None:
        for name, words in (("training", self.train), ("test", self.test)):
            if not words:
                raise ValueError(f"no {name} words")
            if list(words) != sorted(set(words)):
                raise ValueError(f"the {name} words are not sorted, or one comes twice")
        if both := sorted(set(self.train) & set(self.test)):
            raise ValueError(f"{len(both)} words are for training and for the test, such as {both[0]!r}")

    @property
    def words(self) -> frozenset[Word]:
        """All of them: what is trained when the test words may be seen."""
        return frozenset((*self.train, *self.test))


def label_counts(material: Material, min_confidence: float = 0.5) -> dict[Word, int]:
    """How many passages each word labels with at least this confidence; words that label none are not there."""
    passages = material.passages
    labels = passages.label[passages.confidence >= np.float32(min_confidence)]
    numbers, counts = np.unique(labels, return_counts=True)
    words = material.vocabulary.words
    return {words[number]: int(count) for number, count in zip(numbers, counts, strict=True)}


def draw_split(counts: Mapping[Word, int], n_test: int, seed: int) -> WordSplit:
    """Draw test words of all frequencies from words and how often they are labelled, each at least once."""
    if seed < 0:
        raise InputError(f"seed {seed}", "is negative", "give a whole number from 0")
    if n_test >= len(counts):
        what = f"cannot be drawn from {len(counts)} labelled words"
        raise InputError(f"{n_test} test words", what, "leave at least one word to train on")
    words = sorted(counts)
    drawn = draw_unseen_words(np.array([counts[word] for word in words], np.int64), n_test, seed=seed)
    test = tuple(words[number] for number in drawn)
    how = f"one word from each of {n_test} strata of {len(counts)} words ordered by their number of labels"
    return WordSplit(tuple(sorted(set(words) - set(test))), test, seed, how)


def write_split(split: WordSplit, path: Path, *, overwrite: bool = False) -> None:
    """Write a split as JSON."""
    content = {
        "format": _FORMAT,
        "version": 1,
        "seed": split.seed,
        "drawn": split.drawn,
        "train": list(split.train),
        "test": list(split.test),
    }
    write_json(content, path, overwrite=overwrite)


def read_split(path: Path) -> WordSplit:
    """Read a split; words may stand in any order."""
    content = read_manifest(path, _FORMAT)
    seed, drawn = content.get("seed", 0), content.get("drawn", "")
    if type(seed) is not int or seed < 0 or not isinstance(drawn, str):
        raise FormatError(path, '"seed" is no whole number from 0, or "drawn" is no text', _CORRECT)
    try:
        return WordSplit(_words(path, content, "train"), _words(path, content, "test"), seed, drawn)
    except ValueError as error:
        raise FormatError(path, str(error), _CORRECT) from error


def _words(path: Path, content: Mapping[str, object], key: str) -> tuple[Word, ...]:
    listed = content.get(key)
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise FormatError(path, f"{key!r} is no list of words", _CORRECT)
    for word in listed:
        if not isinstance(word, str) or normalise(word) != word:
            raise FormatError(path, f"{str(word)[:40]!r} under {key!r} is no word as signspot writes it", _CORRECT)
    return tuple(sorted(listed))
