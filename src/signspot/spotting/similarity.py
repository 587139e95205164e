"""The cosine of every window of a video with every entry of a word (psi of Paper 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import EmbeddingTrack, EntryVectors, FloatArray, SimilarityTrack, Vectors
from signspot.spotting.rate_track import rates_of

_ROWS_AT_ONCE = 4096  # a track of hours lies on the disk, and is never held whole
_ENTRIES_AT_ONCE = 256
_SHORTEST = 1e-6  # a vector shorter than this has no direction


def similarity(track: EmbeddingTrack, entries: EntryVectors) -> SimilarityTrack:
    """Compare all windows with all entries; vectors that are zero or not finite score -inf and can never win.

    Where a track has windows of several lengths, the most similar length counts.
    """
    if track.fingerprint != entries.fingerprint:
        raise ValueError(f"{track.video_id}: windows by {track.fingerprint!r}, entries by {entries.fingerprint!r}")
    if not track.unit_rows:
        raise ValueError(f"{track.video_id}: vectors of a trunk are compared after the head, not before it")
    references, usable_entries = _unit_rows(entries.vectors)
    cosine = np.empty((len(track.vectors), len(references)), np.float32)
    for first in range(0, len(cosine), _ROWS_AT_ONCE):
        blocks = (_cosines(vectors[first : first + _ROWS_AT_ONCE], references) for vectors in rates_of(track))
        cosine[first : first + _ROWS_AT_ONCE] = np.maximum.reduce(list(blocks))
    cosine[:, ~usable_entries] = -np.inf
    return SimilarityTrack(entries.word, track.video_id, track.grid, track.axis, entries.entries, cosine)


def similarities(track: EmbeddingTrack, words: Sequence[EntryVectors]) -> Iterator[SimilarityTrack]:
    """The same for many words, in order; the windows are read once for every 256 entries."""
    for some in _shelves(words):
        entries = tuple(entry for one in some for entry in one.entries)
        vectors = np.concatenate([one.vectors for one in some])
        fingerprints = {one.fingerprint for one in some}
        if len(fingerprints) > 1:
            raise ValueError(f"{track.video_id}: entries by {sorted(fingerprints)}")
        together = similarity(track, EntryVectors(some[0].word, entries, vectors, some[0].fingerprint))
        first = 0
        for one in some:
            last = first + len(one.entries)
            cosine = np.ascontiguousarray(together.cosine[:, first:last])
            yield replace(together, word=one.word, entries=one.entries, cosine=cosine)
            first = last


def _cosines(vectors: Vectors, references: FloatArray) -> FloatArray:
    """(n_windows, n_entries); -inf in the rows of unusable windows."""
    windows, usable = _unit_rows(vectors)
    cosine: FloatArray = np.clip(windows @ references.T, -1.0, 1.0)
    cosine[~usable, :] = -np.inf
    return cosine


def _shelves(words: Sequence[EntryVectors]) -> Iterator[list[EntryVectors]]:
    """Words in groups of up to 256 entries."""
    some: list[EntryVectors] = []
    for one in words:
        if some and sum(len(each.entries) for each in some) + len(one.entries) > _ENTRIES_AT_ONCE:
            yield some
            some = []
        some.append(one)
    if some:
        yield some


def _unit_rows(vectors: Vectors) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Rows of length 1, and which of them are usable; the others are zero."""
    finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(vectors).all(axis=1))
    rows = np.where(finite[:, None], vectors, 0).astype(np.float64)
    length = np.linalg.norm(rows, axis=1)
    usable: npt.NDArray[np.bool_] = finite & (length > _SHORTEST)
    return (rows / np.where(usable, length, 1)[:, None] * usable[:, None]).astype(np.float32), usable
