"""The types of a lexicon kept elsewhere (an ELAN ECV, a SignBank table), and how words find them.

A type is known by its list and its id alone; glosses may repeat, change and differ between languages. SignBanks give
every type an id of its own; each list of an ECV may count from one, so that an id says nothing without its list. A word
finds types on two levels:

1. the types with a gloss that, normalised, is the word: "house" finds HOUSE, "house-a" finds HOUSE-A;
2. only where there are none: the types with a gloss that is the word plus the mark of a variant. The mark is one
   capital letter after a separator (HOUSE-A, HOUSE:B), or a number of one or two digits with or without separator and
   letter (HOUSE2, HOUSE_02, HOUSE-1A). It counts only if it is the first of its series (A, 1, 01, 1A) or if another
   gloss has the same stem: VITAMIN-C alone is no variant of "vitamin".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.words import Word, normalise
from signspot.errors import FormatError

_VARIANT_MARK = re.compile(r"(?:[-_:. ]([A-Z])|(?<!\d)[-_:. ]?(\d{1,2}[A-Z]?))$")
_MOST_NAMES = 100  # in one message
_FIRST_OF_SERIES = {"A", "1", "01", "1A", "01A"}
# ELAN names languages in three letters; only the ones whose lower case differs matter here.
_TWO_LETTERS = {"tur": "tr", "aze": "az", "azj": "az", "Turkish": "tr", "Azerbaijani": "az"}


@dataclass(frozen=True, slots=True)
class LocalGloss:
    """The gloss of a type in one language, named as the source names it (eng, English, ...)."""

    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyItem:
    """One type of a lexicon."""

    type_id: str
    glosses: tuple[LocalGloss, ...] = ()
    description: str = ""
    external_ref: str = ""  # what the source links to, such as the page of the sign
    vocabulary: str = ""  # the list it belongs to: ELAN CV_ID, SignBank dataset

    def gloss(self, language: str = "") -> str:
        """The gloss in `language`, else the first one; empty if there is none."""
        chosen = next((g.text for g in self.glosses if g.text and g.language == language), "")
        return chosen or next((g.text for g in self.glosses if g.text), "")


@dataclass(frozen=True, slots=True)
class ExternalVocabulary:
    """The types of a lexicon and how to find them by word."""

    source: str  # the file it was read from
    items: tuple[VocabularyItem, ...]
    url: str = ""  # where ELAN loads it from; empty for tables, which ELAN cannot load
    warnings: tuple[str, ...] = ()
    _by_id: dict[str, VocabularyItem] = field(init=False, repr=False, compare=False)
    _by_gloss: dict[Word, list[VocabularyItem]] = field(init=False, repr=False, compare=False)
    _by_stem: dict[Word, list[VocabularyItem]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_id: dict[str, dict[str, VocabularyItem]] = {}
        for item in self.items:
            by_id.setdefault(item.type_id, {}).setdefault(item.vocabulary, item)
        known = {type_id: next(iter(found.values())) for type_id, found in by_id.items() if len(found) == 1}
        object.__setattr__(self, "_by_id", known)
        object.__setattr__(self, "_by_gloss", _filed((word, item) for item in self.items for word in _words(item)))
        object.__setattr__(self, "_by_stem", _filed(_stems(self.items, self._by_gloss)))

    @property
    def lists(self) -> tuple[str, ...]:
        """The names of the lists that hold its types, in the order of the source."""
        return tuple(dict.fromkeys(item.vocabulary for item in self.items))

    def only(self, name: str) -> ExternalVocabulary:
        """The types of one list."""
        if name not in self.lists:
            what = f"has no vocabulary {name!r}, only {shortened(self.lists)}"
            raise FormatError(self.source, what, "choose one of these")
        return replace(self, items=tuple(item for item in self.items if item.vocabulary == name))

    def item(self, type_id: str) -> VocabularyItem | None:
        """The type with an id, or None: also where several lists use the id for types of their own."""
        return self._by_id.get(type_id)

    def items_for(self, word: Word) -> tuple[VocabularyItem, ...]:
        """The types of a word, in the order of the source: by gloss, else by gloss without the mark of a variant."""
        return tuple(self._by_gloss.get(word, ()) or self._by_stem.get(word, ()))

    def items_named(self, word: Word) -> tuple[VocabularyItem, ...]:
        """The types with a gloss that is exactly the word."""
        return tuple(self._by_gloss.get(word, ()))


def with_type_ids(dictionary: Dictionary, vocabulary: ExternalVocabulary) -> Dictionary:
    """The same dictionary with a `type_id` on every entry that means one type of the vocabulary.

    The gloss of word and variant decides ("house" + "A" is HOUSE-A), then the word. Where several types fit, the entry
    stays without an id, as where lists share the id: a wrong id is worse than none. Ids that are already there stay.
    """
    entries = (_with_type_id(entry, vocabulary) for entry in dictionary)
    return Dictionary.of(dictionary.name, entries, dictionary.folder)


def _with_type_id(entry: Entry, vocabulary: ExternalVocabulary) -> Entry:
    if entry.type_id:
        return entry
    found: tuple[VocabularyItem, ...] = ()
    if entry.variant:
        both = (_word(f"{entry.word}{joint}{entry.variant}", entry.language) for joint in ("-", ""))
        found = tuple(item for word in both if word for item in vocabulary.items_named(word))
    type_ids = {item.type_id for item in found or vocabulary.items_for(entry.word)}
    if len(type_ids) != 1 or vocabulary.item(type_id := type_ids.pop()) is None:
        return entry
    return replace(entry, type_id=type_id)


def shortened(names: Sequence[str]) -> str:
    """Names as a message gives them: all, unless they are very many."""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return ", ".join([name or "one without a name" for name in names[:_MOST_NAMES]] + more)


def _filed(pairs: Iterator[tuple[Word, VocabularyItem]]) -> dict[Word, list[VocabularyItem]]:
    filed: dict[Word, dict[tuple[str, str], VocabularyItem]] = {}
    for word, item in pairs:
        filed.setdefault(word, {}).setdefault((item.vocabulary, item.type_id), item)
    return {word: list(items.values()) for word, items in filed.items()}


def _word(text: str, language: str) -> Word | None:
    try:
        return normalise(text, _TWO_LETTERS.get(language, language))
    except ValueError:  # nothing but punctuation, or longer than a word can be
        return None


def _words(item: VocabularyItem) -> Iterator[Word]:
    return (word for gloss in item.glosses if (word := _word(gloss.text, gloss.language)))


def _stems(
    items: tuple[VocabularyItem, ...], by_gloss: dict[Word, list[VocabularyItem]]
) -> Iterator[tuple[Word, VocabularyItem]]:
    """Every item under the stem of its glosses, where the rest of the gloss is the mark of a variant."""
    marked: dict[Word, list[tuple[str, VocabularyItem]]] = {}
    for item in items:
        for gloss in item.glosses:
            text = gloss.text.strip()
            mark = _VARIANT_MARK.search(text)
            stem = _word(text[: mark.start()], gloss.language) if mark else None
            if mark and stem and any(character.isalpha() for character in stem):
                marked.setdefault(stem, []).append((mark[1] or mark[2], item))
    for stem, cases in marked.items():
        if stem in by_gloss or len({mark for mark, _ in cases}) > 1 or cases[0][0] in _FIRST_OF_SERIES:
            yield from ((stem, item) for _, item in cases)
