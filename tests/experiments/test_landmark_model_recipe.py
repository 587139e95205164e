"""The recipe of the shipped landmark model, with small networks: what is kept, and that nothing is trained twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from experiments.lib.landmark_model import LandmarkLesson, ProjectionConfig, Recipe, Step, train_by_recipe

from signspot.models.checkpoints import load_checkpoint, networks_of, state_of
from tests.experiments.test_landmark_model_training import SMALL, clips

TINY = replace(SMALL, steps=3)
RECIPE = Recipe(
    teachers=(TINY, replace(TINY, seed=1)),
    student=replace(TINY, steps=2, seed=2),
    projection=ProjectionConfig(batches=5),
)


def test_teachers_and_student_are_kept_and_not_trained_again(tmp_path: Path) -> None:
    lesson, steps = LandmarkLesson(clips(0)), list[Step]()
    first = train_by_recipe(lesson, tmp_path / "run", steps.append, RECIPE)
    assert [step.number for step in steps] == [1, 2, 3, 1, 2, 3, 1, 2]
    assert [step.taught > 0 for step in steps] == [False] * 6 + [True] * 2
    assert len(load_checkpoint(tmp_path / "run" / "teacher-2.safetensors").card.vocabulary) == 6
    trunk, head = networks_of(load_checkpoint(tmp_path / "run" / "student.safetensors"))
    kept, made = state_of(trunk, head), state_of(first.trunk, first.head)
    changed = {name.split(".")[0] for name in kept if not torch.equal(kept[name], made[name])}
    assert changed == {"mlp"}, "the trunk is the student's, its head is left behind"
    steps.clear()
    again = train_by_recipe(lesson, tmp_path / "run", steps.append, RECIPE)
    assert not steps
    assert all(torch.equal(a, b) for a, b in zip(first.head.parameters(), again.head.parameters(), strict=True))


def test_a_recipe_says_what_it_is() -> None:
    assert (
        str(Recipe())
        == "teachers of 4000 (seed 0) and 4000 (seed 1) steps, then 3000 steps (seed 2), compared by the trunk"
    )
    assert Recipe().n_steps == 11_000
