"""The cosine of every window of a video with every entry of a word (psi of Paper 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import EmbeddingTrack, EntryVectors, FloatArray, SimilarityTrack, Vectors


def unit(vectors: FloatArray) -> FloatArray:
    """Rows (..., d) brought to length 1; a row of zeros, or of what is no number, becomes zeros."""
    finite = np.where(np.isfinite(vectors).all(axis=-1, keepdims=True), vectors, 0).astype(np.float32)
    length = np.linalg.norm(finite, axis=-1, keepdims=True)
    return (finite / np.where(length > 0, length, 1)).astype(np.float32)


_ROWS_AT_ONCE = 4096  # a track of hours lies on the disk, and is never held whole
_ENTRIES_AT_ONCE = 256
_NEARLY = 0.05  # of a cosine: a length that is so much less alike counts a third of the best
_SHORTEST = 1e-6  # a vector shorter than this has no direction


def similarity(track: EmbeddingTrack, entries: EntryVectors) -> SimilarityTrack:
    """Compare all windows with all entries; vectors that are zero or not finite score -inf and can never win.

    Where a track has windows of several lengths, the most similar length counts.
    """
    (compared,) = similarities(track, (entries,))
    return compared


def similarities(track: EmbeddingTrack, words: Sequence[EntryVectors]) -> Iterator[SimilarityTrack]:
    """The same for many words, in order; the windows are read once for every 256 entries."""
    if not track.unit_rows:
        raise ValueError(f"{track.video_id}: vectors of a trunk are compared after the head, not before it")
    for some in _shelves(words):
        for one in some:
            if one.fingerprint != track.fingerprint:
                what = f"windows by {track.fingerprint!r}, entries by {one.fingerprint!r}"
                raise ValueError(f"{track.video_id}: {what}")
        yield from _compared(track, some)


def _compared(track: EmbeddingTrack, words: Sequence[EntryVectors]) -> Iterator[SimilarityTrack]:
    """Compare with all entries of some words at once."""
    references, usable = _unit_rows(np.concatenate([one.vectors for one in words]))
    n_windows, lengths = len(track.vectors), np.array(lengths_of(track), np.float32)
    stops = np.cumsum([len(one.entries) for one in words]).tolist()
    slices = [slice(stop - len(one.entries), stop) for one, stop in zip(words, stops, strict=True)]
    cosine = np.empty((len(references), n_windows), np.float32)
    frames = np.empty((len(words), n_windows), np.float32)
    for first in range(0, n_windows, _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        rates = np.stack([_cosines(vectors[rows], references) for vectors in rates_of(track)])
        rates[:, ~usable] = -np.inf
        cosine[:, rows] = rates.max(axis=0)
        if len(lengths):
            for own, entries in zip(frames, slices, strict=True):
                own[rows] = _length(rates[:, entries], cosine[entries, rows], lengths)
    for one, own, entries in zip(words, frames, slices, strict=True):
        part = np.ascontiguousarray(cosine[entries].T)
        known = own if len(lengths) else None
        yield SimilarityTrack(one.word, track.video_id, track.grid, track.axis, one.entries, part, known)


def _length(rates: FloatArray, best: FloatArray, lengths: FloatArray) -> FloatArray:
    """How many frames look like a word: of cosines (rates, n_entries, n), the mean length at the best entry (n,).

    Neighbouring lengths look nearly the same, so each counts by how near it comes to the `best` (n_entries, n).
    """
    if not len(best):
        return np.full(best.shape[1], lengths[0])
    entry = best.argmax(axis=0)
    cosine = rates[:, 0] if len(best) == 1 else np.take_along_axis(rates, entry[None, None], axis=1)[:, 0]
    cosine = np.maximum(cosine, -1)  # -inf: nobody is seen
    weight = np.exp((cosine - cosine.max(axis=0)) / _NEARLY)
    mean: FloatArray = lengths @ weight / weight.sum(axis=0)
    return mean


def _cosines(vectors: Vectors, references: FloatArray) -> FloatArray:
    """(n_entries, n_windows); -inf in the columns of unusable windows."""
    windows, usable = _unit_rows(vectors)
    cosine: FloatArray = np.clip(references @ windows.T, -1.0, 1.0)
    cosine[:, ~usable] = -np.inf
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


# A track with more than one vector for a place: windows of several lengths around the same frame.


@dataclass(frozen=True, slots=True, eq=False)
class RateTrack(EmbeddingTrack):
    """Embeddings of the usual windows, and of shorter and longer ones; whichever resembles an entry most counts."""

    other_rates: tuple[Vectors, ...] = ()  # each (n_windows, d), rows of length 1, or zero where nobody is seen
    lengths: tuple[int, ...] = ()  # frames of the usual windows, then of the others; empty: unknown

    def __post_init__(self) -> None:
        EmbeddingTrack.__post_init__(self)
        if any(vectors.shape != self.vectors.shape for vectors in self.other_rates):
            raise ValueError(f"{self.video_id}: vectors of other rates of another shape than {self.vectors.shape}")
        if len(self.lengths) not in (0, 1 + len(self.other_rates)):
            raise ValueError(f"{self.video_id}: {len(self.lengths)} lengths of {1 + len(self.other_rates)} rates")


def rates_of(track: EmbeddingTrack) -> tuple[Vectors, ...]:
    """The vectors of a track for every length of window that it has: the usual one, then the others."""
    return (track.vectors, *track.other_rates) if isinstance(track, RateTrack) else (track.vectors,)


def lengths_of(track: EmbeddingTrack) -> tuple[int, ...]:
    """The frames of each of `rates_of`, where there are several."""
    return track.lengths if isinstance(track, RateTrack) else ()
