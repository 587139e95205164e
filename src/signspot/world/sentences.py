"""Subtitles: vocabulary words, inflected, inside grammatical filler that nobody signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from signspot.world.phonology import Floats
from signspot.world.words import Lemma, past, plural, third_person

# N singular, P plural, V third person, D past, I base form, A adjective; the rest is said as it stands. No two nouns
# stand side by side, or they would read as a two-word name.
_PATTERNS = (
    "the A N V a N because the P D the A N",
    "when the N D the P , a N V the A N near the N",
    "P will I the A N , but the N V the P with a N",
    "the N and the N D to I a A N for the P",
    "this N was A , so the A P D the N of the N in the N",
    "there is a A N at the N , and it V the P that the N D with the P",
    "they D the A N while the P I a N",
    "the A N of the N V that the P will I the A N near the N and the N",
    "we can I the P , and she D the A N for a N in the A N",
)
_KIND = {"N": "noun", "P": "noun", "V": "verb", "D": "verb", "I": "verb", "A": "adjective"}
_INFLECTED = {"P": plural, "V": third_person, "D": past}


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is said, and which words of the vocabulary it mentions, in order."""

    text: str
    lemmas: tuple[Lemma, ...]
    target: int | None = None  # the place in `lemmas` of a word the sentence was made for


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Words to draw from, kind by kind, some more often than others."""

    lemmas: Mapping[str, tuple[Lemma, ...]]
    upto: Mapping[str, Floats]  # cumulative shares, ending with 1

    @classmethod
    def of(cls, lemmas: Sequence[Lemma], weights: Floats) -> Pool:
        """Words with their weights."""
        kinds = {lemma.kind for lemma in lemmas}
        places = {kind: [i for i, lemma in enumerate(lemmas) if lemma.kind == kind] for kind in sorted(kinds)}
        sums = {kind: np.cumsum(weights[place]) for kind, place in places.items()}
        return cls(
            {kind: tuple(lemmas[i] for i in place) for kind, place in places.items()},
            {kind: total / total[-1] for kind, total in sums.items()},
        )

    def draw(self, kind: str, rng: np.random.Generator) -> Lemma:
        """A word of a kind."""
        place = np.searchsorted(self.upto[kind], rng.random(), side="right")
        return self.lemmas[kind][min(int(place), len(self.lemmas[kind]) - 1)]


def draw_sentence(words: Pool, rng: np.random.Generator, targets: Pool | None = None) -> Sentence:
    """A sentence of about eight vocabulary words; with `targets`, one of them is drawn from there."""
    parts = _PATTERNS[int(rng.integers(len(_PATTERNS)))].split()
    slots = [part for part in parts if part in _KIND]
    target = None
    if targets is not None:
        target = int(rng.choice([i for i, slot in enumerate(slots) if _KIND[slot] in targets.lemmas]))
    lemmas: list[Lemma] = []
    for i, slot in enumerate(slots):
        pool = targets if targets is not None and i == target else words
        lemmas.append(_unused(pool, _KIND[slot], lemmas, rng))
    said = iter(lemmas)
    text = " ".join(_written(part, next(said)) if part in _KIND else part for part in parts)
    return Sentence(text[0].upper() + text[1:].replace(" ,", ",") + ".", tuple(lemmas), target)


def _unused(pool: Pool, kind: str, used: list[Lemma], rng: np.random.Generator) -> Lemma:
    """People rarely repeat a content word within a sentence."""
    for _ in range(5):
        lemma = pool.draw(kind, rng)
        if lemma not in used:
            break
    return lemma


def _written(slot: str, lemma: Lemma) -> str:
    inflect = _INFLECTED.get(slot)
    return (inflect(lemma.word) if inflect else lemma.word).replace("-", " ")
