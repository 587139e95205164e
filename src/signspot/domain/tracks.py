"""Arrays that know their axes: windows over frames, embeddings per window, similarities per window and entry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Entry, Word
from signspot.domain.time import FrameSpan, TimeAxis

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

    A row that could not be embedded may be zero or not finite: comparing ignores it (see spotting.search). Vectors
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


# The points of a body and of a hand, by the names that MediaPipe gives them, and landmarks that know their picture.
#
# A frame is 258 numbers: pose 33 x (x, y, z, visibility), left hand 21 x (x, y, z), right hand 21 x (x, y, z). x and y
# are fractions of the picture's width and height, z is in picture widths. What was not found is zero.


POSE_POINTS = (
    "NOSE", "LEFT_EYE_INNER", "LEFT_EYE", "LEFT_EYE_OUTER", "RIGHT_EYE_INNER", "RIGHT_EYE", "RIGHT_EYE_OUTER",
    "LEFT_EAR", "RIGHT_EAR", "MOUTH_LEFT", "MOUTH_RIGHT", "LEFT_SHOULDER", "RIGHT_SHOULDER", "LEFT_ELBOW",
    "RIGHT_ELBOW", "LEFT_WRIST", "RIGHT_WRIST", "LEFT_PINKY", "RIGHT_PINKY", "LEFT_INDEX", "RIGHT_INDEX",
    "LEFT_THUMB", "RIGHT_THUMB", "LEFT_HIP", "RIGHT_HIP", "LEFT_KNEE", "RIGHT_KNEE", "LEFT_ANKLE", "RIGHT_ANKLE",
    "LEFT_HEEL", "RIGHT_HEEL", "LEFT_FOOT_INDEX", "RIGHT_FOOT_INDEX",
)  # fmt: skip
_FINGERS = ("INDEX_FINGER", "MIDDLE_FINGER", "RING_FINGER", "PINKY")
HAND_POINTS = (
    "WRIST",
    *(f"THUMB_{joint}" for joint in ("CMC", "MCP", "IP", "TIP")),
    *(f"{finger}_{joint}" for finger in _FINGERS for joint in ("MCP", "PIP", "DIP", "TIP")),
)
POSE_LIMBS = (
    (0, 1), (0, 4), (1, 2), (2, 3), (3, 7), (4, 5), (5, 6), (6, 8), (9, 10), (11, 12), (11, 13), (11, 23), (12, 14),
    (12, 24), (13, 15), (14, 16), (15, 17), (15, 19), (15, 21), (16, 18), (16, 20), (16, 22), (17, 19), (18, 20),
    (23, 24), (23, 25), (24, 26), (25, 27), (26, 28), (27, 29), (27, 31), (28, 30), (28, 32), (29, 31), (30, 32),
)  # fmt: skip
HAND_LIMBS = (
    (0, 1), (0, 5), (0, 17), (1, 2), (2, 3), (3, 4), (5, 6), (5, 9), (6, 7), (7, 8), (9, 10), (9, 13), (10, 11),
    (11, 12), (13, 14), (13, 17), (14, 15), (15, 16), (17, 18), (18, 19), (19, 20),
)  # fmt: skip
POSE_NUMBERS = 4 * len(POSE_POINTS)
HAND_NUMBERS = 3 * len(HAND_POINTS)
# Where the x of each point lies in the 258 numbers; y and z follow it.
X_PLACES = np.r_[np.arange(0, POSE_NUMBERS, 4), np.arange(POSE_NUMBERS, LANDMARK_DIM, 3)]


@dataclass(frozen=True, slots=True, eq=False)
class SignerLandmarks:
    """The landmarks of a signer and the size of the picture, in pixels, that they are fractions of."""

    track: LandmarkTrack
    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise ValueError(f"{self.track.video_id}: a picture of {self.width} x {self.height} pixels")

    @property
    def aspect(self) -> float:
        return self.width / self.height


def in_picture_heights(points: FloatArray, aspect: float) -> FloatArray:
    """Landmarks (n, 258) in fractions of a picture -> x, y, z all in picture heights; `aspect` is width / height."""
    scaled = np.array(points, dtype=np.float32)
    scaled[:, X_PLACES] *= aspect
    scaled[:, X_PLACES + 2] *= aspect  # z has the unit of x
    return scaled


def unit(vectors: FloatArray) -> FloatArray:
    """Rows (..., d) brought to length 1; a row of zeros, or of what is no number, becomes zeros."""
    finite = np.where(np.isfinite(vectors).all(axis=-1, keepdims=True), vectors, 0).astype(np.float32)
    length = np.linalg.norm(finite, axis=-1, keepdims=True)
    return (finite / np.where(length > 0, length, 1)).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class RateTrack(EmbeddingTrack):
    """Embeddings of the usual windows, and of shorter and longer ones; whichever resembles an entry most counts."""

    other_rates: tuple[Vectors, ...] = ()  # each (n_windows, d), rows of length 1, or zero where nobody is seen
    lengths: tuple[int, ...] = ()  # frames of the usual windows, then of the others; empty: unknown

    def __post_init__(self) -> None:
        EmbeddingTrack.__post_init__(self)
        if any(vectors.shape != self.vectors.shape for vectors in self.other_rates):
            raise ValueError(f"{self.video_id}: vectors of other rates of another shape than {self.vectors.shape}")
        if len(self.lengths) not in (0, 1 + len(self.other_rates)):
            raise ValueError(f"{self.video_id}: {len(self.lengths)} lengths of {1 + len(self.other_rates)} rates")


def rates_of(track: EmbeddingTrack) -> tuple[Vectors, ...]:
    """The vectors of a track for every length of window that it has: the usual one, then the others."""
    return (track.vectors, *track.other_rates) if isinstance(track, RateTrack) else (track.vectors,)


def lengths_of(track: EmbeddingTrack) -> tuple[int, ...]:
    """The frames of each of `rates_of`, where there are several."""
    return track.lengths if isinstance(track, RateTrack) else ()
