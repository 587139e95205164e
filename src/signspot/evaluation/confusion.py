"""Which signs are taken for each other: pairs of words that differ in one part of their form, against other pairs.

A passage of word a is confused with b when the best entry of b scores at least as high as the best entry of a: then the
two cannot be told apart by the model. Passages of b are judged the other way round, and both count for the pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from signspot.domain.tracks import FloatArray, Floats, Ints
from signspot.errors import InputError
from signspot.evaluation.measures import BootstrapOptions, Interval, ratio_interval


@dataclass(frozen=True, slots=True)
class MinimalPair:
    """Two words whose signs differ in one part only."""

    first: int
    second: int
    differs_in: str  # such as handshape, location, movement, orientation


@dataclass(frozen=True, slots=True)
class _PairConfusion:
    """How often the two signs of a pair were taken for each other."""

    pair: MinimalPair
    n_confused: int
    n_passages: int  # of either word
    mean_margin: float  # how far the right word is ahead, in cosine; negative where mostly behind

    @property
    def rate(self) -> float:
        return self.n_confused / self.n_passages


@dataclass(frozen=True, slots=True)
class _KindConfusion:
    """All pairs that differ in the same part, as one figure; the interval is over pairs."""

    differs_in: str
    rate: Interval


@dataclass(frozen=True, slots=True)
class ConfusionReport:
    """Minimal pairs, worst first, by what they differ in, and how often any other word gets ahead."""

    pairs: tuple[_PairConfusion, ...]
    kinds: tuple[_KindConfusion, ...]
    other_words: Interval | None  # the same rate over words that form no pair with the passage's, if there are any
    not_shown: tuple[MinimalPair, ...]  # neither word has a passage, or a word has no entry


def minimal_pair_report(
    cosine: FloatArray,
    gallery_words: Ints,
    passage_words: Ints,
    pairs: Sequence[MinimalPair],
    options: BootstrapOptions = BootstrapOptions(),
) -> ConfusionReport:
    """Judge `pairs` from `cosine` (P, E): the highest of each passage and entry, as ProtocolScores keeps it."""
    if cosine.shape != (len(passage_words), len(gallery_words)) or not cosine.size:
        shape = f"cosines of shape {cosine.shape}, {len(passage_words)} passages, {len(gallery_words)} entries"
        raise InputError("confusion", shape, "give one row for each passage and one column for each entry")
    order = np.argsort(gallery_words, kind="stable")
    words, start = np.unique(gallery_words[order], return_index=True)
    best = np.maximum.reduceat(cosine[:, order], start, axis=1)  # (P, W) the highest over the entries of each word
    best = np.maximum(best, np.float32(-2))  # below every cosine: what could not be compared
    column = {int(word): place for place, word in enumerate(words)}
    known = np.isin(passage_words, words)
    judged, not_shown = [], []
    for pair in pairs:
        margins = _margins(pair, best, passage_words, column)
        if len(margins):
            confused = int((margins <= 0).sum())
            judged.append(_PairConfusion(pair, confused, len(margins), float(margins.mean())))
        else:
            not_shown.append(pair)
    others = _other_words(best[known], passage_words[known], pairs, column, options)
    worst_first = sorted(judged, key=lambda one: (-one.rate, one.mean_margin))
    return ConfusionReport(tuple(worst_first), _by_kind(judged, options), others, tuple(not_shown))


def _margins(pair: MinimalPair, best: FloatArray, passage_words: Ints, column: dict[int, int]) -> Floats:
    """How far the right word of the pair is ahead, for every passage of either."""
    if pair.first not in column or pair.second not in column or pair.first == pair.second:
        return np.empty(0)
    ahead = best[:, column[pair.first]] - best[:, column[pair.second]]
    both = (ahead[passage_words == pair.first], -ahead[passage_words == pair.second])
    return np.concatenate(both).astype(np.float64)


def _by_kind(judged: Sequence[_PairConfusion], options: BootstrapOptions) -> tuple[_KindConfusion, ...]:
    kinds = []
    for kind in sorted({one.pair.differs_in for one in judged}):
        same = [one for one in judged if one.pair.differs_in == kind]
        rate = ratio_interval([one.n_confused for one in same], [one.n_passages for one in same], None, options)
        kinds.append(_KindConfusion(kind, rate))
    return tuple(kinds)


def _other_words(
    best: FloatArray, words: Ints, pairs: Sequence[MinimalPair], column: dict[int, int], options: BootstrapOptions
) -> Interval | None:
    """How often a word that forms no pair with the passage's scores at least as high: what confusion is measured by."""
    own = np.array([column[int(word)] for word in words], dtype=np.int64)
    is_other = np.ones((len(column), len(column)), dtype=np.bool_)
    np.fill_diagonal(is_other, False)
    for pair in pairs:
        if pair.first in column and pair.second in column:
            places = column[pair.first], column[pair.second]
            is_other[places] = is_other[places[::-1]] = False
    ahead = best >= best[np.arange(len(own)), own][:, None]
    n_ahead, n_others = (ahead & is_other[own]).sum(axis=1), is_other[own].sum(axis=1)
    return ratio_interval(n_ahead, n_others, words, options) if n_others.any() else None


def look_alike_pairs(vectors: FloatArray, words: Ints) -> tuple[MinimalPair, ...]:
    """Words that are each other's nearest in the dictionary, by the most similar of their entries (E, d) unit rows.

    No threshold is needed, and every word is in at most one pair. Of equally near words the smaller number counts.
    """
    if vectors.ndim != 2 or words.shape != (len(vectors),):
        raise InputError("pairs", f"vectors of shape {vectors.shape}, words of shape {words.shape}", "give pairs")
    order = np.argsort(words, kind="stable")
    numbers, start = np.unique(words[order], return_index=True)
    if len(numbers) < 2:
        return ()
    rows = vectors[order].astype(np.float32)
    by_word = np.maximum.reduceat(rows @ rows.T, start, axis=0)
    alike = np.maximum.reduceat(by_word, start, axis=1)
    alike = (alike + alike.T) / 2  # a product may round the two directions differently
    np.fill_diagonal(alike, -np.inf)
    nearest = alike.argmax(axis=1)
    mutual = [place for place, near in enumerate(nearest) if nearest[near] == place and place < near]
    return tuple(MinimalPair(int(numbers[place]), int(numbers[nearest[place]]), "look alike") for place in mutual)
