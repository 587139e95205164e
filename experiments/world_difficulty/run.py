"""How hard a world is for nearest neighbours on raw joints: `python run.py [PRESET SEED]`.

Each run is kept in runs.json; results.json is the table of all runs that are kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, write_results

from signspot.files.json import read_json, write_json
from signspot.world.measure import raw_joint_scores, world_statistics
from signspot.world.settings import preset_named
from signspot.world.simulation import World

HERE = Path(__file__).parent
RUNS = HERE / "runs.json"
COLUMNS = {"mAP": "mean_ap", "R@5": "recall_at_5", "localisation": "localisation", "mAP by chance": "chance_mean_ap"}
VERDICT = (
    "Within the target of 2-10% mAP, at both sizes. Nothing is trained; the presets were frozen by this measure "
    "before anything was trained. Synthetic signing: no claim about any real language."
)

Run = Mapping[str, Any]


def measured(name: str, seed: int) -> Run:
    """The baseline's scores over the whole test set, and the world's statistics beside the paper's."""
    preset = preset_named(name)
    world = World.of(preset, seed)
    scores = raw_joint_scores(world)
    return {
        "preset": name,
        "version": preset.version,
        "seed": seed,
        "test_episodes": preset.test_episodes,
        "passages": len(scores.passage_ids),
        "test_words_met": len(set(scores.passages.words.tolist())),
        "mean_ap": round(scores.mean_ap, 4),
        "recall_at_5": round(scores.recall_at_5, 4),
        "localisation": round(scores.localisation, 4),
        "chance_mean_ap": round(scores.chance_mean_ap, 4),
        "statistics": {c.name: [round(c.world, 2), round(c.paper, 2)] for c in world_statistics(world)},
    }


def table(runs: list[Run]) -> ExperimentResults:
    """One row for each preset, one column for each measure."""
    by_preset: dict[str, list[Run]] = {}
    for run in runs:
        by_preset.setdefault(run["preset"], []).append(run)
    return ExperimentResults(
        name=HERE.name,
        title="How hard the world is: nearest neighbour on raw joints, nothing learned",
        data="synthetic worlds: small and paper, version 1",
        command="python experiments/world_difficulty/run.py PRESET SEED",
        conditions={name: _conditions(those) for name, those in by_preset.items()},
        columns=tuple(COLUMNS),
        rows=tuple(
            ResultRow(name, {column: _cell([run[key] for run in those]) for column, key in COLUMNS.items()})
            for name, those in by_preset.items()
        ),
        verdict=VERDICT,
    )


def _cell(values: list[float]) -> Measured:
    return Measured(sum(values) / len(values), tuple(values))


def _conditions(runs: list[Run]) -> str:
    seeds = ", ".join(str(run["seed"]) for run in runs)
    passages = ", ".join(str(run["passages"]) for run in runs)
    return f"seeds {seeds}; all {runs[0]['test_episodes']} test episodes; {passages} passages"


def main(preset: str, seed: int) -> None:
    """Measure one world and write the table anew."""
    run = measured(preset, seed)
    kept = read_json(RUNS) if RUNS.exists() else []
    others = [one for one in kept if (one["preset"], one["seed"]) != (preset, seed)] if isinstance(kept, list) else []
    runs = sorted([*others, run], key=lambda one: (one["preset"] != "small", one["seed"]))
    write_json(runs, RUNS, overwrite=True)
    write_results(table(runs), HERE / "results.json")
    sys.stdout.write(json.dumps(run) + "\n")


if __name__ == "__main__":
    name, number = sys.argv[1:] or ("small", "0")
    main(name, int(number))
