"""What the tables of these experiments share."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
from applications.world_vectors import BATCH, OTHER_WORLD, STEPS, WorldVectors
from experiments.lib.paper_tables import Measured

from signspot.evaluation.measures import mean_interval


def arguments() -> tuple[str, int]:
    """PRESET and SEED of the command line."""
    given = sys.argv[1:] or ["demo", "0"]
    return given[0], int(given[1]) if len(given) > 1 else 0


def share(right: npt.NDArray[np.bool_], groups: npt.NDArray[np.int64]) -> Measured:
    """A share of 1 with the interval that other words would give."""
    values = right.astype(np.float64)
    if len(np.unique(groups)) < 2:
        return Measured(float(values.mean()), (float(values.mean()),))
    interval = mean_interval(values, groups)
    return Measured(float(values.mean()), (float(values.mean()),), interval.low, interval.high)


def conditions(made: WorldVectors) -> dict[str, str]:
    """How the vectors were made."""
    preset = made.world.preset
    return {
        "model": f"landmark encoder, {STEPS} steps of {BATCH} clips: this world's dictionary, its "
        f"{preset.n_train_signers} training signers, and the dictionaries of another world ({OTHER_WORLD})",
        "tested on": f"{preset.n_test_signers} signers never seen in training",
        "interval": "95% of the draws of other words",
        "runs": "one",
    }
