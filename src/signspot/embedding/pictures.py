"""Models that see pictures: a window of 16 frames becomes one vector.

Memory does not grow with the length of a video: frames are read one at a time, and vectors of finished windows go to
the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Entry, Episode, SignerBox, Word
from signspot.domain.time import FRAME_MS, FRAME_RATE, MediaProgress
from signspot.domain.tracks import CLIP_LENGTH, EmbeddingTrack, FloatArray, FrameShape, Ints, Pixels, WindowGrid
from signspot.embedding.model import (
    COLOUR_MODEL,
    LONGEST_SECONDS,
    Lexicon,
    Reading,
    RecordedSign,
    VideoTrack,
    Views,
    damage_of,
    faults_of,
    filed_under,
    refuse_landmark_file,
)
from signspot.errors import InputError, Notice, VideoError
from signspot.media.frames import cut_square, random_clips, shape_frame, thumbnail
from signspot.media.reader import VideoReader
from signspot.media.trim import trim_by_motion, trim_clip
from signspot.media.video import ReadReport, media_sha256
from signspot.stores.dictionary import EntryFeatures
from signspot.stores.features import FeatureStore, Remarks, RowFile, TrackKey, as_stored, row_blocks

if TYPE_CHECKING:
    from signspot.models.embedders import VideoEmbedder

WINDOWS_PER_BATCH = 64
LONGEST_ENTRY_FRAMES = FRAME_RATE * 120  # a dictionary clip shows one sign: two minutes is generous
STORED_KIND = "i3d"  # vectors of the trunk: the head of the model at hand makes embeddings of them
QUICK_LOOK = "a quick look: of most of the video only every fourth window was compared, so signs may be missing"

Numbers = npt.NDArray[Any]  # what is known of one frame: pixels, landmarks
Clips = Pixels | FloatArray  # (n, 16, H, W, 3), uint8 or normalised float32
Stage = Literal["embedding", "trunk"]


class ClipNetwork(Protocol):
    """A network of two stages: clips -> trunk -> head (Paper 3.2)."""

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def trunk_fingerprint(self) -> str:
        """The fingerprint of the trunk's vectors; "": they cannot be had by themselves."""

    @property
    def dim(self) -> int: ...
    @property
    def trunk_dim(self) -> int: ...
    @property
    def frame_shape(self) -> FrameShape: ...
    @property
    def threshold(self) -> float: ...
    @property
    def backend(self) -> str: ...
    def trunk_vectors(self, clips: Clips) -> FloatArray:
        """(n, 16, H, W, 3) -> (n, trunk_dim) float32."""

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        """Vectors of the trunk, or means of them (n, trunk_dim), -> (n, dim) float32 rows of length 1."""

    def of_dictionary(self) -> ClipNetwork:
        """The network for dictionary clips: another one only if it tells the two domains apart (Paper App. B.3)."""


