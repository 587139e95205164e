"""Other views of a query: mirrored, for signers of the other hand, and at other speeds.

A view is the model itself behind glasses: what it is shown is mirrored or resampled in time first. A query is embedded
once with each view, and whichever resembles a window most counts.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import CLIP_LENGTH, Embedder, FloatArray, FrameShape, SimilarityTrack, StagedEmbedder

Clips = npt.NDArray[np.uint8] | FloatArray
Ints = npt.NDArray[np.int64]


def frames_at_rate(rate: float, length: int = CLIP_LENGTH) -> Ints:
    """Which frames of a clip show it `rate` times as fast around its middle, its ends held still: (length,).

    >>> frames_at_rate(2.0, 8).tolist(), frames_at_rate(0.5, 8).tolist()
    ([0, 0, 0, 2, 4, 6, 7, 7], [2, 2, 3, 3, 4, 4, 5, 5])
    """
    if not 0.25 <= rate <= 4:
        raise ValueError(f"a sign shown {rate} times as fast is no longer that sign: use 0.25 to 4")
    middle = (length - 1) / 2
    places = np.floor(middle + (np.arange(length) - middle) * rate + 0.5 - 1e-9)
    frames: Ints = np.clip(places, 0, length - 1).astype(np.int64)
    return frames


class View:
    """A model that sees its clips mirrored or at another speed."""

    def __init__(self, model: Embedder, *, is_mirrored: bool, rate: float) -> None:
        self._model, self._is_mirrored, self._frames = model, is_mirrored, frames_at_rate(rate)

    @property
    def name(self) -> str:
        """That of the model."""
        return self._model.name

    @property
    def fingerprint(self) -> str:
        """That of the model: its vectors are compared with those of the model."""
        return self._model.fingerprint

    @property
    def dim(self) -> int:
        """That of the model."""
        return self._model.dim

    @property
    def frame_shape(self) -> FrameShape:
        """That of the model."""
        return self._model.frame_shape

    @property
    def threshold(self) -> float:
        """That of the model."""
        return self._model.threshold

    def embed(self, clips: Clips) -> FloatArray:
        """(n, 16, H, W, 3) -> (n, dim) of the changed clips."""
        return self._model.embed(self.seen(clips))

    def seen(self, clips: Clips) -> Clips:
        """(n, 16, H, W, 3): the clips through the glasses."""
        shown: Clips = clips[:, self._frames]
        # A view of the pixels backwards is not what every backend takes.
        mirrored: Clips = shown[:, :, :, ::-1].copy()
        return mirrored if self._is_mirrored else shown


class StagedView(View):
    """The same for a model with a trunk and a head."""

    def __init__(self, model: StagedEmbedder, *, is_mirrored: bool, rate: float) -> None:
        super().__init__(model, is_mirrored=is_mirrored, rate=rate)
        self._staged = model

    @property
    def trunk_dim(self) -> int:
        """That of the model."""
        return self._staged.trunk_dim

    def trunk_vectors(self, clips: Clips) -> FloatArray:
        """(n, 16, H, W, 3) -> (n, trunk dim) of the changed clips."""
        return self._staged.trunk_vectors(self.seen(clips))

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        """As the model does."""
        return self._staged.head_vectors(vectors)


def views_of(model: Embedder, *, mirror: bool, rates: tuple[float, ...]) -> tuple[Embedder, ...]:
    """The model as it is, then one view for every other pair of speed and side."""
    sides = (False, True) if mirror else (False,)
    others = [(side, rate) for side in sides for rate in dict.fromkeys((1.0, *rates)) if side or rate != 1]
    made: list[Embedder] = [model]
    for side, rate in others:
        if isinstance(model, StagedEmbedder):
            made.append(StagedView(model, is_mirrored=side, rate=rate))
        else:
            made.append(View(model, is_mirrored=side, rate=rate))
    return tuple(made)


def best_view(similarity: SimilarityTrack, n_views: int) -> SimilarityTrack:
    """Of entries that stand in `n_views` columns each, one behind the other, the column of the highest cosine."""
    if n_views == 1:
        return similarity
    n_entries = len(similarity.entries) // n_views
    cosine = similarity.cosine.reshape(len(similarity.grid), n_entries, n_views).max(axis=2)
    return dataclasses.replace(similarity, entries=similarity.entries[::n_views], cosine=cosine)
