"""Does a trunk find the words it was trained on better than others? `python experiments/reading/words.py`.

Trunks of seed 0 and their vectors are those of Table 2 and read where `experiments/table2/run.py` left them; those of
other seeds are trained here, once, and kept.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from experiments.lib.paper_tables import (
    SMALL,
    Column,
    ExperimentResults,
    Measured,
    Method,
    Places,
    ResultRow,
    RunScores,
    WorldRuns,
    difference,
    make_world_material,
    mean_scores,
    measured,
    world_name,
    world_split,
    write_results,
)

from signspot.domain.recordings import Word
from signspot.learning.head import score_head
from signspot.learning.material import Material, WordSplit
from signspot.models.embedders import landmark_embedder_from_checkpoint
from signspot.world.settings import preset_named
from signspot.world.simulation import World

HOME = Path(__file__).resolve().parent
COLUMNS: tuple[Column, ...] = ("seen", "unseen")  # of Table 2, whose trunks learned all words, or the training words


@dataclass(frozen=True, slots=True)
class Trained:
    """A trunk of both sources: the words it learned, and the seed of its training."""

    words: Column  # "seen": all words; "unseen": the training words
    seed: int

    @property
    def name(self) -> str:
        """As the table has it."""
        words = "all words" if self.words == "seen" else "the training words"
        return f"trunk of {words}" if self.seed == 0 else f"trunk of {words}, seed {self.seed}"


def questions(split: WordSplit) -> dict[str, tuple[str, tuple[Word, ...]]]:
    """By column: the episodes and the words that are looked for; as many training words as test words."""
    drawn = np.random.default_rng(0).choice(split.train, len(split.test), replace=False)
    others = tuple(word for word in split.train if word in set(drawn.tolist()))
    return {
        "test words, new signers": ("test", split.test),
        "test words, training signers": ("train", split.test),
        "training words, training signers": ("train", others),
    }


def vectors(world: World, trained: Trained) -> Path:
    """The folder with a trunk and its vectors; made if it is not there."""
    runs = Path(os.environ.get("SIGNSPOT_EXPERIMENTS") or "build/experiments")
    home = runs if trained.seed == 0 else runs / f"trunk-seed-{trained.seed}"
    folder = home / f"{SMALL.preset}-{world.seed}" / trained.words / "both"
    if not (folder / "train").exists():
        scale = replace(SMALL, trunk=replace(SMALL.trunk, seed=trained.seed))
        places = Places(home, HOME.parents[1] / "configs" / "embedding")
        WorldRuns(world, scale, places, told).scores(Method(name=trained.name), trained.words, 0)
        trunk = landmark_embedder_from_checkpoint(folder / "trunk" / "last.safetensors")
        make_world_material(world, "train", trunk, folder / "train", told)
    return folder


def told(step: str, done: float, total: float) -> None:
    """A line for every whole one that is done."""
    if done == int(done):
        sys.stderr.write(f"{step}: {done:.0f} of {total:.0f}\n")


def scored(folder: Path, episodes: str, words: tuple[Word, ...]) -> RunScores:
    """How a trunk without a head does."""
    scores = score_head(None, Material.read(folder / episodes, verify=False), words)
    passages = scores.passages
    return RunScores(passages.words, passages.ap, passages.recall, scores.is_localised.astype(np.float64))


def cells_of(found: dict[Trained, RunScores]) -> dict[str, Measured]:
    """By row: every trunk, one kind minus the other, and how far seeds of one kind are apart."""
    rows = {trained.name: scores for trained, scores in found.items()}
    kinds = {words: [one for one in found if one.words == words] for words in COLUMNS}
    of_all, of_training = (mean_scores([found[one] for one in kind]) for kind in kinds.values())
    rows["training words − all words, means over seeds"] = difference(of_training, of_all)
    for first, *others in kinds.values():
        rows |= {f"{one.name} − seed {first.seed}": difference(found[one], found[first]) for one in others}
    return {name: measured([[scores]], "mAP", None) for name, scores in rows.items()}


def main() -> None:
    """Score all trunks and write results-words.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", type=int, default=0)
    parser.add_argument("--all-words", type=int, nargs="+", default=[0, 1], help="seeds of trunks of all words")
    parser.add_argument("--training-words", type=int, nargs="+", default=[0, 1], help="and of the training words")
    given = parser.parse_args()
    trunks = [Trained("seen", seed) for seed in given.all_words]
    trunks += [Trained("unseen", seed) for seed in given.training_words]
    torch.set_num_threads(1)
    world = World.of(preset_named(SMALL.preset), given.world)
    folders = {trained: vectors(world, trained) for trained in trunks}
    columns = questions(world_split(world))
    cells: dict[str, dict[str, Measured]] = {}
    for column, (episodes, words) in columns.items():
        found = {trained: scored(folder, episodes, words) for trained, folder in folders.items()}
        for name, cell in cells_of(found).items():
            cells.setdefault(name, {})[column] = cell
    write_results(results_of(world, cells, tuple(columns), given), HOME / "results-words.json")


def results_of(
    world: World, cells: dict[str, dict[str, Measured]], columns: tuple[str, ...], given: argparse.Namespace
) -> ExperimentResults:
    """The table and the conditions it was measured in."""
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    asked = f"--all-words {_spaced(given.all_words)} --training-words {_spaced(given.training_words)}"
    return ExperimentResults(
        name="reading",
        title="Ours: do trunks find the words they were trained on better?",
        data=world_name(world),
        command=f"python experiments/reading/words.py --world {world.seed} {asked}",
        conditions={
            "measure": "mAP of the trunk of both sources, no head, against all entries of the words asked for",
            "words": f"the {len(world.test_words)} test words; as many training words, drawn with seed 0",
            "seeds": "of the training of trunks; 0 where none is named",
            "interval": "95 %, by drawing the words again",
        },
        columns=columns,
        rows=tuple(ResultRow(name, own) for name, own in cells.items()),
        verdict=" ".join(readme.partition("**Words.**")[2].partition("\n\n")[0].split()),
    )


def _spaced(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


if __name__ == "__main__":
    main()
