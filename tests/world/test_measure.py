from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.tracks import WindowGrid
from signspot.evaluation.protocol import Gallery, TestPassage, score_passages
from signspot.world.measure import body_joints, raw_joint_scores, windows
from signspot.world.settings import preset_named
from signspot.world.simulation import World


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(preset_named("demo"), 0)


def test_moving_or_scaling_the_signer_changes_nothing(world: World) -> None:
    points = world.perform_entry(world.dictionary_entries()[0]).points[:30]
    moved = points.copy()
    for first, step, stop in ((0, 4, 132), (132, 3, 258)):
        moved[:, first:stop:step] = 0.8 * points[:, first:stop:step] + 0.1
        moved[:, first + 1 : stop : step] = 0.8 * points[:, first + 1 : stop : step] - 0.05
    grid = WindowGrid(30)
    assert windows(body_joints(moved), grid) == pytest.approx(windows(body_joints(points), grid), abs=1e-4)


def test_a_lost_hand_stays_where_it_was(world: World) -> None:
    points = world.perform_entry(world.dictionary_entries()[0]).points[:30].copy()
    points[10:15, 195:] = 0
    joints = body_joints(points)
    assert (joints[10:15, -42:] == joints[9, -42:]).all()


def test_truth_gives_everything_through_the_same_evaluation(world: World) -> None:
    """One vector for each form, shown where it is signed: nothing but variants of other form is missed."""
    words = list(world.vocabulary)
    code = np.eye(len(words) + 1, dtype=np.float32)
    episode = world.perform_episode("test-0000")
    track = np.tile(code[-1], (len(episode.performance), 1))
    for token in episode.truth:
        track[token.span.start : token.span.stop] = code[words.index(token.word)]
    labels = [t for t in episode.truth if t.word in world.test_words]
    passages = [
        TestPassage(str(i), words.index(t.word), t.span.stop - 1, np.arange(t.span.start, t.span.stop + 1),
                    track[t.span.start : t.span.stop + 1])
        for i, t in enumerate(labels)
    ]  # fmt: skip
    entries = [entry for entry in world.dictionary_entries() if entry.word in world.test_words]
    ids = np.array([words.index(entry.word) for entry in entries])
    scores = score_passages(passages, Gallery(ids, code[ids]))
    assert scores.mean_ap == pytest.approx(1) and scores.localisation == pytest.approx(1)


def test_nearest_neighbours_on_raw_joints_are_above_chance_and_far_from_good(world: World) -> None:
    scores = raw_joint_scores(world)
    assert scores.chance_mean_ap < scores.mean_ap < 0.30


@pytest.mark.soak
def test_the_small_world_is_as_hard_as_its_version_says() -> None:
    assert 0.02 < raw_joint_scores(World.of(preset_named("small"), 0)).mean_ap < 0.10
