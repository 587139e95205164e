"""Shared by all tests: the toy world, made once, and where real recordings lie if they are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from signspot.embedding import detector as landmark_process
from tests.toy_world import ToyWorld, make_toy_world

# The same examples in every run, so that a change is judged by what it changed; `make soak` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("steady")

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def toy_world(tmp_path_factory: pytest.TempPathFactory) -> ToyWorld:
    return make_toy_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip(f"real recordings are not at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(autouse=True)
def no_detector(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed, nothing finds landmarks in videos unless a test installs or asks for a detector."""
    if "real_detector" not in request.keywords:
        monkeypatch.setattr(landmark_process, "_DISTRIBUTIONS", ())
