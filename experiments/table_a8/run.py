"""Table A.8: I3D or S3D as the trunk: `python experiments/table_a8/run.py`.

As in the paper, both learn to name the sign of annotated clips, the last 20 frames before an annotation, with the same
options, and are tested on clips of signers they have not seen. Here both are narrow, see drawn pictures of a demo world
with more episodes than usual, and learn for minutes from nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import numpy as np
import torch

from signspot.domain.tracks import Floats

sys.path.insert(0, str(Path(__file__).parents[1]))  # the clips are drawn as for the trunk that is shipped

from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, world_name, write_results
from world_trunk.train import Task, annotated, drawn

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FrameShape
from signspot.evaluation.measures import Interval, class_interval, mean_interval
from signspot.files.atomic import atomic_output, make_folder
from signspot.files.json import read_json, write_json
from signspot.learning.clips import RecordedClips
from signspot.learning.config import TrunkRunConfig
from signspot.learning.runs import RunFolder
from signspot.learning.trunk import (
    ClipTest,
    TrunkControls,
    TrunkData,
    TrunkProgress,
    accuracy_of,
    train_trunk,
    transform_of,
)
from signspot.media.frames import shape_frame
from signspot.models.checkpoints import load_checkpoint
from signspot.world.settings import preset_named
from signspot.world.simulation import World

HOME = Path(__file__).resolve().parent
BEFORE = 20  # frames before an annotation (Paper App. B.7)
TRAIN_EPISODES, TEST_EPISODES = 32, 8
COLUMNS = ("per-instance top-1", "per-instance top-5", "per-class top-1", "per-class top-5", "training clips top-1")
NARROW = TrunkRunConfig(
    width=0.25,
    side=54,
    crop=48,
    sources="continuous",
    flip_probability=0.0,  # left-handed signers are among the world's own
    batch_size=16,
    optimiser="adamw",  # SGD learns little in so few steps (deviation D24)
    learning_rate=1e-3,
    batch_norm_momentum=0.05,
    stage1_epochs=15,
    decay_epochs=(12,),
    evaluate_every=0,
    threads=1,
)
CONFIGS = {"S3D": replace(NARROW, architecture="s3d"), "I3D": NARROW}
PAPER = {"S3D": (0.6476, 0.8188, 0.4627, 0.6371), "I3D": (0.7551, 0.8883, 0.5276, 0.7214)}


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Which clips a trunk names, among its first and its first five."""

    words: Sequence[int]
    top1: Sequence[float] | Floats
    top5: Sequence[float] | Floats

    def intervals(self) -> tuple[Interval, ...]:
        """Of the first four columns; words are drawn again."""
        per_clip = [mean_interval(hits, self.words) for hits in (self.top1, self.top5)]
        per_word = [class_interval(hits, self.words) for hits in (self.top1, self.top5)]
        return (*per_clip, *per_word)

    def minus(self, other: Hits) -> Hits:
        """Clip by clip."""
        return Hits(self.words, np.subtract(self.top1, other.top1), np.subtract(self.top5, other.top5))


def clips_of(world: World, split: str, runs: Path) -> RecordedClips:
    """The annotated clips of a split, drawn once and kept."""
    tasks, places, _ = annotated(world, split, len(world.episodes(split)))
    path = runs / f"{split}.npz"
    if not path.exists():
        with atomic_output(path) as temporary, temporary.open("xb") as stream:
            np.savez(stream, *[_small(task) for task in tasks])
    with np.load(path, allow_pickle=False) as held:
        pictures = [held[f"arr_{number}"] for number in range(len(tasks))]
    return RecordedClips(
        pictures, tuple(replace(place, span=FrameSpan(0, min(BEFORE, len(place.span)))) for place in places)
    )


def _small(task: Task) -> np.ndarray:
    shape = FrameShape(NARROW.side, NARROW.side, keep_aspect=True)
    return np.stack([shape_frame(frame, shape) for frame in drawn(task)])


@dataclass(frozen=True, slots=True, eq=False)
class Clips:
    """What both trunks learn from, and what they are tested on."""

    world: World
    train: RecordedClips
    test: RecordedClips

    @classmethod
    def of(cls, runs: Path) -> Clips:
        """Draw what is not there yet."""
        preset = replace(preset_named("demo"), train_episodes=TRAIN_EPISODES, test_episodes=TEST_EPISODES)
        world = World.of(preset, 0)
        return cls(world, clips_of(world, "train", runs), clips_of(world, "test", runs))

    def always_the_same(self) -> Hits:
        """What naming the most frequent training words, whatever is seen, would reach."""
        counts = np.bincount(_labels(self.train), minlength=len(self.world.annotated_words))
        place_of = np.argsort(np.argsort(-counts, kind="stable"))
        words = _labels(self.test)
        return Hits(words, *([float(place_of[word] < first) for word in words] for first in (1, 5)))


