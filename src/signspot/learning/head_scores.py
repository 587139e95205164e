"""How well a head spots signs in a test set: every window of every test passage against the dictionary (Paper 4.2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from signspot.domain.tracks import CLIP_LENGTH, FloatArray
from signspot.domain.words import Word
from signspot.errors import InputError
from signspot.evaluation.protocol import Gallery, ProtocolScores, TestPassage, score_passages
from signspot.learning.material import Ints, Material
from signspot.models.head import Head, unit_rows
from signspot.models.staged import CONTINUOUS, DICTIONARY

_ROWS_AT_ONCE = 4096  # windows the head embeds together: one passage alone would leave the cores idle


def score_head(head: Head | None, test: Material, words: tuple[Word, ...] | None, *, stride: int = 1) -> ProtocolScores:
    """Score a head on the test passages of `words` (None: of all) against the dictionary entries of these words.

    Without a head the vectors of the trunk are compared as they are.
    """
    wanted = tested_words(test, words)
    rows = np.flatnonzero(np.isin(test.entry_word, wanted))
    if not len(rows):
        raise InputError("test set", "the dictionary has no entry for any test word", "check the split file")
    gallery = Gallery(test.entry_word[rows], embedded(head, test.entry_vectors[rows], DICTIONARY))
    passages = np.flatnonzero(np.isin(test.passages.label, wanted))
    return score_passages(_test_passages(head, test, passages, stride), gallery)


def tested_words(test: Material, words: tuple[Word, ...] | None) -> Ints:
    """The numbers of the test words: those of `words` that the vocabulary knows, or every word that is a label."""
    if words is None:
        return np.unique(test.passages.label)
    return np.array([test.vocabulary.id_of(word) for word in words if word in test.vocabulary], dtype=np.int64)


def _test_passages(head: Head | None, test: Material, passages: Ints, stride: int) -> Iterator[TestPassage]:
    held: list[tuple[int, Ints, FloatArray]] = []
    n_rows = 0
    for place in passages.tolist():
        track = test.tracks[int(test.passages.track[place])]
        starts = _window_starts(test, place, len(track), stride)
        held.append((place, starts, np.asarray(track[starts], dtype=np.float32)))
        n_rows += len(starts)
        if n_rows >= _ROWS_AT_ONCE:
            yield from _together(head, test, held)
            held, n_rows = [], 0
    yield from _together(head, test, held)


def _window_starts(test: Material, place: int, n_windows: int, stride: int) -> Ints:
    """The windows that lie inside a passage; the last is pulled back to its end, as in `WindowGrid`."""
    start, stop = int(test.passages.start[place]), int(test.passages.stop[place])
    last = min(max(start, stop - CLIP_LENGTH), n_windows - 1)
    starts = np.arange(min(start, last), last + stride, stride, dtype=np.int64)
    return np.minimum(starts, last)


def _together(head: Head | None, test: Material, held: list[tuple[int, Ints, FloatArray]]) -> Iterator[TestPassage]:
    if not held:
        return
    vectors = embedded(head, np.concatenate([rows for _, _, rows in held]), CONTINUOUS)
    ends = np.cumsum([len(starts) for _, starts, _ in held])[:-1]
    for (place, starts, _), part in zip(held, np.split(vectors, ends), strict=True):
        yield TestPassage(
            passage_id=test.passages.names[place],
            word=int(test.passages.label[place]),
            label_frame=int(test.passages.label_frame[place]),
            centres=starts + CLIP_LENGTH // 2,  # deviation D7
            vectors=part,
        )


def embedded(head: Head | None, rows: FloatArray, domain: int) -> FloatArray:
    """Vectors of a trunk (n, trunk dim) through a head, or as they are without one: (n, d) float32 unit rows."""
    with torch.inference_mode():
        vectors = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32))
        if head is None:
            embedding = unit_rows(vectors)
        else:
            vectors = vectors.to(next(head.parameters()).device)
            embedding = head(vectors, domain if head.config.domains > 1 else 0).embedding
    result: FloatArray = embedding.float().cpu().numpy()
    return result
