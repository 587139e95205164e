"""How sure a peak of a similarity curve is a sign: how alike, how much more than others, after how long a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Word
from signspot.domain.results import Presence, Provenance, Spotting
from signspot.domain.tracks import (
    Bools,
    EmbeddingTrack,
    EntryVectors,
    FloatArray,
    Floats,
    Ints,
    SimilarityTrack,
    rates_of,
    unit,
)
from signspot.evaluation.calibration import EVIDENCE, Calibration, PresenceFit, absence_of
from signspot.spotting.peaks import SIGN_LENGTH, Refinement, peaks_of, spottings_at

DECIMALS = 5  # of a cosine: threads, processors and libraries round what comes after in their own ways
LOWEST = -1.01  # below every cosine, above what could not be compared


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The peaks of one word in what was searched of a video, and the entry that each looks most like."""

    similarity: SimilarityTrack
    windows: Ints  # (n,) rising
    cosine: Floats  # (n,)

    def __len__(self) -> int:
        return len(self.windows)

    def kept(self, chosen: Bools) -> Candidates:
        return replace(self, windows=self.windows[chosen], cosine=self.cosine[chosen])

    @property
    def entry(self) -> Ints:
        """(n,) the number of the most similar entry."""
        return np.asarray(self.similarity.cosine[self.windows].argmax(axis=1), np.int64)

    @property
    def spans(self) -> Ints:
        """(n, 2) the frames that each takes, if it is a sign."""
        grid, lengths = self.similarity.grid, self.similarity.lengths
        middle = grid.starts()[self.windows] + grid.length / 2
        half = np.full(len(self), SIGN_LENGTH / 2) if lengths is None else lengths[self.windows] / 2
        return np.round(np.stack([middle - half, middle + half], axis=1)).astype(np.int64).clip(0, grid.n_frames)


def candidates_of(similarity: SimilarityTrack, lowest: float = LOWEST) -> Candidates:
    """Every peak of a word's curve from the cosine `lowest` on; windows that were not searched count for nothing."""
    best = np.round(_steadied(similarity.best), DECIMALS)
    windows = peaks_of(similarity, best, max(lowest, LOWEST))
    return Candidates(similarity, windows, best[windows].astype(np.float64))


# A moment shows one sign: candidates of different words compete for it, unless their entries show the same sign.

_SAME_SIGN = 0.9  # the cosine of two entries from which on they may show one sign under two names
_SAME_PROTOTYPE = 0.6  # the same for the direction of a word, which resembles no single clip that much
_MOST_SHARED = 0.5  # of a candidate's frames that stronger ones of other words may have
_AT_ONCE = 512  # candidates


