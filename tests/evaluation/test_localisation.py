from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.time import Tolerance
from signspot.evaluation.localisation import is_near

frames = st.integers(0, 1000)
tolerances = st.builds(Tolerance, st.integers(0, 30), st.integers(0, 30))


@given(frames, frames, tolerances)
def test_near_is_what_the_tolerance_says(found: int, annotated: int, tolerance: Tolerance) -> None:
    assert bool(is_near(found, annotated, tolerance)) == (found in tolerance.around(annotated))


def test_both_ends_of_the_tolerance_count() -> None:
    assert is_near([79, 80, 100, 105, 106], 100).tolist() == [False, True, True, True, False]
