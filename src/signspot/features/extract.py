"""Media and a model in, tracks out, streaming: memory does not grow with the length of the video."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from signspot.domain.corpus import Episode
from signspot.domain.dictionary import Entry
from signspot.domain.tracks import CLIP_LENGTH, Embedder, EmbeddingTrack, FloatArray, Pixels, StagedEmbedder, WindowGrid
from signspot.errors import VideoError
from signspot.media.reader import ReadReport, VideoReader, media_sha256
from signspot.media.sampling import consecutive_clips, random_clips

if TYPE_CHECKING:
    from signspot.models.embedder import VideoEmbedder

WINDOWS_PER_BATCH = 64
LONGEST_ENTRY_FRAMES = 25 * 120  # a dictionary clip shows one sign: two minutes is generous

Sampling = Literal["random", "consecutive"]
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
        vectors = list(_vectors(frames, embedder, options.stride))
        report = reader.report
    grid = WindowGrid(len(report.axis), stride=options.stride)
    stacked = np.concatenate(vectors) if vectors else np.empty((0, embedder.dim), dtype=np.float32)
    return Extraction(EmbeddingTrack(episode.video_id, grid, report.axis, stacked, embedder.fingerprint), report)


def embed_entry(
    entry: Entry, embedder: Embedder, *, seed: int = 0, isolated: bool = True, sampling: Sampling = "random"
) -> FloatArray:
    """One vector (dim,) for a dictionary clip: the mean over clips at random speed and shift (Paper 3.2).

    A model with a trunk and a head takes the mean before the head, as in the paper. `consecutive` is the ablation of
    Paper App. C.1: random shift only. The draw depends on the seed and the content of the clip only, so it has the same
    vector in every run, in any order, and under any name.
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
    rng = np.random.default_rng([seed, *bytes.fromhex(media_sha256(entry.video))])
    numbers = random_clips(len(frames), rng) if sampling == "random" else consecutive_clips(len(frames), rng)
    clips = np.stack(frames)[numbers]
    vectors = embedder.trunk_vectors(clips) if isinstance(embedder, StagedEmbedder) else embedder.embed(clips)
    mean: FloatArray = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    return embedder.head_vectors(mean[None])[0] if isinstance(embedder, StagedEmbedder) else mean


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


def _vectors(frames: Iterable[Pixels], embedder: Embedder, stride: int) -> Iterator[FloatArray]:
    """The rows of a track, in the order of `WindowGrid`."""
    if isinstance(embedder, StagedEmbedder):
        # torch takes seconds to load, and only networks need it.
        from signspot.features.shared import is_shareable
        from signspot.models.embedder import VideoEmbedder

        if isinstance(embedder, VideoEmbedder) and is_shareable(embedder, stride):
            yield from _shared_rows(frames, embedder, stride)
            return
    yield from (embedder.embed(clips) for clips in window_batches(frames, stride))


def _shared_rows(frames: Iterable[Pixels], embedder: VideoEmbedder, stride: int) -> Iterator[FloatArray]:
    from signspot.features.shared import shared_vectors

    latest: deque[Pixels] = deque(maxlen=CLIP_LENGTH)
    n_frames = n_windows = 0

    def remembered() -> Iterator[Pixels]:
        nonlocal n_frames
        for frame in frames:
            latest.append(frame)
            n_frames += 1
            yield frame

    for vectors in shared_vectors(remembered(), embedder, stride):
        n_windows += len(vectors)
        yield embedder.head_vectors(vectors)
    if n_windows < len(WindowGrid(n_frames, stride=stride)):
        # A last window that is pulled back, or filled up, is none of those.
        yield from (embedder.embed(clips) for clips in window_batches(latest, stride=1))


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
