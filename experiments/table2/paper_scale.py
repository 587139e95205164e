"""How long Tables 2 and 3 take at the paper's scale: `python experiments/table2/paper_scale.py`, a few minutes.

A little of every kind of work is done in the world `paper` and counted in seconds of one processor core; the rest is
arithmetic. Vectors of passages are random here: how long they take to learn from does not depend on what they say.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from experiments.lib.paper_tables import PAPER, episode_passages, world_split, world_trunk_data

from signspot.domain.recordings import Vocabulary
from signspot.learning.config import EmbeddingConfig, read_config
from signspot.learning.head import TrainingData, make_setup, new_head
from signspot.learning.losses import step_generator
from signspot.learning.material import Material, Passages
from signspot.learning.runs import RunFolder, Team, repeatable, usable_device
from signspot.learning.trunk import TrunkControls, train_trunk
from signspot.models.embedders import landmark_embedder_from_checkpoint
from signspot.world.settings import preset_named
from signspot.world.simulation import World

CONFIGS = Path(__file__).parents[2] / "configs" / "embedding"
FULL = preset_named("paper")
EPISODES, WORDS, STEPS = 8, 60, (10, 60)  # what is really done
CONFIDENT = 0.268  # Paper App. B.6: the share of annotations of confidence 0.8 and more, for stage 2
TRUNKS, COLUMNS = 3, 2
HEADS = ("table2-classification", "table2-infonce", "table2-watch-lookup", "table2-watch-read-lookup")


def counted(work: Callable[[], object], times: int = 1) -> float:
    """Seconds of one core for one of `times` pieces of work."""
    begun = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begun) / times


def trunk_seconds(world: World, folder: Path) -> tuple[float, float]:
    """Of one minibatch of a trunk, and of the vectors of all windows of an episode."""
    words = Vocabulary.of(list(world.annotated_words)[:WORDS])
    data = world_trunk_data(world, words, PAPER.trunk, lambda *_: None)
    taken = []
    for steps in STEPS:  # what a training costs before its first and after its last step is in both
        config = replace(PAPER.trunk, sources="continuous", stage1_epochs=1, steps_per_epoch=steps, threads=1)
        run = RunFolder(folder / str(steps))
        with run.opened(config, data.fingerprints(), "new"):
            taken.append(counted(partial(train_trunk, config, data, run, TrunkControls(workers=0))))
    step = (taken[1] - taken[0]) / (STEPS[1] - STEPS[0])
    trunk = landmark_embedder_from_checkpoint(run.last)
    frames = len(world.perform_episode("train-0000").performance)
    clips = np.random.default_rng(0).random((512, 16, 258), np.float32)
    with repeatable(1, usable_device("cpu")):
        return step, counted(lambda: trunk.trunk_vectors(clips)) / len(clips) * frames


def some_material(world: World) -> Material:
    """The passages of a few episodes, and all entries, with random vectors."""
    rng, dim = np.random.default_rng(0), PAPER.trunk.embedding_dim
    episodes = [world.perform_episode(name) for name in world.episodes("train")]
    entries = world.dictionary_entries()
    return Material(
        vocabulary=world.vocabulary,
        tracks=[rng.random((len(one.performance) - 15, dim), np.float32).astype(np.float16) for one in episodes],
        passages=Passages.of([episode_passages(one, world.vocabulary) for one in episodes], world.vocabulary),
        entry_ids=tuple(entry.entry_id for entry in entries),
        entry_vectors=rng.random((len(entries), dim), np.float32),
        entry_word=np.array([world.vocabulary.id_of(entry.word) for entry in entries], np.int64),
        fingerprint="random",
    )


def head_seconds(world: World, material: Material, name: str, changes: tuple[str, ...] = ()) -> float:
    """Of one passage in a minibatch, as large a one as the episodes fill."""
    config = read_config(CONFIGS / f"{name}.toml", EmbeddingConfig, changes)
    setup = make_setup(config, TrainingData(train=material, split=world_split(world)))
    head = new_head(config, setup)
    batch = next(iter(setup.batches.epoch(0)))

    def step() -> None:
        setup.objective.loss(head, batch, Team(), step_generator(0, 0, 0)).backward()  # type: ignore[no-untyped-call]

    return counted(step, 2) / batch.n_items


def main() -> None:
    """Count, multiply, show."""
    torch.set_num_threads(1)
    world = World.of(replace(FULL, train_episodes=EPISODES), 0)
    performing = counted(lambda: world.perform_episode("train-0001"))
    with TemporaryDirectory() as folder:
        step, embedding = trunk_seconds(world, Path(folder) / "trunk")
    material = some_material(world)
    passages = len(material.passages) / EPISODES * FULL.train_episodes
    trunk, half = PAPER.trunk, PAPER.trunk.batch_size // 2
    stage1 = step * trunk.stage1_epochs * passages / trunk.batch_size
    stage2 = step * trunk.stage2_epochs * passages * CONFIDENT / half
    episodes = FULL.train_episodes + TRUNKS * FULL.test_episodes
    hours = {
        "trunks of a column": (stage1 + 2 * stage2) / 3600,
        "vectors of a column": (performing + embedding) * episodes / 3600,
    }
    for name in HEADS:
        hours[f"one head, {name}"] = head_seconds(world, material, name) * passages * PAPER.epochs / 3600
    whole = head_seconds(world, material, HEADS[-1], ("dictionary=full",)) * passages * PAPER.epochs / 3600
    hours["one head, table3-full-dictionary"] = whole
    heads = sum(hours[f"one head, {name}"] for name in HEADS)
    fixed = COLUMNS * (hours["trunks of a column"] + hours["vectors of a column"])
    hours["Table 2, one seed"] = fixed + COLUMNS * heads
    hours["Tables 2 and 3, three seeds"] = fixed + 3 * (COLUMNS * heads + whole)
    for name, value in hours.items():
        sys.stdout.write(f"{name:40} {value:8.3f} hours of one core\n")
    sizes = f"minibatch of a trunk {step:.2f} s, vectors of an episode {embedding:.1f} s, {passages:.0f} passages"
    sys.stdout.write(f"{sizes}\n")


if __name__ == "__main__":
    main()
