"""Where a sign was found compared with where it is: frames at 25 fps, both ends of the tolerance count (Paper 4.2).

Found time spans compared with annotated ones: the F1 of the 2022 sign-spotting challenge.

A found span may match an annotated span of the same video and class when their intersection over union (IoU) is at
least a threshold, and each span matches at most one other. For every threshold from 0.20 to 0.80 in steps of 0.05 the
matched spans are true positives, the other found ones false positives, the other annotated ones false negatives. The
three counts are averaged over the thresholds, summed over everything, and F1 = TP / (TP + (FP + FN) / 2).

As many spans as possible are matched at each threshold. IoU is compared in whole numbers, so a span at exactly a
threshold always counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from signspot.domain.time import MillisSpan, Tolerance
from signspot.domain.tracks import CLIP_LENGTH, Bools, FloatArray, Floats, Ints
from signspot.errors import InputError
from signspot.evaluation.measures import ClassMeans, Interval, ratio_interval


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
        return float(self.recall[self.false_alarms_per_hour(hours) <= per_hour].max(initial=0))

    def false_alarms_per_hour(self, hours: float) -> Floats:
        """(T,) false alarms at each threshold per hour of footage searched."""
        if not 0 < hours < np.inf:
            raise InputError("curve", f"{hours} hours of footage", "give the length of what was searched")
        return np.asarray(self.n_wrong / hours)

    @classmethod
    def of(cls, footage: Sequence[Footage]) -> Curve:
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
        return _detection_curve(
            np.concatenate(scores), np.concatenate(right), sum(len(one.label_class) for one in footage)
        )


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


_THRESHOLDS_PERCENT = tuple(range(20, 81, 5))  # of the challenge
_MAX_PAIRS = 10_000_000  # of one class in one video; more are damaged input


@dataclass(frozen=True, slots=True, order=True)
class SignSpan:
    """One sign of a numbered class, found or annotated."""

    sign: int
    span_ms: MillisSpan


SpansByVideo = Mapping[str, Sequence[SignSpan]]


@dataclass(frozen=True, slots=True, eq=False)
class OverlapScores:
    """Counts of every video and class that has a span, found or annotated; G groups by T thresholds."""

    videos: tuple[str, ...]  # (G,)
    signs: Ints  # (G,)
    true_positives: Ints  # (G, T)
    n_found: Ints  # (G,)
    n_annotated: Ints  # (G,)
    thresholds_percent: tuple[int, ...] = _THRESHOLDS_PERCENT  # (T,)

    @property
    def mean_true_positives(self) -> Floats:
        return np.asarray(self.true_positives.mean(axis=1))

    @property
    def precision(self) -> float:
        """The share of the found spans that match; 1 where nothing is found, for nothing is wrong."""
        return _share(float(self.mean_true_positives.sum()), int(self.n_found.sum()))

    @property
    def recall(self) -> float:
        """The share of the annotated spans that are matched; 1 where there are none."""
        return _share(float(self.mean_true_positives.sum()), int(self.n_annotated.sum()))

    @property
    def f1(self) -> float:
        """The figure of the challenge; 1 where there is nothing to find and nothing was found."""
        return _share(2 * float(self.mean_true_positives.sum()), int((self.n_found + self.n_annotated).sum()))

    @property
    def f1_by_threshold(self) -> Floats:
        """(T,) F1 at each single threshold."""
        total = int((self.n_found + self.n_annotated).sum())
        return np.array([_share(2 * int(hits), total) for hits in self.true_positives.sum(axis=0)], dtype=np.float64)

    def f1_interval(self) -> Interval:
        return ratio_interval(2 * self.mean_true_positives, self.n_found + self.n_annotated, self.signs)


def overlap_scores(annotated: SpansByVideo, found: SpansByVideo) -> OverlapScores:
    """Match what was found with what is there; a video missing on one side has no spans there."""
    groups = list(_groups(annotated, found))
    hits = [[overlaps.most_matches(percent) for percent in _THRESHOLDS_PERCENT] for *_, overlaps in groups]
    return OverlapScores(
        videos=tuple(video for video, *_ in groups),
        signs=np.array([sign for _, sign, _ in groups], dtype=np.int64),
        true_positives=np.array(hits, dtype=np.int64).reshape(len(groups), len(_THRESHOLDS_PERCENT)),
        n_found=np.array([overlaps.shared.shape[1] for *_, overlaps in groups], dtype=np.int64),
        n_annotated=np.array([overlaps.shared.shape[0] for *_, overlaps in groups], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Overlaps:
    """Milliseconds that A annotated and F found spans share, and that they cover together."""

    shared: Ints  # (A, F)
    joint: Ints  # (A, F)

    @classmethod
    def of(cls, annotated: Sequence[MillisSpan], found: Sequence[MillisSpan]) -> _Overlaps:
        rows = np.array([(span.start, span.stop) for span in annotated], dtype=np.int64).reshape(-1, 1, 2)
        columns = np.array([(span.start, span.stop) for span in found], dtype=np.int64).reshape(1, -1, 2)
        shared = np.minimum(rows[..., 1], columns[..., 1]) - np.maximum(rows[..., 0], columns[..., 0])
        shared = np.maximum(shared, 0)
        return cls(shared, np.diff(rows)[..., 0] + np.diff(columns)[..., 0] - shared)

    def most_matches(self, percent: int) -> int:
        from scipy.sparse import csr_array  # only here: it loads slowly
        from scipy.sparse.csgraph import maximum_bipartite_matching

        # Two spans without length cover nothing and share nothing.
        may_match = (self.shared * 100 >= self.joint * percent) & (self.joint > 0)
        return int((maximum_bipartite_matching(csr_array(may_match), perm_type="column") >= 0).sum())


def _share(part: float, whole: int) -> float:
    return part / whole if whole else 1.0


def _groups(annotated: SpansByVideo, found: SpansByVideo) -> Iterator[tuple[str, int, _Overlaps]]:
    for video in sorted({*annotated, *found}):
        spans: dict[int, tuple[list[MillisSpan], list[MillisSpan]]] = defaultdict(lambda: ([], []))
        for side, given in enumerate((annotated, found)):
            for one in given.get(video, ()):
                spans[one.sign][side].append(one.span_ms)
        for sign, (there, claimed) in sorted(spans.items()):
            if len(there) * len(claimed) > _MAX_PAIRS:
                what = f"{len(claimed)} found and {len(there)} annotated spans of class {sign}"
                raise InputError(video, what, "find fewer: no video shows one sign so often")
            yield video, sign, _Overlaps.of(there, claimed)