class PictureModel:
    """A model that sees pictures."""

    words: tuple[Word, ...] = ()
    towards_mean = 0.0

    def __init__(self, network: ClipNetwork) -> None:
        self.network = network
        self.name, self.fingerprint, self.dim = network.name, network.fingerprint, network.dim
        self.threshold, self.backend = network.threshold, network.backend
        self.word_vectors = np.zeros((0, network.dim), np.float32)
        self.lexicon = Lexicon.empty(network.dim)

    def track(self, episode: Episode, reading: Reading, near: FloatArray | None = None) -> VideoTrack:
        """Vectors of the trunk are kept: another head over the same trunk then costs seconds."""
        sha256 = self._sha256(episode)
        with reading.opened_store() as store:
            if near is not None and not self._is_stored(episode, sha256, reading, store):
                return self._quick_track(episode, sha256, near, reading)
            read = self._kept(episode, sha256, reading, store)
        return replace(read, track=self._after_head(read.track))

    def entry(self, entry: Entry, reading: Reading, views: Views = Views()) -> FloatArray:
        """The mean over clips at random speed and shift, taken before the head (Paper 3.2)."""
        return self.network.of_dictionary().head_vectors(self._entry_means(entry, reading, views))

    def entries_name(self, reading: Reading, views: Views = Views()) -> str:
        """The draw of the clips depends on the seed."""
        return f"{self.fingerprint} entry {reading.seed}{_described(views)}"

    def recording(self, clip: Path, reading: Reading) -> RecordedSign:
        """Read once: trimmed by what moves, brought to the size of the network."""
        refuse_landmark_file(clip, self.name)
        watched = _Watched(clip, self.network.frame_shape, reading.box)
        with VideoReader(clip, isolated=reading.isolated) as reader:
            trim = trim_by_motion(watched.frames(reader))
        faults, doubts = faults_of(trim, clip), damage_of(clip, _remarks(reader.report))
        if faults:
            return RecordedSign(np.zeros((0, self.dim), np.float32), trim, tuple(watched.pictures), faults)
        kept = slice(trim.kept.start, trim.kept.stop)
        shown = np.stack(watched.shaped[kept])
        clips = shown[random_clips(len(shown), np.random.default_rng(reading.seed))]
        network = self.network.of_dictionary()
        vectors = network.head_vectors(_means(clips, network, Views(mirror=True)))
        return RecordedSign(vectors, trim, tuple(watched.pictures[kept]), doubts=doubts)

    def without_still_ends(self, entry: Entry, reading: Reading) -> Entry:
        """The still ends of a clip are in no video."""
        if entry.video is None:
            return entry
        trim = trim_clip(entry.video, isolated=reading.isolated)
        if trim.remark:
            reading.notify(Notice(str(entry.video), trim.remark))
        return replace(entry, kept=trim.kept if len(trim.kept) else None)

    def trunk(self) -> _PictureTrunk | None:
        return _PictureTrunk(self) if self.network.trunk_fingerprint else None

    def _entry_means(self, entry: Entry, reading: Reading, views: Views = Views()) -> FloatArray:
        """(n_views, trunk_dim) the mean of the trunk's vectors of all clips of an entry, or the stored one."""
        network = self.network.of_dictionary()
        if entry.video is None:
            stored = _stored_vector(entry)
            if not network.trunk_fingerprint or len(stored) != network.trunk_dim:
                what = f"its stored vector has {len(stored)} numbers, which the model {self.name!r} cannot use"
                raise InputError(entry.entry_id, what, "use --model with the model that made it, such as bsldict")
            return np.repeat(stored[None], len(_transforms(views)), axis=0)
        refuse_landmark_file(entry.video, self.name)
        return _means(_entry_clips(entry, network.frame_shape, reading), network, views)

    def _sha256(self, episode: Episode) -> str:
        refuse_landmark_file(episode.video, self.name)
        return media_sha256(episode.video)

    def _kept(self, episode: Episode, sha256: str, reading: Reading, store: FeatureStore | None) -> VideoTrack:
        """The track that the store keeps: of the trunk where it can be had, else of the whole network."""
        box, (made_by, dim) = self._box(episode, reading), self._made()
        key = TrackKey(sha256, filed_under(made_by, box), reading.stride)
        known = store.find(key) if store is not None else None
        track = store.open_track(key) if store is not None else None
        if track is not None and known is not None:
            named = replace(track, video_id=episode.video_id, fingerprint=made_by)
            return VideoTrack(named, sha256, known.remarks, key.fingerprint, was_stored=True, box=box)
        stage: Stage = "trunk" if self.network.trunk_fingerprint else "embedding"
        progress = _in_windows(episode, reading)
        unfinished = RowFile(dim, np.float16) if store is None else store.unfinished(key, dim)
        with unfinished as rows:
            found = embed_video(episode, self.network, reading, stage=stage, rows=rows, progress=progress)
            remarks = _remarks(found.report)
            if store is not None:
                store.put(sha256, replace(found.track, fingerprint=key.fingerprint), remarks, self.name)
        return VideoTrack(found.track, sha256, remarks, key.fingerprint, box=box)

    def _made(self) -> tuple[str, int]:
        """The fingerprint of what makes the rows that are kept, and how long they are."""
        network = self.network
        if network.trunk_fingerprint:
            return network.trunk_fingerprint, network.trunk_dim
        return network.fingerprint, network.dim

    def _box(self, recording: Episode | Entry, reading: Reading) -> SignerBox | None:
        return _seen_box(recording, self.network.frame_shape, reading.box)

    def _is_stored(self, episode: Episode, sha256: str, reading: Reading, store: FeatureStore | None) -> bool:
        filed = filed_under(self._made()[0], self._box(episode, reading))
        return store is not None and store.find(TrackKey(sha256, filed, reading.stride)) is not None

    def _after_head(self, track: EmbeddingTrack) -> EmbeddingTrack:
        if track.unit_rows:
            return as_stored(track)
        with RowFile(self.dim) as rows:
            for block in row_blocks(track.vectors):
                rows.append(self.network.head_vectors(block.astype(np.float32)))
            return replace(track, vectors=rows.mapped(), fingerprint=self.fingerprint, unit_rows=True)

    def _quick_track(self, episode: Episode, sha256: str, near: FloatArray, reading: Reading) -> VideoTrack:
        """For somebody who waits: it is never kept, and says so."""
        found = embed_near(episode, self.network, near, reading, progress=_in_windows(episode, reading))
        remarks = Remarks(found.report.partial, (QUICK_LOOK, *found.report.warnings))
        return VideoTrack(found.track, sha256, remarks, "", box=self._box(episode, reading))


