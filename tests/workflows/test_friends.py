"""What `friends` takes for one form where nobody says."""

from __future__ import annotations

from pathlib import Path

import pytest

from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.words import Word
from signspot.models.zoo import COLOUR_MODEL, LANDMARK_MODEL
from signspot.spotting.false_friends import FriendOptions
from signspot.workflows.friends import By, usual_options, usual_way


def test_closeness_suits_the_model() -> None:
    assert usual_options(LANDMARK_MODEL) == FriendOptions(least_closeness=0.25)
    assert usual_options(COLOUR_MODEL) == usual_options("own.safetensors") == FriendOptions()


@pytest.mark.parametrize(
    ("languages", "name", "by"),
    [
        (("qaa", "qab"), "a.pose", By.PARTS),
        (("qaa", "qab"), "a.mp4", By.VECTORS),
        (("bsl", "qab"), "a.pose", By.VECTORS),
        (("", ""), "a.pose", By.VECTORS),
    ],
)
def test_parts_are_for_made_up_languages_with_landmarks(
    tmp_path: Path, languages: tuple[str, str], name: str, by: By
) -> None:
    (tmp_path / name).touch()
    first, second = (
        Dictionary.of(one or "x", [Entry(entry_id="e", word=Word("a"), language=one, video=tmp_path / name)])
        for one in languages
    )
    assert usual_way(first, second) is by
