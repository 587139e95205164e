"""Media and a model in, tracks out, streaming: memory does not grow with the length of the video."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.corpus import Episode
from signspot.domain.dictionary import Entry
from signspot.domain.tracks import CLIP_LENGTH, Embedder, EmbeddingTrack, FloatArray, Pixels, WindowGrid
from signspot.errors import VideoError
from signspot.media.reader import ReadReport, VideoReader
from signspot.media.sampling import random_clips

WINDOWS_PER_BATCH = 64
LONGEST_ENTRY_FRAMES = 25 * 120  # a dictionary clip shows one sign: two minutes is generous

Progress = Callable[[float, float | None], None]  # called with media time done and, if known, expected, both in ms


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """How a video is read and cut into windows."""

    stride: int = 1  # Paper 3.2, "Test time"
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing


@dataclass(frozen=True, slots=True)
class Extraction:
    """The embeddings of a video and what was noticed while reading it."""

    track: EmbeddingTrack
    report: ReadReport


def embed_video(
    episode: Episode,
    embedder: Embedder,
    *,
    options: ExtractOptions = ExtractOptions(),
    progress: Progress | None = None,
) -> Extraction:
    """Slide a 16-frame window over the whole video and embed every position."""
    with VideoReader(episode.video, shape=embedder.frame_shape, isolated=options.isolated) as reader:
        frames = _reported(reader, progress)
        vectors = [embedder.embed(clips) for clips in window_batches(frames, options.stride)]
        report = reader.report
    grid = WindowGrid(len(report.axis), stride=options.stride)
    stacked = np.concatenate(vectors) if vectors else np.empty((0, embedder.dim), dtype=np.float32)
    return Extraction(EmbeddingTrack(episode.video_id, grid, report.axis, stacked, embedder.fingerprint), report)


def embed_entry(entry: Entry, embedder: Embedder, *, seed: int = 0, isolated: bool = True) -> FloatArray:
    """One vector for a dictionary clip: the mean over clips at random speed and shift (Paper 3.2).

    The draw depends on the seed and the entry only, so an entry has the same vector in every run and in any order.
    """
    if entry.video is None:
        raise VideoError(
            entry.entry_id, "the dictionary has no video for this entry", "add the clip, or remove the entry"
        )
    with VideoReader(entry.video, shape=embedder.frame_shape, isolated=isolated) as reader:
        frames = [frame.pixels for frame, _ in zip(reader, range(LONGEST_ENTRY_FRAMES + 1), strict=False)]
    if len(frames) > LONGEST_ENTRY_FRAMES:
        raise VideoError(
            entry.video, "is longer than two minutes: a dictionary clip shows one sign", "cut the sign out"
        )
    rng = np.random.default_rng([seed, *entry.entry_id.encode()])
    clips = np.stack(frames)[random_clips(len(frames), rng)]
    mean: FloatArray = embedder.embed(clips).mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean


def window_batches(frames: Iterable[Pixels], stride: int, per_batch: int = WINDOWS_PER_BATCH) -> Iterator[Pixels]:
    """Cut a stream of (H, W, 3) frames into batches of windows (n, 16, H, W, 3), in the order of `WindowGrid`.

    Windows of a batch are views of the same frames; a frame is copied once per batch, not once per window.
    """
    pending: list[Pixels] = []  # the frames from number `first` on
    first, emitted, n_frames = 0, 0, 0
    for frame in frames:
        pending.append(frame)
        n_frames += 1
        if n_frames == (emitted + per_batch - 1) * stride + CLIP_LENGTH:
            yield _windows(pending, np.arange(emitted, emitted + per_batch) * stride - first)
            emitted += per_batch
            # The video's last window may be pulled back by up to a stride, so those frames stay.
            kept = emitted * stride - (stride - 1)
            pending, first = pending[kept - first :], kept
    starts = WindowGrid(n_frames, stride=stride).starts()[emitted:]
    if len(starts):
        fill = [pending[-1]] * max(0, CLIP_LENGTH - len(pending))  # as released: the last frame repeats
        yield _windows(pending + fill, starts - first)


def _windows(frames: list[Pixels], starts: npt.NDArray[np.int64]) -> Pixels:
    every = np.lib.stride_tricks.sliding_window_view(np.stack(frames), CLIP_LENGTH, axis=0)
    if len(starts) > 1 and len(set(np.diff(starts).tolist())) == 1:
        every = every[starts[0] : starts[-1] + 1 : starts[1] - starts[0]]  # a view: nothing is copied
    else:
        every = every[starts]
    return np.moveaxis(every, -1, 1)


def _reported(reader: VideoReader, progress: Progress | None) -> Iterator[Pixels]:
    for frame in reader:
        if progress is not None:
            progress(frame.time_ms, reader.info.duration_ms)
        yield frame.pixels
