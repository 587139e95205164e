"""Words: the keys under which signs are filed.

A `Word` is made only by `normalise`, so equal words are equal strings. Phrases are joined by "-" as in BSLDict.
Notation systems for signs (HamNoSys in the private-use area, SignWriting in the astral plane) pass through untouched.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NewType

Word = NewType("Word", str)

MAX_WORD_LENGTH = 200  # longer "words" are damaged input
_OUTER_PUNCTUATION = "\"“”„«»‘’'`´.,!?;:…()[]{}<>*"
_TURKIC = ("tr", "az")  # languages with a dotted and a dotless i


def _lower(text: str, language: str = "") -> str:
    """Lower-case by the rules of `language`: Turkish I is ı and İ is i.

    >>> lower("ISPARTA", "tr"), lower("ISPARTA")
    ('ısparta', 'isparta')
    """
    if language.lower().split("-")[0] in _TURKIC:
        text = text.replace("İ", "i").replace("I", "ı")
    # "İ".lower() is "i" plus a combining dot above, which no keyboard types: outside Turkish it is a plain i.
    return text.replace("İ", "i").lower()


def normalise(text: str, language: str = "") -> Word:
    """Turn text into the word it is filed under: NFC, lower case, outer punctuation gone, phrases joined by "-".

    >>> normalise("  Apple! "), normalise("ice cream"), normalise("don’t")
    ('apple', 'ice-cream', "don't")
    """
    plain = _lower(unicodedata.normalize("NFC", text), language).replace("’", "'")
    parts = (part.strip(_OUTER_PUNCTUATION) for part in plain.split())
    word = re.sub("-{2,}", "-", unicodedata.normalize("NFC", "-".join(part for part in parts if part)))
    word = word.strip(_OUTER_PUNCTUATION + "-")
    if not word or any("\ud800" <= character <= "\udfff" for character in word):  # half a character is none
        raise ValueError(f"no word in {text!r}")
    if len(word) > MAX_WORD_LENGTH:
        raise ValueError(f"a word of {len(word)} characters: {word[:40]!r}...")
    return Word(word)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words in a fixed order; the position of a word is its id."""

    words: tuple[Word, ...]
    _ids: dict[Word, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {word: i for i, word in enumerate(self.words)}
        if len(ids) != len(self.words):
            raise ValueError("a vocabulary names each word once")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def of(cls, words: Iterable[Word]) -> Vocabulary:
        return cls(tuple(sorted(set(words))))

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[Word]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def id_of(self, word: Word) -> int:
        return self._ids[word]

    def near(self, word: str, count: int = 3) -> tuple[Word, ...]:
        """The words that look most like `word`, for "did you mean"."""
        return tuple(Word(match) for match in difflib.get_close_matches(word, self.words, n=count, cutoff=0.6))


@dataclass(frozen=True, slots=True)
class Synonyms:
    """A symmetric relation between words: pairs that may name the same sign."""

    pairs: frozenset[tuple[Word, Word]] = frozenset()

    @classmethod
    def of(cls, pairs: Iterable[tuple[Word, Word]]) -> Synonyms:
        """Store each pair in both directions; a word is no synonym of itself."""
        return cls(frozenset(p for a, b in pairs if a != b for p in ((a, b), (b, a))))

    def of_word(self, word: Word) -> frozenset[Word]:
        return frozenset(b for a, b in self.pairs if a == word)
