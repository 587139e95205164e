"""From when to when a sign lasts: shorter than its window, and where the similarity stays high.

Windows of 16 frames are longer than running signs, which last 7 to 13 frames (Paper App. B.5). As the window slides
over a sign, the cosine rises, stays high while the whole sign is inside, and falls: the middle of that plateau is the
middle of the sign. How wide it is says next to nothing about how long the sign lasts (experiments/calibration), so a
sign is given the middle length of the paper. Where windows of several lengths were compared, as with landmarks, the
lengths that look most like the sign say how long it lasts (experiments/landmark_model/spans.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import FloatArray, SimilarityTrack

SIGN_LENGTH = 10  # frames: the middle of 7 to 13 (Paper App. B.5)
SURELY_TAKEN = 6  # frames in the middle of a finding that no other sign can have: hasty signs last hardly longer


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


def middle_of(span: FrameSpan, length: int = SURELY_TAKEN) -> FrameSpan:
    """At most `length` frames, from the middle of a span."""
    cut = max(0, len(span) - length)
    return FrameSpan(span.start + cut // 2, span.stop - (cut - cut // 2))


def _plateau(curve: FloatArray, window: int, how: Refinement) -> tuple[int, int]:
    """The first and the last window around the peak that stay above the level, without a gap."""
    first, last = max(0, window - how.reach), min(len(curve), window + how.reach + 1)
    around = np.where(np.isfinite(curve[first:last]), curve[first:last], -1.0)
    peak, floor = float(around[window - first]), float(around.min())
    below = np.flatnonzero(around < floor + how.level * (peak - floor)) + first
    before, after = below[below < window], below[below > window]
    return int(before[-1]) + 1 if len(before) else first, int(after[0]) - 1 if len(after) else last - 1
