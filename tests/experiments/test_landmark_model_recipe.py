"""The recipe of the shipped landmark model, with small networks: what is kept, and that nothing is trained twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from experiments.lib.landmark_model import (
    LandmarkLesson,
    LandmarkNetworks,
    Recipe,
    Step,
    train_everything,
    train_fold,
)

from signspot.models.checkpoints import load_checkpoint
from tests.experiments.test_landmark_model_training import SMALL, clips

TINY = replace(SMALL, steps=3)
RECIPE = Recipe(fold=(TINY, replace(TINY, seed=1)), everything=replace(TINY, steps=2, seed=2))


def trained(folder: Path, steps: list[Step]) -> tuple[LandmarkNetworks, LandmarkNetworks]:
    whole = clips(0)
    part = [sign for sign in whole if sign.word != whole[0].word]
    fold = train_fold(LandmarkLesson(part), folder, steps.append, RECIPE)
    return fold, train_everything(LandmarkLesson(whole), fold, folder, steps.append, RECIPE)


def test_stages_go_on_from_each_other_and_are_not_trained_again(tmp_path: Path) -> None:
    steps = list[Step]()
    fold, whole = trained(tmp_path / "run", steps)
    assert [step.number for step in steps] == [1, 2, 3, 1, 2, 3, 1, 2]
    assert len(load_checkpoint(tmp_path / "run" / "stage-2.safetensors").card.vocabulary) == len(fold.vocabulary)
    assert len(whole.vocabulary) == len(fold.vocabulary) + 1
    first, last = (torch.cat([p.flatten() for p in one.trunk.parameters()]) for one in (fold, whole))
    torch.manual_seed(0)
    assert torch.cosine_similarity(first, last, dim=0) > 0.9, "the last stage starts from the fold's weights"
    steps.clear()
    again = trained(tmp_path / "run", steps)
    assert not steps
    pairs = zip(whole.head.parameters(), again[1].head.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_a_recipe_says_what_it_is() -> None:
    said = "6000 (seed 0) and 9000 (seed 3) steps without the words and signers of a fold, then 5000 (seed 4)"
    assert str(Recipe()).startswith(said)
    assert Recipe().n_steps == 20_000