def hits_of(name: str, config: TrunkRunConfig, clips: Clips, runs: Path) -> tuple[Hits, float]:
    """Train a trunk, unless that is done, and name every test clip; and the share of training clips it names."""
    data = TrunkData(
        vocabulary=clips.world.annotated_words,
        continuous=clips.train,
        tests=(ClipTest("training clips", clips.train),),
        description=world_name(clips.world),
    )
    run, kept = RunFolder(runs / name), runs / f"{name}, named.json"
    if not run.results.exists():
        with run.opened(config, data.fingerprints(), "resume" if run.config.exists() else "new"):
            train_trunk(config, data, run, TrunkControls(progress=told, workers=0))
    if not kept.exists():
        write_json(_named(run, config, clips.test), kept)
    held, results = read_json(kept), read_json(run.results)
    hits = Hits(held["words"], held["top1"], held["top5"])  # type: ignore[index]
    return hits, float(results["final"]["tests"]["training clips"]["top1"])  # type: ignore[index]


def _named(run: RunFolder, config: TrunkRunConfig, clips: RecordedClips) -> dict[str, object]:
    """Each test clip as a test of its own: whether its word is the first, and among the first five."""
    trunk, _ = load_checkpoint(run.last).networks()
    alone = (ClipTest(place.name, replace(clips, places=(place,))) for place in clips.places)
    each = [accuracy_of(trunk, test, transform_of(config), torch.device("cpu")) for test in alone]
    words = _labels(clips)
    return {"words": words, "top1": [one.top1 for one in each], "top5": [one.top5 for one in each]}


def told(moment: TrunkProgress) -> None:
    """A line for every epoch."""
    if moment.finished is not None:
        sys.stderr.write(f"{process_time():.0f} s: {moment.finished}\n")


def row_of(name: str, hits: Hits, on_training: float | None = None) -> ResultRow:
    """One trunk, or one minus the other."""
    papers = PAPER.get(name, (None,) * 4)
    cells = {
        column: Measured(cell.estimate, (), cell.low, cell.high, paper)
        for column, cell, paper in zip(COLUMNS, hits.intervals(), papers, strict=False)
    }
    if on_training is not None:
        cells[COLUMNS[-1]] = Measured(on_training)
    return ResultRow(name, cells)


def main() -> None:
    """Train what is missing and write results.json."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    torch.set_num_threads(1)
    runs = Path(os.environ.get("SIGNSPOT_EXPERIMENTS") or "build/experiments") / "table_a8"
    make_folder(runs)
    clips = Clips.of(runs)
    found = {name: hits_of(name, config, clips, runs) for name, config in CONFIGS.items()}
    rows = [row_of(name, *of_trunk) for name, of_trunk in found.items()]
    rows.append(row_of("I3D − S3D", found["I3D"][0].minus(found["S3D"][0])))
    rows.append(row_of("the most frequent words, whatever is seen", clips.always_the_same()))
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    write_results(
        ExperimentResults(
            name="table_a8",
            title="I3D or S3D as the trunk",
            paper="Table A.8",
            data=f"{world_name(clips.world)}, but {TRAIN_EPISODES} training and {TEST_EPISODES} test episodes",
            command="python experiments/table_a8/run.py",
            conditions={
                "clips": f"{len(clips.train)} of {len(set(_labels(clips.train)))} words to learn from, "
                f"{len(clips.test)} of {len(set(_labels(clips.test)))} words by other signers to test on; "
                f"{len(clips.world.annotated_words)} words to choose from",
                "trunk": f"both of width {NARROW.width}, from random weights, on drawn pictures of {NARROW.crop} "
                f"pixels; {NARROW.stage1_epochs} epochs of minibatches of {NARROW.batch_size}, the same options",
                "interval": "95 %, by drawing the words again",
                "seeds": "one",
            },
            columns=COLUMNS,
            rows=tuple(rows),
            verdict=" ".join(readme.partition("**Verdict.**")[2].partition("\n\n")[0].split()) or "Not judged yet.",
        ),
        HOME / "results.json",
    )


def _labels(clips: RecordedClips) -> list[int]:
    return [place.label for place in clips.places]


if __name__ == "__main__":
    main()
