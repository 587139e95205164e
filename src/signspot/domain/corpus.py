"""Continuous footage: subtitles (s), sparse annotations (M), passages (S), and who may do what with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from signspot.domain.boxes import SignerBox
from signspot.domain.spans import FrameSpan, MillisSpan
from signspot.domain.words import Word


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
