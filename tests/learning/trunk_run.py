"""A small run of all stages, as a process of its own that can be killed: python -m tests.learning.trunk_run FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

from signspot.learning.clips import RecordedClips
from signspot.learning.config import TrunkRunConfig
from signspot.learning.runs import RunFolder
from signspot.learning.trunk import ClipTest, TrunkControls, TrunkData, TrunkProgress, train_trunk
from signspot.models.checkpoints import ModelCard
from tests.learning.signs import WORDS, moving_hand, signing_hand, whole_clips

LANDMARKS = TrunkRunConfig(
    architecture="landmark",
    landmark_width=16,
    embedding_dim=32,
    batch_size=4,
    stage1_epochs=3,
    stage2_epochs=3,
    decay_epochs=(2,),
)
PIXELS = TrunkRunConfig(
    width=0.05,
    side=24,
    crop=24,
    batch_size=4,
    pose_epochs=1,
    stage1_epochs=1,
    stage2_epochs=1,
    steps_per_epoch=3,
    domain_specific_batch_norm=True,
)


def clips(seed: int, n: int, *, landmarks: bool, max_speed: float = 1.0, side: int = 24) -> RecordedClips:
    """Recordings of 20 frames; those of landmarks and of pixels with the same seed show the same labels."""
    rng = np.random.default_rng(seed)
    labels = [i % len(WORDS) for i in range(n)]
    made = [signing_hand(label, rng) if landmarks else moving_hand(label, rng, side=side) for label in labels]
    return whole_clips(made, labels, max_speed=max_speed)


def data_of(config: TrunkRunConfig) -> TrunkData:
    is_landmark = config.architecture == "landmark"
    return TrunkData(
        vocabulary=WORDS,
        continuous=clips(0, 12, landmarks=is_landmark, side=config.side),
        dictionary=clips(1, 6, landmarks=is_landmark, max_speed=4, side=config.side),
        continuous_landmarks=clips(0, 12, landmarks=True),
        tests=(ClipTest("held out", clips(2, 6, landmarks=is_landmark, side=config.side)),),
        description="made-up signs",
    )


def trained(
    config: TrunkRunConfig, data: TrunkData, folder: Path, controls: TrunkControls = TrunkControls(workers=0)
) -> ModelCard:
    run = RunFolder(folder)
    with run.opened(config, data.fingerprints(), "resume" if run.config.exists() else "new"):
        return train_trunk(config, data, run, controls)


def main() -> None:
    torch.set_num_threads(1)

    def tell(moment: TrunkProgress) -> None:
        sys.stdout.write(f"{moment.stage}, epoch {moment.epoch}, step {moment.step}\n")
        sys.stdout.flush()

    controls = TrunkControls(progress=tell, save_seconds=0)
    trained(LANDMARKS, data_of(LANDMARKS), Path(sys.argv[1]), controls)


if __name__ == "__main__":
    main()
