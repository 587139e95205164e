from __future__ import annotations

import numpy as np
import pytest

from signspot.world.people import Appearance, _random_appearance, blended, luma, shaded


def test_hands_stand_out_against_the_clothes_and_the_clothes_against_the_wall() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        drawn = _random_appearance(rng)
        assert abs(luma(drawn.skin) - luma(drawn.top)) >= 60
        assert abs(luma(drawn.top) - luma(drawn.background)) >= 60


def test_the_same_seed_draws_the_same_people_and_people_differ() -> None:
    first, second = ([_random_appearance(np.random.default_rng(seed)) for seed in range(50)] for _ in range(2))
    assert first == second
    assert len(set(first)) == 50


def test_a_colour_outside_the_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"in 0\.\.255"):
        Appearance(skin=(300, 0, 0), hair=(0, 0, 0), top=(0, 0, 0), background=(0, 0, 0))


def test_shading_and_blending_stay_between_black_and_white() -> None:
    assert shaded((200, 100, 0), 2.0) == (255, 200, 0)
    assert shaded((200, 100, 0), 0.0) == (0, 0, 0)
    assert blended((0, 100, 200), (100, 0, 200), 0.5) == (50, 50, 200)
