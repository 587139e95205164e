"""Finding vocabulary words in written text, with the place of each so that a page can highlight it.

A written word is looked up as it stands, then without a possessive or contraction ("Mary's": mary), then by its lemma
("apples": apple). Phrases go before single words, longest first: "ice-cream" of the vocabulary is found in "ice cream",
"ice-cream" and "Ice  cream", but not across punctuation. Numbers are also looked up spelled out ("21st": twenty-first;
four digits read as a year, "10.30" as a time of day). Letters may be composed or decomposed, and the letters of sign
notations (HamNoSys, SignWriting) are letters like others. No text is an error.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby

import simplemma
from num2words import num2words

from signspot.domain.recordings import MAX_WORD_LENGTH, Vocabulary, Word, normalise

_MAX_NUMBER = 1_000_000  # some languages of num2words never finish with larger ones
_CACHED = 65_536  # written words remembered


def _marks() -> str:
    """The combining marks of the basic plane as ranges of a character class; \\w does not hold them."""
    marks = (code for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M")
    runs = (list(run) for _, run in groupby(enumerate(marks), lambda pair: pair[1] - pair[0]))
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)


# An underscore counts as a blank: see `_tokens`.
_LETTER = rf"[\w{_marks()}\ue000-\uf8ff\U0001d800-\U0001daaf\U000f0000-\U0010fffd]"
_HYPHENS = r"\-‐‑"
# From the first letter to the last one between blanks and hyphens; "c++" and "c#" keep their signs.
_CHUNK = re.compile(rf"{_LETTER}(?:[^\s{_HYPHENS}]*{_LETTER})?[+#]*")
_ATOM = re.compile(rf"{_LETTER}+(?:['’]{_LETTER}+)*")
_JOINT = re.compile(rf"\s+|[{_HYPHENS}]")
_NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{1,7})(?:\.(\d{1,6}))?(st|nd|rd|th|s)?")
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3])[.:]([0-5]\d)")
_YEAR = re.compile(r"(1[1-9]|20)\d\d")
_DOTTED = re.compile(rf"(?:{_LETTER}\.)+{_LETTER}")
_CONTRACTED = re.compile(r"(.+)'(?:s|re|ve|ll|d|m)")
_ELIDING = ("fr", "it", "ca")  # l'homme, dell'uomo
_NEGATED = {"can't": "can", "won't": "will", "shan't": "shall"}
# Past tenses that are words of their own, so that simplemma leaves them alone.
_ALSO = {
    "thought": "think", "left": "leave", "felt": "feel", "ground": "grind", "wound": "wind", "bore": "bear",
    "won": "win", "rose": "rise", "bit": "bite", "broke": "break", "shot": "shoot", "drunk": "drink", "swore": "swear",
    "gone": "go", "worse": "bad", "spoke": "speak", "found": "find", "saw": "see", "lay": "lie", "lit": "light",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Mention:
    """A vocabulary word and where it is written: text[start:stop]."""

    word: Word
    start: int
    stop: int


@dataclass(slots=True)
class _Token:
    """One written word: text[start:stop], the forms to look up in order of preference, and its spelling in words.

    `joins` is whether only blanks or one hyphen part it from the token before.
    """

    start: int
    stop: int
    forms: tuple[str, ...]
    spelled: tuple[str, ...]
    joins: bool


@dataclass(slots=True)
class _Node:
    """The phrases that begin alike: the word that ends here, and what may follow."""

    word: Word | None = None
    following: dict[str, _Node] = field(default_factory=dict)


def find_words(text: str, vocabulary: Vocabulary, language: str = "en") -> tuple[_Mention, ...]:
    """All vocabulary words mentioned in `text`, in order; they do not overlap, except within a spelled-out number."""
    root, parts = _phrases_of_same(_Same(vocabulary))
    return tuple(_mentions(_tokens(text, language, parts), root))


def words_beside(text: str, vocabulary: Vocabulary, language: str = "en") -> tuple[Word, ...]:
    """The words of `text` that the vocabulary lacks, in order, each by its lemma."""
    root, parts = _phrases_of_same(_Same(vocabulary))
    tokens = _tokens(text, language, parts)
    found = {place for mention in _mentions(tokens, root) for place in range(mention.start, mention.stop)}
    return tuple(Word(token.forms[-1]) for token in tokens if token.start not in found)


def _tokens(text: str, language: str, known: frozenset[str]) -> list[_Token]:
    """Split text into written words; those in `known` stay whole even with punctuation inside ("and/or")."""
    text = text.replace("_", " ")
    tokens: list[_Token] = []
    for chunk in _CHUNK.finditer(text):
        for start, stop in _pieces(chunk, language, known):
            forms, spelled = _spoken(text[start:stop], language)
            if forms:
                joins = bool(tokens) and _JOINT.fullmatch(text, tokens[-1].stop, start) is not None
                tokens.append(_Token(start, stop, forms, spelled, joins))
    return tokens


class _Same:
    """A vocabulary that equals only itself: hashing thousands of words for every subtitle would take too long."""

    __slots__ = ("vocabulary",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def __hash__(self) -> int:
        return id(self.vocabulary)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.vocabulary is self.vocabulary


@lru_cache(maxsize=8)
def _phrases_of_same(same: _Same) -> tuple[_Node, frozenset[str]]:
    return _phrases(same.vocabulary)


@lru_cache(maxsize=8)
def _phrases(vocabulary: Vocabulary) -> tuple[_Node, frozenset[str]]:
    """The tree of all phrases, and the parts that occur in any."""
    root = _Node()
    parts: set[str] = set()
    for word in vocabulary:
        node = root
        for part in word.split("-"):
            parts.add(part)
            node = node.following.setdefault(sys.intern(part), _Node())
        node.word = word
    return root, frozenset(parts)


def _mentions(tokens: list[_Token], root: _Node) -> Iterable[_Mention]:
    i = 0
    while i < len(tokens):
        word, stop = _longest(tokens, i, root)
        if word is not None:
            yield _Mention(word, tokens[i].start, tokens[stop - 1].stop)
        elif len(tokens[i].spelled) > 1:
            here = tokens[i]
            yield from _mentions([_Token(here.start, here.stop, (s,), (), True) for s in here.spelled], root)
        i = max(stop, i + 1)


def _longest(tokens: list[_Token], i: int, node: _Node) -> tuple[Word | None, int]:
    """The longest phrase below `node` that starts at token i, and the token after it; the first form wins a tie."""
    best: tuple[Word | None, int] = (None, i)
    forms = tokens[i].forms if len(tokens[i].spelled) != 1 else tokens[i].forms + tokens[i].spelled
    for form in forms:
        if following := node.following.get(form):
            found: tuple[Word | None, int] = (None, i)
            if following.following and i + 1 < len(tokens) and tokens[i + 1].joins:
                found = _longest(tokens, i + 1, following)
            if found[0] is None and following.word is not None:
                found = (following.word, i + 1)
            if found[0] is not None and found[1] > best[1]:
                best = found
    return best


def _pieces(chunk: re.Match[str], language: str, known: frozenset[str]) -> Iterable[tuple[int, int]]:
    """A chunk as a whole if it is one word, else the words in it."""
    written = chunk[0]
    is_one = written.isalpha() or any(kind.fullmatch(written) for kind in (_ATOM, _NUMBER, _TIME_OF_DAY))
    if is_one or any(form in known for form in _spoken(written, language)[0]):
        return [chunk.span()]
    return [(chunk.start() + atom.start(), chunk.start() + atom.end()) for atom in _ATOM.finditer(written)]


@lru_cache(maxsize=_CACHED)
def _spoken(written: str, language: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The forms under which a written word is looked up, none if it is too long; and its spelling in words."""
    if len(written) > MAX_WORD_LENGTH:
        return (), ()
    try:
        surface = str(normalise(written, language))
    except ValueError:
        return (), ()
    if surface[0].isdecimal():
        return (surface,), _number(surface, language)
    code = language.lower().split("-")[0]
    if code == "en" and surface.endswith("n't"):
        return (surface,), (_NEGATED.get(surface, surface[:-3]), "not")
    forms = [surface]
    if code in _ELIDING:
        forms.append(surface.rpartition("'")[2])
    elif contracted := _CONTRACTED.fullmatch(surface):
        forms.append(contracted[1])
    if _DOTTED.fullmatch(surface):
        forms.append(surface.replace(".", ""))
    forms.append(_lemma(forms[-1], code))
    if code == "en" and surface in _ALSO:
        forms.append(_ALSO[surface])
    return tuple(dict.fromkeys(filter(None, forms))), ()


