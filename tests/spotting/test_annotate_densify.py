"""The chosen explanation is the best there is: held against trying every subset."""

from __future__ import annotations

import random
import time
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.time import FrameSpan
from signspot.spotting.annotate import Candidate, best_explanation

ONE = st.builds(
    lambda mention, start, length, score: Candidate(mention, FrameSpan(start, start + length), score),
    st.integers(0, 4),
    st.integers(0, 30),
    st.integers(0, 9),
    st.sampled_from((-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.25)),
)
CANDIDATES = st.lists(ONE, max_size=9)


def is_consistent(chosen: list[Candidate]) -> bool:
    return all(a.mention != b.mention and not a.span.overlaps(b.span) for a, b in combinations(chosen, 2))


def best_by_trying_all(candidates: list[Candidate]) -> float:
    usable = [one for one in candidates if one.score > 0 and len(one.span)]
    subsets = (list(subset) for size in range(len(usable) + 1) for subset in combinations(usable, size))
    return max(sum(one.score for one in subset) for subset in subsets if is_consistent(subset))


@settings(max_examples=100)
@given(CANDIDATES)
def test_the_total_is_that_of_the_best_of_all_subsets(candidates: list[Candidate]) -> None:
    chosen = [candidates[place] for place in best_explanation(candidates)]
    assert is_consistent(chosen)
    assert all(one.score > 0 for one in chosen)
    assert sum(one.score for one in chosen) == best_by_trying_all(candidates)


@settings(max_examples=50)
@given(CANDIDATES, st.randoms(use_true_random=False))
def test_the_order_in_which_candidates_are_given_does_not_matter(
    candidates: list[Candidate], rng: random.Random
) -> None:
    shuffled = rng.sample(candidates, len(candidates))
    chosen = [[some[place] for place in best_explanation(some)] for some in (candidates, shuffled)]
    assert chosen[0] == chosen[1]


def test_a_sure_sign_gives_way_to_two_that_are_worth_more_together() -> None:
    sure = Candidate(0, FrameSpan(5, 15), 3.0)
    left, right = Candidate(1, FrameSpan(0, 8), 2.0), Candidate(2, FrameSpan(8, 20), 2.0)
    assert best_explanation([sure, left, right]) == (1, 2)


def test_the_second_best_place_of_a_word_is_taken_where_the_best_belongs_to_another() -> None:
    apple = [Candidate(0, FrameSpan(0, 10), 2.0), Candidate(0, FrameSpan(20, 30), 1.5)]
    tree = Candidate(1, FrameSpan(4, 14), 3.0)
    assert best_explanation([*apple, tree]) == (2, 1)


def test_of_equal_totals_the_earlier_place_and_the_earlier_mention_win() -> None:
    places = [Candidate(0, FrameSpan(start, start + 5), 1.0) for start in (40, 0, 20)]
    assert best_explanation(places) == (1,)
    mentions = [Candidate(mention, FrameSpan(0, 5), 1.0) for mention in (2, 0, 1)]
    assert best_explanation(mentions) == (1,)


def test_a_little_more_is_more() -> None:
    """The solver's own tolerances would let a ten-thousandth, and a millionth, go."""
    many = [Candidate(mention, FrameSpan(mention * 10, mention * 10 + 15), 20.0) for mention in range(1, 60)]
    for little in (1e-3, 1e-5, 1e-7):
        better = [*many[:30], Candidate(many[30].mention, many[30].span, 20.0 + little), *many[31:]]
        assert 30 in best_explanation(better), little
        assert 29 not in best_explanation(better), little


def test_an_answer_that_is_not_the_best_is_never_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signspot.spotting.annotate._EXACT", {"time_limit": 0.0})
    with pytest.raises(RuntimeError, match="no best choice among 900 candidates"):
        best_explanation([Candidate(n % 300, FrameSpan(n % 97, n % 97 + 9), 1 + n % 7) for n in range(900)])


def test_nothing_comes_of_nothing() -> None:
    assert best_explanation([]) == ()
    assert best_explanation([Candidate(0, FrameSpan(0, 5), -1.0)]) == ()


def test_two_minutes_of_dense_candidates_take_seconds() -> None:
    rng = random.Random(0)
    candidates = [
        Candidate(subtitle * 6 + word, FrameSpan(start, start + rng.randint(7, 13)), rng.random() * 3)
        for subtitle in range(30)
        for word in range(6)
        for start in (rng.randint(subtitle * 90 - 50, subtitle * 90 + 140) for _ in range(3))
        if start >= 0
    ]
    began = time.process_time()
    chosen = [candidates[place] for place in best_explanation(candidates)]
    assert all(a.span.stop <= b.span.start for a, b in pairwise(chosen))
    assert len({one.mention for one in chosen}) == len(chosen)
    assert time.process_time() - began < 5


@pytest.mark.soak
@settings(max_examples=3000)
@given(st.lists(ONE, max_size=13))
def test_the_total_is_the_best_in_larger_tangles_too(candidates: list[Candidate]) -> None:
    chosen = [candidates[place] for place in best_explanation(candidates)]
    assert is_consistent(chosen)
    assert sum(one.score for one in chosen) == best_by_trying_all(candidates)


@settings(max_examples=60)
@given(st.lists(st.tuples(*[st.sampled_from((1.0, 1.5, 2.0, 2.75))] * 3), min_size=1, max_size=4), st.integers(4, 8))
def test_prices_alone_cannot_settle_triangles_and_the_search_does(scores: list[tuple[float, ...]], step: int) -> None:
    """Two places of one mention, and a sign of another across both: any two of the three exclude each other."""
    candidates = []
    for number, (early, late, across) in enumerate(scores):
        start = number * step
        candidates += [
            Candidate(2 * number, FrameSpan(start, start + 2), early),
            Candidate(2 * number, FrameSpan(start + 4, start + 6), late),
            Candidate(2 * number + 1, FrameSpan(start + 1, start + 5), across),
        ]
    chosen = [candidates[place] for place in best_explanation(candidates)]
    assert is_consistent(chosen)
    assert sum(one.score for one in chosen) == best_by_trying_all(candidates)
