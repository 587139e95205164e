"""How sure a peak of a similarity curve is a sign: how alike, how much more than others, after how long a search."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from signspot.domain.recordings import Word
from signspot.domain.results import Presence, Provenance, Spotting
from signspot.domain.tracks import Bools, EmbeddingTrack, FloatArray, Floats, Ints, SimilarityTrack, rates_of
from signspot.evaluation.calibration import Calibration, PresenceFit, absence_of
from signspot.spotting.peaks import Refinement, peaks_of, spottings_at

_DECIMALS = 5  # of a cosine: threads, processors and libraries round what comes after in their own ways
_LOWEST = -1.01  # below every cosine, above what could not be compared


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """The peaks of one word in what was searched of a video."""

    windows: Ints  # (n,) rising
    evidence: Floats  # (n, 4): see evaluation.presence.EVIDENCE

    def __len__(self) -> int:
        return len(self.windows)


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """Dictionary clips of other words, which a sign must resemble less than its own."""

    vectors: FloatArray  # (n, d) unit rows
    words: tuple[Word, ...]

    @classmethod
    def of(cls, calibration: Calibration) -> Cohort:
        return cls(calibration.cohort, calibration.cohort_words)

    def highest(self, track: EmbeddingTrack, windows: Ints, word: Word) -> Floats:
        """(n,) the highest cosine of each of the windows with a clip of any word but `word`; -1 if there is none."""
        others = np.array([other != word for other in self.words], dtype=bool)
        highest = np.full(len(windows), -1.0)
        for vectors in rates_of(track) if others.any() and len(windows) else ():
            rows = np.nan_to_num(np.asarray(vectors[windows], np.float64), posinf=0, neginf=0)
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
            highest = np.maximum(highest, (rows @ self.vectors[others].T).max(axis=1))
        return highest


def candidates_of(similarity: SimilarityTrack, track: EmbeddingTrack, cohort: Cohort) -> _Candidates:
    """Every peak of a word's curve with its evidence; windows that were not searched score -inf and count for nothing.

    Neighbouring windows are nearly the same, so a search counts as long as it has windows that share no frame.
    """
    best, grid = np.round(_steadied(similarity.best), _DECIMALS), similarity.grid
    windows = peaks_of(similarity, best, _LOWEST)
    cosine = best[windows].astype(np.float64)
    n_searched = max(1, int((best > _LOWEST).sum()) * grid.stride // grid.length)
    fixed = np.broadcast_to(np.log([n_searched, max(1, len(similarity.entries))]), (len(windows), 2))
    margin = cosine - cohort.highest(track, windows, similarity.word)
    return _Candidates(windows, np.c_[cosine, margin, fixed])


def _steadied(curve: FloatArray) -> FloatArray:
    """The curve without the ripple of rounding: neighbours that are the same but for it get their highest value.

    Where nothing moves, rounding alone would make peaks, and not the same ones on the next machine. Rounding to some
    decimals does not help: a level that lies between two of them is torn in two.
    """
    if not len(curve):
        return curve
    with np.errstate(invalid="ignore"):  # windows that were not searched: -inf less -inf
        starts = np.flatnonzero(np.r_[True, np.abs(np.diff(curve)) > 10**-_DECIMALS])
    return np.repeat(np.maximum.reduceat(curve, starts), np.diff(np.r_[starts, len(curve)]))


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Turns the peaks of one video into probabilities."""

    track: EmbeddingTrack
    calibration: Calibration
    fit: PresenceFit
    cohort: Cohort

    @classmethod
    def of(cls, calibration: Calibration, track: EmbeddingTrack, *, is_read: bool) -> Judge:
        """For a search with or without subtitles; ValueError if the calibration is for another model."""
        if calibration.fingerprint != track.fingerprint:
            raise ValueError(f"{track.video_id}: vectors by {track.fingerprint!r}, not {calibration.fingerprint!r}")
        return cls(track, calibration, calibration.fit_for(is_read=is_read), Cohort.of(calibration))

    def __call__(self, similarity: SimilarityTrack) -> _Judged:
        candidates = candidates_of(similarity, self.track, self.cohort)
        probability = self.fit.probability(candidates.evidence)
        return _Judged(candidates.windows, probability, candidates.evidence[:, 0], self.calibration.name)


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """The peaks of a word and the probability of each."""

    windows: Ints  # (n,) rising
    probability: Floats  # (n,)
    cosine: Floats  # (n,)
    calibration: str

    @property
    def anywhere(self) -> Presence:
        """That the word is signed at one of the peaks at least."""
        return Presence(1 - absence_of(self.probability), self.calibration)

    def spottings(
        self, similarity: SimilarityTrack, shown: Bools, provenance: Provenance, how: Refinement | None
    ) -> tuple[Spotting, ...]:
        found = spottings_at(similarity, self.windows[shown], provenance, how)
        sure = self.probability[shown].tolist()
        return tuple(
            replace(one, presence=Presence(probability, self.calibration))
            for one, probability in zip(found, sure, strict=True)
        )