def _lemma(form: str, code: str) -> str:
    try:
        return str(normalise(simplemma.lemmatize(form, lang=code), code))
    except ValueError:  # a language simplemma does not know, half a character, an empty word
        return ""


def _number(surface: str, language: str) -> tuple[str, ...]:
    """A number in digits as the words people say; none if it is no plain number."""
    if time := _TIME_OF_DAY.fullmatch(surface):
        hours, minutes = int(time[1]), int(time[2])
        return _spelled(hours, "cardinal", language) + (_spelled(minutes, "cardinal", language) if minutes else ())
    if not (number := _NUMBER.fullmatch(surface)):
        return ()
    whole, decimals, ending = int(number[1].replace(",", "")), number[2], number[3]
    if whole > _MAX_NUMBER:
        return ()
    if ending and ending != "s":
        return _spelled(whole, "ordinal", language)
    if decimals:
        digits = (word for digit in decimals for word in _spelled(int(digit), "cardinal", language))
        return (*_spelled(whole, "cardinal", language), "point", *digits)
    kind = "year" if _YEAR.fullmatch(number[1]) else "cardinal"
    return _spelled(whole, kind, language) or _spelled(whole, "cardinal", language)


@lru_cache(maxsize=_CACHED)
def _spelled(number: int, kind: str, language: str) -> tuple[str, ...]:
    code = language.replace("-", "_")
    try:
        words = str(num2words(number, to=kind, lang=code))
        return tuple(part for part in normalise(words, language).split("-") if part != "and")
    except (NotImplementedError, LookupError, ValueError, TypeError, AttributeError):  # gaps in its languages
        return ()
