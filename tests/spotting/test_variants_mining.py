from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Episode, normalise
from signspot.domain.results import Provenance, Spotting
from signspot.domain.time import MillisSpan
from signspot.domain.tracks import unit
from signspot.spotting.peaks import Occurrence
from signspot.spotting.variants import Diversity, diverse

FREE = Diversity(count=1000, per_video=1000, alike=0, same_signer=0)
HERE = Provenance(media_sha256="", model="m", fingerprint="f", dictionary="d")


def found(cosine: float, video: str = "a", signer: str = "", direction: int = 0, at: int = 0) -> Occurrence:
    vector = np.zeros(4, np.float32)
    vector[direction] = 1
    spotting = Spotting(
        video_id=video, span_ms=MillisSpan.of(at, at + 640), frame=8, word=normalise("apple"), entry_id="e",
        cosine=cosine, provenance=HERE,
    )  # fmt: skip
    return Occurrence(spotting, Episode(video_id=video, video=Path(f"{video}.mp4"), signer=signer), unit(vector))


occurrences = st.lists(
    st.builds(found, st.floats(-1, 1), st.sampled_from("abc"), st.sampled_from(["", "x", "y"]), st.integers(0, 3)),
    max_size=12,
)


@settings(max_examples=25)
@given(occurrences)
def test_without_any_cost_the_choice_is_the_ranking_by_cosine(candidates: list[Occurrence]) -> None:
    expected = sorted(candidates, key=lambda one: -one.spotting.cosine)
    assert [one.spotting.cosine for one in diverse(candidates, FREE)] == [one.spotting.cosine for one in expected]


@settings(max_examples=25)
@given(occurrences, st.integers(1, 5), st.integers(1, 3))
def test_no_video_and_no_list_exceeds_its_limit_and_nothing_comes_twice(
    candidates: list[Occurrence], count: int, per_video: int
) -> None:
    chosen = diverse(candidates, Diversity(count=count, per_video=per_video))
    videos = [one.episode.video_id for one in chosen]
    assert len(chosen) <= count and all(videos.count(video) <= per_video for video in videos)
    assert len({id(one) for one in chosen}) == len(chosen)
    possible = sum(min(per_video, len([c for c in candidates if c.episode.video_id == v])) for v in "abc")
    assert len(chosen) == min(count, possible)


def test_another_look_comes_before_a_repetition_that_scores_a_little_higher() -> None:
    best, same, other = found(0.9), found(0.88), found(0.8, direction=1)
    assert diverse([best, same, other], Diversity(alike=0.2, same_signer=0)) == (best, other, same)


def test_another_signer_comes_before_the_same_one() -> None:
    best, same, other = found(0.9, "a", "x"), found(0.88, "b", "x", 1), found(0.86, "c", "y", 2)
    assert diverse([best, same, other], Diversity(alike=0, same_signer=0.05)) == (best, other, same)


def test_signers_nobody_knows_are_not_taken_for_one_person() -> None:
    best, second, third = found(0.9, "a"), found(0.88, "b", direction=1), found(0.86, "c", "y", 2)
    assert diverse([best, second, third], Diversity(alike=0, same_signer=0.05)) == (best, second, third)


def test_a_choice_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no examples"):
        Diversity(count=0)
