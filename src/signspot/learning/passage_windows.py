"""Where the clips of a passage may lie: the foreground around its label, the background away from it.

A window is named by its first frame, which is its row in the track. Ranges of windows are half-open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from signspot.domain.spans import Tolerance
from signspot.domain.tracks import CLIP_LENGTH
from signspot.learning.material import Ints, Passages

Foreground = Literal["inside", "centre"]


@dataclass(frozen=True, slots=True, eq=False)
class PassageWindows:
    """The windows of each passage, (P,) each; a range that ends at or before its start is empty."""

    foreground_start: Ints
    foreground_stop: Ints
    before_start: Ints  # background windows before the label
    n_before: Ints
    after_start: Ints  # background windows behind it
    n_after: Ints

    @classmethod
    def of(cls, passages: Passages, n_windows: Ints, around: Tolerance, foreground: Foreground) -> PassageWindows:
        """The windows of passages whose tracks have `n_windows` (P,) rows.

        `inside`: the foreground clip lies in [label - before, label + after). `centre`: its centre frame lies from
        label - before to label + after. Background clips do not overlap [label - before, label + after + 16).
        """
        label, start = passages.label_frame, passages.start
        stop = np.minimum(passages.stop - CLIP_LENGTH + 1, n_windows)
        first, last = label - around.before, label + around.after - CLIP_LENGTH
        if foreground == "centre":
            first, last = first - CLIP_LENGTH // 2, label + around.after - CLIP_LENGTH // 2
        before_stop = label - around.before - CLIP_LENGTH + 1
        after_start = np.maximum(start, label + around.after + CLIP_LENGTH)
        return cls(
            foreground_start=np.maximum(start, first),
            foreground_stop=np.minimum(stop, last + 1),
            before_start=start,
            n_before=np.maximum(0, np.minimum(stop, before_stop) - start),
            after_start=after_start,
            n_after=np.maximum(0, stop - after_start),
        )

    @property
    def has_foreground(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """(P,) bool."""
        return self.foreground_start < self.foreground_stop

    @property
    def n_background(self) -> Ints:
        """(P,) how many different background clips a passage has."""
        return self.n_before + self.n_after

    def draw_foreground(self, passages: Ints, rng: np.random.Generator) -> Ints:
        """One window for each of these passages, all equally likely: (n,)."""
        return rng.integers(self.foreground_start[passages], self.foreground_stop[passages])

    def draw_background(self, passages: Ints, n_clips: int, rng: np.random.Generator) -> Ints:
        """(n, n_clips) windows, different ones where there are enough; meaningless where there is none."""
        number = distinct_draws(self.n_background[passages], n_clips, rng)
        n_before = self.n_before[passages, None]
        after = self.after_start[passages, None] + number - n_before
        return np.where(number < n_before, self.before_start[passages, None] + number, after)


def distinct_draws(counts: Ints, n_draws: int, rng: np.random.Generator) -> Ints:
    """For each count (n,), `n_draws` different numbers below it; all of them in turn where they are too few."""
    drawn = np.empty((len(counts), n_draws), np.int64)
    for place in range(n_draws):  # Floyd's method: every choice is equally likely
        last = np.maximum(counts - n_draws + place, 0)
        number = rng.integers(0, last + 1)
        is_taken = (drawn[:, :place] == number[:, None]).any(axis=1)
        drawn[:, place] = np.where(is_taken, last, number)
    at_least_one = np.maximum(counts, 1)
    in_turn = (rng.integers(0, at_least_one)[:, None] + np.arange(n_draws)) % at_least_one[:, None]
    return np.where(counts[:, None] < n_draws, in_turn, drawn)
