from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.time import MillisSpan
from signspot.errors import InputError
from signspot.evaluation.localisation import _THRESHOLDS_PERCENT, SignSpan, overlap_scores


def sign(number: int, start: int, stop: int) -> SignSpan:
    return SignSpan(number, MillisSpan.of(start, stop))


spans = st.builds(
    lambda number, start, length: sign(number, start, start + length),
    st.integers(0, 1),
    st.integers(0, 30),
    st.integers(0, 20),
)
crowds = st.dictionaries(st.sampled_from(["a", "b"]), st.lists(spans, max_size=5))


def iou(one: SignSpan, other: SignSpan) -> Fraction:
    times = set(range(one.span_ms.start, one.span_ms.stop)), set(range(other.span_ms.start, other.span_ms.stop))
    joint = len(times[0] | times[1])
    return Fraction(len(times[0] & times[1]), joint) if joint else Fraction(0)


def most_matches(annotated: list[SignSpan], found: list[SignSpan], percent: int) -> int:
    """Try every way to pair them."""
    few, many = sorted((annotated, found), key=len)
    best = 0
    for chosen in itertools.permutations(many, len(few)):
        pairs = zip(few, chosen, strict=True)
        best = max(best, sum(a.sign == b.sign and iou(a, b) >= Fraction(percent, 100) for a, b in pairs))
    return best


@given(crowds, crowds)
def test_optimal_matching_finds_as_many_as_trying_everything(
    annotated: dict[str, list[SignSpan]], found: dict[str, list[SignSpan]]
) -> None:
    scores = overlap_scores(annotated, found)
    for column, percent in enumerate(_THRESHOLDS_PERCENT):
        expected = sum(most_matches(annotated.get(v, []), found.get(v, []), percent) for v in "ab")
        assert scores.true_positives[:, column].sum() == expected


@given(crowds)
def test_truth_scores_one_hundred_per_cent(annotated: dict[str, list[SignSpan]]) -> None:
    lasting = {video: [s for s in signs if s.span_ms.duration] for video, signs in annotated.items()}
    scores = overlap_scores(lasting, lasting)
    assert scores.f1 == scores.precision == scores.recall == 1.0


@given(crowds, crowds)
def test_nothing_depends_on_the_order(annotated: dict[str, list[SignSpan]], found: dict[str, list[SignSpan]]) -> None:
    turned = {video: signs[::-1] for video, signs in reversed(found.items())}
    assert overlap_scores(annotated, found).f1 == overlap_scores(annotated, turned).f1
    assert overlap_scores(annotated, found).f1 == pytest.approx(overlap_scores(found, annotated).f1)


def test_there_are_13_thresholds_from_20_to_80_per_cent() -> None:
    assert _THRESHOLDS_PERCENT == (20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80)


def test_a_case_computed_by_hand() -> None:
    annotated = {"v": [sign(1, 0, 100), sign(2, 500, 600)]}
    found = {"v": [sign(1, 0, 50), sign(1, 50, 100), sign(3, 500, 600)], "w": [sign(1, 0, 100)]}
    # IoU 0.5: right at 7 of 13 thresholds (0.20 to 0.50). Only one of the two halves can match.
    scores = overlap_scores(annotated, found)
    true_positives = 7 / 13
    assert scores.mean_true_positives.sum() == pytest.approx(true_positives)
    false_positives, false_negatives = 4 - true_positives, 2 - true_positives
    assert scores.f1 == pytest.approx(true_positives / (true_positives + (false_positives + false_negatives) / 2))
    assert scores.precision == pytest.approx(true_positives / 4)
    assert scores.recall == pytest.approx(true_positives / 2)
    assert scores.f1_by_threshold[:7] == pytest.approx(np.full(7, 2 / 6))
    assert scores.f1_by_threshold[7:].tolist() == [0.0] * 6


def test_an_overlap_of_exactly_the_threshold_counts() -> None:
    for percent in _THRESHOLDS_PERCENT:
        scores = overlap_scores({"v": [sign(0, 0, 100)]}, {"v": [sign(0, 0, percent)]})
        assert scores.true_positives[0].sum() == _THRESHOLDS_PERCENT.index(percent) + 1


def test_a_worse_match_is_taken_where_more_spans_then_match() -> None:
    # At 25 per cent, found 40-140 fits both and the second better; found 120-170 fits the second alone.
    annotated = {"v": [sign(0, 0, 100), sign(0, 50, 150)]}
    found = {"v": [sign(0, 40, 140), sign(0, 120, 170)]}
    assert overlap_scores(annotated, found).f1_by_threshold[1] == 1.0


def test_long_chains_of_overlapping_spans_are_matched_whole() -> None:
    n = 1500
    annotated = {"v": [sign(0, 10 * i, 10 * i + 20) for i in range(n)]}
    found = {"v": [sign(0, 10 * i + 10, 10 * i + 30) for i in range(n - 1, -1, -1)]}
    assert overlap_scores(annotated, found).f1_by_threshold[2] == 1.0


def test_nothing_found_where_nothing_is_counts_as_right() -> None:
    assert overlap_scores({"v": []}, {}).f1 == 1.0
    assert overlap_scores({"v": [sign(0, 0, 10)]}, {}).f1 == 0.0
    assert overlap_scores({}, {"v": [sign(0, 0, 10)]}).f1 == 0.0


def test_spans_without_length_match_nothing() -> None:
    assert overlap_scores({"v": [sign(0, 5, 5)]}, {"v": [sign(0, 5, 5)]}).f1 == 0.0


def test_f1_has_an_interval_over_classes() -> None:
    rng = np.random.default_rng(0)
    annotated = {f"v{i}": [sign(int(rng.integers(9)), 1000 * j, 1000 * j + 400) for j in range(8)] for i in range(12)}
    found = {video: [one for one in signs if rng.random() < 0.6] for video, signs in annotated.items()}
    scores = overlap_scores(annotated, found)
    interval = scores.f1_interval()
    assert (interval.estimate, interval.n_units) == (pytest.approx(scores.f1), 9)
    assert interval.low is not None and interval.high is not None
    assert interval.low < scores.f1 < interval.high


def test_what_cannot_be_matched_is_refused() -> None:
    crowd = {"show.mp4": [sign(4, i, i + 1) for i in range(4000)]}
    with pytest.raises(InputError, match=r"show\.mp4: 4000 found and 4000 annotated spans of class 4"):
        overlap_scores(crowd, crowd)