class _PictureTrunk:
    """The first stage of a picture model."""

    def __init__(self, model: PictureModel) -> None:
        self._model, network = model, model.network
        self.name, self.fingerprint, self.dim = model.name, network.trunk_fingerprint, network.trunk_dim

    def track(self, episode: Episode, reading: Reading) -> VideoTrack:
        """Half-precision rows, as they lie on the disk."""
        with reading.opened_store() as store:
            return self._model._kept(episode, self._model._sha256(episode), reading, store)

    def entry(self, entry: Entry, reading: Reading, views: Views = Views()) -> FloatArray:
        """Means over clips, rounded as tracks are."""
        return self._model._entry_means(entry, reading, views).astype(np.float16).astype(np.float32)

    def entries_name(self, reading: Reading, views: Views = Views()) -> str:
        """The draw of the clips depends on the seed."""
        return f"{self.fingerprint} entry {reading.seed}{_described(views)}"


# From frames to vectors.


@dataclass(frozen=True, slots=True)
class Extraction:
    """The embeddings of a video and what was noticed while reading it."""

    track: EmbeddingTrack
    report: ReadReport


def _seen_box(recording: Episode | Entry, shape: FrameShape, asked: SignerBox | None = None) -> SignerBox | None:
    """The part of its pictures that a model looks at: what was asked for, else what it was trained to see."""
    return asked or (recording.box if shape.signer_box else None)


def embed_video(
    episode: Episode,
    network: ClipNetwork,
    reading: Reading = Reading(),
    *,
    stage: Stage = "embedding",
    rows: RowFile | None = None,
    progress: MediaProgress | None = None,
) -> Extraction:
    """Slide a 16-frame window over the whole video and embed every position.

    Vectors are appended to `rows` (default: float32 in a temporary file) and the track is a memory map of them; rows
    that are there already, from a run that was cut short, are not computed again.
    """
    is_final = stage == "embedding"
    if rows is None:
        with RowFile(network.dim if is_final else network.trunk_dim) as temporary:
            return embed_video(episode, network, reading, stage=stage, rows=temporary, progress=progress)
    box = _seen_box(episode, network.frame_shape, reading.box)
    with VideoReader(episode.video, shape=network.frame_shape, box=box, isolated=reading.isolated) as reader:
        # The windows that are left are those of the frames that are left.
        frames = islice(_reported(reader, progress), len(rows) * reading.stride, None)
        for vectors in _trunk_vectors(frames, network, reading.stride):
            rows.append(network.head_vectors(vectors) if is_final else vectors)
        report = reader.report
    grid = WindowGrid(len(report.axis), stride=reading.stride)
    if len(rows) != len(grid):
        raise VideoError(episode.video, "gave other frames than the last time", "run the same command again")
    fingerprint = network.fingerprint if is_final else network.trunk_fingerprint
    track = EmbeddingTrack(episode.video_id, grid, report.axis, rows.mapped(), fingerprint, unit_rows=is_final)
    return Extraction(track, report)


