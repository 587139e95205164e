"""From a similarity curve to findings: temporal non-maximum suppression, several hits per video."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from signspot.domain.results import Provenance, Spotting
from signspot.domain.tracks import FloatArray, SimilarityTrack
from signspot.spotting.refine import Refinement, refined_span


def find_peaks(
    curve: FloatArray, starts: npt.NDArray[np.int64], threshold: float, distance: int
) -> npt.NDArray[np.int64]:
    """The windows where `curve` peaks, in order of time; `starts` are the windows' first frames.

    A peak is at least `threshold` and higher than its neighbours (the middle of a flat top). Peaks are taken from the
    highest down (ties: the earlier first), and each keeps others away that start less than `distance` frames from it.
    """
    tops = _local_maxima(curve)
    tops = tops[curve[tops] >= threshold]
    taken = np.zeros(len(curve), dtype=bool)
    tops = tops[np.argsort(-curve[tops], kind="stable")]
    nearest = np.searchsorted(starts, starts[tops] - distance, side="right")
    farthest = np.searchsorted(starts, starts[tops] + distance)
    for top, first, last in zip(tops, nearest, farthest, strict=True):
        if not taken[first:last].any():
            taken[top] = True
    return np.flatnonzero(taken)


def spottings_of(
    similarity: SimilarityTrack, threshold: float, provenance: Provenance, how: Refinement | None = None
) -> tuple[Spotting, ...]:
    """All findings of a word in a video; their spans do not overlap. None is an answer too."""
    grid = similarity.grid
    windows = find_peaks(similarity.best, grid.starts(), threshold, grid.length)
    return spottings_at(similarity, windows, provenance, how)


def spottings_at(
    similarity: SimilarityTrack,
    windows: npt.NDArray[np.int64],
    provenance: Provenance,
    how: Refinement | None = None,
) -> tuple[Spotting, ...]:
    """The findings at some windows; without `how`, a finding lasts as long as its window.

    The best entry over all variants gives the cosine and names the variant (Paper 3.2, "Test time").
    """
    grid = similarity.grid
    spottings: list[Spotting] = []
    for window in windows.tolist():
        best = int(similarity.cosine[window].argmax())
        entry = similarity.entries[best]
        span = grid.span(window) if how is None else refined_span(similarity, window, how)
        spottings.append(
            Spotting(
                video_id=similarity.video_id,
                span_ms=similarity.axis.millis_of(span),
                frame=grid.centre(window),
                word=similarity.word,
                entry_id=entry.entry_id,
                variant=entry.variant,
                type_id=entry.type_id,
                cosine=float(similarity.cosine[window, best]),
                provenance=provenance,
            )
        )
    return tuple(spottings)


def limited_to(similarity: SimilarityTrack, windows: npt.NDArray[np.bool_]) -> SimilarityTrack:
    """Only the given windows may be found; all others score -inf."""
    return dataclasses.replace(similarity, cosine=np.where(windows[:, None], similarity.cosine, np.float32(-np.inf)))


def _local_maxima(curve: FloatArray) -> npt.NDArray[np.int64]:
    """The middle of every stretch of equal values that is higher than what lies on both sides."""
    if not len(curve):
        return np.empty(0, dtype=np.int64)
    starts = np.flatnonzero(np.r_[True, curve[1:] != curve[:-1]])
    stops = np.r_[starts[1:], len(curve)]
    levels = np.r_[-np.inf, curve[starts], -np.inf]
    highest = (levels[1:-1] > levels[:-2]) & (levels[1:-1] > levels[2:])
    middles: npt.NDArray[np.int64] = (starts[highest] + stops[highest] - 1) // 2
    return middles
