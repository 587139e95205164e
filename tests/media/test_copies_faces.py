"""Grouping needs only scikit-learn; reading faces needs the extra and real recordings."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import Floats
from signspot.errors import MissingExtra
from signspot.media import copies as faces
from signspot.media.copies import FaceReader, _middle, face_groups

needs_sklearn = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="needs the extra 'faces'")
needs_faces = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("dlib", "face_recognition_models", "sklearn")),
    reason="needs the extra 'faces'",
)


def people(counts: tuple[int, ...], seed: int = 0) -> list[Floats]:
    """Vectors of persons as far apart as the network puts them, and as different as pictures of one person are."""
    rng = np.random.default_rng(seed)
    made = []
    for count in counts:
        person = rng.normal(size=128)
        made += [0.6 * person / np.linalg.norm(person) + rng.normal(0, 0.02, 128) for _ in range(count)]
    return made


@needs_sklearn
@pytest.mark.parametrize("counts", [(5, 3, 2), (30,), (2, 2), (7, 6, 5, 4, 3, 2)])
def test_every_person_is_a_group_and_larger_groups_come_first(counts: tuple[int, ...]) -> None:
    vectors: list[Floats | None] = [*people(counts)]
    groups = face_groups(vectors)
    sizes = sorted((groups.count(number) for number in set(groups)), reverse=True)
    assert sizes == sorted(counts, reverse=True)
    assert [groups.count(number) for number in range(1, len(counts) + 1)] == sizes
    starts = np.cumsum([0, *counts])
    assert all(len(set(groups[a:b])) == 1 for a, b in pairwise(starts.tolist()))


@needs_sklearn
def test_clips_without_a_face_or_with_a_face_seen_once_are_in_no_group() -> None:
    once, *twice = people((1, 2))
    assert face_groups([None, once, twice[0], None, twice[1]]) == [None, None, 1, None, 1]
    assert face_groups([None, once]) == [None, None]
    assert face_groups([]) == []


@needs_sklearn
def test_groups_are_the_same_when_there_are_too_many_for_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors: list[Floats | None] = [*people((9, 8, 7, 6))]
    order = np.random.default_rng(1).permutation(len(vectors))
    mixed = [vectors[place] for place in order]
    at_once = face_groups(mixed)
    monkeypatch.setattr(faces, "_AT_ONCE", 7)
    assert face_groups(mixed) == at_once


def test_one_wrong_face_does_not_move_the_middle_far() -> None:
    right, wrong = np.zeros(128), np.ones(128)
    assert (_middle([right, wrong, right]) == right).all()
    assert _middle([]) is None


@pytest.mark.parametrize("missing", ["dlib", "sklearn.cluster"])
def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"pip install 'signspot\[faces\]'"):
        FaceReader() if missing == "dlib" else face_groups([*people((2,))])


@needs_faces
def test_parts_of_real_recordings_are_grouped_by_their_signer(shared_data: Path) -> None:
    reader = FaceReader()
    folder = shared_data / "real_video"
    clips = [("drink_17730", 34), ("sunday_55768", 9), ("bsl_broadcast", 80)]
    spans = [(name, span) for name, half in clips for span in (FrameSpan(0, half), FrameSpan(half, 2 * half))]
    vectors = [reader.clip_vector(folder / f"{name}.mp4", span) for name, span in spans]
    groups = face_groups(vectors)
    assert None not in groups
    assert [groups[0::2], sorted({*groups[0::2]} - {None})] == [groups[1::2], [1, 2, 3]]
