"""Where training clips come from: 16 frames, as pixels or as landmarks, drawn anew each time they are asked for.

A clip is (16, H, W, 3) uint8 or (16, 258) float32. A recording is the same without the limit on its length: an array in
memory, a memory map, anything that gives rows. Every clip is drawn inside a span of its recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import CLIP_LENGTH, FloatArray, Pixels, WindowGrid
from signspot.media.sampling import FrameNumbers, random_clips

Frames = Pixels | FloatArray  # (n, H, W, 3) uint8, or (n, 258) float32

_TEST_STRIDE = CLIP_LENGTH // 2  # of the released evaluation: half a window


class ClipSource(Protocol):
    """Labelled clips, by number."""

    def __len__(self) -> int: ...

    def name(self, i: int) -> str:
        """What to call clip `i` in a message."""

    def label(self, i: int) -> int:
        """The word of clip `i`, as its place in the vocabulary."""

    def confidence(self, i: int) -> float:
        """How sure the label is, from 0 to 1."""

    def clip(self, i: int, rng: np.random.Generator) -> Frames:
        """16 frames, drawn at random: (16, H, W, 3) uint8 or (16, 258) float32."""

    def test_clips(self, i: int) -> Frames:
        """All clips that speak for `i` when it is tested, without chance: (n, 16, ...), n >= 1."""


@dataclass(frozen=True, slots=True)
class ClipPlace:
    """Where a labelled sign lies: these rows of this recording."""

    name: str
    label: int
    recording: int
    span: FrameSpan
    confidence: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipWindow:
    """The frames around an annotation from which its clips are drawn: [frame - before, frame + after).

    The default is that of the released trainer, whose clips end where the annotation is (Paper App. B.7, "the last 20
    frames"); `after=5` covers the whole tolerance of Paper 4.2.
    """

    before: int = 20
    after: int = 0

    def __post_init__(self) -> None:
        if min(self.before, self.after) < 0 or self.before + self.after < CLIP_LENGTH:
            raise ValueError(f"no clip of {CLIP_LENGTH} frames fits into {self.before} before to {self.after} after")

    def around(self, frame: int) -> FrameSpan:
        """Room for at least one clip, from frame 0 on; its end may lie behind the end of a video.

        >>> ClipWindow().around(100), ClipWindow().around(7)
        (FrameSpan(start=80, stop=100), FrameSpan(start=0, stop=16))
        """
        start = max(0, frame - self.before)
        return FrameSpan(start, max(frame + self.after, start + CLIP_LENGTH))


@dataclass(frozen=True, slots=True, eq=False)
class RecordedClips:
    """Clips drawn at a random shift and, up to `max_speed`, a random speed from spans of recordings."""

    recordings: Sequence[Frames]
    places: tuple[ClipPlace, ...]
    max_speed: float = 1.0  # 1: neighbouring frames; for isolated signs see media.sampling.MAX_SPEED

    def __post_init__(self) -> None:
        for place in self.places:
            if not 0 <= place.recording < len(self.recordings) or place.span.start < 0 or not len(place.span):
                raise ValueError(f"{place.name}: no clip can be taken from {place}")

    @classmethod
    def whole(cls, recordings: Sequence[Frames], labels: Sequence[int], *, max_speed: float = 1.0) -> RecordedClips:
        """Every recording shows one sign from its first frame to its last."""
        places = tuple(
            ClipPlace(f"recording {i}", label, i, FrameSpan(0, len(recordings[i]))) for i, label in enumerate(labels)
        )
        return cls(recordings, places, max_speed)

    def __len__(self) -> int:
        return len(self.places)

    def name(self, i: int) -> str:
        """What to call clip `i` in a message."""
        return self.places[i].name

    def label(self, i: int) -> int:
        """The word of clip `i`, as its place in the vocabulary."""
        return self.places[i].label

    def confidence(self, i: int) -> float:
        """How sure the label is, from 0 to 1."""
        return self.places[i].confidence

    def clip(self, i: int, rng: np.random.Generator) -> Frames:
        """16 frames of the span, in order; a span shorter than that is filled up with its last frame."""
        place = self.places[i]
        numbers = random_clips(len(place.span), rng, max_speed=self.max_speed)[0]
        return self._frames(place, numbers)

    def test_clips(self, i: int) -> Frames:
        """Windows at half their length over the span; isolated signs as they are embedded, at fixed random speeds."""
        place = self.places[i]
        if self.max_speed > 1:
            numbers = random_clips(len(place.span), np.random.default_rng(i), max_speed=self.max_speed)
        else:
            numbers = _windows(len(place.span))
        return self._frames(place, numbers)

    def _frames(self, place: ClipPlace, numbers: FrameNumbers) -> Frames:
        recording = self.recordings[place.recording]
        if place.span.stop > len(recording):
            raise ValueError(f"{place.name}: {place.span} of a recording of {len(recording)} frames")
        rows = numbers + place.span.start
        return recording[rows].view(np.ndarray)  # a plain array, also from a memory map


def _windows(n_frames: int) -> FrameNumbers:
    starts = WindowGrid(n_frames, stride=_TEST_STRIDE).starts()
    windows: FrameNumbers = np.minimum(starts[:, None] + np.arange(CLIP_LENGTH), n_frames - 1)
    return windows
