"""Where a sign was found compared with where it is: frames at 25 fps, both ends of the tolerance count (Paper 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from signspot.domain.time import Tolerance
from signspot.domain.tracks import CLIP_LENGTH, Bools, FloatArray, Floats, Ints
from signspot.errors import InputError
from signspot.evaluation.ranking import ClassMeans


def is_near(found: npt.ArrayLike, annotated: npt.ArrayLike, tolerance: Tolerance = Tolerance()) -> Bools:
    """Which found frames lie from 20 before to 5 after the annotated ones; the arrays broadcast.

    >>> is_near([79, 80, 105, 106], 100)
    array([False,  True,  True, False])
    """
    offset = np.asarray(found, dtype=np.int64) - np.asarray(annotated, dtype=np.int64)
    return np.asarray((offset >= -tolerance.before) & (offset <= tolerance.after))


# Detections compared with truth at every threshold: precision, recall, false alarms per hour, spotting by class.
# Conventions: a detection counts at a threshold when its score is at least the threshold, so equal scores come and go
# together and no order among them matters. `n_positives` counts the signs there are to find, found or not.

_COLUMNS = 64  # classes compared at once: bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What is found at each distinct score, from the highest (strictest) down."""

    thresholds: Floats  # (T,) falling
    n_right: Ints  # (T,) detections at or above the threshold that are right
    n_wrong: Ints  # (T,) and that are not: false alarms
    n_positives: int

    @property
    def precision(self) -> Floats:
        return np.asarray(self.n_right / (self.n_right + self.n_wrong))

    @property
    def recall(self) -> Floats:
        """(T,) the share of the positives that are found; 0 where there are none."""
        return np.asarray(self.n_right / max(1, self.n_positives))

    @property
    def f1(self) -> Floats:
        return np.asarray(2 * self.n_right / (self.n_right + self.n_wrong + max(1, self.n_positives)))

    @property
    def average_precision(self) -> float:
        """Precision weighted by the recall each threshold adds; 0 where there is nothing to find."""
        return float((self.precision * np.diff(self.recall, prepend=0)).sum())

    def recall_at_precision(self, precision: float) -> float:
        """The most that can be found while the share of right detections is at least `precision`; 0 if never."""
        return float(self.recall[self.precision >= precision].max(initial=0))

    def recall_at_false_alarms(self, per_hour: float, hours: float) -> float:
        """The most that can be found with at most `per_hour` false alarms in each of `hours`; 0 if never."""
        return float(self.recall[false_alarms_per_hour(self, hours) <= per_hour].max(initial=0))


def _detection_curve(scores: npt.ArrayLike, right: npt.ArrayLike, n_positives: int | None = None) -> Curve:
    """The curve of detections with `scores` (n,) of which `right` (n,) bool are right.

    `n_positives` defaults to the number of right ones: every sign has a detection. A missed sign must be counted in it;
    of several detections of one sign at most one may be right.
    """
    score, truth = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.bool_)
    positives = int(truth.sum()) if n_positives is None else n_positives
    if score.ndim != 1 or score.shape != truth.shape or np.isnan(score).any():
        shapes = f"scores of shape {score.shape}, truth of shape {truth.shape}"
        raise InputError("curve", shapes, "give one number and one truth for each detection")
    if positives < truth.sum():
        raise InputError("curve", f"{int(truth.sum())} right detections of {positives} signs", "count each sign once")
    order = np.argsort(-score, kind="stable")
    falling = score[order]
    is_last_of_equals = np.append(falling[1:] != falling[:-1], True)[: len(falling)]
    last = np.flatnonzero(is_last_of_equals)
    n_right = np.cumsum(truth[order], dtype=np.int64)[last]
    return Curve(falling[last], n_right, last + 1 - n_right, positives)


def false_alarms_per_hour(curve: Curve, hours: float) -> Floats:
    """(T,) false alarms at each threshold per hour of footage searched."""
    if not 0 < hours < np.inf:
        raise InputError("curve", f"{hours} hours of footage", "give the length of what was searched")
    return np.asarray(curve.n_wrong / hours)


@dataclass(frozen=True, slots=True, eq=False)
class Footage:
    """Every window of one stretch of test video scored for every class of a closed vocabulary."""

    centres: Ints  # (n_windows,) the frame of each window
    cosine: FloatArray  # (n_windows, C) of each class, its best entry; may be a memory map
    label_class: Ints  # (n_labels,) 0 to C - 1
    label_frame: Ints  # (n_labels,)

    def __post_init__(self) -> None:
        if self.cosine.ndim != 2 or self.centres.shape != (len(self.cosine),):
            shapes = f"cosines of shape {self.cosine.shape}, centres of shape {self.centres.shape}"
            raise InputError("footage", shapes, "give one row and one centre for each window")
        classes, known = self.label_class, range(self.cosine.shape[1])
        if classes.shape != self.label_frame.shape or not np.isin(classes, known).all():
            raise InputError("footage", "the labels do not fit the classes", "number the classes as the columns")


