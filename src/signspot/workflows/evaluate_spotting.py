"""The closed-vocabulary benchmark: every window of the test videos scored for every test word (Paper 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from signspot.domain.spans import FRAME_MS
from signspot.domain.tracks import CLIP_LENGTH, FloatArray
from signspot.errors import InputError
from signspot.evaluation.curves import Curve, Footage, false_alarms_per_hour, spotting_benchmark
from signspot.evaluation.detections import footage_curve
from signspot.evaluation.intervals import BootstrapOptions, Interval, mean_interval
from signspot.evaluation.ranking import ClassMeans, chance_average_precision
from signspot.interrupts import gone_afterwards
from signspot.learning.material import Ints
from signspot.workflows.evaluate_subjects import Subject, Windows
from signspot.workflows.evaluate_test_set import TestSet
from signspot.workflows.tracks import Progress

ALARM_RATES = (1.0, 10.0, 100.0)  # false alarms an hour, all words together
_ROWS_AT_ONCE = 4096
_MS_PER_HOUR = 3_600_000


@dataclass(frozen=True, slots=True, eq=False)
class SpottingScores:
    """What a search for all test words in all test videos would find."""

    by_word: ClassMeans  # average precision over all windows, of each word that has a right window
    mean_ap: Interval
    curve: Curve  # of the peaks of all words together
    hours: float
    n_words: int  # searched for
    n_windows: int

    def recall_at(self, alarms_per_hour: float) -> float:
        """The share of annotated signs that is found at this many false alarms an hour."""
        return self.curve.recall_at_false_alarms(alarms_per_hour, self.hours)

    @property
    def chance(self) -> float:
        """What the mean average precision is expected to be for scores that know nothing."""
        return float(np.mean([chance_average_precision(self.n_windows, int(n)) for n in self.by_word.counts]))

    def as_json(self) -> dict[str, object]:
        """For scripts: the figures, and the curve thinned to 200 points."""
        shown = np.unique(np.linspace(0, len(self.curve.thresholds) - 1, 200).astype(int))
        columns = {
            "threshold": self.curve.thresholds,
            "precision": self.curve.precision,
            "recall": self.curve.recall,
            "false_alarms_per_hour": false_alarms_per_hour(self.curve, self.hours),
        }
        return {
            "hours": self.hours,
            "words": self.n_words,
            "signs": self.curve.n_positives,
            "recall_at_false_alarms_per_hour": {f"{rate:g}": self.recall_at(rate) for rate in ALARM_RATES},
            "recall_at_precision": {f"{p:g}": self.curve.recall_at_precision(p) for p in (0.5, 0.9)},
            "best_f1": float(self.curve.f1.max(initial=0)),
            "curve": {name: [float(value) for value in column[shown]] for name, column in columns.items()},
        }


def score_spotting(
    test: TestSet, subject: Subject, stride: int, options: BootstrapOptions, progress: Progress
) -> SpottingScores:
    """Search every video that has test passages, from its first to its last window."""
    rows = test.entry_rows
    words = np.unique(test.material.passages.label[test.places])
    rows = rows[np.isin(test.material.entry_word[rows], words)]
    words = np.unique(test.material.entry_word[rows])
    if not len(words):
        raise InputError("test set", "the dictionary has no entry for any test word", "check the split file")
    entries = subject.entries(test.material, rows)
    tracks = np.unique(test.material.passages.track[test.places])
    # A corpus of hours has more cosines than fit in memory.
    with TemporaryDirectory(prefix="signspot-") as scratch, gone_afterwards(Path(scratch)):
        footage = []
        for number, track in enumerate(tracks.tolist()):
            progress("searching videos", number, len(tracks))
            columns = _Columns(words, test.material.entry_word[rows], entries)
            footage.append(_footage(test, subject, (track, stride), columns, Path(scratch) / f"{track}.npy"))
        by_word = spotting_benchmark(footage)
        if not len(by_word.values):
            raise InputError("test set", "no window of any video is near an annotation", "check the annotations")
        n_frames = sum(len(test.material.tracks[track]) + CLIP_LENGTH - 1 for track in tracks.tolist())
        hours = n_frames * FRAME_MS / _MS_PER_HOUR
        spread = mean_interval(by_word.values, None, options)
        n_windows = sum(len(one.centres) for one in footage)
        return SpottingScores(by_word, spread, footage_curve(footage), hours, len(words), n_windows)


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The words that are searched for, and the entries of each."""

    words: Ints  # (C,) ascending
    entry_word: Ints  # (E,)
    entries: FloatArray  # (E, d)

    def best(self, windows: FloatArray) -> FloatArray:
        """(n, d) -> (n, C): the highest cosine with any entry of each word; -inf for a window without direction."""
        order = np.argsort(self.entry_word, kind="stable")
        starts = np.searchsorted(self.entry_word[order], self.words)
        cosine = np.maximum.reduceat(windows @ self.entries[order].T, starts, axis=1)
        usable = np.isfinite(cosine) & windows.any(axis=1, keepdims=True)
        return np.where(usable, cosine, -np.inf).astype(np.float32)


def _footage(test: TestSet, subject: Subject, searched: tuple[int, int], columns: _Columns, path: Path) -> Footage:
    """Score one track at a stride, into a file that is mapped."""
    (track, stride), passages = searched, test.material.passages
    own = test.places[passages.track[test.places] == track]
    # Two subtitles around one sign make two passages of it; it is one sign to be found.
    pairs = np.unique(np.stack([passages.label[own], passages.label_frame[own]], axis=1), axis=0)
    pairs = pairs[np.isin(pairs[:, 0], columns.words)]
    starts = np.arange(0, len(test.material.tracks[track]), stride, dtype=np.int64)
    cosine = np.lib.format.open_memmap(path, "w+", np.float32, (len(starts), len(columns.words)))
    for first in range(0, len(starts), _ROWS_AT_ONCE):
        some = starts[first : first + _ROWS_AT_ONCE]
        asked = Windows(track, some, pairs[:, 0], pairs[:, 1])
        cosine[first : first + len(some)] = columns.best(subject.windows(test.material, asked))
    place = np.searchsorted(columns.words, pairs[:, 0])
    return Footage(starts + CLIP_LENGTH // 2, cosine, place.astype(np.int64), pairs[:, 1])
