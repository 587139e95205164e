"""Does a trunk find the words it was trained on better than others? `python experiments/reading/words.py`.

Reads the trunks of Table 2 and their vectors where `experiments/table2/run.py` left them; nothing is trained.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import torch

from signspot.domain.words import Word
from signspot.formats.experiment_results import ExperimentResults, Measured, ResultRow, write_results
from signspot.learning.head_scores import score_head
from signspot.learning.material_files import read_material
from signspot.learning.splits import WordSplit
from signspot.workflows.paper_table_results import SMALL, measured
from signspot.workflows.paper_tables import Column, RunScores, difference
from signspot.workflows.world_material import world_name, world_split
from signspot.world.presets import preset_named
from signspot.world.simulation import World

HOME = Path(__file__).resolve().parent
ROWS: dict[str, Column] = {"trunk of all words": "seen", "trunk of the training words": "unseen"}
DIFFERENCE = " − ".join(reversed(ROWS))


def questions(split: WordSplit) -> dict[str, tuple[str, tuple[Word, ...]]]:
    """By column: the episodes and the words that are looked for; as many training words as test words."""
    drawn = np.random.default_rng(0).choice(split.train, len(split.test), replace=False)
    others = tuple(word for word in split.train if word in set(drawn.tolist()))
    return {
        "test words, new signers": ("test", split.test),
        "test words, training signers": ("train", split.test),
        "training words, training signers": ("train", others),
    }


def scored(folder: Path, episodes: str, words: tuple[Word, ...]) -> RunScores:
    """How a trunk without a head does."""
    scores = score_head(None, read_material(folder / episodes, verify=False), words)
    passages = scores.passages
    return RunScores(passages.words, passages.ap, passages.recall, scores.is_localised.astype(np.float64))


def main() -> None:
    """Score both trunks and write results-words.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", type=int, default=0)
    seed = parser.parse_args().world
    torch.set_num_threads(1)
    world = World.of(preset_named(SMALL.preset), seed)
    runs = Path(os.environ.get("SIGNSPOT_EXPERIMENTS") or "build/experiments") / f"{SMALL.preset}-{seed}"
    cells: dict[str, dict[str, Measured]] = {name: {} for name in (*ROWS, DIFFERENCE)}
    columns = questions(world_split(world))
    for column, (episodes, words) in columns.items():
        found = {name: scored(runs / trained / "both", episodes, words) for name, trained in ROWS.items()}
        of_all, of_training = found.values()
        for name, scores in (found | {DIFFERENCE: difference(of_training, of_all)}).items():
            cells[name][column] = measured([[scores]], "mAP", None)
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    write_results(
        ExperimentResults(
            name="reading",
            title="Ours: do trunks find the words they were trained on better?",
            data=world_name(world),
            command=f"python experiments/reading/words.py --world {seed}",
            conditions={
                "measure": "mAP of the trunk of both sources, no head, against all entries of the words asked for",
                "words": f"the {len(world.test_words)} test words; as many training words, drawn with seed 0",
                "interval": "95 %, by drawing the words again",
            },
            columns=tuple(columns),
            rows=tuple(ResultRow(name, own) for name, own in cells.items()),
            verdict=" ".join(readme.partition("**Words.**")[2].partition("\n\n")[0].split()),
        ),
        HOME / "results-words.json",
    )


if __name__ == "__main__":
    main()
