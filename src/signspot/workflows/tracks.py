"""The vectors of a video: from the store if they are there, otherwise computed, and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from signspot.domain.boxes import SignerBox
from signspot.domain.corpus import Episode
from signspot.domain.spans import FRAME_MS
from signspot.domain.tracks import Embedder, EmbeddingTrack, FloatArray, StagedEmbedder
from signspot.errors import SignspotError, VideoError, trouble_of
from signspot.features.coarse import CoarseOptions, embed_near
from signspot.features.extract import ExtractOptions, embed_video, seen_box
from signspot.features.rows import RowFile
from signspot.features.shards import Remarks, as_stored
from signspot.features.stages import (
    Stage,
    StageVectors,
    filed_under,
    sees_landmarks,
    stage_vectors,
    trunk_fingerprint,
    with_head,
)
from signspot.features.store import FeatureStore, open_store
from signspot.formats.corpus_source import read_sources
from signspot.formats.pose_files import SUFFIX as POSE_SUFFIX
from signspot.media.reader import media_sha256
from signspot.models.zoo import LANDMARK_MODEL

QUICK_LOOK = "a quick look: of most of the video only every fourth window was compared, so signs may be missing"

Progress = Callable[[str, float, float | None], None]  # what is going on, how much is done, how much there is if known


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """The vectors of a video, what was noticed while reading it, and whether they were computed before."""

    track: EmbeddingTrack
    media_sha256: str
    remarks: Remarks
    was_stored: bool = False
    box: SignerBox | None = None  # the part of the pictures that was looked at; None: all


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
        from signspot.workflows.landmark_tracks import landmark_track_of  # which is made of what is here

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
            store.put(sha256, replace(found.track, fingerprint=filed.fingerprint), remarks)
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
        from signspot.workflows.landmark_tracks import landmark_track_is_stored

        return landmark_track_is_stored(episode, model, store, options)
    filed = _filed(episode, model, options.box)
    return store.find(media_sha256(episode.video), filed.fingerprint, options.stride) is not None


def refuse_landmark_file(path: Path, model: Embedder) -> None:
    """Raise where a model that sees pictures is given a file of landmarks."""
    if path.suffix.lower() == POSE_SUFFIX:
        what = f"holds landmarks and no pictures, which the model {model.name!r} needs"
        raise VideoError(path, what, f"give the video, or use --model {LANDMARK_MODEL}")


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


def _in_windows(episode: Episode, stride: int, progress: Progress | None) -> Callable[[float, float | None], None]:
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


def store_at(folder: Path | None) -> FeatureStore | nullcontext[None]:
    """The store in `folder`, or none."""
    return nullcontext() if folder is None else open_store(folder)
