"""The cosine of every window of a video with every entry of a word (psi of Paper 3.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import EmbeddingTrack, EntryVectors, FloatArray, SimilarityTrack

_SHORTEST = 1e-6  # a vector shorter than this has no direction


def similarity(track: EmbeddingTrack, entries: EntryVectors) -> SimilarityTrack:
    """Compare all windows with all entries; vectors that are zero or not finite score -inf and can never win."""
    if track.fingerprint != entries.fingerprint:
        raise ValueError(f"{track.video_id}: windows by {track.fingerprint!r}, entries by {entries.fingerprint!r}")
    windows, usable_windows = _unit_rows(track.vectors)
    references, usable_entries = _unit_rows(entries.vectors)
    cosine = np.clip(windows @ references.T, -1.0, 1.0)
    cosine[~usable_windows, :] = -np.inf
    cosine[:, ~usable_entries] = -np.inf
    return SimilarityTrack(entries.word, track.video_id, track.grid, track.axis, entries.entries, cosine)


def _unit_rows(vectors: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Rows of length 1, and which of them are usable; the others are zero."""
    finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(vectors).all(axis=1))
    rows = np.where(finite[:, None], vectors, 0).astype(np.float64)
    length = np.linalg.norm(rows, axis=1)
    usable: npt.NDArray[np.bool_] = finite & (length > _SHORTEST)
    return (rows / np.where(usable, length, 1)[:, None] * usable[:, None]).astype(np.float32), usable
