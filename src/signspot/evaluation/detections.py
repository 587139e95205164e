"""What a search of whole videos would announce: peaks of every word's curve, matched with the annotated signs.

A peak is a window that scores higher than every window less than 16 frames before it and no lower than those after
it. From the highest down, each peak may claim one annotation of its word within the tolerance, the nearest that is
still free; what claims none is a false alarm. Where only some signs are annotated, as in most corpora, signs that
nobody annotated count as false alarms too: precision is then a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from signspot.domain.spans import Tolerance
from signspot.domain.tracks import CLIP_LENGTH, FloatArray
from signspot.evaluation.curves import Curve, Footage, detection_curve
from signspot.evaluation.localisation import is_near
from signspot.evaluation.ranking import Bools, Ints

_COLUMNS = 32  # classes at once: bounds the memory


def peak_windows(cosine: FloatArray, reach: int) -> Bools:
    """Which windows are peaks of their column, (n_windows, C) -> (n_windows, C); `reach` windows on either side count.

    Of equal neighbours the first is the peak; what could not be compared (-inf) is none.
    """
    if not reach or not len(cosine):
        return np.asarray(cosine > -np.inf)
    padded = np.pad(cosine, ((reach, reach), (0, 0)), constant_values=-np.inf)
    highest = sliding_window_view(padded, reach, axis=0).max(axis=-1)  # row i: padded rows i to i + reach - 1
    before, after = highest[: len(cosine)], highest[reach + 1 :]
    return np.asarray((cosine > before) & (cosine >= after))


def claimed(frames: Ints, scores: FloatArray, labels: Ints, tolerance: Tolerance = Tolerance()) -> Bools:
    """Which detections at `frames` (n,) claim one of the annotated `labels`, from the highest of `scores` (n,) down."""
    right = np.zeros(len(frames), dtype=np.bool_)
    free = np.ones(len(labels), dtype=np.bool_)
    near = is_near(frames[:, None], labels, tolerance)
    for place in np.argsort(-scores, kind="stable"):
        choice = np.flatnonzero(near[place] & free)
        if len(choice):
            free[choice[np.abs(labels[choice] - frames[place]).argmin()]] = False
            right[place] = True
    return right


def footage_curve(footage: Sequence[Footage], tolerance: Tolerance = Tolerance()) -> Curve:
    """The curve of all peaks of all classes together; every annotation is one sign to be found."""
    scores: list[FloatArray] = [np.empty(0, np.float32)]
    right: list[Bools] = [np.empty(0, np.bool_)]
    for one in footage:
        stride = int(np.diff(one.centres[:2]).max(initial=1))
        for first in range(0, one.cosine.shape[1], _COLUMNS):
            block = np.asarray(one.cosine[:, first : first + _COLUMNS], dtype=np.float32)
            is_peak = peak_windows(block, (CLIP_LENGTH - 1) // max(1, stride))
            for column in range(block.shape[1]):
                windows = np.flatnonzero(is_peak[:, column])
                labels = one.label_frame[one.label_class == first + column]
                scores.append(block[windows, column])
                right.append(claimed(one.centres[windows], block[windows, column], labels, tolerance))
    return detection_curve(np.concatenate(scores), np.concatenate(right), sum(len(one.label_class) for one in footage))
