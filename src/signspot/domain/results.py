"""Answers: where a sign was found, how sure we are, and where the answer comes from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from signspot.domain.recordings import Subtitle, Word
from signspot.domain.time import MillisSpan
from signspot.domain.tracks import SimilarityTrack


class Band(Enum):
    """How far an answer can be believed, for people: each word means the same in every command."""

    LIKELY = "likely"  # right in two of three cases, or more often
    POSSIBLE = "possible"
    UNLIKELY = "unlikely"  # right in less than one of four cases

    @classmethod
    def of(cls, probability: float) -> Band:
        if probability >= _LIKELY:
            return cls.LIKELY
        return cls.POSSIBLE if probability >= _POSSIBLE else cls.UNLIKELY


_LIKELY, _POSSIBLE = 2 / 3, 1 / 4


@dataclass(frozen=True, slots=True)
class Presence:
    """A calibrated probability that the sign is there, and which calibration gave it."""

    probability: float
    calibration: str

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError(f"presence {self.probability} is out of range: use 0 to 1")

    @property
    def band(self) -> Band:
        return Band.of(self.probability)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What an answer rests on."""

    media_sha256: str
    model: str
    fingerprint: str
    dictionary: str
    source: str = "lookup"  # watch, read, lookup, mouthing, human
    subtitle: Subtitle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spotting:
    """A sign found in a video: the argmax of psi over time and variants (Paper 3.2, "Test time")."""

    video_id: str
    span_ms: MillisSpan
    frame: int  # the centre of the window, at 25 fps
    word: Word
    entry_id: str
    variant: str = ""
    type_id: str = ""  # of the entry, in an external vocabulary
    cosine: float
    presence: Presence | None = None  # None: uncalibrated
    provenance: Provenance

    @property
    def spotting_id(self) -> str:
        """The same for the same finding, on any machine and in any run."""
        source = self.provenance
        parts = [source.media_sha256, str(self.span_ms.start), str(self.span_ms.stop), self.type_id or self.word]
        parts += [source.fingerprint, source.dictionary]
        return "spot:" + hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class WordAnswer:
    """All findings of one word in one video, possibly none: "not found" is an answer."""

    similarity: SimilarityTrack
    spottings: tuple[Spotting, ...]
    searched_ms: tuple[MillisSpan, ...] | None = None  # None: the whole video
    presence: Presence | None = None  # that the word is signed anywhere in what was searched; None: uncalibrated

    @property
    def word(self) -> Word:
        return self.similarity.word

    @property
    def best_cosine(self) -> float | None:
        """The highest cosine anywhere, found or not; None if nothing could be compared."""
        best = self.similarity.best
        highest = float(best.max()) if len(best) else float("-inf")
        return highest if highest >= -1.001 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoAnswer:
    """What was found in one video; iterating gives the spottings in order of time."""

    video_id: str
    words: tuple[WordAnswer, ...] = field(repr=False)
    duration_ms: int  # of what could be decoded
    threshold: float  # the lowest cosine that counted as found
    partial: str = ""  # such as "partial, 3:52 of 42:00" where the file is damaged
    warnings: tuple[str, ...] = ()
    least_presence: float | None = None  # the lowest probability that counted as found; None: the cosine decided
    false_alarms: float | None = None  # per word and hour, as many as this gave where the truth was known

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise ValueError(f"{self.video_id}: a threshold of {self.threshold} is out of range: use -1 to 1")

    def __iter__(self) -> Iterator[Spotting]:
        found = (spotting for word in self.words for spotting in word.spottings)
        return iter(sorted(found, key=lambda s: (s.span_ms, s.word)))


def told_bands(spottings: Iterable[Spotting]) -> str:
    """How many findings each band has, such as " (5 likely, 2 possible)"; nothing where no probability is known."""
    counts = Counter(one.presence.band for one in spottings if one.presence is not None)
    named = ", ".join(f"{counts[band]} {band.value}" for band in Band if counts[band])
    return f" ({named})" if named else ""
