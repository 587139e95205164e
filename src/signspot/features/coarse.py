"""Quick looks for somebody who waits: every fourth window first, then every window around the promising ones.

Every row it computes is the row that `embed_video` computes at stride 1, up to rounding; any other is a copy of the
nearest one that was computed, so that a curve has no gaps and no false peaks beside them. A cosine it reports is exact.
A peak is missed, or found up to three frames off, only if none of the coarse windows around it is among the best
`candidates` peaks of its query; neighbouring coarse windows share 12 of their 16 frames.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.boxes import SignerBox
from signspot.domain.corpus import Episode
from signspot.domain.tracks import CLIP_LENGTH, Embedder, EmbeddingTrack, FloatArray, Pixels, WindowGrid
from signspot.errors import VideoError
from signspot.features.extract import Extraction, ExtractOptions, Progress, embed_video, seen_box
from signspot.features.rows import RowFile
from signspot.media.reader import VideoReader

_WINDOWS_PER_BATCH = 8
_ROWS_AT_ONCE = 4096

Starts = npt.NDArray[np.int64]  # (n,) first frames of windows, rising


@dataclass(frozen=True, slots=True, kw_only=True)
class CoarseOptions:
    """How much is looked at closely."""

    stride: int = 4
    candidates: int = 12  # peaks of each query that are refined
    isolated: bool = True  # decode in a process of its own
    box: SignerBox | None = None  # as in ExtractOptions

    def __post_init__(self) -> None:
        if not 1 <= self.stride <= CLIP_LENGTH or self.candidates < 1:
            raise ValueError(f"nothing can be found with {self}")


def embed_near(
    episode: Episode,
    embedder: Embedder,
    queries: FloatArray,
    *,
    options: CoarseOptions = CoarseOptions(),
    progress: Progress | None = None,
) -> Extraction:
    """A track at stride 1 that is exact where one of `queries` (n, dim), unit rows, may be performed."""
    passes = _TwoPasses(progress)
    coarse = embed_video(
        episode,
        embedder,
        options=ExtractOptions(stride=options.stride, isolated=options.isolated, box=options.box),
        progress=passes.first,
    )
    track = coarse.track
    known = track.grid.starts()
    wanted = np.setdiff1d(starts_near(track, queries, options.candidates), known)
    rows = [track.vectors]
    if len(wanted):
        box = seen_box(episode, embedder, options.box)
        with VideoReader(episode.video, shape=embedder.frame_shape, box=box, isolated=options.isolated) as reader:
            frames = passes.second(reader)
            rows += [embedder.embed(clips) for clips in chosen_windows(frames, wanted)]
        if sum(map(len, rows)) != len(known) + len(wanted):
            raise VideoError(episode.video, "changed while it was being read", "run the same command again")
    order = np.argsort(starts := np.concatenate([known, wanted]))
    grid = WindowGrid(track.grid.n_frames)
    with RowFile(embedder.dim) as held:
        computed: FloatArray = np.concatenate(rows).astype(np.float32, copy=False)
        for some in np.array_split(order[nearest_of(starts[order], len(grid))], len(grid) // _ROWS_AT_ONCE + 1):
            held.append(computed[some])
        vectors = held.mapped()
    return Extraction(EmbeddingTrack(track.video_id, grid, track.axis, vectors, track.fingerprint), coarse.report)


def nearest_of(starts: Starts, n_windows: int) -> Starts:
    """For every window, which of `starts` (rising) is nearest; of two as near, the earlier. (n_windows,)

    >>> nearest_of(np.array([0, 4, 5]), 8).tolist()
    [0, 0, 0, 1, 1, 2, 2, 2]
    """
    # So the windows that hold a start's vector lie around it, and the middle of a flat top is the start itself.
    after = (starts[:-1] + starts[1:]) // 2 + 1  # from here on the next start is nearer
    return np.searchsorted(after, np.arange(n_windows), side="right")


def starts_near(track: EmbeddingTrack, queries: FloatArray, candidates: int) -> Starts:
    """The windows at stride 1 that overlap most with the best `candidates` peaks of each query on a coarse track."""
    cosine = np.nan_to_num(track.vectors @ queries.T, nan=-np.inf)  # (n_windows, n_queries)
    if not cosine.size:
        return np.empty(0, np.int64)
    padded = np.pad(cosine, ((1, 1), (0, 0)), constant_values=-np.inf)
    # Neighbours of a peak are high too: counted by themselves they would fill the list.
    peaks = np.where(cosine >= np.maximum(padded[:-2], padded[2:]), cosine, -np.inf)
    best = np.argsort(-peaks, axis=0, kind="stable")[:candidates]
    chosen = np.unique(best[np.isfinite(np.take_along_axis(peaks, best, axis=0))])
    reach = track.grid.stride - 1
    around = track.grid.starts()[chosen][:, None] + np.arange(-reach, reach + 1)
    last = max(0, track.grid.n_frames - track.grid.length)
    return np.unique(np.clip(around, 0, last))


def chosen_windows(frames: Iterable[Pixels], starts: Starts) -> Iterator[Pixels]:
    """Batches (n, 16, H, W, 3) of the windows that begin at `starts`; frames after the last of them are not read."""
    ends = deque((starts + CLIP_LENGTH - 1).tolist())
    latest: deque[Pixels] = deque(maxlen=CLIP_LENGTH)
    batch: list[Pixels] = []
    for number, frame in enumerate(frames):
        latest.append(frame)
        if ends and number == ends[0]:
            ends.popleft()
            batch.append(np.stack(latest))
        if len(batch) == _WINDOWS_PER_BATCH or (batch and not ends):
            yield np.stack(batch)
            batch = []
        if not ends:
            return


class _TwoPasses:
    """Progress over a video that is read twice: it never goes back."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._reached_ms = 0.0

    def first(self, done_ms: float, expected_ms: float | None) -> None:
        self._reached_ms = done_ms
        if self._progress is not None:
            self._progress(done_ms, None if expected_ms is None else 2 * expected_ms)

    def second(self, reader: VideoReader) -> Iterator[Pixels]:
        first_ms, expected_ms = self._reached_ms, reader.info.duration_ms
        for frame in reader:
            if self._progress is not None:
                self._progress(first_ms + frame.time_ms, None if expected_ms is None else 2 * expected_ms)
            yield frame.pixels
