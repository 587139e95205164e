"""What `friends` takes for one form where nobody says."""

from __future__ import annotations

from signspot.embedding.model import COLOUR_MODEL, LANDMARK_MODEL
from signspot.spotting.friends import FriendOptions
from signspot.workflows.lookup import usual_options


def test_closeness_suits_the_model() -> None:
    assert usual_options(LANDMARK_MODEL) == FriendOptions(least_closeness=0.25)
    assert usual_options(COLOUR_MODEL) == usual_options("own.safetensors") == FriendOptions()
