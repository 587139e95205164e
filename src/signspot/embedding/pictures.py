"""Media and a model in, tracks out, streaming: memory does not grow with the length of the video.

Frames are read one at a time and the vectors of finished windows go to the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Dictionary, Entry, Episode, SignerBox
from signspot.domain.time import FRAME_MS, MediaProgress, Progress
from signspot.domain.tracks import (
    CLIP_LENGTH,
    Embedder,
    EmbeddingTrack,
    EntryVectors,
    FloatArray,
    Ints,
    LandmarkTrack,
    Pixels,
    StagedEmbedder,
    WindowGrid,
)
from signspot.domain.words import Word
from signspot.embedding.model import (
    LEFT_OUT,
    Stage,
    VideoTrack,
    filed_under,
    for_dictionary,
    refuse_landmark_file,
    sees_landmarks,
    stage_vectors,
    trunk_fingerprint,
    with_head,
)
from signspot.errors import DictionaryError, InputError, SignspotError, VideoError, trouble_of
from signspot.media.frames import consecutive_clips, random_clips
from signspot.media.reader import VideoReader
from signspot.media.video import ReadReport, media_sha256
from signspot.stores.corpus import read_sources
from signspot.stores.entries import FEATURES_FILE, EntryFeatures, read_entry_features
from signspot.stores.features import FeatureStore, Remarks, RowFile, StageVectors, as_stored, open_store

if TYPE_CHECKING:
    from signspot.models.embedders import LandmarkEmbedder, VideoEmbedder


WINDOWS_PER_BATCH = 64
LONGEST_ENTRY_FRAMES = 25 * 120  # a dictionary clip shows one sign: two minutes is generous

Numbers = npt.NDArray[Any]  # what is known of one frame: pixels, landmarks
Sampling = Literal["random", "consecutive"]


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
    progress: MediaProgress | None = None,
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
    from signspot.models.embedders import VideoEmbedder
    from signspot.models.i3d_shared import is_shareable

    if isinstance(embedder, VideoEmbedder) and is_shareable(embedder, stride):
        yield from _shared_rows(frames, embedder, stride)
    else:
        yield from (embedder.trunk_vectors(clips) for clips in window_batches(frames, stride))


def _shared_rows(frames: Iterable[Pixels], embedder: VideoEmbedder, stride: int) -> Iterator[FloatArray]:
    from signspot.models.i3d_shared import shared_vectors

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


def _reported(reader: VideoReader, progress: MediaProgress | None) -> Iterator[Pixels]:
    for frame in reader:
        if progress is not None:
            progress(frame.time_ms, reader.info.duration_ms)
        yield frame.pixels


# Quick looks for somebody who waits: every fourth window first, then every window around the promising ones.
#
# Every row it computes is the row that `embed_video` computes at stride 1, up to rounding; any other is a copy
# of the nearest one that was computed, so that a curve has no gaps and no false peaks beside them. A cosine it
# reports is exact. A peak is missed, or found up to three frames off, only if none of the coarse windows around
# it is among the best `candidates` peaks of its query; neighbouring coarse windows share 12 of their 16 frames.


_WINDOWS_PER_BATCH = 8
_ROWS_AT_ONCE = 4096

Starts = Ints  # (n,) first frames of windows, rising


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
    progress: MediaProgress | None = None,
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

    def __init__(self, progress: MediaProgress | None) -> None:
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


# One vector per dictionary entry: from its clip, or, where there is none, from vectors stored with the dictionary.


STORED_KIND = "i3d"  # vectors of the trunk: the head of the model at hand makes embeddings of them


@dataclass(frozen=True, slots=True)
class EntrySource:
    """Where the vectors of a dictionary's entries come from."""

    dictionary: Dictionary
    model: Embedder
    stored: EntryFeatures | None
    seed: int
    isolated: bool

    @classmethod
    def of(cls, dictionary: Dictionary, model: Embedder, *, seed: int, isolated: bool) -> EntrySource:
        """Open the stored vectors if the dictionary has any."""
        folder = dictionary.folder
        has_stored = folder is not None and (folder / FEATURES_FILE).is_file()
        stored = read_entry_features(folder) if folder is not None and has_stored else None
        return cls(dictionary, model, stored, seed, isolated)

    def vector(self, entry: Entry) -> FloatArray:
        """The vector of one entry (dim,); raises VideoError where it has none."""
        if entry.video is not None:
            refuse_landmark_file(entry.video, self.model)
            return embed_entry(entry, self.model, EntryOptions(seed=self.seed, isolated=self.isolated))
        stored = self.stored.vector(STORED_KIND, entry.entry_id) if self.stored is not None else None
        if stored is None:
            raise VideoError(entry.entry_id, "has neither a clip nor a stored vector", "add the clip or remove it")
        model = for_dictionary(self.model)
        if not isinstance(model, StagedEmbedder) or model.trunk_dim != len(stored):
            what = f"only vectors of {len(stored)} numbers are stored, which the model {model.name!r} cannot use"
            raise InputError(self.dictionary.name, what, "use --model with the model that made them, such as bsldict")
        vector: FloatArray = model.head_vectors(stored[None])[0]
        return vector

    def remarks(self, words: Iterable[Word]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""
        entries = (entry for word in words for entry in self.dictionary.entries(word))
        if self.stored is None or all(entry.video is not None for entry in entries):
            return ()
        made_by = self.stored.kinds[STORED_KIND].made_by
        return (f"{self.dictionary.name}: stored vectors are used ({made_by}); they fit only the trunk that made them",)


def vectors_of(word: Word, usable: list[tuple[Entry, FloatArray]], model: Embedder, trouble: str) -> EntryVectors:
    """The entries of a word that could be read, as one array."""
    if not usable:
        raise DictionaryError(word, "none of its clips can be used", trouble.removeprefix(LEFT_OUT))
    vectors = np.stack([vector for _, vector in usable])
    return EntryVectors(word, tuple(entry for entry, _ in usable), vectors, model.fingerprint)


# The vectors of a video: from the store if they are there, otherwise computed, and kept.


QUICK_LOOK = "a quick look: of most of the video only every fourth window was compared, so signs may be missing"


def track_of(
    episode: Episode,
    model: Embedder,
    *,
    store: FeatureStore | None = None,
    options: ExtractOptions = ExtractOptions(),
    progress: Progress | None = None,
) -> VideoTrack:
    """Look the video up in the store by its content; compute and keep what is not there.

    Of a model with a trunk and a head, vectors of the trunk are kept: another head over the same trunk then costs
    seconds. They are rounded as on the disk also the first time, and without a store, so that answers never differ.
    """
    if sees_landmarks(model):
        from signspot.embedding.landmarks import landmark_track_of  # which is made of what is here

        return landmark_track_of(episode, model, store=store, options=options, progress=progress)
    refuse_landmark_file(episode.video, model)
    sha256 = media_sha256(episode.video)
    kept = replace(options, stage=_kept_stage(model))
    stage_vectors(model, options.stage)  # refuses a stage that the model does not have
    box, filed = seen_box(episode, model, options.box), _filed(episode, model, options.box)
    known = store.find(sha256, filed.fingerprint, kept.stride) if store is not None else None
    track = store.open_track(sha256, filed.fingerprint, kept.stride) if store is not None else None
    if track is not None and known is not None:
        return VideoTrack(_asked_for(track, episode, model, options), sha256, known.remarks, was_stored=True, box=box)
    report = _in_windows(episode, kept.stride, progress)
    with RowFile(filed.dim, np.float16) if store is None else store.unfinished(sha256, filed, kept.stride) as rows:
        found = embed_video(episode, model, options=kept, rows=rows, progress=report)
        remarks = Remarks(found.report.partial, found.report.warnings)
        if store is not None:
            store.put(sha256, replace(found.track, fingerprint=filed.fingerprint), remarks, model.name)
    return VideoTrack(_asked_for(found.track, episode, model, options), sha256, remarks, box=box)


def quick_track_of(
    episode: Episode,
    model: Embedder,
    queries: FloatArray,
    *,
    options: ExtractOptions = ExtractOptions(),
    progress: Progress | None = None,
) -> VideoTrack:
    """A track that is exact only near `queries` (n, dim), for somebody who waits: it is never kept, and says so.

    Where a model sees landmarks, looking closely costs next to nothing once they are found: the track is exact.
    """
    if sees_landmarks(model):
        return track_of(episode, model, options=options, progress=progress)
    refuse_landmark_file(episode.video, model)
    report = _in_windows(episode, stride=1, progress=progress)
    coarse = CoarseOptions(isolated=options.isolated, box=options.box)
    near = embed_near(episode, model, queries, options=coarse, progress=report)
    remarks = Remarks(near.report.partial, (QUICK_LOOK, *near.report.warnings))
    return VideoTrack(near.track, media_sha256(episode.video), remarks, box=seen_box(episode, model, options.box))


def is_stored(
    episode: Episode, model: Embedder, store: FeatureStore | None, options: ExtractOptions = ExtractOptions()
) -> bool:
    """Whether `track_of` has nothing to compute."""
    if store is None:
        return False
    if sees_landmarks(model):
        from signspot.embedding.landmarks import landmark_track_is_stored

        return landmark_track_is_stored(episode, model, store, options)
    filed = _filed(episode, model, options.box)
    return store.find(media_sha256(episode.video), filed.fingerprint, options.stride) is not None


def _filed(episode: Episode, model: Embedder, asked: SignerBox | None) -> StageVectors:
    """What is kept of a video, and what it is filed under."""
    made = stage_vectors(model, _kept_stage(model))
    return replace(made, fingerprint=filed_under(made.fingerprint, seen_box(episode, model, asked)))


def _kept_stage(model: Embedder) -> Stage:
    return "trunk" if trunk_fingerprint(model) else "embedding"


def _asked_for(track: EmbeddingTrack, episode: Episode, model: Embedder, options: ExtractOptions) -> EmbeddingTrack:
    """What was asked for, made of what is kept."""
    made = stage_vectors(model, "embedding" if track.unit_rows else "trunk")
    named = replace(track, video_id=episode.video_id, fingerprint=made.fingerprint)
    if options.stage == "trunk" and not track.unit_rows:
        return named
    return with_head(named, model) if isinstance(model, StagedEmbedder) and not track.unit_rows else as_stored(named)


def _in_windows(episode: Episode, stride: int, progress: Progress | None) -> MediaProgress:
    """Report media time as windows: their number in a second is what tells a fast machine from a slow one."""
    step, window_ms = f"reading the windows of {episode.video.name}", FRAME_MS * stride

    def report(done_ms: float, expected_ms: float | None) -> None:
        if progress is not None:
            progress(step, done_ms / window_ms, None if expected_ms is None else expected_ms / window_ms)

    return report


@dataclass(frozen=True, slots=True)
class Embedded:
    """What became of one video of `embed_files`."""

    video: Path
    made: VideoTrack | None = None
    failure: SignspotError | None = None
    remarks: tuple[str, ...] = ()  # what should be known about all that was given; with the first video


def embed_files(
    sources: tuple[Path, ...],
    model: Embedder,
    store: Path,
    options: ExtractOptions = ExtractOptions(),
    progress: Progress | None = None,
) -> Iterator[Embedded]:
    """Fill the store with the vectors of videos and folders of videos; those that are there cost nothing."""
    episodes, remarks = read_sources(sources)
    with open_store(store) as opened:
        for number, episode in enumerate(episodes):
            said = () if number else remarks
            try:
                made = track_of(episode, model, store=opened, options=options, progress=progress)
                yield Embedded(episode.video, made, remarks=said)
            except (SignspotError, ValueError) as error:
                yield Embedded(episode.video, failure=trouble_of(episode.video, error), remarks=said)
