from __future__ import annotations

import pytest

from signspot.domain.recordings import Word
from signspot.domain.results import Band, Presence, Provenance, Spotting, VideoAnswer
from signspot.domain.time import MillisSpan

PROVENANCE = Provenance(media_sha256="ab", model="m", fingerprint="f", dictionary="d")


def spotting(**changes: object) -> Spotting:
    made = {"video_id": "v", "span_ms": MillisSpan.of(0, 640), "frame": 8, "word": Word("apple"), "entry_id": "e"}
    return Spotting(**(made | {"cosine": 0.5, "provenance": PROVENANCE} | changes))


def test_the_id_of_a_finding_depends_on_what_was_found_not_on_how_it_is_named() -> None:
    assert spotting().spotting_id == spotting(video_id="copy", cosine=0.51).spotting_id
    assert spotting().spotting_id != spotting(span_ms=MillisSpan.of(40, 680)).spotting_id
    assert spotting().spotting_id != spotting(word=Word("tree")).spotting_id
    assert spotting(type_id="7").spotting_id == spotting(type_id="7", word=Word("renamed")).spotting_id


@pytest.mark.parametrize("threshold", [float("nan"), 1.5])
def test_a_threshold_that_is_no_cosine_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="out of range"):
        VideoAnswer(video_id="v", words=(), duration_ms=0, threshold=threshold)


def test_a_presence_is_a_probability() -> None:
    with pytest.raises(ValueError, match="out of range"):
        Presence(1.2, "c")


@pytest.mark.parametrize(
    ("probability", "band"),
    [(1.0, "likely"), (2 / 3, "likely"), (0.66, "possible"), (0.25, "possible"), (0.24, "unlikely")],
)
def test_a_probability_has_one_band_in_every_command(probability: float, band: str) -> None:
    assert Presence(probability, "c").band is Band(band)