def _entry_clips(entry: Entry, shape: FrameShape, reading: Reading = Reading()) -> Pixels:
    """(n, 16, H, W, 3): clips of a dictionary video at random speed and shift (Paper 3.2).

    The draw depends on the seed and the content of the video only, so an entry has the same vector in every run, in
    any order, and under any name.
    """
    if entry.video is None:
        raise VideoError(entry.entry_id, "the dictionary has no video for this entry", "add the clip, or remove it")
    box = _seen_box(entry, shape)
    with VideoReader(entry.video, shape=shape, box=box, isolated=reading.isolated) as reader:
        frames = [frame.pixels for frame, _ in zip(reader, range(LONGEST_ENTRY_FRAMES + 1), strict=False)]
    if len(frames) > LONGEST_ENTRY_FRAMES:
        raise VideoError(entry.video, "is longer than two minutes: a dictionary clip shows one sign", "cut it out")
    if entry.kept is not None:
        if entry.kept.stop > len(frames):
            what = f"has {len(frames)} frames, but its dictionary keeps frames {entry.kept.start} to {entry.kept.stop}"
            raise VideoError(entry.video, what, "correct kept_start and kept_stop, or build the dictionary again")
        frames = frames[entry.kept.start : entry.kept.stop]
    rng = np.random.default_rng([reading.seed, *bytes.fromhex(media_sha256(entry.video))])
    return np.stack(frames)[random_clips(len(frames), rng)]


def frames_at_rate(rate: float, length: int = CLIP_LENGTH) -> Ints:
    """Which frames of a clip show it `rate` times as fast around its middle, its ends held still: (length,).

    >>> frames_at_rate(2.0, 8).tolist(), frames_at_rate(0.5, 8).tolist()
    ([0, 0, 0, 2, 4, 6, 7, 7], [2, 2, 3, 3, 4, 4, 5, 5])
    """
    middle = (length - 1) / 2
    places = np.floor(middle + (np.arange(length) - middle) * rate + 0.5 - 1e-9)
    return np.asarray(np.clip(places, 0, length - 1).astype(np.int64))


def _transforms(views: Views) -> list[tuple[bool, float]]:
    """(is mirrored, rate) of every view: the clip as it is, then each other pair of side and speed."""
    sides = (False, True) if views.mirror else (False,)
    others = [(side, rate) for side in sides for rate in dict.fromkeys((1.0, *views.rates)) if side or rate != 1]
    return [(False, 1.0), *others]


def _described(views: Views) -> str:
    return "".join(f" {'mirrored' if side else ''}x{rate:g}" for side, rate in _transforms(views)[1:])


def _means(clips: Pixels, network: ClipNetwork, views: Views) -> FloatArray:
    """(n_views, trunk_dim) the mean of the trunk's vectors of clips (n, 16, H, W, 3) through every view."""
    means = []
    for is_mirrored, rate in _transforms(views):
        seen = clips if rate == 1 else clips[:, frames_at_rate(rate)]
        # A view of the pixels backwards is not what every backend takes.
        seen = np.ascontiguousarray(seen[:, :, :, ::-1]) if is_mirrored else seen
        means.append(network.trunk_vectors(seen).mean(axis=0, dtype=np.float64).astype(np.float32))
    return np.stack(means)


def _stored_vector(entry: Entry) -> FloatArray:
    file, found = entry.features, None
    if file is not None and file.is_file():
        found = stored_features(file).vector(STORED_KIND, entry.entry_id)
    if found is None:
        raise VideoError(entry.entry_id, "has neither a clip nor a stored vector", "add the clip or remove it")
    return found


