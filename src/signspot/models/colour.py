"""An embedder whose answers can be computed by hand: a clip is its mean colour.

It knows nothing about signing. It stands behind the Embedder protocol so that the whole path, from a file to a finding,
can be shown, tested and timed without a trained model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import FloatArray, FrameShape


class ColourEmbedder:
    """Embeds a clip as its mean colour: a red clip is [1, 0, 0], a black one is zero (and never found)."""

    name = "colour"
    fingerprint = "colour-1"
    dim = 3
    frame_shape = FrameShape(side=32, crop=32)
    threshold = 0.95

    def embed(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        """(n, 16, H, W, 3) -> (n, 3) rows of length 1."""
        mean = clips.mean(axis=(1, 2, 3), dtype=np.float64)
        length = np.linalg.norm(mean, axis=1, keepdims=True)
        unit: FloatArray = (mean / np.where(length > 0, length, 1)).astype(np.float32)
        return unit
