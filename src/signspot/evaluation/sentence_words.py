"""Words found in sentences whose words and order are known, but not their times.

Conventions: `best` and `peak` have a row for each sentence and a column for each word: the highest score of the word
anywhere in the sentence and when it was reached. Three questions are asked: does a word's score rank the sentences that
hold it first (presence); does a sentence rank its words first (ranking); do neighbours peak in signed order (order).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from signspot.errors import InputError
from signspot.evaluation.ranking import Bools, Floats, Scores, average_precision, ranks


@dataclass(frozen=True, slots=True, eq=False)
class SentenceWordScores:
    """What each query found; the means are the figures."""

    presence: Floats  # (W,) average precision of each word that some sentences hold and some do not
    ranking: Floats  # (S,) average precision of each sentence that holds a word
    in_order: Bools  # (P,) whether a pair of neighbours peaks in the signed order; equal times are not in order
    pair_sentence: npt.NDArray[np.int64]  # (P,) the sentence of each pair


def sentence_word_scores(best: Scores, peak: Scores, words: Sequence[Sequence[int]]) -> SentenceWordScores:
    """Compare `best` and `peak` (n_sentences, n_words) with the numbers of the words of each sentence, as signed."""
    n_sentences, n_words = best.shape
    if peak.shape != best.shape or len(words) != n_sentences:
        what = f"scores of {best.shape}, peaks of {peak.shape}, {len(words)} sentences"
        raise InputError("sentences", what, "give one row for each sentence")
    holds = np.zeros(best.shape, dtype=bool)
    for sentence, signed in enumerate(words):
        if any(not 0 <= word < n_words for word in signed):
            raise InputError("sentences", f"sentence {sentence} holds a word that has no column", "number the words")
        holds[sentence, list(signed)] = True
    told_apart = [word for word in range(n_words) if 0 < holds[:, word].sum() < n_sentences]
    pairs = [(sentence, first, second) for sentence, signed in enumerate(words) for first, second in pairwise(signed)]
    return SentenceWordScores(
        np.array([_precision(best[:, word], holds[:, word]) for word in told_apart]),
        np.array([_precision(row, held) for row, held in zip(best, holds, strict=True) if held.any()]),
        np.array([peak[sentence, first] < peak[sentence, second] for sentence, first, second in pairs], dtype=bool),
        np.array([sentence for sentence, _, _ in pairs], dtype=np.int64),
    )


def _precision(scores: Scores, right: Bools) -> float:
    return average_precision(ranks(scores)[right], int(right.sum()))
