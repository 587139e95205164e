"""Detections compared with truth at every threshold: precision, recall, false alarms per hour, spotting by class.

Conventions: a detection counts at a threshold when its score is at least the threshold, so equal scores come and go
together and no order among them matters. `n_positives` counts the signs there are to find, found or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.spans import Tolerance
from signspot.domain.tracks import FloatArray
from signspot.errors import InputError
from signspot.evaluation.localisation import is_near
from signspot.evaluation.ranking import Bools, ClassMeans, Floats, Ints

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
        """(T,) the share of the detections that are right."""
        return np.asarray(self.n_right / (self.n_right + self.n_wrong))

    @property
    def recall(self) -> Floats:
        """(T,) the share of the positives that are found; 0 where there are none."""
        return np.asarray(self.n_right / max(1, self.n_positives))

    @property
    def f1(self) -> Floats:
        """(T,) the harmonic mean of precision and recall."""
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


def detection_curve(scores: npt.ArrayLike, right: npt.ArrayLike, n_positives: int | None = None) -> Curve:
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


def spotting_benchmark(footage: Sequence[Footage], tolerance: Tolerance = Tolerance()) -> ClassMeans:
    """The closed-vocabulary benchmark (Paper 4.3): of each class, the average precision over all windows.

    A window is right for a class when its frame lies within the tolerance of an annotation of that class. Classes that
    have no such window cannot be found and are left out; `counts` are right windows.
    """
    widths = {one.cosine.shape[1] for one in footage}
    if len(widths) != 1:
        raise InputError("footage", f"{sorted(widths)} classes", "score all footage for the same classes")
    found = list(_class_curves(footage, widths.pop(), tolerance))
    return ClassMeans(
        classes=np.array([number for number, _ in found], dtype=np.int64),
        values=np.array([curve.average_precision for _, curve in found], dtype=np.float64),
        counts=np.array([curve.n_positives for _, curve in found], dtype=np.int64),
    )


def _class_curves(footage: Sequence[Footage], n_classes: int, tolerance: Tolerance) -> Iterator[tuple[int, Curve]]:
    for start in range(0, n_classes, _COLUMNS):
        block = np.concatenate([one.cosine[:, start : start + _COLUMNS] for one in footage])
        for number in range(start, min(start + _COLUMNS, n_classes)):
            right = np.concatenate([_right_windows(one, number, tolerance) for one in footage])
            if right.any():
                yield number, detection_curve(block[:, number - start], right)


def _right_windows(footage: Footage, number: int, tolerance: Tolerance) -> Bools:
    frames = footage.label_frame[footage.label_class == number]
    return np.asarray(is_near(footage.centres[:, None], frames, tolerance).any(axis=1))
