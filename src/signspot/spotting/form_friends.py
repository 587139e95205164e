"""Two dictionaries side by side, their signs compared part by part: what differs in no part is the same form.

All clips of a variant speak for it together: what one signer does in an own way, others do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from signspot.domain.dictionary import Entry
from signspot.domain.tracks import FloatArray
from signspot.domain.words import Word
from signspot.evaluation.ranking import Ints
from signspot.spotting.false_friends import Compared, Friends, Shelf, told, words_of
from signspot.spotting.form_parts import FormJudge

LEAST_LOG_ODDS = 2.5  # of one form; see experiments/friends


def form_friends(
    first: Shelf, second: Shelf, judge: FormJudge, least_log_odds: float = LEAST_LOG_ODDS
) -> tuple[Friends, ...]:
    """All pairs worth showing, as `friends` gives them; the vectors of the shelves are those of `form_row`."""
    if not first.entries or not second.entries:
        return ()
    words, other_words = words_of(first.entries), words_of(second.entries)
    shape = len(words), len(other_words)
    odds = np.full(shape, -np.inf, np.float32)
    entry_at, other_at = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    others = _by_variant(second.entries, other_words)
    for word, own in _by_variant(first.entries, words):
        apart = judge.distances(first.vectors[own], second.vectors)
        pooled = np.stack([apart[:, theirs].mean(axis=(0, 1)) for _, theirs in others])
        for (other, theirs), found in zip(others, judge.log_odds(pooled).tolist(), strict=True):
            if found > odds[word, other]:
                odds[word, other] = found
                entry_at[word, other], other_at[word, other] = _closest(judge, apart[:, theirs], own, theirs)
    return told(Compared(words, other_words, None, odds, odds >= least_log_odds, entry_at, other_at), first, second)


def _by_variant(entries: Sequence[Entry], words: Sequence[Word]) -> list[tuple[int, Ints]]:
    """For each variant the number of its word and where its entries are."""
    number = {word: place for place, word in enumerate(words)}
    places: dict[tuple[int, str], list[int]] = {}
    for place, entry in enumerate(entries):
        places.setdefault((number[entry.word], entry.variant), []).append(place)
    return [(word, np.array(own)) for (word, _), own in places.items()]


def _closest(judge: FormJudge, apart: FloatArray, own: Ints, theirs: Ints) -> tuple[int, int]:
    """The two clips of two variants that differ least, to be shown."""
    row, column = np.unravel_index(int((apart / judge.usual).max(axis=2).argmin()), apart.shape[:2])
    return int(own[row]), int(theirs[column])
