"""A run of seconds, for tests of everything around learning; also in processes of its own that may be killed.

    python -m tests.learning.small_runs FOLDER KILLS SEED

trains in FOLDER/0, FOLDER/1, ... with a state saved after every step, kills the training process KILLS times at random
moments with SIGKILL, continues it each time, and prints how many runs were completed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from signspot.learning.config import EmbeddingConfig
from signspot.learning.head import Controls, TrainingData, _TrainingSetup, make_setup, train_head
from signspot.learning.runs import RunFolder, Start
from tests.learning.planted import World, planted

SMALL = EmbeddingConfig(
    hidden_dim=24,
    embedding_dim=16,
    batch_size=8,
    background_clips=4,
    epochs=3,
    decay_epochs=(2,),
    dictionary="full",
    threads=1,
)
WORLD = World(n_words=16, n_annotated=8, n_signers=4)


def small_setup(config: EmbeddingConfig = SMALL) -> _TrainingSetup:
    """48 passages: 6 steps an epoch."""
    train, test = planted(WORLD, seed=0, n_train=48, n_test=16)
    return make_setup(config, TrainingData(train=train, test=test))


def run_in(
    folder: Path,
    config: EmbeddingConfig = SMALL,
    controls: Controls = Controls(),
    *,
    start: Start = "new",
    setup: _TrainingSetup | None = None,
) -> RunFolder:
    """Train in a folder until the end or until something happens."""
    run = RunFolder(folder)
    with run.opened(config, {"train": "planted"}, start):
        train_head(config, setup or small_setup(config), run, controls)
    return run


def _child(folder: Path) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run_in(folder, controls=Controls(save_seconds=0.0), start="resume")
            code = 0
        finally:
            os._exit(code)
    return child


def _ended(child: int) -> bool:
    """Whether a process came to its own end, which must be a good one."""
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit("a training failed")
    return os.WIFEXITED(status)


def main(folder: Path, kills: int, seed: int) -> None:
    torch.set_num_threads(1)  # before any work: a fork of a process with several could not use them
    rng = random.Random(seed)
    begun = time.monotonic()
    _ended(_child(folder / "whole"))
    whole = time.monotonic() - begun
    n_runs = n_kills = 0
    while n_kills < kills:
        is_complete = False
        while not is_complete:
            child = _child(folder / str(n_runs))
            if n_kills < kills:
                time.sleep(rng.uniform(0, whole / 3))
                os.kill(child, signal.SIGKILL)
            is_complete = _ended(child)
            n_kills += not is_complete
        n_runs += 1
    sys.stdout.write(f"{n_runs} {n_kills}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
