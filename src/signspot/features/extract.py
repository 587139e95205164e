"""Media and a model in, tracks out, streaming: memory does not grow with the length of the video.

Frames are read one at a time and the vectors of finished windows go to the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from signspot.domain.boxes import SignerBox
from signspot.domain.corpus import Episode
from signspot.domain.dictionary import Entry
from signspot.domain.tracks import (
    CLIP_LENGTH,
    Embedder,
    EmbeddingTrack,
    FloatArray,
    LandmarkTrack,
    Pixels,
    StagedEmbedder,
    WindowGrid,
)
from signspot.errors import VideoError
from signspot.features.rows import RowFile
from signspot.features.stages import Stage, for_dictionary, stage_vectors
from signspot.media.reader import ReadReport, VideoReader, media_sha256
from signspot.media.sampling import consecutive_clips, random_clips

if TYPE_CHECKING:
    from signspot.models.embedder import VideoEmbedder
    from signspot.models.landmark_embedder import LandmarkEmbedder

WINDOWS_PER_BATCH = 64
LONGEST_ENTRY_FRAMES = 25 * 120  # a dictionary clip shows one sign: two minutes is generous

Numbers = npt.NDArray[Any]  # what is known of one frame: pixels, landmarks
Sampling = Literal["random", "consecutive"]
Progress = Callable[[float, float | None], None]  # called with media time done and, if known, expected, both in ms


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """How a video is read and cut into windows."""

    stride: int = 1  # Paper 3.2, "Test time"
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing
    stage: Stage = "embedding"  # "trunk": vectors before the head
    box: SignerBox | None = None  # what any model is to look at; None: the video's own box, if the model is for boxes


@dataclass(frozen=True, slots=True)
class Extraction:
    """The embeddings of a video and what was noticed while reading it."""

    track: EmbeddingTrack
    report: ReadReport


def seen_box(recording: Episode | Entry, model: Embedder, asked: SignerBox | None = None) -> SignerBox | None:
    """The part of its pictures that a model looks at: what was asked for, else what the model was trained to see."""
    return asked or (recording.box if model.frame_shape.signer_box else None)


def embed_video(
    episode: Episode,
    embedder: Embedder,
    *,
    options: ExtractOptions = ExtractOptions(),
    rows: RowFile | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Slide a 16-frame window over the whole video and embed every position.

    Vectors are appended to `rows` (default: float32 in a temporary file) and the track is a memory map of them; rows
    that are there already, from a run that was cut short, are not computed again.
    """
    made = stage_vectors(embedder, options.stage)
    if rows is None:
        with RowFile(made.dim) as temporary:
            return embed_video(episode, embedder, options=options, rows=temporary, progress=progress)
    box = seen_box(episode, embedder, options.box)
    with VideoReader(episode.video, shape=embedder.frame_shape, box=box, isolated=options.isolated) as reader:
        # The windows that are left are those of the frames that are left.
        frames = islice(_reported(reader, progress), len(rows) * options.stride, None)
        for vectors in _vectors(frames, embedder, options):
            rows.append(vectors)
        report = reader.report
    grid, is_final = WindowGrid(len(report.axis), stride=options.stride), options.stage == "embedding"
    if len(rows) != len(grid):
        raise VideoError(episode.video, "gave other frames than the last time", "run the same command again")
    track = EmbeddingTrack(episode.video_id, grid, report.axis, rows.mapped(), made.fingerprint, unit_rows=is_final)
    return Extraction(track, report)


def embed_landmarks(
    track: LandmarkTrack, embedder: LandmarkEmbedder, *, stride: int = 1, stage: Stage = "embedding"
) -> EmbeddingTrack:
    """The same windows over the landmarks of a video, which somebody has detected."""
    made, grid = stage_vectors(embedder, stage), WindowGrid(len(track.axis), stride=stride)
    with RowFile(made.dim) as rows:
        for clips in window_batches(track.points, stride):
            rows.append(embedder.trunk_vectors(clips) if stage == "trunk" else embedder.embed(clips))
        return EmbeddingTrack(track.video_id, grid, track.axis, rows.mapped(), made.fingerprint, stage == "embedding")


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """How a dictionary clip becomes one vector."""

    seed: int = 0
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing
    sampling: Sampling = "random"  # "consecutive" is the ablation of Paper App. C.1: random shift only
    stage: Stage = "embedding"  # "trunk": the mean of the trunk's vectors, (trunk dim,)


