from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Entry, Word
from signspot.domain.time import FrameSpan, TimeAxis
from signspot.domain.tracks import SimilarityTrack, WindowGrid
from signspot.spotting.peaks import SIGN_LENGTH, middle_of, parted, refined_span


def sliding(sign: FrameSpan, n_frames: int = 80) -> SimilarityTrack:
    """The share of a sign that each window holds, as a cosine: what a perfect model would see."""
    grid = WindowGrid(n_frames)
    inside = [
        max(0, min(start + 16, sign.stop) - max(start, sign.start)) / len(sign) for start in grid.starts().tolist()
    ]
    # A sign in the middle of its window looks a little more like it.
    centred = [-abs(start + 8 - (sign.start + sign.stop) / 2) / 1000 for start in grid.starts().tolist()]
    cosine = np.array(inside, np.float32)[:, None] + np.array(centred, np.float32)[:, None]
    axis = TimeAxis(np.arange(n_frames) * 40.0)
    return SimilarityTrack(Word("a"), "v", grid, axis, (Entry(entry_id="a", word=Word("a")),), cosine)


@given(st.integers(20, 45), st.integers(7, 13))
def test_a_sign_that_slides_through_the_window_is_measured_to_a_few_frames(start: int, length: int) -> None:
    sign = FrameSpan(start, start + length)
    similarity = sliding(sign)
    peak = int(similarity.best.argmax())
    span = refined_span(similarity, peak)
    shared = min(span.stop, sign.stop) - max(span.start, sign.start)
    overlap = shared / (len(span) + length - shared)
    whole = similarity.grid.span(peak)
    assert overlap >= 0.6
    assert overlap >= 0.85 * length / len(whole)  # no worse, even for long signs
    if length <= 10:
        assert overlap > length / len(whole)


def test_a_sign_lies_in_the_middle_of_its_plateau_wherever_on_it_the_peak_is() -> None:
    cosine = np.zeros((60, 1), np.float32)
    cosine[12:19], cosine[17], cosine[15] = 0.8, 0.9, 0.7  # seven windows, the peak near their end, and a small dip
    track = replace(sliding(FrameSpan(30, 40), 75), cosine=cosine)
    assert refined_span(track, 17) == FrameSpan(18, 28)  # the middle window of the plateau is 15, its centre frame 23


@given(
    st.lists(st.one_of(st.floats(-1, 1, width=32), st.just(-np.inf)), min_size=1, max_size=60),
    st.integers(0, 200),
    st.integers(1, 4),
)
def test_a_span_lies_in_its_window_and_is_as_long_as_a_sign(values: list[float], place: int, stride: int) -> None:
    n_frames = (len(values) - 1) * stride + 16
    grid = WindowGrid(n_frames, stride=stride)
    cosine = np.array(values, np.float32)[: len(grid), None]
    axis = TimeAxis(np.arange(n_frames) * 40.0)
    track = SimilarityTrack(Word("a"), "v", grid, axis, (Entry(entry_id="a", word=Word("a")),), cosine)
    window = place % len(grid)
    span, whole = refined_span(track, window), grid.span(window)
    assert whole.start <= span.start < span.stop <= whole.stop
    assert len(span) == SIGN_LENGTH


@pytest.mark.parametrize("n_frames", [1, 3, 7])
def test_a_video_shorter_than_a_sign_is_one_span(n_frames: int) -> None:
    grid = WindowGrid(n_frames)
    axis = TimeAxis(np.arange(n_frames) * 40.0)
    entries = (Entry(entry_id="a", word=Word("a")),)
    track = SimilarityTrack(Word("a"), "v", grid, axis, entries, np.ones((1, 1), np.float32))
    assert refined_span(track, 0) == FrameSpan(0, n_frames)


@pytest.mark.parametrize("length", [8, 16, 30])
def test_where_the_length_of_the_best_window_is_known_the_span_is_as_long(length: int) -> None:
    track = sliding(FrameSpan(36, 46))
    known = replace(track, lengths=np.full(len(track.grid), length, np.float32))
    span = refined_span(known, int(track.best.argmax()))
    assert len(span) == length and abs((span.start + span.stop) / 2 - 41) <= 1
    for window in (0, len(track.grid) - 1):
        span, own = refined_span(known, window), track.grid.span(window)
        assert span.start >= 0 and span.stop <= 80 and len(span) == length
        assert span.start <= own.start < own.stop <= span.stop or (own.start <= span.start and span.stop <= own.stop)


@given(st.lists(st.tuples(st.integers(16, 40), st.integers(8, 34)), min_size=1, max_size=8))
def test_parted_spans_do_not_overlap_and_keep_their_middles(steps: list[tuple[int, int]]) -> None:
    middles = np.cumsum([step for step, _ in steps]).tolist()
    spans = [FrameSpan(m - n // 2, m - n // 2 + n) for m, (_, n) in zip(middles, steps, strict=True)]
    found = parted(spans)
    for before, after in itertools.pairwise(found):
        assert before.stop <= after.start
    for one, whole, middle in zip(found, spans, middles, strict=True):
        assert whole.start <= one.start < one.stop <= whole.stop
        assert abs(min(max(middle, one.start), one.stop) - middle) <= 9
    alone = [span for i, span in enumerate(spans) if not any(span.overlaps(o) for j, o in enumerate(spans) if i != j)]
    assert set(alone) <= set(found)


def test_even_signs_that_share_all_they_have_keep_a_frame_each() -> None:
    assert parted([FrameSpan(5, 6), FrameSpan(5, 6)]) == [FrameSpan(5, 6), FrameSpan(6, 7)]


def test_the_middle_of_a_span_is_what_no_other_sign_can_have() -> None:
    assert middle_of(FrameSpan(20, 41)) == FrameSpan(27, 33)
    assert middle_of(FrameSpan(20, 25)) == FrameSpan(20, 25)
