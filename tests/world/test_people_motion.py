from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.recordings import Word
from signspot.world.lexicon import PATHS, Form, Hands, _random_form, _Stroke
from signspot.world.people import Performance, Signer, _minimum_jerk, _path_offsets, draw_signer, strokes_of
from signspot.world.settings import Difficulty, chance
from signspot.world.simulation import _as_detected

WRISTS = slice(15, 17)


def signer(name: str = "someone", **knobs: float) -> Signer:
    return draw_signer(name, 0, Difficulty(**knobs), filmed_aside=False)


def clip(form: Form, who: Signer) -> Performance:
    n = len(form.strokes)
    plan = strokes_of((None, form, None), who).timed(np.array([10, *[30] * n, 12]), np.full(n + 1, 10))
    return plan.performed(who, 0.9, chance(0, "clip"))


def wrists(performance: Performance) -> np.ndarray:
    return performance.points[:, :132].reshape(-1, 33, 4)[:, WRISTS, :2]


def stroke(**changes: object) -> _Stroke:
    usual = {
        "shape": "flat",
        "final_shape": "flat",
        "location": "middle-space",
        "orientation": "forward-down",
        "final_orientation": "forward-down",
        "path": "straight",
        "direction": "across",
        "size": 2,
        "repetitions": 1,
    }
    return _Stroke(**(usual | changes))  # type: ignore[arg-type]


def test_a_reach_starts_and_ends_at_rest() -> None:
    phase = np.linspace(0, 1, 1001)
    way = _minimum_jerk(phase)
    assert way[[0, -1]] == pytest.approx([0, 1]) and (np.diff(way) >= 0).all()
    assert np.gradient(way, phase)[[0, -1]] == pytest.approx([0, 0], abs=1e-4)


@pytest.mark.parametrize("path", range(len(PATHS)))
@pytest.mark.parametrize("repetitions", [1, 2, 3])
def test_paths_are_smooth_and_stay_within_their_size(path: int, repetitions: int) -> None:
    phase = np.linspace(0, 1, 500)
    offsets = _path_offsets(np.full(500, path), np.full(500, repetitions), phase)
    assert np.abs(offsets).max() <= 0.51
    assert np.abs(np.diff(offsets, axis=0)).max() < 0.05


def test_a_circle_is_round_and_a_hold_does_not_move() -> None:
    phase = np.linspace(0, 1, 100)
    circle, hold = (_path_offsets(np.full(100, PATHS.index(p)), np.ones(100, int), phase) for p in ("circle", "hold"))
    assert np.linalg.norm(circle, axis=1) == pytest.approx(0.5)
    assert (hold == 0).all()


def test_hands_are_still_before_and_after_a_sign_and_only_there() -> None:
    who = signer(style_location=0.0, style_orientation=0.0)
    performance = clip(Form((stroke(),)), who)
    assert (performance.moving.start, performance.moving.stop) == (10, 60)
    dominant = wrists(performance)[:, 0 if who.left_handed else 1]
    speed = np.linalg.norm(np.diff(dominant, axis=0), axis=1)
    assert speed[:7].max() < 0.003 > speed[62:].max()
    assert speed[10:18].max() > 0.01 < speed[50:58].max()


def test_a_left_hander_signs_one_handed_signs_with_the_left() -> None:
    names = [f"dictionary-{i:03}" for i in range(60)]
    left = next(name for name in names if signer(name).left_handed)
    right = next(name for name in names if not signer(name).left_handed)
    for name, moving in ((left, 0), (right, 1)):
        travelled = np.ptp(wrists(clip(Form((stroke(location="chin"),)), signer(name))), axis=0).max(axis=1)
        assert travelled[moving] > 3 * travelled[1 - moving]


def test_both_hands_move_alike_in_a_symmetric_sign() -> None:
    who = signer(style_location=0.0, style_orientation=0.0)
    shown = wrists(clip(Form((stroke(direction="up"),), Hands.SYMMETRIC), who))
    assert np.abs(shown[:, 0, 1] - shown[:, 1, 1]).max() < 0.01


def test_alternating_hands_move_against_each_other() -> None:
    who = signer(style_location=0.0, style_orientation=0.0)
    middle = slice(25, 45)
    up_and_down = stroke(direction="up", repetitions=3)
    shown = wrists(clip(Form((up_and_down,), Hands.ALTERNATING), who))[middle, :, 1]
    assert np.corrcoef(shown.T)[0, 1] < -0.9


def test_nothing_explodes() -> None:
    for i in range(40):
        rng = chance(i, "forms")
        performance = clip(_random_form(rng), signer(f"dictionary-{i:03}"))
        assert np.isfinite(performance.points).all()
        joints = np.concatenate([performance.points[:, 132:].reshape(len(performance), 42, 3)[..., :2]], axis=1)
        assert joints.min() > -0.15 and joints.max() < 1.15
        assert np.linalg.norm(np.diff(joints, axis=0), axis=-1).max() < 0.2  # picture widths a frame


def test_style_is_no_linear_map() -> None:
    """The best affine map from one signer's places to another's leaves much of their difference."""
    rng = chance(0, "places")
    places = np.column_stack([rng.uniform(-0.7, 0.5, 500), rng.uniform(-1, 1, 500), rng.uniform(-0.9, -0.2, 500),
                              rng.uniform(0, 1.3, 500), rng.uniform(0, 2.4, 500), rng.uniform(0, 3, 500)])  # fmt: skip
    offsets = signer("a").manner.offsets(places) - signer("b").manner.offsets(places)
    design = np.column_stack([places, np.ones(500)])
    remaining = offsets - design @ np.linalg.lstsq(design, offsets, rcond=None)[0]
    assert remaining[:, :3].std() > 0.5 * offsets[:, :3].std()


def test_the_mouth_opens_once_for_each_syllable() -> None:
    performance = clip(Form((stroke(),)), signer()).mouthed([Word("banana"), None], [(10, 50), (50, 60)])
    opened = performance.mouth > 0.4
    assert (np.diff(opened.astype(int)) == 1).sum() == 3
    assert performance.mouth.min() >= 0 and performance.mouth.max() <= 1 and (performance.mouth[50:] == 0).all()


def test_a_detector_shakes_and_loses_hands_as_told() -> None:
    points = np.tile(clip(Form((stroke(),), Hands.SYMMETRIC), signer()).points, (60, 1))
    knobs = Difficulty(jitter=0.004, dropped_hands=0.1)
    found = _as_detected(points, knobs, chance(0, "detector"))
    error = (found - points)[:, :132].reshape(-1, 33, 4)
    assert error[..., :2].std() == pytest.approx(0.004, rel=0.1) and (error[..., 3] == 0).all()
    for first in (132, 195):
        lost = ~found[:, first : first + 63].any(axis=1)
        assert lost.mean() == pytest.approx(0.1, abs=0.03)
    assert (_as_detected(points, knobs, chance(0, "detector")) == found).all()
