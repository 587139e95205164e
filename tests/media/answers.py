"""Answers made by hand: flat curves with planted peaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from signspot.domain.recordings import Entry, Word
from signspot.domain.results import Provenance, Spotting, VideoAnswer, WordAnswer
from signspot.domain.time import MillisSpan, TimeAxis
from signspot.domain.tracks import SimilarityTrack, WindowGrid

THRESHOLD = 0.4
BACKGROUND = 0.1
PROVENANCE = Provenance(media_sha256="0" * 64, model="m", fingerprint="f", dictionary="d")


def track(word: str, n_frames: int, n_entries: int = 2) -> SimilarityTrack:
    """A curve per entry that is flat everywhere."""
    grid = WindowGrid(n_frames)
    cosine = np.full((len(grid), n_entries), BACKGROUND, dtype=np.float32)
    cosine -= 0.02 * np.arange(n_entries, dtype=np.float32)
    entries = tuple(Entry(entry_id=f"e{number}", word=Word(word)) for number in range(n_entries))
    return SimilarityTrack(Word(word), "news.mp4", grid, TimeAxis(np.arange(n_frames) * 40.0), entries, cosine)


def word_answer(
    word: str, peaks: Sequence[int], n_frames: int = 500, n_entries: int = 2, *, width: int = 4
) -> WordAnswer:
    """Found at every frame of `peaks`, by the entries in turn; a spotting lasts 16 frames."""
    similarity = track(word, n_frames, n_entries)
    spottings = []
    for number, frame in enumerate(peaks):
        entry = number % n_entries
        distance = np.abs(np.arange(len(similarity.grid)) - (frame - 8)) / width
        bump = (0.7 - BACKGROUND) * np.maximum(0, 1 - distance)
        similarity.cosine[:, entry] = np.maximum(similarity.cosine[:, entry], BACKGROUND + bump)
        span = MillisSpan.of((frame - 8) * 40, (frame + 8) * 40)
        spottings.append(
            Spotting(
                video_id="news.mp4",
                span_ms=span,
                frame=frame,
                word=Word(word),
                entry_id=f"e{entry}",
                cosine=0.7,
                provenance=PROVENANCE,
            )
        )
    return WordAnswer(similarity, tuple(spottings))


def video_answer(words: Mapping[str, Sequence[int]], n_frames: int = 500, n_entries: int = 2) -> VideoAnswer:
    """One `word_answer` per word."""
    answers = tuple(word_answer(word, peaks, n_frames, n_entries) for word, peaks in words.items())
    return VideoAnswer(video_id="news.mp4", words=answers, duration_ms=n_frames * 40, threshold=THRESHOLD)
