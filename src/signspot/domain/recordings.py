"""Recordings and what is known of them: where the signer is, rights, videos of a corpus, entries of a dictionary.

Words: the keys under which signs are filed.

A `Word` is made only by `normalise`, so equal words are equal strings. Phrases are joined by "-" as in BSLDict.
Notation systems for signs (HamNoSys in the private-use area, SignWriting in the astral plane) pass through untouched.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from datetime import date
from pathlib import Path
from typing import NewType

from signspot.domain.time import FrameSpan, MillisSpan

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


@dataclass(frozen=True, slots=True)
class SignerBox:
    """The part of a picture that holds the signer, in fractions 0..1 of the width and height that a player shows.

    >>> str(SignerBox.parsed("50%, 10%, 100%, 90%"))
    '0.5,0.1,1.0,0.9'
    """

    left: float
    top: float
    right: float
    bottom: float

    def __post_init__(self) -> None:
        if not (0 <= self.left <= 1 and 0 <= self.top <= 1 and 0 <= self.right <= 1 and 0 <= self.bottom <= 1):
            raise ValueError(f"the box {self} does not lie in its picture: its edges are fractions from 0 to 1")
        if not (self.left < self.right and self.top < self.bottom):
            raise ValueError(f"the box {self} is empty: left comes before right, and top before bottom")

    def __str__(self) -> str:
        return ",".join(str(float(edge)) for edge in astuple(self))

    @classmethod
    def clamped(cls, left: float, top: float, right: float, bottom: float) -> SignerBox:
        """The part of a box that lies in the picture."""
        return cls(*(min(1.0, max(0.0, edge)) for edge in (left, top, right, bottom)))

    @classmethod
    def parsed(cls, text: str) -> SignerBox:
        """The box in `left,top,right,bottom`, as fractions or, with % signs, percent."""
        try:
            # Divided by a hundred as a decimal is: 0.07 is 7%, and 7 * 0.01 is not.
            parts = (part.strip() for part in text.split(","))
            left, top, right, bottom = (float(p[:-1]) / 100 if p.endswith("%") else float(p) for p in parts)
        except ValueError as error:
            raise ValueError(f"{text[:60]!r} is not a box of four numbers left,top,right,bottom") from error
        return cls(left, top, right, bottom)


# Continuous footage: subtitles (s), sparse annotations (M), passages (S), and who may do what with them.


@dataclass(frozen=True, slots=True)
class Subtitle:
    """One cue: plain text without tags, shown during `span_ms`."""

    span_ms: MillisSpan
    text: str


@dataclass(frozen=True, slots=True)
class Annotation:
    """A sign known to be at a frame: (x_k, v_k) in M of Paper 3."""

    video_id: str
    word: Word
    frame: int
    confidence: float = 1.0
    source: str = "human"  # mouthing, human, spotting, ...

    def __post_init__(self) -> None:
        if self.frame < 0:
            raise ValueError(f"{self.video_id}: annotation of {self.word!r} at frame {self.frame}")
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"{self.video_id}: confidence {self.confidence} of {self.word!r} is not between 0 and 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What the holder of a recording allows. What is not known is not allowed."""

    holder: str = ""
    licence: str = ""
    may_train: bool | None = None
    may_display: bool | None = None
    may_export_clips: bool | None = None
    may_share_embeddings: bool | None = None
    expires: date | None = None

    def allows(self, action: str, on: date) -> bool:
        """Whether `action` (train, display, export_clips, share_embeddings) is allowed on a day."""
        if self.expires is not None and on >= self.expires:
            return False
        allowed: bool | None = getattr(self, f"may_{action}")
        return allowed is True

    def forbid_training(self, on: date) -> bool:
        """Whether training is known not to be allowed, or no longer; saying nothing does not forbid it."""
        return self.may_train is False or (self.expires is not None and on >= self.expires)


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of video with its subtitle and annotations: (x_i, s_i) in S of Paper 3."""

    video_id: str
    span: FrameSpan
    subtitle: Subtitle
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One video of a corpus with everything known about it."""

    video_id: str
    video: Path
    subtitles: Path | None = None
    annotations: tuple[Annotation, ...] = ()
    signer: str = ""
    language: str = ""  # of the signing, BCP 47 / ISO 639-3 such as bfi, ase
    split: str = ""
    rights: Rights = field(default_factory=Rights)
    box: SignerBox | None = None  # where the signer is; None: not known


# The visual dictionary D: words, their variants, and the clips that show them.


@dataclass(frozen=True, slots=True)
class Signer:
    """A person who signs, by the id the owner of the recordings gave."""

    signer_id: str
    left_handed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One clip of one isolated sign: (x_j, v_j) in D of Paper 3."""

    entry_id: str
    word: Word
    variant: str = ""  # which form of the word's sign; "" where the source does not say
    video: Path | None = None  # None: only a stored vector is at hand
    signer: Signer | None = None
    language: str = ""  # of the signing, such as bfi, ase
    region: str = ""
    type_id: str = ""  # the sign's id in an external vocabulary (ELAN CVE_ID, Signbank ID)
    rights: Rights = field(default_factory=Rights)
    kept: FrameSpan | None = None  # the frames of the video that show the sign; None: all
    box: SignerBox | None = None  # where the signer is; None: not known
    features: Path | None = field(default=None, compare=False)  # holds the vector of an entry without a video

    def __post_init__(self) -> None:
        if not self.entry_id:
            raise ValueError(f"an entry of {self.word!r} without an id")
        if self.kept is not None and not 0 <= self.kept.start < self.kept.stop:
            raise ValueError(f"{self.entry_id}: no frames from {self.kept.start} to {self.kept.stop}")

    @property
    def is_learned(self) -> bool:
        """Whether it is one of a model's own: neither a clip nor a stored vector is at hand."""
        return self.video is None and self.features is None


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of a word's sign with all clips that show it."""

    word: Word
    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Word -> entries, in a fixed order."""

    name: str
    by_word: Mapping[Word, tuple[Entry, ...]]
    folder: Path | None = field(default=None, compare=False)  # where its manifest and stored vectors lie, if anywhere

    @classmethod
    def of(cls, name: str, entries: Iterable[Entry], folder: Path | None = None) -> Dictionary:
        """File entries under their words; words sorted, entries in the order given."""
        by_word: dict[Word, list[Entry]] = {}
        seen: set[str] = set()
        for entry in entries:
            if entry.entry_id in seen:
                raise ValueError(f"{name}: two entries have the id {entry.entry_id!r}")
            seen.add(entry.entry_id)
            by_word.setdefault(entry.word, []).append(entry)
        return cls(name, {word: tuple(by_word[word]) for word in sorted(by_word)}, folder)

    def __len__(self) -> int:
        return sum(len(entries) for entries in self.by_word.values())

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entries in self.by_word.values() for entry in entries)

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.by_word)

    def entries(self, word: Word) -> tuple[Entry, ...]:
        return self.by_word.get(word, ())

    def variants(self, word: Word) -> tuple[Variant, ...]:
        """The entries of `word` grouped by variant, in order of first appearance."""
        groups: dict[str, list[Entry]] = {}
        for entry in self.entries(word):
            groups.setdefault(entry.variant, []).append(entry)
        return tuple(Variant(word, name, tuple(entries)) for name, entries in groups.items())
