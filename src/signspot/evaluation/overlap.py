"""Found time spans compared with annotated ones: the F1 of the 2022 sign-spotting challenge.

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

from signspot.domain.time import MillisSpan
from signspot.domain.tracks import Floats, Ints
from signspot.errors import InputError
from signspot.evaluation.intervals import Interval, ratio_interval

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
