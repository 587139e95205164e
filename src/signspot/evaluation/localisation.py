"""Where a sign was found compared with where it is: frames at 25 fps, both ends of the tolerance count (Paper 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.spans import Tolerance
from signspot.errors import InputError
from signspot.evaluation.ranking import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Localisation:
    """How well frames were found, over all pairs of a found and an annotated frame."""

    accuracy: float  # the share within the tolerance, 0 to 1
    n: int
    median_offset: float  # frames, found minus annotated: negative is early
    median_distance: float  # frames


def is_near(found: npt.ArrayLike, annotated: npt.ArrayLike, tolerance: Tolerance = Tolerance()) -> Bools:
    """Which found frames lie from 20 before to 5 after the annotated ones; the arrays broadcast.

    >>> is_near([79, 80, 105, 106], 100)
    array([False,  True,  True, False])
    """
    offset = np.asarray(found, dtype=np.int64) - np.asarray(annotated, dtype=np.int64)
    return np.asarray((offset >= -tolerance.before) & (offset <= tolerance.after))


def localisation(found: Ints, annotated: Ints, tolerance: Tolerance = Tolerance()) -> Localisation:
    """Judge `found` (n,) against `annotated` (n,)."""
    if found.shape != annotated.shape or found.ndim != 1 or not len(found):
        raise InputError("localisation", f"{found.shape} found and {annotated.shape} annotated frames", "give pairs")
    offset: Floats = (found - annotated).astype(np.float64)
    return Localisation(
        accuracy=float(is_near(found, annotated, tolerance).mean()),
        n=len(found),
        median_offset=float(np.median(offset)),
        median_distance=float(np.median(np.abs(offset))),
    )
