"""From a similarity curve to findings: temporal non-maximum suppression, several hits per video."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from signspot.domain.results import Provenance, Spotting
from signspot.domain.tracks import FloatArray, SimilarityTrack
from signspot.spotting.occurrences import window_near
from signspot.spotting.refine import Refinement, parted, refined_span

_REACH, _VALLEY = 1.2, 0.07  # of a sign's length, and of a cosine (experiments/landmark_model/spans.py)


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


def peaks_of(similarity: SimilarityTrack, curve: FloatArray, threshold: float) -> npt.NDArray[np.int64]:
    """The windows where a word's `curve` peaks: a window's length apart, and each another sign.

    Where it is known how many frames look like the word, two peaks hardly further apart, without a valley between them,
    are one sign that is slow or held.
    """
    grid, lengths = similarity.grid, similarity.lengths
    starts = grid.starts()
    windows = find_peaks(curve, starts, threshold, grid.length)
    if lengths is None:
        return windows
    kept: list[int] = []
    for window in windows.tolist():
        while kept and _are_one((kept[-1], window), curve, starts, lengths) and curve[kept[-1]] < curve[window]:
            kept.pop()
        if not (kept and _are_one((kept[-1], window), curve, starts, lengths)):
            kept.append(window)
    return np.array(kept, dtype=np.int64)


def _are_one(pair: tuple[int, int], curve: FloatArray, starts: npt.NDArray[np.int64], lengths: FloatArray) -> bool:
    """Whether two peaks belong to one sign."""
    first, second = pair
    reach = _REACH * (lengths[first] + lengths[second]) / 2
    lower = min(curve[first], curve[second])
    return bool(starts[second] - starts[first] < reach and curve[first:second].min() > lower - _VALLEY)


def spottings_of(
    similarity: SimilarityTrack, threshold: float, provenance: Provenance, how: Refinement | None = None
) -> tuple[Spotting, ...]:
    """All findings of a word in a video; their spans do not overlap. None is an answer too."""
    return spottings_at(similarity, peaks_of(similarity, similarity.best, threshold), provenance, how)


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
    spans = [grid.span(window) if how is None else refined_span(similarity, window, how) for window in windows.tolist()]
    for window, span in zip(windows.tolist(), parted(spans), strict=True):
        best = int(similarity.cosine[window].argmax())
        entry = similarity.entries[best]
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


def peaking_inside(
    spottings: tuple[Spotting, ...], similarity: SimilarityTrack, windows: npt.NDArray[np.bool_]
) -> tuple[Spotting, ...]:
    """The findings whose peak lies in the given windows: at their border, one that rises further outside goes."""
    best, n_windows = similarity.best, len(similarity.grid)
    kept = []
    for spotting in spottings:
        window = window_near(similarity.grid, spotting.frame)
        beside = [other for other in (window - 1, window + 1) if 0 <= other < n_windows and not windows[other]]
        if all(best[other] <= best[window] for other in beside):
            kept.append(spotting)
    return tuple(kept)


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
