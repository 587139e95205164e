"""Which word a moment belongs to, where several words are known to be signed, as those of one subtitle.

Alone, a word is where it is most similar. Among others, a moment that resembles another word as much says little: *eat*
is in *lunch*, too, and before the face many signs look alike. Each moment is therefore shared among the words by how
similar they are (experiments/landmark_model/places.py says what that brings).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import FloatArray

_SOFTNESS = 0.2  # of a cosine: a word that is so much less similar has a third of the share


def shares(cosine: FloatArray) -> FloatArray:
    """The share of each word in each moment: (n_windows, n_words), rows add up to 1; none where nothing was compared.

    >>> shares(np.array([[0.5, 0.5], [0.5, -np.inf], [-np.inf, -np.inf]], np.float32)).tolist()
    [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]
    """
    known = np.isfinite(cosine)
    level = np.where(known, cosine, -1)
    weight = np.exp((level - level.max(axis=1, keepdims=True)) / _SOFTNESS) * known
    share: FloatArray = (weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-9)).astype(np.float32)
    return share


def likely_windows(cosine: FloatArray) -> npt.NDArray[np.int64]:
    """Of cosines (n_windows, n_words), the window where each word is, if it is anywhere: (n_words,)."""
    windows: npt.NDArray[np.int64] = ((np.where(np.isfinite(cosine), cosine, -1) + 1) * shares(cosine)).argmax(axis=0)
    return windows
