"""The landmarks of a video as embeddings at several speeds: a model of landmarks finds a sign however fast it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from signspot.domain.tracks import EmbeddingTrack, WindowGrid
from signspot.media.landmark_layout import SignerLandmarks, in_picture_heights
from signspot.spotting.multi_rate import Rates, multi_rate_windows

if TYPE_CHECKING:
    from signspot.models.landmark_embedder import LandmarkEmbedder


def embed_at_rates(
    landmarks: SignerLandmarks, embedder: LandmarkEmbedder, rates: Rates = Rates()
) -> tuple[EmbeddingTrack, ...]:
    """One track for each length of window, all on the same grid: compare them with `multi_rate_similarity`."""
    track = landmarks.track
    grid = WindowGrid(len(track.axis), stride=rates.stride)
    points = in_picture_heights(np.asarray(track.points), landmarks.aspect)
    return tuple(
        EmbeddingTrack(track.video_id, grid, track.axis, embedder.embed(windows), embedder.fingerprint)
        for windows in multi_rate_windows(points, rates)
    )