def embed_entry(entry: Entry, embedder: Embedder, options: EntryOptions = EntryOptions()) -> FloatArray:
    """One vector (dim,) for a dictionary clip: the mean over clips at random speed and shift (Paper 3.2).

    A model with a trunk and a head takes the mean before the head, as in the paper. The draw depends on the seed and
    the content of the clip only, so it has the same vector in every run, in any order, and under any name.
    """
    if entry.video is None:
        raise VideoError(
            entry.entry_id, "the dictionary has no video for this entry", "add the clip, or remove the entry"
        )
    stage_vectors(embedder, options.stage)  # refuses what has no such stage before anything is read
    embedder = for_dictionary(embedder)
    box = seen_box(entry, embedder)
    with VideoReader(entry.video, shape=embedder.frame_shape, box=box, isolated=options.isolated) as reader:
        frames = [frame.pixels for frame, _ in zip(reader, range(LONGEST_ENTRY_FRAMES + 1), strict=False)]
    if len(frames) > LONGEST_ENTRY_FRAMES:
        raise VideoError(
            entry.video, "is longer than two minutes: a dictionary clip shows one sign", "cut the sign out"
        )
    if entry.kept is not None:
        if entry.kept.stop > len(frames):
            what = f"has {len(frames)} frames, but its dictionary keeps frames {entry.kept.start} to {entry.kept.stop}"
            raise VideoError(entry.video, what, "correct kept_start and kept_stop, or build the dictionary again")
        frames = frames[entry.kept.start : entry.kept.stop]
    rng = np.random.default_rng([options.seed, *bytes.fromhex(media_sha256(entry.video))])
    chosen = random_clips if options.sampling == "random" else consecutive_clips
    clips = np.stack(frames)[chosen(len(frames), rng)]
    vectors = embedder.trunk_vectors(clips) if isinstance(embedder, StagedEmbedder) else embedder.embed(clips)
    mean: FloatArray = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    if options.stage == "trunk" or not isinstance(embedder, StagedEmbedder):
        return mean
    vector: FloatArray = embedder.head_vectors(mean[None])[0]
    return vector


def window_batches(frames: Iterable[Numbers], stride: int, per_batch: int = WINDOWS_PER_BATCH) -> Iterator[Numbers]:
    """Cut a stream of frames, such as (H, W, 3), into batches of windows (n, 16, H, W, 3), as `WindowGrid` orders them.

    Windows of a batch are views of the same frames; a frame is copied once per batch, not once per window.
    """
    pending: list[Numbers] = []  # the frames from number `first` on
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


def _vectors(frames: Iterable[Pixels], embedder: Embedder, options: ExtractOptions) -> Iterator[FloatArray]:
    """The rows of a track, in the order of `WindowGrid`."""
    if not isinstance(embedder, StagedEmbedder):
        yield from (embedder.embed(clips) for clips in window_batches(frames, options.stride))
        return
    for vectors in _trunk_vectors(frames, embedder, options.stride):
        yield vectors if options.stage == "trunk" else embedder.head_vectors(vectors)


def _trunk_vectors(frames: Iterable[Pixels], embedder: StagedEmbedder, stride: int) -> Iterator[FloatArray]:
    # torch takes seconds to load, and only networks need it.
    from signspot.features.shared import is_shareable
    from signspot.models.embedder import VideoEmbedder

    if isinstance(embedder, VideoEmbedder) and is_shareable(embedder, stride):
        yield from _shared_rows(frames, embedder, stride)
    else:
        yield from (embedder.trunk_vectors(clips) for clips in window_batches(frames, stride))


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
        yield vectors
    if n_windows < len(WindowGrid(n_frames, stride=stride)):
        # A last window that is pulled back, or filled up, is none of those.
        yield from (embedder.trunk_vectors(clips) for clips in window_batches(latest, stride=1))


def _windows(frames: list[Numbers], starts: npt.NDArray[np.int64]) -> Numbers:
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
