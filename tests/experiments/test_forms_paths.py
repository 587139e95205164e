"""Movements compared: the same one by somebody else is close, another one is not, however time is stretched."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.lib.forms import MEASURES, N_FRAMES, RATIO, SIZE, path_measures
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.tracks import FloatArray


def path(kind: str = "line", *, begins: float = 5.0, haste: float = 1.0, size: float = 0.5) -> FloatArray:
    """(1, 96) up, a movement from frame `begins` to its mirror image, and down."""
    frames = np.arange(N_FRAMES) + 0.5
    phase = np.clip((frames - begins) / (N_FRAMES - 2 * begins), 0, 1) ** haste
    along = phase**3 * (10 - 15 * phase + 6 * phase**2) - 0.5
    aside = {"line": 0 * along, "arc": 0.5 - 2 * along**2, "zigzag": 0.3 * np.sin(4 * np.pi * along)}
    along = 0.5 * np.cos(6 * np.pi * phase) if kind == "thrice" else along
    depth = aside["arc"] if kind == "toward" else 0 * along
    way = np.stack([along, aside.get(kind, 0 * along), depth], axis=1) * size
    # The way up and down is long beside the sign itself.
    up = np.clip(1 - np.minimum(frames, N_FRAMES - frames) / begins, 0, 1)
    way[:, 1] += 1.2 * up
    return way.reshape(1, -1).astype(np.float32)


def residue(one: FloatArray, other: FloatArray) -> float:
    measures = path_measures(one, other)[0, 0]
    return float(measures[:RATIO].sum() / measures[SIZE])


@pytest.mark.parametrize("kind", ["line", "thrice"])
@pytest.mark.parametrize(("begins", "haste"), [(4.2, 1.0), (5.8, 1.0), (5.0, 1.15), (5.0, 0.87)])
def test_a_movement_signed_longer_shorter_or_in_haste_is_the_same_movement(
    kind: str, begins: float, haste: float
) -> None:
    assert residue(path(kind), path(kind, begins=begins, haste=haste)) < 0.08


@pytest.mark.parametrize("kind", ["arc", "zigzag", "toward"])
def test_another_movement_cannot_be_stretched_to_fit(kind: str) -> None:
    assert residue(path(), path(kind)) > 0.05
    assert residue(path(kind), path(kind, begins=4.6, haste=1.1)) < residue(path(), path(kind)) / 3


def test_an_arc_is_slow_a_zigzag_is_quick_and_depth_is_depth() -> None:
    arc, zigzag, toward = (path_measures(path(), path(kind))[0, 0] for kind in ("arc", "zigzag", "toward"))
    assert arc[:3].argmax() == 0 and zigzag[:3].argmax() > 0
    assert toward[3:6].sum() > 10 * toward[:3].sum() and arc[:3].sum() > 10 * arc[3:6].sum()


def test_a_larger_movement_is_the_same_one_but_for_its_size() -> None:
    small, large = path(begins=2.0, size=0.4), path(begins=2.0, size=0.8)
    measures = path_measures(small, large)[0, 0]
    assert measures[RATIO] == pytest.approx(-2 * np.log(2), abs=0.35)  # sizes are squares, and time is stretched
    assert residue(small, large) < 0.01


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 3))
def test_measures_are_the_same_both_ways_and_nothing_for_the_same_path(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    paths = np.cumsum(rng.normal(0, 0.05, (n + m, N_FRAMES, 3)), axis=1).reshape(n + m, -1).astype(np.float32)
    there, back = path_measures(paths[:n], paths[n:]), path_measures(paths[n:], paths[:n]).transpose(1, 0, 2)
    assert there.shape == (n, m, MEASURES)
    back[..., RATIO] *= -1
    np.testing.assert_allclose(there, back, atol=1e-5)
    own = path_measures(paths[:1], paths[:1])[0, 0]
    np.testing.assert_allclose(own[:SIZE], 0, atol=1e-6)


def test_many_paths_are_compared_as_each_is() -> None:
    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.normal(0, 0.05, (140, N_FRAMES, 3)), axis=1).reshape(140, -1).astype(np.float32)
    every = path_measures(paths, paths[:3])
    for place in (0, 127, 128, 139):
        np.testing.assert_allclose(every[place], path_measures(paths[place : place + 1], paths[:3])[0], atol=1e-5)
