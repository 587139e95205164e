from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from signspot.world.lexicon import (
    LOCATIONS,
    PATHS,
    SHAPES,
    Form,
    _minimal_partner,
    _random_form,
)
from signspot.world.settings import chance
from signspot.world.simulation import _spread_counts


def differing_parameters(one: Form, other: Form) -> set[str]:
    """Names of what differs; a final handshape or orientation belongs to its first."""
    assert one.hands == other.hands and len(one.strokes) == len(other.strokes)
    return {
        field.name.removeprefix("final_")
        for a, b in zip(one.strokes, other.strokes, strict=True)
        for field in fields(a)
        if getattr(a, field.name) != getattr(b, field.name)
    }


def test_there_are_about_thirty_handshapes_twenty_locations_and_six_paths() -> None:
    assert len(SHAPES) >= 30 and len(LOCATIONS) >= 20 and len(PATHS) == 6


def test_no_two_handshapes_have_the_same_angles() -> None:
    angles = np.stack(list(SHAPES.values()))
    distance = np.abs(angles[:, None] - angles[None]).max(-1) + np.eye(len(SHAPES))
    assert np.degrees(distance.min()) > 8


def test_minimal_partners_differ_in_exactly_one_parameter() -> None:
    rng = chance(0, "test")
    for _ in range(300):
        form = _random_form(rng)
        assert len(differing_parameters(form, _minimal_partner(form, rng))) == 1


def test_chance_depends_on_its_key_alone() -> None:
    before = chance(3, "episode", 7).random(4)
    chance(3, "episode", 6).random(1000)
    assert (chance(3, "episode", 7).random(4) == before).all()
    assert (chance(3, "episode", 8).random(4) != before).any()
    assert (chance(4, "episode", 7).random(4) != before).any()


@pytest.mark.parametrize("n", [7, 60, 1064])
def test_counts_keep_their_mean_in_worlds_of_any_size(n: int) -> None:
    counts = _spread_counts(n, 2.8, 10, chance(0, n))
    assert counts.min() == 1 and counts.max() <= 10
    assert counts.mean() == pytest.approx(2.8, abs=0.5 / np.sqrt(n) + 0.02)
