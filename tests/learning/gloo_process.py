"""One process of a team that torchrun starts: losses and gradients of a joint batch, then a whole run, into a folder.

python -m torch.distributed.run --nproc-per-node 2 -m tests.learning.gloo_process FOLDER
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from signspot.learning.config import EmbeddingConfig
from signspot.learning.head import Controls, new_head, train_head
from signspot.learning.losses import step_generator
from signspot.learning.runs import RunFolder, Team, join_team
from tests.learning.small_runs import SMALL, small_setup

CASES: dict[str, EmbeddingConfig] = {
    "paper": SMALL,
    "released": replace(SMALL, formulation="released"),
    "own-layers": replace(SMALL, domain_specific=True),
    "watch-lookup": replace(SMALL, loss="watch-lookup"),
    "infonce": replace(SMALL, loss="infonce"),
    "classification": replace(SMALL, loss="classification"),
    "one-item": replace(SMALL, batch_size=1, background_clips=0),
}


def loss_and_gradients(config: EmbeddingConfig, team: Team) -> dict[str, Tensor]:
    """The loss of the first batch, and its gradient for every parameter."""
    setup = small_setup(config)
    head = new_head(config, setup)
    batch = next(iter(setup.batches.epoch(0)))
    loss = setup.objective.loss(head, batch, team, step_generator(0, 0, 0))
    loss.backward()  # type: ignore[no-untyped-call]
    team.sum_gradients(head)
    gradients = {name: p.grad for name, p in head.named_parameters() if p.grad is not None}
    return {"loss": loss.detach().reshape(1), **gradients}


def stopped_by_one(team: Team, run: RunFolder) -> None:
    """The second process alone wants to stop after two steps; all must."""
    asked = iter(range(100))
    controls = Controls(team=team, stop=lambda: next(asked) == 1 and team.rank == 1)
    try:
        train_head(SMALL, small_setup(), run, controls)
    except KeyboardInterrupt:
        (run.path / f"stopped-{team.rank}").touch()


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with join_team(os.environ) as team:
        for name, config in CASES.items():
            save_file(loss_and_gradients(config, team), folder / f"{name}-{team.rank}.safetensors")
        run = RunFolder(folder / "run")
        if team.is_leader:
            run.path.mkdir()
        team.wait()
        stopped_by_one(team, run)
        team.wait()
        train_head(SMALL, small_setup(), run, Controls(team=team))
        team.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
