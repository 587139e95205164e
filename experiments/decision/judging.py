"""Candidates of searches whose truth is known, and how far what a fit promises about them comes true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path

import numpy as np
from material import Passage, Trial

from signspot.domain.results import Band
from signspot.domain.time import FRAME_RATE
from signspot.domain.tracks import Bools, EntryVectors, Floats, Ints
from signspot.evaluation.calibration import PresenceFit, absence_of, fit_presence, reliability
from signspot.spotting.presence import Candidates, Cohort, Rivals, candidates_of, evidence_of, standing
from signspot.spotting.search import similarities

LOWEST = 0.2  # a cosine: no sign that anybody would believe lies below
SHOWN = 0.05  # a probability: findings that anybody looks at
NEAR = 3  # frames by which the middle of a finding may lie outside a sign
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Candidates that keep their moment, of many searches."""

    evidence: Floats  # (n, 6)
    right: Bools  # (n,)
    pair: Ints  # (n,) which word of which search
    n_words: Ints  # (n,) searched for at once
    size: Ints  # (n_pairs,) the same
    is_there: Bools  # (n_pairs,) whether the word is signed
    hours: Floats  # (n_pairs,) searched
    n_signs: int  # that could be found

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        """All of them."""
        firsts = np.cumsum([0, *(len(part.hours) for part in parts)])
        return cls(
            np.concatenate([part.evidence for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate([part.pair + first for part, first in zip(parts, firsts, strict=False)]),
            np.concatenate([part.n_words for part in parts]),
            np.concatenate([part.size for part in parts]),
            np.concatenate([part.is_there for part in parts]),
            np.concatenate([part.hours for part in parts]),
            sum(part.n_signs for part in parts),
        )

    def write(self, path: Path) -> None:
        """Keep them, so that another fit needs no search."""
        np.savez(path, **{field.name: np.asarray(getattr(self, field.name)) for field in fields(self)})

    @classmethod
    def read(cls, path: Path) -> Examples:
        """What was kept."""
        with np.load(path) as kept:
            *arrays, n_signs = (kept[field.name] for field in fields(cls))
        return cls(*arrays, int(n_signs))

    @property
    def word_hours(self) -> float:
        """Searched in all."""
        return float(self.hours.sum())


def examples_of(trials: Iterable[Trial], cohort: Cohort, *, is_read: bool = False, compete: bool = True) -> Examples:
    """Search as `spot` does."""
    return Examples.joined([_examples(trial, cohort, is_read, compete) for trial in trials])


def _examples(trial: Trial, cohort: Cohort, is_read: bool, compete: bool) -> Examples:
    passage, words = trial.passage, trial.words
    found = [candidates_of(one, LOWEST) for one in similarities(passage.track, words)]
    if compete:
        found = list(standing(found, words))
    rivals, n_words = Rivals.of(passage.track, words, cohort), 1 if is_read else len(words)
    evidence = [evidence_of(one, own, rivals, n_words) for one, own in zip(found, words, strict=True)]
    right = [rightly_placed(one, own, passage) for one, own in zip(found, words, strict=True)]
    numbers = np.repeat(np.arange(len(words)), [len(one) for one in found])
    hours = np.full(len(words), len(passage.track.axis) / FRAME_RATE / _SECONDS_PER_HOUR)
    is_there = np.array([own.word in passage.words for own in words], dtype=bool)
    asked = {own.word for own in words}
    return Examples(
        np.concatenate(evidence), np.concatenate(right), numbers, np.full(len(numbers), len(words)),
        np.full(len(words), len(words)), is_there, hours, sum(word in asked for word in passage.words),
    )  # fmt: skip


def rightly_placed(candidates: Candidates, own: EntryVectors, passage: Passage) -> Bools:
    """Which candidates lie on a sign of their word; of several on one sign the strongest."""
    right = np.zeros(len(candidates), dtype=bool)
    grid = candidates.similarity.grid
    middle = grid.starts()[candidates.windows] + grid.length // 2
    for word, span in zip(passage.words, passage.spans, strict=True):
        on = np.flatnonzero((middle >= span.start - NEAR) & (middle < span.stop + NEAR)) if word == own.word else ()
        if len(on):
            right[on[candidates.cosine[on].argmax()]] = True
    return right


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a decision gives where the truth is known."""

    precision: float
    recall: float
    false_alarms: float  # per word and hour

    @property
    def f1(self) -> float:
        """Their harmonic mean."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def outcome(examples: Examples, shown: Bools) -> Outcome:
    """Findings against signs."""
    n_right, n_shown = int((shown & examples.right).sum()), int(shown.sum())
    return Outcome(
        n_right / max(1, n_shown), n_right / max(1, examples.n_signs), (n_shown - n_right) / examples.word_hours
    )


def fit_of(known: Examples) -> PresenceFit:
    """The fit that is shipped: logistic, with the false alarms of searches for few words and for many."""
    hours = {int(size): float(known.hours[known.size == size].sum()) for size in np.unique(known.size)}
    return fit_presence(known.evidence, known.right, known.word_hours, n_words=known.n_words, hours_of=hours)


def alarms_at(fit: PresenceFit, examples: Examples, rate: float) -> dict[int, float]:
    """False alarms per word and hour, by the number of words searched for, where `rate` was asked for."""
    probability, counted = fit.probability(examples.evidence), dict[int, float]()
    for size in np.unique(examples.size).tolist():
        shown = (probability >= fit.least_presence(rate, size)) & (examples.n_words == size) & ~examples.right
        counted[size] = float(shown.sum() / examples.hours[examples.size == size].sum())
    return counted


def shown_usually(fit: PresenceFit, examples: Examples) -> Bools:
    """(n,) what the default shows, which depends on the number of words searched for."""
    least = {size: fit.usual_presence(size) for size in np.unique(examples.size).tolist()}
    return np.asarray(fit.probability(examples.evidence) >= [least[size] for size in examples.n_words.tolist()])


def calibration_error(fit: PresenceFit, examples: Examples) -> float:
    """Of the findings that anybody looks at."""
    probability = fit.probability(examples.evidence)
    shown = probability >= SHOWN
    return reliability(probability[shown], examples.right[shown]).expected_error


def log_loss(fit: PresenceFit, examples: Examples) -> float:
    """In nats for each sign that was found."""
    probability = np.clip(fit.probability(examples.evidence), 1e-9, 1 - 1e-9)
    sure = np.where(examples.right, probability, 1 - probability)
    return float(-np.log(sure).sum() / max(1, examples.right.sum()))


def anywhere_error(fit: PresenceFit, examples: Examples) -> float:
    """The calibration error of "the word is there at all"."""
    probability = fit.probability(examples.evidence)
    starts = np.searchsorted(examples.pair, np.arange(len(examples.hours) + 1))
    promised = [1 - absence_of(probability[a:b]) for a, b in pairwise(starts.tolist())]
    return reliability(np.array(promised), examples.is_there).expected_error


def bands(fit: PresenceFit, examples: Examples) -> dict[str, tuple[int, float]]:
    """Of each band, how many findings it holds and how many of them are right."""
    probability = fit.probability(examples.evidence)
    named = np.array([Band.of(one).value for one in probability.tolist()])
    return {
        band.value: (int((named == band.value).sum()), float(examples.right[named == band.value].mean()))
        for band in Band
        if (named == band.value).any()
    }