def standing(words: Sequence[Candidates], entries: Sequence[EntryVectors]) -> tuple[Candidates, ...]:
    """The candidates of several words without those that lose their moment: over half of it to stronger other words.

    The strongest takes its frames first; equally strong ones come in the order of the words. `entries` has the vectors
    of each of the words, in the same order: words whose entries look the same leave each other alone.
    """
    numbers = np.repeat(np.arange(len(words)), [len(one) for one in words])
    if len(np.unique(numbers)) < 2:
        return tuple(words)
    spans, cosine = np.concatenate([one.spans for one in words]), np.concatenate([one.cosine for one in words])
    n_views = [len(own.entries) // max(1, len(one.similarity.entries)) for one, own in zip(words, entries, strict=True)]
    firsts = np.cumsum([0, *(len(own.vectors) for own in entries)]).tolist()
    rows = np.concatenate([one.entry * n + first for one, n, first in zip(words, n_views, firsts, strict=False)])
    vectors = unit(np.concatenate([own.vectors for own in entries]))
    looks, is_unique = vectors[rows], ~_have_twins(vectors, rows, numbers)
    owner = np.full(int(spans.max(initial=0)) + 1, -1, np.int64)  # of each frame, the candidate that took it
    stands = np.ones(len(spans), dtype=bool)
    order = np.argsort(-cosine, kind="stable")
    for first in range(0, len(order), _AT_ONCE):
        some = order[first : first + _AT_ONCE]
        # What is taken stays so: most have lost already, and are not worth a closer look.
        stands[some] = ~(is_unique[some] & _lost(some, spans, owner, numbers))
        for number in some[stands[some]].tolist():
            start, stop = spans[number].tolist()
            taken = owner[start:stop]
            others = taken[(taken >= 0) & (numbers[taken] != numbers[number])]
            if len(others) > _MOST_SHARED * (stop - start):
                rivals, n_frames = np.unique(others, return_counts=True)
                n_lost = n_frames[looks[rivals] @ looks[number] < _SAME_SIGN].sum()
                stands[number] = n_lost <= _MOST_SHARED * (stop - start)
            if stands[number]:
                owner[start:stop] = np.where(taken < 0, number, taken)
    parts = np.split(stands, np.cumsum([len(one) for one in words])[:-1])
    return tuple(one.kept(part) for one, part in zip(words, parts, strict=True))


def _lost(some: Ints, spans: Ints, owner: Ints, numbers: Ints) -> Bools:
    """(k,) which of some candidates have lost over half of their frames to other words."""
    start, length = spans[some, 0], spans[some, 1] - spans[some, 0]
    steps = np.arange(int(length.max(initial=0)))
    taken = owner[np.minimum(start[:, None] + steps, len(owner) - 1)]
    others = (taken >= 0) & (numbers[taken] != numbers[some][:, None]) & (steps < length[:, None])
    return np.asarray(others.sum(axis=1) > _MOST_SHARED * length)


def _have_twins(vectors: FloatArray, rows: Ints, numbers: Ints) -> Bools:
    """(n,) which candidates, by the rows of `vectors` that they look like, may be another word: one of two names."""
    used, first, back = np.unique(rows, return_index=True, return_inverse=True)
    looks, words, found = vectors[used], numbers[first], np.zeros(len(used), dtype=bool)
    for begin in range(0, len(used), _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        nearly = looks[some] @ looks.T > _SAME_SIGN - 1e-3  # rounding must not decide here
        found[some] = (nearly & (words[some, None] != words)).any(axis=1)
    return found[back]


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """Clips or directions of words, which a sign must resemble less than its own word."""

    vectors: FloatArray  # (n, d) unit rows
    words: tuple[Word, ...]

    @classmethod
    def of(cls, calibration: Calibration) -> Cohort:
        return cls(calibration.cohort, calibration.cohort_words)


_ROWS_AT_ONCE = 2048  # a track of hours is never compared whole
_KEPT = 16  # rivals of a window: more than are left out as the word itself, or as the same sign
_MOST_ENTRIES = 6  # of a word as a rival of others


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """What else the windows of a video look like: the entries of all words searched for, and a cohort."""

    vectors: FloatArray  # (m, d) unit rows
    words: tuple[Word, ...]  # (m,)
    is_prototype: Bools  # (m,) of the cohort
    nearest: npt.NDArray[np.int32]  # (n_windows, k) the rows that each window looks most like
    cosine: FloatArray  # (n_windows, k)

    @classmethod
    def of(cls, track: EmbeddingTrack, entries: Sequence[EntryVectors], cohort: Cohort) -> Rivals:
        rows = [unit(_few(one.vectors)) for one in entries]
        named = [one.word for one, own in zip(entries, rows, strict=True) for _ in own]
        vectors = np.concatenate([*rows, cohort.vectors.reshape(-1, track.vectors.shape[1])]).astype(np.float32)
        is_prototype = np.arange(len(vectors)) >= len(named)
        n, k = len(track.vectors), min(_KEPT, len(vectors))
        nearest, cosine = np.zeros((n, k), np.int32), np.full((n, k), -1.0, np.float32)
        for first in range(0, n if k else 0, _ROWS_AT_ONCE):
            some = slice(first, first + _ROWS_AT_ONCE)
            first_rate, *others = (unit(np.asarray(one[some])) for one in rates_of(track))
            alike, other = first_rate @ vectors.T, np.empty((len(first_rate), len(vectors)), np.float32)
            for rows_of_rate in others:
                np.maximum(alike, np.matmul(rows_of_rate, vectors.T, out=other), out=alike)
            best = (
                np.argpartition(alike, -k, axis=1)[:, -k:]
                if k < len(vectors)
                else np.tile(np.arange(k), (len(alike), 1))
            )
            nearest[some], cosine[some] = best, np.take_along_axis(alike, best, axis=1)
        return cls(vectors, (*named, *cohort.words), is_prototype, nearest, cosine)

    def highest(self, candidates: Candidates, entries: EntryVectors) -> Floats:
        """(n,) the highest cosine at each candidate with what is neither its word nor its sign; -1 if there is none."""
        nearest, word = self.nearest[candidates.windows], candidates.similarity.word
        if not nearest.size:
            return np.full(len(candidates), -1.0)
        n_views = len(entries.entries) // max(1, len(candidates.similarity.entries))
        own = unit(entries.vectors)[candidates.entry * n_views]
        alike = np.einsum("nkd,nd->nk", self.vectors[nearest], own)
        is_other = np.array([other != word for other in self.words], dtype=bool)[nearest]
        is_other &= alike < np.where(self.is_prototype[nearest], _SAME_PROTOTYPE, _SAME_SIGN)
        cosine = self.cosine[candidates.windows]
        # Where everything near is left out, the others are at most as near as the last of it.
        lowest = -1.0 if nearest.shape[1] == len(self.vectors) else cosine.min(axis=1)
        highest = np.where(is_other, cosine, -np.inf).max(axis=1)
        return np.asarray(np.where(is_other.any(axis=1), highest, lowest), np.float64)


def _few(vectors: FloatArray) -> FloatArray:
    if len(vectors) <= _MOST_ENTRIES:
        return vectors
    return vectors[np.linspace(0, len(vectors) - 1, _MOST_ENTRIES).astype(np.int64)]


def evidence_of(candidates: Candidates, entries: EntryVectors, rivals: Rivals, n_words: int) -> Floats:
    """(n, 6) what speaks for each candidate: the columns of `evaluation.calibration.EVIDENCE`.

    Neighbouring windows are nearly the same, so a search counts as long as it has windows that share no frame.
    """
    if not len(candidates):  # as of most of many words
        return np.empty((0, len(EVIDENCE)))
    similarity, cosine = candidates.similarity, candidates.cosine
    grid, best = similarity.grid, similarity.best
    searched = best[best > LOWEST]
    n_searched = max(1, len(searched) * grid.stride // grid.length)
    rise = cosine - (float(np.median(searched)) if len(searched) else 0.0)
    margin = cosine - rivals.highest(candidates, entries)
    fixed = np.log([n_searched, max(1, len(similarity.entries)), max(1, n_words)])
    columns: Floats = np.c_[cosine, margin, rise, np.broadcast_to(fixed, (len(cosine), 3))]
    return columns


def _steadied(curve: FloatArray) -> FloatArray:
    """The curve without the ripple of rounding: neighbours that are the same but for it get their highest value.

    Where nothing moves, rounding alone would make peaks, and not the same ones on the next machine. Rounding to some
    decimals does not help: a level that lies between two of them is torn in two.
    """
    if not len(curve):
        return curve
    with np.errstate(invalid="ignore"):  # windows that were not searched: -inf less -inf
        is_start = np.ones(len(curve), dtype=bool)
        is_start[1:] = np.abs(curve[1:] - curve[:-1]) > 10**-DECIMALS
    starts = np.flatnonzero(is_start)
    return np.asarray(np.maximum.reduceat(curve, starts)[np.cumsum(is_start) - 1])


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Turns the peaks of one video into probabilities."""

    calibration: Calibration
    fit: PresenceFit
    rivals: Rivals
    n_words: int

    @classmethod
    def of(
        cls, calibration: Calibration, track: EmbeddingTrack, words: Sequence[EntryVectors], *, is_read: bool
    ) -> Judge:
        """For a search for words, with or without subtitles; ValueError if the calibration is for another model."""
        if calibration.fingerprint != track.fingerprint:
            raise ValueError(f"{track.video_id}: vectors by {track.fingerprint!r}, not {calibration.fingerprint!r}")
        rivals = Rivals.of(track, words, Cohort.of(calibration))
        # How many words all subtitles mention says nothing about one that is looked for near its own.
        return cls(calibration, calibration.fit_for(is_read=is_read), rivals, 1 if is_read else len(words))

    def __call__(self, candidates: Candidates, entries: EntryVectors) -> Judged:
        probability = self.fit.probability(evidence_of(candidates, entries, self.rivals, self.n_words))
        return Judged(candidates, probability, self.calibration.name)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The peaks of a word and the probability of each."""

    candidates: Candidates
    probability: Floats  # (n,)
    calibration: str

    @property
    def anywhere(self) -> Presence:
        """That the word is signed at one of the peaks at least."""
        return Presence(1 - absence_of(self.probability), self.calibration)

    def spottings(self, shown: Bools, provenance: Provenance, how: Refinement | None) -> tuple[Spotting, ...]:
        windows = self.candidates.windows[shown]
        found = spottings_at(self.candidates.similarity, windows, provenance, how)
        sure = self.probability[shown].tolist()
        return tuple(
            replace(one, presence=Presence(probability, self.calibration))
            for one, probability in zip(found, sure, strict=True)
        )