def stored_features(file: Path) -> EntryFeatures:
    """The vectors that came with a dictionary, which may be large: read once, and again if the file changes."""
    return _features(file.parent, file.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _features(folder: Path, changed_ns: int) -> EntryFeatures:
    del changed_ns  # a file that changed is read again
    return EntryFeatures.read(folder)


def _remarks(report: ReadReport) -> Remarks:
    return Remarks(report.partial, report.warnings)


@dataclass(slots=True)
class _Watched:
    """What is remembered of the frames that pass by: their large pictures are let go."""

    path: Path
    shape: FrameShape
    box: SignerBox | None
    shaped: list[Pixels] = field(default_factory=list)
    pictures: list[Pixels] = field(default_factory=list)

    def frames(self, reader: VideoReader) -> Iterator[Pixels]:
        most = LONGEST_SECONDS * FRAME_RATE
        for frame in islice(reader, most + 1):
            if len(self.shaped) == most:
                what = f"is longer than {LONGEST_SECONDS} s"
                raise VideoError(self.path, what, "record one sign; `signspot spot` searches long videos")
            pixels = frame.pixels if self.box is None else cut_square(frame.pixels, self.box)
            self.shaped.append(shape_frame(pixels, self.shape))
            self.pictures.append(thumbnail(pixels))
            yield pixels


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


def _trunk_vectors(frames: Iterable[Pixels], network: ClipNetwork, stride: int) -> Iterator[FloatArray]:
    if not network.trunk_fingerprint:
        yield from (network.trunk_vectors(clips) for clips in window_batches(frames, stride))
        return
    # torch takes seconds to load, and only networks need it.
    from signspot.models.embedders import VideoEmbedder
    from signspot.models.i3d_shared import is_shareable

    if isinstance(network, VideoEmbedder) and is_shareable(network, stride):
        yield from _shared_rows(frames, network, stride)
    else:
        yield from (network.trunk_vectors(clips) for clips in window_batches(frames, stride))


def _shared_rows(frames: Iterable[Pixels], network: VideoEmbedder, stride: int) -> Iterator[FloatArray]:
    from signspot.models.i3d_shared import shared_vectors

    latest: deque[Pixels] = deque(maxlen=CLIP_LENGTH)
    n_frames = n_windows = 0

    def remembered() -> Iterator[Pixels]:
        nonlocal n_frames
        for frame in frames:
            latest.append(frame)
            n_frames += 1
            yield frame

    for vectors in shared_vectors(remembered(), network, stride):
        n_windows += len(vectors)
        yield vectors
    if n_windows < len(WindowGrid(n_frames, stride=stride)):
        # A last window that is pulled back, or filled up, is none of those.
        yield from (network.trunk_vectors(clips) for clips in window_batches(latest, stride=1))


def _windows(frames: list[Numbers], starts: npt.NDArray[np.int64]) -> Numbers:
    every = np.lib.stride_tricks.sliding_window_view(np.stack(frames), CLIP_LENGTH, axis=0)
    if len(starts) > 1 and len(set(np.diff(starts).tolist())) == 1:
        every = every[starts[0] : starts[-1] + 1 : starts[1] - starts[0]]  # a view: nothing is copied
    else:
        every = every[starts]
    return np.moveaxis(every, -1, 1)


def _reported(reader: VideoReader, progress: MediaProgress | None) -> Iterator[Pixels]:
    for frame in reader:
        if progress is not None:
            progress(frame.time_ms, reader.info.duration_ms)
        yield frame.pixels


def _in_windows(episode: Episode, reading: Reading) -> MediaProgress:
    """Report media time as windows: their number in a second is what tells a fast machine from a slow one."""
    step, window_ms = f"reading the windows of {episode.video.name}", FRAME_MS * reading.stride

    def report(done_ms: float, expected_ms: float | None) -> None:
        reading.progress(step, done_ms / window_ms, None if expected_ms is None else expected_ms / window_ms)

    return report


# Quick looks for somebody who waits: every fourth window first, then every window around the promising ones. Every row
# it computes is the row that `embed_video` computes at stride 1, up to rounding; any other is a copy of the nearest one
# that was computed, so that a curve has no gaps and no false peaks beside them. A cosine it reports is exact. A peak is
# missed, or found up to three frames off, only if none of the coarse windows around it is among the best `candidates`
# peaks of its query; neighbouring coarse windows share 12 of their 16 frames.

_WINDOWS_PER_BATCH = 8
_ROWS_AT_ONCE = 4096

Starts = Ints  # (n,) first frames of windows, rising


def embed_near(
    episode: Episode,
    network: ClipNetwork,
    queries: FloatArray,
    reading: Reading = Reading(),
    *,
    stride: int = 4,
    candidates: int = 12,  # peaks of each query that are refined
    progress: MediaProgress | None = None,
) -> Extraction:
    """A track at stride 1 that is exact where one of `queries` (n, dim), unit rows, may be signed."""
    if not 1 <= stride <= CLIP_LENGTH or candidates < 1:
        raise ValueError(f"nothing can be found with stride {stride} and {candidates} candidates")
    passes = _TwoPasses(progress)
    coarse = embed_video(episode, network, replace(reading, stride=stride), progress=passes.first)
    track = coarse.track
    known = track.grid.starts()
    wanted = np.setdiff1d(starts_near(track, queries, candidates), known)
    rows = [track.vectors]
    if len(wanted):
        box = _seen_box(episode, network.frame_shape, reading.box)
        with VideoReader(episode.video, shape=network.frame_shape, box=box, isolated=reading.isolated) as reader:
            frames = _reported(reader, passes.second)
            trunks = (network.trunk_vectors(clips) for clips in _chosen_windows(frames, wanted))
            rows += [network.head_vectors(some) for some in trunks]
        if sum(map(len, rows)) != len(known) + len(wanted):
            raise VideoError(episode.video, "changed while it was being read", "run the same command again")
    order = np.argsort(starts := np.concatenate([known, wanted]))
    grid = WindowGrid(track.grid.n_frames)
    with RowFile(network.dim) as held:
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


def _chosen_windows(frames: Iterable[Pixels], starts: Starts) -> Iterator[Pixels]:
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

    def __init__(self, progress: MediaProgress | None) -> None:
        self._progress = progress
        self._reached_ms = 0.0

    def first(self, done_ms: float, expected_ms: float | None) -> None:
        self._reached_ms = done_ms
        self._report(done_ms, expected_ms)

    def second(self, done_ms: float, expected_ms: float | None) -> None:
        self._report(self._reached_ms + done_ms, expected_ms)

    def _report(self, done_ms: float, expected_ms: float | None) -> None:
        if self._progress is not None:
            self._progress(done_ms, None if expected_ms is None else 2 * expected_ms)


# A model whose answers can be computed by hand: a clip is its mean colour. It knows nothing about signing, and lets the
# whole path, from a file to a finding, be shown, tested and timed without a trained network.


class _MeanColour:
    """Embeds a clip as its mean colour: a red clip is [1, 0, 0], a black one is zero (and never found)."""

    name, fingerprint, trunk_fingerprint, backend = COLOUR_MODEL, "colour-1", "", "numpy"
    dim = trunk_dim = 3
    frame_shape, threshold = FrameShape(side=32, crop=32), 0.95

    def trunk_vectors(self, clips: Clips) -> FloatArray:
        mean = clips.mean(axis=(1, 2, 3), dtype=np.float64)
        length = np.linalg.norm(mean, axis=1, keepdims=True)
        unit: FloatArray = (mean / np.where(length > 0, length, 1)).astype(np.float32)
        return unit

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        return vectors

    def of_dictionary(self) -> _MeanColour:
        return self


class ColourModel(PictureModel):
    """Compares mean colours."""

    def __init__(self) -> None:
        super().__init__(_MeanColour())
