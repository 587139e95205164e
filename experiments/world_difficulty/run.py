"""Print how hard a world is for nearest neighbours on raw joints: `python run.py [PRESET SEED [TEST_EPISODES]]`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from signspot.world.baseline import raw_joint_scores
from signspot.world.presets import preset_named
from signspot.world.simulation import World
from signspot.world.statistics import world_statistics


def main(name: str, seed: int, test_episodes: int | None) -> None:
    """One JSON line: the baseline's scores and the world's statistics beside the paper's."""
    preset = preset_named(name)
    if test_episodes is not None:
        preset = replace(preset, test_episodes=test_episodes)
    world = World.of(preset, seed)
    scores = raw_joint_scores(world)
    result = {
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
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    preset, seed, *rest = sys.argv[1:] or ("small", "0")
    main(preset, int(seed), int(rest[0]) if rest else None)
