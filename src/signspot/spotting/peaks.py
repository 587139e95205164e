"""From a similarity curve to findings: temporal non-maximum suppression, several hits per video."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Episode
from signspot.domain.results import Provenance, Spotting
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import EmbeddingTrack, FloatArray, SimilarityTrack, WindowGrid, unit

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
    taken, kept = bytearray(len(curve)), list[int]()  # of single bytes, which are quicker than arrays
    tops = tops[np.argsort(-curve[tops], kind="stable")]
    nearest = np.searchsorted(starts, starts[tops] - distance, side="right")
    farthest = np.searchsorted(starts, starts[tops] + distance)
    for top, first, last in zip(tops.tolist(), nearest.tolist(), farthest.tolist(), strict=True):
        if 1 not in taken[first:last]:
            taken[top] = 1
            kept.append(top)
    return np.array(sorted(kept), dtype=np.int64)


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
    peaks = list(zip(*(part[windows].tolist() for part in (starts, lengths, curve)), windows.tolist(), strict=True))
    kept: list[_Peak] = []
    for peak in peaks:
        while kept and kept[-1][2] < peak[2] and _are_one(kept[-1], peak, curve):
            kept.pop()
        if not (kept and _are_one(kept[-1], peak, curve)):
            kept.append(peak)
    return np.array([window for *_, window in kept], dtype=np.int64)


_Peak = tuple[int, float, float, int]  # its first frame, its length, its height, its window


def _are_one(first: _Peak, second: _Peak, curve: FloatArray) -> bool:
    if second[0] - first[0] >= _REACH * (first[1] + second[1]) / 2:
        return False
    return bool(curve[first[3] : second[3]].min() > min(first[2], second[2]) - _VALLEY)


def spottings_at(
    similarity: SimilarityTrack, windows: npt.NDArray[np.int64], provenance: Provenance, how: Refinement | None = None
) -> tuple[Spotting, ...]:
    """The findings at some windows, whose spans do not overlap; without `how`, a finding lasts as long as its window.

    The best entry over all variants gives the cosine and names the variant (Paper 3.2, "Test time").
    """
    grid = similarity.grid
    spottings: list[Spotting] = []
    spans = [grid.span(window) if how is None else refined_span(similarity, window, how) for window in windows.tolist()]
    for window, span in zip(windows.tolist(), parted(spans), strict=True):
        entry = similarity.entries[best := int(similarity.cosine[window].argmax())]
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
    is_start = np.ones(len(curve), dtype=bool)
    is_start[1:] = curve[1:] != curve[:-1]
    starts = np.flatnonzero(is_start)
    levels = curve[starts]
    rises = levels[1:] > levels[:-1]
    highest = levels > -np.inf  # beside the ends there is nothing
    highest[1:] &= rises
    highest[:-1] &= ~rises
    places = np.flatnonzero(highest)
    stops = np.append(starts, len(curve))[places + 1]
    middles: npt.NDArray[np.int64] = (starts[places] + stops - 1) // 2
    return middles


# From when to when a sign lasts: shorter than its window, and where the similarity stays high. Windows of 16 frames are
# longer than running signs, which last 7 to 13 frames (Paper App. B.5). As the window slides over a sign, the cosine
# rises, stays high while the whole sign is inside, and falls: the middle of that plateau is the middle of the sign. How
# wide it is says next to nothing about how long the sign lasts (experiments/calibration), so a sign is given the middle
# length of the paper. Where windows of several lengths were compared, as with landmarks, the lengths that look most
# like the sign say how long it lasts (experiments/landmark_model/spans.py).

SIGN_LENGTH = 10  # frames: the middle of 7 to 13 (Paper App. B.5)
_SURELY_TAKEN = 6  # frames: hasty signs last hardly longer


@dataclass(frozen=True, slots=True)
class Refinement:
    """How a plateau is seen; chosen on four signers of the made-up world, not those that figures are reported for."""

    level: float = 0.6  # of the way from the floor around a peak up to it
    reach: int = 8  # windows on either side that are looked at


def refined_span(similarity: SimilarityTrack, window: int, how: Refinement = Refinement()) -> FrameSpan:
    """The frames of the sign at a peak, around the middle of the plateau: 10, or as many as look most like it."""
    grid, starts = similarity.grid, similarity.grid.starts()
    length = SIGN_LENGTH if similarity.lengths is None else round(float(similarity.lengths[window]))
    length = min(length, grid.n_frames)
    entry = int(similarity.cosine[window].argmax())
    first, last = _plateau(similarity.cosine[:, entry], window, how)
    start = (int(starts[first]) + int(starts[last]) + grid.length - length) // 2
    whole = grid.span(window)
    most = max(0, length - len(whole))  # by which a sign is longer than the window
    start = min(max(start, whole.start - most, 0), whole.stop + most - length, grid.n_frames - length)
    return FrameSpan(start, start + length)


def parted(spans: Sequence[FrameSpan]) -> list[FrameSpan]:
    """Spans of signs, in order of time: what two neighbours share is halved between them."""
    found = list(spans)
    for number in range(1, len(found)):
        first, second = found[number - 1], found[number]
        if first.overlaps(second):
            border = max((max(first.start, second.start) + min(first.stop, second.stop)) // 2, first.start + 1)
            found[number - 1] = FrameSpan(first.start, border)
            found[number] = FrameSpan(border, max(second.stop, border + 1))
    return found


def middle_of(span: FrameSpan) -> FrameSpan:
    """The frames in the middle of a finding that no other sign can have."""
    cut = max(0, len(span) - _SURELY_TAKEN)
    return FrameSpan(span.start + cut // 2, span.stop - (cut - cut // 2))


def _plateau(curve: FloatArray, window: int, how: Refinement) -> tuple[int, int]:
    """The first and the last window around the peak that stay above the level, without a gap."""
    first, last = max(0, window - how.reach), min(len(curve), window + how.reach + 1)
    around = np.where(np.isfinite(curve[first:last]), curve[first:last], -1.0)
    peak, floor = float(around[window - first]), float(around.min())
    below = np.flatnonzero(around < floor + how.level * (peak - floor)) + first
    before, after = below[below < window], below[below > window]
    return int(before[-1]) + 1 if len(before) else first, int(after[0]) - 1 if len(after) else last - 1


# Findings that remember what they look like, so that they can be compared with each other.


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """A finding, the video it is in, and the vector of its window."""

    spotting: Spotting
    episode: Episode
    vector: FloatArray  # (d,) of length 1

    @classmethod
    def of(cls, spotting: Spotting, episode: Episode, track: EmbeddingTrack) -> Self:
        vector = np.asarray(track.vectors[window_near(track.grid, spotting.frame)], np.float32)
        return cls(spotting, episode, unit(vector))


def window_near(grid: WindowGrid, frame: int) -> int:
    """The window whose centre lies closest to a frame.

    >>> window_near(WindowGrid(100), 30), window_near(WindowGrid(100), 0)
    (22, 0)
    """
    if not len(grid):
        raise ValueError("a grid without windows")
    centres = np.minimum(grid.starts() + grid.length // 2, grid.n_frames - 1)
    return int(np.abs(centres - frame).argmin())
