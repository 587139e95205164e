"""Which forms name which words, in two sign languages that share some of them.

Forms repeat only where this module plants it: synonyms share a form, the second language shares forms for the same word
(cognates) or for another one (false friends). Other forms may differ in a single parameter (minimal pairs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from signspot.domain.words import Word
from signspot.errors import InputError
from signspot.world.chance import chance
from signspot.world.difficulty import Difficulty
from signspot.world.phonology import Form, compound, minimal_partner, random_form
from signspot.world.words import Lemma

Ints = npt.NDArray[np.int64]

LANGUAGE, OTHER_LANGUAGE = "qaa", "qab"  # ISO 639 reserves qaa to qtz for local use
MOST_VARIANTS = 4
_VARIANT = 0.25  # chance that a further entry of a word shows a further form
_COMPOUNDS = 0.5  # share of two-word names signed as both parts
_COGNATES, _FALSE_FRIENDS = 0.25, 0.12  # share of the words of the second language
_MOST_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Sense:
    """One variant of a word: a form under the name of a region."""

    word: Word
    variant: str
    form_id: str


@dataclass(frozen=True, slots=True)
class FalseFriend:
    """A form that names one word here and another there."""

    form_id: str
    word: Word
    other_word: Word


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The forms of all words of one or two languages."""

    forms: Mapping[str, Form]
    senses: Mapping[Word, tuple[Sense, ...]]
    other_senses: Mapping[Word, tuple[Sense, ...]]  # of the second language
    synonyms: tuple[tuple[Word, Word], ...]
    minimal_pairs: tuple[tuple[str, str], ...]  # form ids
    false_friends: tuple[FalseFriend, ...]

    def of_language(self, language: str) -> Mapping[Word, tuple[Sense, ...]]:
        """The senses of `language`."""
        if language not in (LANGUAGE, OTHER_LANGUAGE):
            raise InputError(language, "is no language of the world", f"choose {LANGUAGE} or {OTHER_LANGUAGE}")
        return self.senses if language == LANGUAGE else self.other_senses


@dataclass(slots=True)
class _Inventory:
    """The forms so far; every new one differs from all before."""

    rng: np.random.Generator
    minimal_pairs: float
    forms: dict[str, Form] = field(default_factory=dict)
    known: set[Form] = field(default_factory=set)
    pairs: list[tuple[str, str]] = field(default_factory=list)

    def add(self, form: Form) -> str:
        form_id = f"f{len(self.forms):05}"
        self.forms[form_id] = form
        self.known.add(form)
        return form_id

    def new(self) -> str:
        """A form nobody has, now and then the minimal partner of an earlier one."""
        for _ in range(_MOST_DRAWS):
            partner = ""
            if self.forms and self.rng.random() < self.minimal_pairs:
                partner = f"f{int(self.rng.integers(len(self.forms))):05}"
            form = minimal_partner(self.forms[partner], self.rng) if partner else random_form(self.rng)
            if form not in self.known:
                form_id = self.add(form)
                if partner:
                    self.pairs.append((partner, form_id))
                return form_id
        raise InputError("world", f"no new form after {len(self.forms)}", "ask for fewer words")

    def joined(self, first: str, second: str) -> str:
        form = compound(self.forms[first], self.forms[second])
        return self.new() if form in self.known else self.add(form)


def build_lexicon(lemmas: tuple[Lemma, ...], entry_counts: Ints, seed: int, difficulty: Difficulty) -> Lexicon:
    """The lexicon of a world: every word with one to four forms, and no more than it has dictionary entries."""
    rng = chance(seed, "lexicon")
    inventory = _Inventory(rng, difficulty.minimal_pairs)
    senses: dict[Word, tuple[Sense, ...]] = {}
    synonyms: list[tuple[Word, Word]] = []
    for lemma, entries in zip(lemmas, entry_counts, strict=True):
        if senses and rng.random() < difficulty.synonyms:
            twin = lemmas[int(rng.integers(len(senses)))].word
            synonyms.append((twin, lemma.word))
            form_ids = [senses[twin][0].form_id]
        else:
            form_ids = [_first_form(lemma, senses, inventory)]
        further = min(int(rng.binomial(entries - 1, _VARIANT)), MOST_VARIANTS - 1)
        senses[lemma.word] = _senses(lemma.word, form_ids + [inventory.new() for _ in range(further)])
    other, friends = _second_language(lemmas, senses, inventory)
    return Lexicon(inventory.forms, senses, other, tuple(synonyms), tuple(inventory.pairs), friends)


def _first_form(lemma: Lemma, senses: Mapping[Word, tuple[Sense, ...]], inventory: _Inventory) -> str:
    parts = [senses.get(Word(part)) for part in lemma.word.split("-")]
    if lemma.is_compound and parts[0] and parts[1] and inventory.rng.random() < _COMPOUNDS:
        return inventory.joined(parts[0][0].form_id, parts[1][0].form_id)
    return inventory.new()


def _senses(word: Word, form_ids: list[str]) -> tuple[Sense, ...]:
    return tuple(Sense(word, str(number), form_id) for number, form_id in enumerate(form_ids, start=1))


def _second_language(
    lemmas: tuple[Lemma, ...], senses: Mapping[Word, tuple[Sense, ...]], inventory: _Inventory
) -> tuple[Mapping[Word, tuple[Sense, ...]], tuple[FalseFriend, ...]]:
    """One form for every word: the first language's, that of another word, or a new one."""
    rng = inventory.rng
    words_of: dict[str, set[Word]] = {}
    for word, own in senses.items():
        for sense in own:
            words_of.setdefault(sense.form_id, set()).add(word)
    other: dict[Word, tuple[Sense, ...]] = {}
    friends: list[FalseFriend] = []
    for lemma in lemmas:
        fate = rng.random()
        form_id = senses[lemma.word][0].form_id
        if fate >= _COGNATES:
            borrowed = senses[lemmas[int(rng.integers(len(lemmas)))].word][0].form_id
            is_friend = fate < _COGNATES + _FALSE_FRIENDS and lemma.word not in words_of[borrowed]
            form_id = borrowed if is_friend else inventory.new()
            if is_friend:
                friends += [FalseFriend(form_id, word, lemma.word) for word in sorted(words_of[form_id])]
        other[lemma.word] = _senses(lemma.word, [form_id])
    return other, tuple(friends)
