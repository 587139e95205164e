"""The landmarks of a video as embeddings at several speeds: a model of landmarks finds a sign however fast it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import CLIP_LENGTH, EmbeddingTrack, FloatArray, WindowGrid
from signspot.features.stages import StageVectors
from signspot.media.landmark_layout import SignerLandmarks, in_picture_heights
from signspot.spotting.multi_rate import Rates, windows_around
from signspot.spotting.rate_track import RateTrack

if TYPE_CHECKING:
    from signspot.models.landmark_embedder import LandmarkEmbedder

_WINDOWS_AT_ONCE = 512  # of each length: hours of landmarks are never cut into windows all at once


@dataclass(frozen=True, slots=True)
class RateRows:
    """The windows of all lengths around one frame as one row, which is how the store keeps them."""

    embedder: LandmarkEmbedder
    rates: Rates = Rates()

    @property
    def made(self) -> StageVectors:
        """What the rows are filed under, and how long they are."""
        lengths = " ".join(map(str, self.rates.lengths))
        return StageVectors(
            f"{self.embedder.fingerprint} windows {lengths}", self.embedder.dim * len(self.rates.lengths)
        )

    def blocks(self, landmarks: SignerLandmarks, first: int = 0) -> Iterator[FloatArray]:
        """Rows (n, lengths x d) of the windows from number `first` on; zeros for a window that nobody is seen in."""
        points = in_picture_heights(np.asarray(landmarks.track.points), landmarks.aspect)
        starts = WindowGrid(len(points), stride=self.rates.stride).starts()
        for start in range(first, len(starts), _WINDOWS_AT_ONCE):
            some = starts[start : start + _WINDOWS_AT_ONCE]
            yield np.concatenate([self._embedded(points, some, length) for length in self.rates.lengths], axis=1)

    def track(self, rows: EmbeddingTrack, video_id: str) -> RateTrack:
        """What is compared, of a track that the rows are the vectors of."""
        lengths, d = self.rates.lengths, self.embedder.dim
        places = sorted(range(len(lengths)), key=lambda place: lengths[place] != CLIP_LENGTH)  # the usual one first
        usual, *others = (rows.vectors[:, place * d : (place + 1) * d] for place in places)
        return RateTrack(
            video_id,
            rows.grid,
            rows.axis,
            usual,
            self.embedder.fingerprint,
            other_rates=tuple(others),
            lengths=tuple(lengths[place] for place in places),
        )

    def _embedded(self, points: FloatArray, starts: npt.NDArray[np.int64], length: int) -> FloatArray:
        windows = windows_around(points, starts, length)
        vectors: FloatArray = self.embedder.embed(windows)
        vectors[~windows.any(axis=(1, 2))] = 0
        return vectors