def spotting_benchmark(footage: Sequence[Footage]) -> ClassMeans:
    """The closed-vocabulary benchmark (Paper 4.3): of each class, the average precision over all windows.

    A window is right for a class when its frame lies within the tolerance of an annotation of that class. Classes that
    have no such window cannot be found and are left out; `counts` are right windows.
    """
    widths = {one.cosine.shape[1] for one in footage}
    if len(widths) != 1:
        raise InputError("footage", f"{sorted(widths)} classes", "score all footage for the same classes")
    n_classes, found = widths.pop(), []
    for start in range(0, n_classes, _COLUMNS):
        block = np.concatenate([one.cosine[:, start : start + _COLUMNS] for one in footage])
        for number in range(start, min(start + _COLUMNS, n_classes)):
            labels = ((one, one.label_frame[one.label_class == number]) for one in footage)
            near = [is_near(one.centres[:, None], frames).any(axis=1) for one, frames in labels]
            if (right := np.concatenate(near)).any():
                found.append((number, _detection_curve(block[:, number - start], right)))
    return ClassMeans(
        classes=np.array([number for number, _ in found], dtype=np.int64),
        values=np.array([curve.average_precision for _, curve in found], dtype=np.float64),
        counts=np.array([curve.n_positives for _, curve in found], dtype=np.int64),
    )


# What a search of whole videos would announce: peaks of every word's curve, matched with the annotated signs. A peak is
# a window that scores higher than every window less than 16 frames before it and no lower than those after it. From the
# highest down, each peak may claim one annotation of its word within the tolerance, the nearest that is still free;
# what claims none is a false alarm. Where only some signs are annotated, as in most corpora, signs that nobody
# annotated count as false alarms too: precision is then a lower bound.

_DETECTION_COLUMNS = 32  # classes at once: bounds the memory


def _peak_windows(cosine: FloatArray, reach: int) -> Bools:
    """Which windows are peaks of their column, (n_windows, C) -> (n_windows, C); `reach` windows on either side count.

    Of equal neighbours the first is the peak; what could not be compared (-inf) is none.
    """
    if not reach or not len(cosine):
        return np.asarray(cosine > -np.inf)
    padded = np.pad(cosine, ((reach, reach), (0, 0)), constant_values=-np.inf)
    highest = sliding_window_view(padded, reach, axis=0).max(axis=-1)  # row i: padded rows i to i + reach - 1
    before, after = highest[: len(cosine)], highest[reach + 1 :]
    return np.asarray((cosine > before) & (cosine >= after))


def claimed(frames: Ints, scores: FloatArray, labels: Ints) -> Bools:
    """Which detections at `frames` (n,) claim one of the annotated `labels`, from the highest of `scores` (n,) down."""
    right = np.zeros(len(frames), dtype=np.bool_)
    free = np.ones(len(labels), dtype=np.bool_)
    near = is_near(frames[:, None], labels)
    for place in np.argsort(-scores, kind="stable"):
        choice = np.flatnonzero(near[place] & free)
        if len(choice):
            free[choice[np.abs(labels[choice] - frames[place]).argmin()]] = False
            right[place] = True
    return right


def footage_curve(footage: Sequence[Footage]) -> Curve:
    """The curve of all peaks of all classes together; every annotation is one sign to be found."""
    scores: list[FloatArray] = [np.empty(0, np.float32)]
    right: list[Bools] = [np.empty(0, np.bool_)]
    for one in footage:
        stride = int(np.diff(one.centres[:2]).max(initial=1))
        for first in range(0, one.cosine.shape[1], _DETECTION_COLUMNS):
            block = np.asarray(one.cosine[:, first : first + _DETECTION_COLUMNS], dtype=np.float32)
            is_peak = _peak_windows(block, (CLIP_LENGTH - 1) // max(1, stride))
            for column in range(block.shape[1]):
                windows = np.flatnonzero(is_peak[:, column])
                labels = one.label_frame[one.label_class == first + column]
                scores.append(block[windows, column])
                right.append(claimed(one.centres[windows], block[windows, column], labels))
    return _detection_curve(np.concatenate(scores), np.concatenate(right), sum(len(one.label_class) for one in footage))
