"""The visual dictionary D: words, their variants, and the clips that show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from signspot.domain.boxes import SignerBox
from signspot.domain.corpus import Rights
from signspot.domain.spans import FrameSpan
from signspot.domain.words import Vocabulary, Word


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
    video: Path | None = None  # None: only stored features are at hand
    signer: Signer | None = None
    language: str = ""  # of the signing, such as bfi, ase
    region: str = ""
    type_id: str = ""  # the sign's id in an external vocabulary (ELAN CVE_ID, Signbank ID)
    rights: Rights = field(default_factory=Rights)
    kept: FrameSpan | None = None  # the frames of the video that show the sign; None: all
    box: SignerBox | None = None  # where the signer is; None: not known

    def __post_init__(self) -> None:
        if not self.entry_id:
            raise ValueError(f"an entry of {self.word!r} without an id")
        if self.kept is not None and not 0 <= self.kept.start < self.kept.stop:
            raise ValueError(f"{self.entry_id}: no frames from {self.kept.start} to {self.kept.stop}")


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
        """The words it holds, sorted."""
        return Vocabulary.of(self.by_word)

    def entries(self, word: Word) -> tuple[Entry, ...]:
        """All entries of `word`; none if it is unknown."""
        return self.by_word.get(word, ())

    def variants(self, word: Word) -> tuple[Variant, ...]:
        """The entries of `word` grouped by variant, in order of first appearance."""
        groups: dict[str, list[Entry]] = {}
        for entry in self.entries(word):
            groups.setdefault(entry.variant, []).append(entry)
        return tuple(Variant(word, name, tuple(entries)) for name, entries in groups.items())
