"""Arrays that know their axes: windows over frames, embeddings per window, similarities per window and entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Entry
from signspot.domain.time import FrameSpan, TimeAxis
from signspot.domain.words import Word

CLIP_LENGTH = 16  # Paper 3.2: the trunk takes 16 frames
LANDMARK_DIM = 258  # pose 33 x (x, y, z, visibility) + two hands of 21 x (x, y, z)

FloatArray = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Vectors = npt.NDArray[np.float32] | npt.NDArray[np.float16]  # halves where they lie on the disk
Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """The positions of a sliding window over a video (Paper 3.2, "Test time": stride 1).

    The last window is pulled back to end with the video, and a video shorter than a window has one window that covers
    all of it (the clip is then filled up with the last frame), as in the released demo.

    >>> grid = WindowGrid(n_frames=20, stride=3)
    >>> [grid.span(i).start for i in range(len(grid))]
    [0, 3, 4]
    """

    n_frames: int
    length: int = CLIP_LENGTH
    stride: int = 1

    def __post_init__(self) -> None:
        if self.n_frames < 0 or self.length < 1 or self.stride < 1:
            raise ValueError(f"no grid of {self.n_frames} frames, length {self.length}, stride {self.stride}")

    def __len__(self) -> int:
        if not self.n_frames:
            return 0
        return -(-max(0, self.n_frames - self.length) // self.stride) + 1

    def starts(self) -> npt.NDArray[np.int64]:
        last = max(0, self.n_frames - self.length)
        return np.minimum(np.arange(len(self), dtype=np.int64) * self.stride, last)

    def span(self, window: int) -> FrameSpan:
        start = self._start(window)
        return FrameSpan(start, min(start + self.length, self.n_frames))

    def centre(self, window: int) -> int:
        """The frame that stands for a window's time: start + 8 (deviation D7)."""
        return min(self._start(window) + self.length // 2, self.n_frames - 1)

    def _start(self, window: int) -> int:
        if not 0 <= window < len(self):
            raise IndexError(f"window {window} of {len(self)}")
        return min(window * self.stride, max(0, self.n_frames - self.length))


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingTrack:
    """The embeddings of one video, one row per window.

    A row that could not be embedded may be zero or not finite: comparing ignores it (see spotting.similarity). Vectors
    of a trunk, before the head, have any length and are not compared. Long tracks are memory maps of a file.
    """

    video_id: str
    grid: WindowGrid
    axis: TimeAxis
    vectors: Vectors  # (n_windows, d), rows of length 1
    fingerprint: str  # of the embedder: tracks of different fingerprints are never compared
    unit_rows: bool = True  # False: vectors of the trunk, of any length

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.grid):
            raise ValueError(f"{self.video_id}: {len(self.grid)} windows but vectors of shape {self.vectors.shape}")
        if len(self.axis) != self.grid.n_frames:
            raise ValueError(f"{self.video_id}: {self.grid.n_frames} frames but {len(self.axis)} times")


@dataclass(frozen=True, slots=True, eq=False)
class EntryVectors:
    """One vector per dictionary entry of a word (Paper 3.2, "Test time": a single embedding per video)."""

    word: Word
    entries: tuple[Entry, ...]
    vectors: FloatArray  # (n_entries, d), rows of length 1
    fingerprint: str

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.entries):
            raise ValueError(f"{self.word}: {len(self.entries)} entries but vectors of shape {self.vectors.shape}")


@dataclass(frozen=True, slots=True, eq=False)
class SimilarityTrack:
    """The cosine of every window of a video with every dictionary entry of a word (psi of Paper 3.1)."""

    word: Word
    video_id: str
    grid: WindowGrid
    axis: TimeAxis
    entries: tuple[Entry, ...]
    cosine: FloatArray  # (n_windows, n_entries) in [-1, 1]; -inf where a vector is unusable
    lengths: FloatArray | None = None  # (n_windows,) frames that look most like the best entry; None: as the grid's

    def __post_init__(self) -> None:
        if self.lengths is not None and self.lengths.shape != (len(self.grid),):
            raise ValueError(f"{self.video_id}: {len(self.grid)} windows but lengths of shape {self.lengths.shape}")
        if self.cosine.shape != (len(self.grid), len(self.entries)):
            raise ValueError(
                f"{self.video_id}: {len(self.grid)} windows and {len(self.entries)} entries of {self.word!r} "
                f"but cosines of shape {self.cosine.shape}"
            )
        if np.isnan(self.cosine).any():
            raise ValueError(f"{self.video_id}: cosines of {self.word!r} that are not numbers")

    @property
    def entry_ids(self) -> tuple[str, ...]:
        return tuple(entry.entry_id for entry in self.entries)

    @property
    def times_ms(self) -> npt.NDArray[np.float64]:
        """The media time of every window: that of its centre frame. (n_windows,)"""
        if not len(self.grid):
            return np.empty(0)
        return self.axis.times_ms[np.minimum(self.grid.starts() + self.grid.length // 2, self.grid.n_frames - 1)]

    @property
    def best(self) -> FloatArray:
        """The highest cosine of each window over the entries: (n_windows,)."""
        if not self.entries:
            return np.full(len(self.grid), -np.inf, dtype=np.float32)
        return np.asarray(self.cosine.max(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkTrack:
    """Body and hand landmarks of one video in the MediaPipe layout of 258 numbers a frame; zeros where not found."""

    video_id: str
    axis: TimeAxis
    points: FloatArray  # (n_frames, 258)

    def __post_init__(self) -> None:
        if self.points.shape != (len(self.axis), LANDMARK_DIM):
            raise ValueError(f"{self.video_id}: {len(self.axis)} frames but landmarks of shape {self.points.shape}")


@dataclass(frozen=True, slots=True)
class FrameShape:
    """How a frame is brought to the size a model takes: scaled, then cropped at the centre.

    `keep_aspect` scales the shorter side to `side` and crops; otherwise the picture is squashed to a square.
    `signer_box` looks at the square around the signer, where a recording says where that is.
    """

    side: int
    crop: int
    keep_aspect: bool = False
    signer_box: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.crop <= self.side:
            raise ValueError(f"cannot crop {self.crop} pixels from {self.side}")
        if self.signer_box and not self.keep_aspect:
            raise ValueError("signer_box needs keep_aspect: a recording without a box must look like one with it")


class Embedder(Protocol):
    """Turns clips into unit vectors: f of Paper 3.1. The one seam between pixels and numbers."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would: weights, preprocessing, precision."""

    @property
    def dim(self) -> int: ...

    @property
    def frame_shape(self) -> FrameShape: ...

    @property
    def threshold(self) -> float:
        """The lowest cosine that counts as found unless the user says otherwise."""

    def embed(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        """(n, 16, H, W, 3), uint8 or normalised float32 -> (n, dim) float32 rows of length 1."""


@runtime_checkable
class StagedEmbedder(Embedder, Protocol):
    """An embedder of two stages, so that vectors of the trunk can be averaged, stored, or made by somebody else."""

    def trunk_vectors(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        """(n, 16, H, W, 3) -> (n, trunk dim) float32."""

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        """Vectors of the trunk, or means of them (n, trunk dim), -> (n, dim) float32 rows of length 1."""

    @property
    def trunk_dim(self) -> int: ...
