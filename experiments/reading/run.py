"""What reading can bring to words that were never annotated: `python experiments/reading/run.py`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.lib.paper_tables import (
    SMALL,
    ExperimentResults,
    Measure,
    Measured,
    Method,
    Places,
    ResultRow,
    RunScores,
    Scale,
    Told,
    WorldRuns,
    difference,
    episode_passages,
    measured,
    world_name,
    write_results,
)

from signspot.cli.console import progress_bars
from signspot.domain.recordings import Annotation
from signspot.files.atomic import make_folder
from signspot.learning.material import Material, Passages
from signspot.world.settings import preset_named
from signspot.world.simulation import EpisodePerformance, World

HOME = Path(__file__).resolve().parent
MEASURES: tuple[Measure, ...] = ("mAP", "R@5")
LONG = replace(SMALL, epochs=3 * SMALL.epochs)
_WATCH, _READ = "table2-watch-lookup", "table2-watch-read-lookup"


@dataclass(frozen=True, slots=True)
class Row:
    """A method, how long it learns, and whether its annotators have marked every sign that a subtitle mentions."""

    method: Method
    scale: Scale = SMALL
    told_all: bool = False
    first_world_only: bool = False

    @property
    def name(self) -> str:
        """As the table has it."""
        return self.method.name


ROWS = (
    Row(Method(name="trunk, no head")),
    Row(Method(name="Watch-Lookup", config=_WATCH)),
    Row(Method(name="Watch-Lookup, minibatches of 128", config=_WATCH, changes=("batch_size=128",))),
    Row(Method(name="Watch-Read-Lookup", config=_READ)),
    Row(Method(name="Watch-Lookup, three times the epochs", config=_WATCH), LONG, first_world_only=True),
    Row(Method(name="Watch-Read-Lookup, three times the epochs", config=_READ), LONG, first_world_only=True),
    Row(Method(name="Watch-Lookup, every subtitled sign annotated", config=_WATCH), told_all=True),
)
DIFFERENCES = (
    ("Watch-Read-Lookup", "Watch-Lookup"),
    ("Watch-Read-Lookup", "Watch-Lookup, minibatches of 128"),
    ("Watch-Read-Lookup", "trunk, no head"),
    ("Watch-Lookup, every subtitled sign annotated", "Watch-Lookup"),
)


class Investigation:
    """The runs of all rows on some worlds, test words unseen."""

    def __init__(self, runs: Path, worlds: tuple[int, ...], told: Told) -> None:
        self._runs, self._told = runs, told
        self._configs = HOME.parents[1] / "configs" / "embedding"
        self.worlds = [World.of(preset_named(SMALL.preset), seed) for seed in worlds]

    def train(self, rows: tuple[Row, ...], seeds: tuple[int, ...]) -> None:
        """Every run that is not done yet."""
        for seed in seeds:
            for world in self.worlds:
                for row in rows:
                    if _is_wanted(row, world, seed, seeds):
                        self._told(f"world {world.seed}: {row.name}, seed {seed}", 0, 1)
                        if row.told_all:
                            self._annotate_all(world)
                        self._of(row, world).scores(row.method, "unseen", seed)

    def found(self, row: Row, seeds: tuple[int, ...]) -> list[list[RunScores]]:
        """By world, by seed, as far as they are done."""
        done = [
            [
                self._of(row, world).scores(row.method, "unseen", seed)
                for seed in seeds
                if _is_wanted(row, world, seed, seeds) and self._of(row, world).is_done(row.method, "unseen", seed)
            ]
            for world in self.worlds
        ]
        return [runs for runs in done if runs]

    def _of(self, row: Row, world: World) -> WorldRuns:
        runs = self._told_folder if row.told_all else self._runs
        return WorldRuns(world, row.scale, Places(runs, self._configs), self._told)

    @property
    def _told_folder(self) -> Path:
        return self._runs / "every-sign-annotated"

    def _annotate_all(self, world: World) -> None:
        """The same trunk, test set and vectors, but an annotation for every sign that a subtitle mentions."""
        place = Path(f"{SMALL.preset}-{world.seed}") / "unseen" / "both"
        source, target = self._runs / place, self._told_folder / place
        if (target / "train").exists():
            return
        make_folder(target)
        for name in ("trunk", "test"):
            if not (target / name).exists():
                (target / name).symlink_to((source / name).resolve())
        _annotated_material(world, Material.read(source / "train", verify=False)).write(target / "train")


def _annotated_material(world: World, material: Material) -> Material:
    episodes = (_with_all_annotations(world.perform_episode(name)) for name in world.episodes("train"))
    passages = [episode_passages(episode, world.vocabulary) for episode in episodes]
    return replace(material, passages=Passages.of(passages, world.vocabulary))


def _with_all_annotations(episode: EpisodePerformance) -> EpisodePerformance:
    known = tuple(
        Annotation(episode.episode_id, token.word, token.span.stop - 1, 1.0, "human")
        for token in episode.truth
        if token.subtitle is not None
    )
    return replace(episode, annotations=known)


def _is_wanted(row: Row, world: World, seed: int, seeds: tuple[int, ...]) -> bool:
    """A trunk has no seeds of heads."""
    is_first = row.method.config is not None or seed == seeds[0]
    return is_first and not (row.first_world_only and (world.seed, seed) != (0, seeds[0]))


def table(study: Investigation, seeds: tuple[int, ...], verdict: str) -> ExperimentResults:
    """All rows as far as they are done, then differences passage by passage."""
    found = {row.name: study.found(row, seeds) for row in ROWS}
    rows = [ResultRow(name, _cells(worlds)) for name, worlds in found.items()]
    for first, second in DIFFERENCES:
        of_trunk = second == ROWS[0].name
        worlds = [_paired(a, b, of_trunk=of_trunk) for a, b in zip(found[first], found[second], strict=False)]
        rows.append(ResultRow(f"{first} − {second}", _cells(worlds)))
        rows += [
            ResultRow(f"{first} − {second}, world {world.seed}", _cells([runs]))
            for world, runs in zip(study.worlds, worlds, strict=False)
            if (first, second) == DIFFERENCES[0] and len(worlds) > 1
        ]
    spaced = " ".join(str(world.seed) for world in study.worlds)
    return ExperimentResults(
        name="reading",
        title="Ours: what reading brings to unseen words",
        data="; ".join(map(world_name, study.worlds)),
        command=f"python experiments/reading/run.py --seeds {' '.join(map(str, seeds))} --worlds {spaced}",
        conditions={
            "seeds": f"{', '.join(map(str, seeds))} of the heads; one trunk for each world",
            "fewer seeds": _fewer(found, len(seeds)) or "none",
            "interval": "95 %, by drawing the test words of all worlds again, of the mean over the seeds",
            "trunk and head": f"as in Table 2; 128 stands for {round(128 * SMALL.batch_share)} passages",
            "every subtitled sign annotated": "what a perfect reader of the training words would know",
        },
        columns=tuple(f"unseen {measure}" for measure in MEASURES),
        rows=tuple(row for row in rows if row.cells),
        verdict=verdict,
    )


def _fewer(found: dict[str, list[list[RunScores]]], n_seeds: int) -> str:
    """Which rows have fewer runs than there are seeds."""
    counts = {name: min(map(len, worlds), default=0) for name, worlds in found.items() if name != ROWS[0].name}
    return ", ".join(f"{name}: {count}" for name, count in counts.items() if count < n_seeds)


def _paired(first: list[RunScores], second: list[RunScores], *, of_trunk: bool) -> list[RunScores]:
    """Seed by seed, as far as both go; a trunk has one run for all seeds."""
    others = second * len(first) if of_trunk else second
    return [difference(one, other) for one, other in zip(first, others, strict=False)]


def _cells(worlds: list[list[RunScores]]) -> dict[str, Measured]:
    if not worlds or not all(worlds):
        return {}
    return {f"unseen {measure}": measured(worlds, measure, None) for measure in MEASURES}


def main() -> None:
    """Train what is missing and write results.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--worlds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", default=[row.name for row in ROWS], help="train these only")
    parser.add_argument("--finished", action="store_true", help="train nothing: write what is there")
    given = parser.parse_args()
    seeds, begun, last = tuple(given.seeds), time.monotonic(), [""]
    with progress_bars() as bars:

        def told(step: str, done: float, total: float) -> None:
            bars(step, done, total)
            if not sys.stderr.isatty() and step != last[0]:
                sys.stderr.write(f"{time.monotonic() - begun:.0f} s: {step}\n")
                last[0] = step

        runs = Path(os.environ.get("SIGNSPOT_EXPERIMENTS") or "build/experiments")
        study = Investigation(runs, tuple(given.worlds), told)
        if not given.finished:
            study.train(tuple(row for row in ROWS if row.name in given.rows), seeds)
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    verdict = " ".join(readme.partition("**Verdict.**")[2].partition("\n\n")[0].split())
    write_results(table(study, seeds, verdict or "Not judged yet."), HOME / "results.json")


if __name__ == "__main__":
    main()
