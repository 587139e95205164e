"""Recordings and what is known of them: where the signer is, rights, videos of a corpus, entries of a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from datetime import date
from pathlib import Path

from signspot.domain.time import FrameSpan, MillisSpan
from signspot.domain.words import Vocabulary, Word


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
