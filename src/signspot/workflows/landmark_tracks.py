"""The vectors of a video for a model that sees landmarks: windows of several lengths around every frame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from signspot.domain.corpus import Episode
from signspot.domain.tracks import EmbeddingTrack, WindowGrid
from signspot.errors import InputError, VideoError
from signspot.features.extract import ExtractOptions, seen_box
from signspot.features.landmark_rates import RateRows
from signspot.features.rows import RowFile
from signspot.features.stages import StageVectors, filed_under
from signspot.features.store import FeatureStore
from signspot.media.landmarks import LandmarkOptions
from signspot.media.reader import media_sha256
from signspot.spotting.multi_rate import Rates
from signspot.workflows.landmarks import VideoLandmarks, landmarks_name, landmarks_of, strange_length
from signspot.workflows.tracks import Progress, VideoTrack

if TYPE_CHECKING:
    from signspot.models.landmark_embedder import LandmarkEmbedder

_FEW_HANDS = 0.1  # share of frames: hands at rest are out of sight, too, but nobody rests for so long


def landmark_track_of(
    episode: Episode,
    model: LandmarkEmbedder,
    *,
    store: FeatureStore | None = None,
    options: ExtractOptions = ExtractOptions(),
    progress: Progress | None = None,
) -> VideoTrack:
    """Look the video up in the store; find its landmarks, embed them and keep both where it is not there.

    Rows are rounded as on the disk also the first time, and without a store, so that answers never differ.
    """
    if options.stage == "trunk":
        raise InputError(model.name, "sees landmarks, and no vectors of its trunk are kept", "choose another model")
    sha256, box = media_sha256(episode.video), seen_box(episode, model, options.box)
    made = RateRows(model, Rates(stride=options.stride))
    filed = _filed(episode, made, options)
    known = store.find(sha256, filed.fingerprint, options.stride) if store is not None else None
    rows = store.open_track(sha256, filed.fingerprint, options.stride) if store is not None else None
    if rows is not None and known is not None:
        return VideoTrack(made.track(rows, episode.video_id), sha256, known.remarks, was_stored=True, box=box)
    seen = LandmarkOptions(box=box, isolated=options.isolated)
    found = landmarks_of(episode.video, store=store, options=seen, progress=progress)
    if not len(found.signer.track.axis):
        raise VideoError(episode.video, "holds no frames", "give a recording of somebody who signs")
    doubts = (*_doubts(found), *strange_length(episode.video, found.signer, isolated=options.isolated))
    remarks = replace(found.remarks, warnings=(*found.remarks.warnings, *doubts))
    with RowFile(filed.dim, np.float16) if store is None else store.unfinished(sha256, filed, options.stride) as file:
        rows = _embedded(found, made, file, progress)
        if store is not None:
            store.put(sha256, replace(rows, fingerprint=filed.fingerprint), remarks)
    return VideoTrack(made.track(rows, episode.video_id), sha256, remarks, box=box)


def landmark_track_is_stored(
    episode: Episode, model: LandmarkEmbedder, store: FeatureStore, options: ExtractOptions = ExtractOptions()
) -> bool:
    """Whether `landmark_track_of` has nothing to compute."""
    filed = _filed(episode, RateRows(model, Rates(stride=options.stride)), options)
    return store.find(media_sha256(episode.video), filed.fingerprint, options.stride) is not None


def _filed(episode: Episode, made: RateRows, options: ExtractOptions) -> StageVectors:
    """What the rows are filed under: the model, its windows, who found the landmarks, and where."""
    box = seen_box(episode, made.embedder, options.box)
    name = f"{made.made.fingerprint} {landmarks_name(episode.video)}"
    return replace(made.made, fingerprint=filed_under(name, box))


def _embedded(found: VideoLandmarks, made: RateRows, file: RowFile, progress: Progress | None) -> EmbeddingTrack:
    track = found.signer.track
    grid = WindowGrid(len(track.axis), stride=made.rates.stride)
    for block in made.blocks(found.signer, len(file)):
        file.append(block)
        if progress is not None:
            progress(f"comparing the windows of {track.video_id}", len(file), len(grid))
    return EmbeddingTrack(track.video_id, grid, track.axis, file.mapped(), made.made.fingerprint, unit_rows=False)


def _doubts(found: VideoLandmarks) -> tuple[str, ...]:
    """Why nothing may be found in it."""
    if not found.pose_share:
        return ("nobody was found in it: no landmarks, so nothing can be compared",)
    if found.hand_share < _FEW_HANDS:
        return (f"a hand was found in only {found.hand_share:.0%} of the frames: signs will be missed",)
    return ()
