from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.time import Tolerance
from signspot.errors import InputError
from signspot.evaluation.localisation import _localisation, is_near

frames = st.integers(0, 1000)
tolerances = st.builds(Tolerance, st.integers(0, 30), st.integers(0, 30))


@given(frames, frames, tolerances)
def test_near_is_what_the_tolerance_says(found: int, annotated: int, tolerance: Tolerance) -> None:
    assert bool(is_near(found, annotated, tolerance)) == (found in tolerance.around(annotated))


def test_both_ends_of_the_tolerance_count() -> None:
    assert is_near([79, 80, 100, 105, 106], 100).tolist() == [False, True, True, True, False]


def test_a_localisation_computed_by_hand() -> None:
    scored = _localisation(np.array([80, 79, 105, 106]), np.full(4, 100))
    assert (scored.accuracy, scored.n) == (0.5, 4)
    assert (scored.median_offset, scored.median_distance) == (-7.5, 13.0)


def test_no_frames_cannot_be_judged() -> None:
    with pytest.raises(InputError, match="give pairs"):
        _localisation(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    with pytest.raises(InputError, match="give pairs"):
        _localisation(np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64))
