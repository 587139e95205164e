from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.time import FrameSpan, Tolerance
from signspot.learning.batches import PassageWindows, _distinct_draws, _Foreground
from tests.learning.problems import one_passage


def windows_by_hand(
    start: int, stop: int, label: int, n_windows: int, foreground: _Foreground
) -> tuple[set[int], set[int]]:
    """Paper 3.2 read aloud: try every window of the passage."""
    fore, back = set(), set()
    for window in range(n_windows):
        clip = FrameSpan(window, window + 16)
        if clip.start < start or clip.stop > stop:
            continue
        if foreground == "inside" and clip.start >= label - 20 and clip.stop <= label + 5:
            fore.add(window)
        if foreground == "centre" and label - 20 <= window + 8 <= label + 5:
            fore.add(window)
        if not clip.overlaps(FrameSpan(label - 20, label + 5 + 16)):
            back.add(window)
    return fore, back


@given(st.integers(0, 60), st.integers(0, 160), st.integers(0, 220), st.sampled_from(["inside", "centre"]))
def test_windows_are_those_of_the_paper(start: int, length: int, label: int, foreground: _Foreground) -> None:
    passages = one_passage(frame=label, start=start, stop=start + length).passages
    windows = PassageWindows.of(passages, np.array([180]), Tolerance(), foreground)
    fore, back = windows_by_hand(start, start + length, label, 180, foreground)
    assert bool(windows.has_foreground[0]) == bool(fore)
    assert windows.n_background.tolist() == [len(back)]
    rng = np.random.default_rng(0)
    many = np.zeros(300, np.int64)
    if fore:
        assert set(windows.draw_foreground(many, rng).tolist()) == fore
    if back:
        assert set(windows.draw_background(many[:1], len(back), rng)[0].tolist()) == back


def test_a_foreground_clip_has_ten_places_around_a_label() -> None:
    windows = PassageWindows.of(one_passage(frame=100).passages, np.array([300]), Tolerance(), "inside")
    drawn = Counter(windows.draw_foreground(np.zeros(5000, np.int64), np.random.default_rng(0)).tolist())
    assert sorted(drawn) == list(range(80, 90))
    assert min(drawn.values()) > 400


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(1, 12), st.integers(0, 9))
def test_draws_differ_where_they_can(counts: list[int], n_draws: int, seed: int) -> None:
    drawn = _distinct_draws(np.array(counts, np.int64), n_draws, np.random.default_rng(seed))
    for count, row in zip(counts, drawn.tolist(), strict=True):
        assert all(0 <= number < count for number in row)
        repeats = Counter(row).values()
        assert len(set(row)) == min(count, n_draws)
        assert max(repeats) - min(repeats) <= 1


def test_all_choices_are_equally_likely() -> None:
    drawn = _distinct_draws(np.full(20_000, 6), 3, np.random.default_rng(0))
    chosen = Counter(frozenset(row) for row in drawn.tolist())
    assert len(chosen) == 20
    assert max(chosen.values()) < 1.2 * min(chosen.values())


def test_no_draws_and_no_windows_are_no_trouble() -> None:
    rng = np.random.default_rng(0)
    assert _distinct_draws(np.array([3, 0]), 0, rng).shape == (2, 0)
    assert _distinct_draws(np.array([0]), 4, rng).tolist() == [[0, 0, 0, 0]]
