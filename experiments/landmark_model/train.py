"""Train the next landmark model: `python experiments/landmark_model/train.py RUN` (or `make model`).

The clips are those of WLASL's official train and val splits (wlasl300, wlasl2000) and of asl30, repeats dropped, and
signs of the synthetic world. Nothing of the test split, of popsign or of aslearn. The first stages leave out the words
and signers of a fold: RUN/fold.safetensors is their model, by which experiments/wlasl300 and experiments/decision tell
how new words and new signers fare. The last stage goes on with everything; RUN/landmark-v2.safetensors is its model.
Started again after an interruption, it goes on with the stages that are done.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import torch
from experiments.lib.landmark_model import (
    LandmarkLesson,
    LandmarkNetworks,
    RealSigning,
    Recipe,
    Step,
    compared_by_trunk,
    draw_fold,
    model_card,
    synthetic_signs,
    train_everything,
    train_fold,
)

from signspot.models.checkpoints import ModelCard, save_checkpoint, state_of

DATA = Path(__file__).parents[3] / "shared" / "data"
NAME = "landmark-v2"
FOLD_SEED = 1  # of the words and signers that the first stages leave out
TRAINING_DATA = (
    "Real isolated American Sign Language as MediaPipe landmarks: the official train and val splits of WLASL, 2,000 "
    "words (hands of whole clips, on bodies put there; of 300 words also body and hands of the first 30 frames), and "
    "30 words of WLASL and MS-ASL videos (whole clips), near-duplicates removed; besides, landmarks of signs that a "
    "program made up and performed (a synthetic world). No continuous signing, no other sign language, no sound, no "
    "pictures. Limits, measured: experiments/wlasl300 (official test split, new signers, hands that are not found), "
    "experiments/aslearn, experiments/decision, experiments/landmark_model/README.md. Clips in which hardly a hand is "
    "found are not recognised. Not for identifying people, not for judging how well somebody signs, not for decisions "
    "about people, and no translation."
)
LICENCE = (
    "Apache-2.0, as signspot. Trained on WLASL (Li et al. 2020, dxli94.github.io/WLASL) under C-UDA 1.0: models "
    "are 'Results' and unrestricted, attribution is kept; WLASL's README asks for academic use only."
)


def card(networks: LandmarkNetworks, name: str, recipe: Recipe, threshold: float) -> ModelCard:
    """What somebody who finds the file must know."""
    plain = model_card(networks, name=name, created_from=f"experiments/landmark_model/train.py, {recipe}")
    config = dict(plain.config) | {"threshold": threshold}
    return replace(plain, config=config, training_data=TRAINING_DATA, licence=LICENCE)


def main(run: Path, data: Path, threshold: float) -> None:
    """Train and leave both models in RUN."""
    torch.set_num_threads(1)  # the same sums in the same order on any machine of this kind
    recipe, started, n_steps = Recipe(), time.monotonic(), count()

    def told(step: Step) -> None:
        if (number := next(n_steps) + 1) % 100 == 0:
            left = (time.monotonic() - started) * (recipe.n_steps / number - 1)
            sys.stderr.write(f"{step}, at most {left / 60:.0f} min left\n")

    real, synthetic = RealSigning.read(data), synthetic_signs()
    part = LandmarkLesson(draw_fold(real, FOLD_SEED).training, synthetic)
    whole = LandmarkLesson(real.official("train", "val"), synthetic)
    begun = train_fold(part, run, told, recipe)
    learned = train_everything(whole, begun, run, told, recipe)
    for name, networks, lesson, config in (
        ("fold", begun, part, recipe.fold[-1]),
        (NAME, learned, whole, recipe.everything),
    ):
        made = compared_by_trunk(networks, lesson, config, recipe.projection)
        weights = state_of(made.trunk, made.head)
        save_checkpoint(run / f"{name}.safetensors", weights, card(made, name, recipe, threshold), overwrite=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--threshold", type=float, default=0.45, help="the lowest cosine that counts as found")
    options = parser.parse_args()
    main(options.run, options.data, options.threshold)
