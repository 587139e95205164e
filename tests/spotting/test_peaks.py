from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Entry, Word
from signspot.domain.results import Provenance, Spotting
from signspot.domain.time import MillisSpan, TimeAxis
from signspot.domain.tracks import SimilarityTrack, WindowGrid
from signspot.spotting.peaks import find_peaks, limited_to, peaking_inside, peaks_of, spottings_at

WORD = Word("apple")
PROVENANCE = Provenance(media_sha256="0", model="m", fingerprint="f", dictionary="d")
# Few different levels, so that ties and flat tops happen all the time.
levels = st.sampled_from([-np.inf, -0.5, 0.1, 0.3, 0.5, 0.9])
curves = st.lists(levels, max_size=60).map(lambda x: np.array(x, np.float32))


def found_from(similarity: SimilarityTrack, threshold: float, provenance: Provenance) -> tuple[Spotting, ...]:
    return spottings_at(similarity, peaks_of(similarity, similarity.best, threshold), provenance)


def peaks_by_hand(curve: list[float], threshold: float, distance: int) -> list[int]:
    """The docstring read aloud."""
    tops, i = [], 0
    while i < len(curve):
        j = i
        while j + 1 < len(curve) and curve[j + 1] == curve[i]:
            j += 1
        higher_left = i == 0 or curve[i - 1] < curve[i]
        higher_right = j == len(curve) - 1 or curve[j + 1] < curve[i]
        if higher_left and higher_right and curve[i] > -np.inf:
            tops.append((i + j) // 2)
        i = j + 1
    kept: list[int] = []
    for top in sorted(tops, key=lambda t: (-curve[t], t)):
        if curve[top] >= threshold and all(abs(top - other) >= distance for other in kept):
            kept.append(top)
    return sorted(kept)


@given(curves, st.sampled_from([-1.0, 0.1, 0.3, 0.95]), st.integers(1, 20))
def test_peaks_are_what_the_definition_says(curve: np.ndarray, threshold: float, distance: int) -> None:
    found = find_peaks(curve, np.arange(len(curve)), threshold, distance)
    assert found.tolist() == peaks_by_hand(curve.tolist(), threshold, distance)


@given(curves, st.integers(1, 20))
def test_a_higher_threshold_never_finds_anything_new(curve: np.ndarray, distance: int) -> None:
    starts = np.arange(len(curve))
    assert set(find_peaks(curve, starts, 0.3, distance)) <= set(find_peaks(curve, starts, 0.1, distance))


def track(cosine: np.ndarray, stride: int = 1, pulled_back: int = 0) -> SimilarityTrack:
    n_frames = (len(cosine) - 1) * stride + 16 - pulled_back
    grid = WindowGrid(n_frames, stride=stride)
    entries = tuple(Entry(entry_id=f"e{i}", word=WORD, variant=f"v{i}") for i in range(cosine.shape[1]))
    return SimilarityTrack(WORD, "video", grid, TimeAxis(1000 + np.arange(n_frames) * 40.0), entries, cosine)


def test_a_finding_names_its_time_frame_and_best_variant() -> None:
    cosine = np.full((60, 2), 0.1, np.float32)
    cosine[20] = (0.5, 0.8)
    cosine[45] = (0.7, 0.6)
    first, second = found_from(track(cosine), 0.4, PROVENANCE)
    assert (first.frame, first.entry_id, first.variant, first.span_ms) == (28, "e1", "v1", MillisSpan.of(1800, 2440))
    assert first.cosine == pytest.approx(0.8)
    assert (second.frame, second.entry_id) == (53, "e0")


def test_nothing_found_is_an_answer() -> None:
    assert found_from(track(np.full((30, 1), 0.2, np.float32)), 0.4, PROVENANCE) == ()
    assert found_from(track(np.full((30, 1), -np.inf, np.float32)), -1.0, PROVENANCE) == ()


@given(curves.filter(lambda x: len(x) > 1), st.integers(1, 9), st.integers(0, 8))
def test_findings_of_a_word_do_not_overlap(curve: np.ndarray, stride: int, pulled_back: int) -> None:
    similarity = track(curve[:, None], stride, min(pulled_back, stride - 1))
    spans = [s.span_ms for s in found_from(similarity, -1.0, PROVENANCE)]
    assert all(a.stop <= b.start for a, b in itertools.pairwise(spans))


def test_only_the_windows_that_are_searched_can_be_found() -> None:
    cosine = np.full((60, 1), 0.1, np.float32)
    cosine[[10, 50]] = ((0.9,), (0.8,))
    inside = np.arange(60) > 30
    assert [s.frame for s in found_from(limited_to(track(cosine), inside), 0.4, PROVENANCE)] == [58]


@pytest.mark.parametrize(("first", "found"), [(25, []), (15, [28])])
def test_a_curve_that_falls_where_the_search_begins_has_no_peak_there(first: int, found: list[int]) -> None:
    cosine = np.full((60, 1), 0.1, np.float32)
    cosine[10:31, 0] = 0.9 - 0.02 * np.abs(np.arange(-10, 11))  # the sign is around window 20
    inside = np.arange(60) >= first
    spottings = found_from(limited_to(track(cosine), inside), 0.4, PROVENANCE)
    assert len(spottings) == 1
    assert [one.frame for one in peaking_inside(spottings, track(cosine), inside)] == found


def test_a_flat_top_across_the_border_of_the_search_is_a_peak() -> None:
    cosine = np.full((60, 1), 0.1, np.float32)
    cosine[20:22] = 0.9
    inside = np.arange(60) >= 21
    spottings = found_from(limited_to(track(cosine), inside), 0.4, PROVENANCE)
    assert [one.frame for one in peaking_inside(spottings, track(cosine), inside)] == [29]


def test_of_two_equal_peaks_of_one_slow_sign_the_earlier_counts() -> None:
    places, heights = (0, 30, 45, 60, 99), (0.1, 0.75, 0.7, 0.75, 0.1)
    cosine = np.interp(np.arange(100), places, heights).astype(np.float32)[:, None]
    slow = dataclasses.replace(track(cosine), lengths=np.full(100, 30, np.float32))
    assert peaks_of(slow, slow.best, 0.5).tolist() == [30]


@pytest.mark.parametrize(
    ("valley", "length", "found"),
    [
        (0.64, 30.0, [60]),  # a held sign: the curve hardly falls between its two peaks
        (0.62, 30.0, [30, 60]),  # signed twice
        (0.68, 26.0, [60]),  # a fifth further apart than the sign is long, at most
        (0.68, 24.0, [30, 60]),  # too far apart for so short a sign
        (0.68, None, [30, 60]),  # nobody knows how long it is
    ],
)
def test_two_peaks_without_a_valley_are_one_slow_sign(valley: float, length: float | None, found: list[int]) -> None:
    places, heights = (0, 30, 45, 60, 99), (0.1, 0.7, valley, 0.75, 0.1)
    curve = np.interp(np.arange(100), places, heights).astype(np.float32)
    grid = WindowGrid(115)
    entry, axis = Entry(entry_id="a", word=WORD), TimeAxis(np.arange(115) * 40.0)
    lengths = None if length is None else np.full(100, length, np.float32)
    for reverse in (False, True):
        shown = curve[::-1].copy() if reverse else curve
        track = SimilarityTrack(WORD, "v", grid, axis, (entry,), shown[:, None], lengths)
        expected = sorted(99 - window for window in found) if reverse else found
        assert peaks_of(track, track.best, 0.5).tolist() == expected
        assert [one.frame - 8 for one in found_from(track, 0.5, PROVENANCE)] == expected
