"""From the runs of a table of the paper to its cells: means over seeds, intervals over words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from signspot.formats.experiment_results import ExperimentResults, Measured, ResultRow
from signspot.learning.trunk_config import TrunkRunConfig
from signspot.workflows.paper_tables import (
    Column,
    Measure,
    Method,
    Places,
    RunScores,
    Scale,
    Told,
    WorldRuns,
    difference,
    figure_of,
    interval_of,
    joined_scores,
    mean_scores,
)
from signspot.workflows.world_material import world_name

# Everything is a quarter of the paper's: words (260 of 1,064), vectors, batches.
SMALL = Scale(
    name="small",
    preset="small",
    trunk=TrunkRunConfig(
        architecture="landmark",
        landmark_width=64,
        embedding_dim=256,
        reinitialise_batch_norm=False,
        batch_size=32,
        stage1_epochs=12,
        stage2_epochs=15,
        decay_epochs=(9, 12),
        optimiser="adamw",  # SGD learns little in so few steps
        learning_rate=1e-3,
        threads=1,
        evaluate_every=0,
    ),
    batch_share=260 / 1064,
    hidden_dim=256,
    embedding_dim=128,
    epochs=30,
)
PAPER = Scale(
    name="paper",
    preset="paper",
    trunk=TrunkRunConfig(
        architecture="landmark",
        reinitialise_batch_norm=False,
        batch_size=32,
        stage1_epochs=10,
        stage2_epochs=20,
        decay_epochs=(8, 15),
        optimiser="adamw",
        learning_rate=1e-3,
        evaluate_every=0,
    ),
    batch_share=1.0,
    hidden_dim=512,
    embedding_dim=256,
    epochs=50,
)
# For trying out that everything runs: its figures mean nothing.
DEMO = replace(
    SMALL, name="demo", preset="demo", trunk=replace(SMALL.trunk, stage1_epochs=2, stage2_epochs=2), epochs=10
)
# The paper's words, dictionary and batches; a quarter of its footage, and networks that two cores train in hours.
QUARTER = replace(
    PAPER,
    name="paper-quarter",
    footage_share=0.25,
    trunk=replace(PAPER.trunk, landmark_width=64, embedding_dim=256, threads=1),
    hidden_dim=256,
    embedding_dim=128,
    epochs=30,
)
SCALES = {scale.name: scale for scale in (DEMO, SMALL, QUARTER, PAPER)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table of the paper, or one of ours in its form."""

    name: str  # of its folder
    title: str
    paper: str = ""  # "Table 2"
    rows: tuple[Method, ...]
    columns: tuple[Column, ...] = ("seen", "unseen")
    measures: tuple[Measure, ...] = ("mAP", "R@5")
    differences: tuple[tuple[str, str], ...] = ()  # rows to subtract from each other, passage by passage


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """Which runs to take."""

    scale: str = "small"
    worlds: tuple[int, ...] = (0,)
    seeds: tuple[int, ...] = (0, 1, 2)
    finished_only: bool = False  # nothing is trained: the table has what there is
    places: Places


_Found = dict[tuple[str, Column], list[list[RunScores]]]  # of a row and a column: by world, by seed


class TableRuns:
    """The runs that a table asks for, done one after the other."""

    def __init__(self, table: PaperTable, request: TableRequest, told: Told) -> None:
        self._table, self._request, self._told = table, request, told
        scale = SCALES[request.scale]
        worlds = [scale.world(seed) for seed in request.worlds]
        self._worlds = [WorldRuns(world, scale, request.places, told) for world in worlds]
        self._data = "; ".join(world_name(world) for world in worlds)
        if scale.footage_share < 1:
            self._data += f"; of its footage the first {worlds[0].preset.train_episodes} training episodes"

    def results(self, verdict: str, command: str) -> ExperimentResults:
        """Do what is not done yet, then the table."""
        found = self._scores()
        table = self._table
        rows = [ResultRow(row.name, self._cells(row, found)) for row in table.rows]
        for first, second in table.differences:
            rows.append(ResultRow(f"{first} − {second}", self._difference(first, second, found)))
        return ExperimentResults(
            name=table.name,
            title=table.title if self._request.scale == SMALL.name else f"{table.title} ({self._request.scale})",
            paper=table.paper,
            data=self._data,
            command=command,
            conditions=self._conditions(),
            columns=tuple(f"{column} {measure}" for column in table.columns for measure in table.measures),
            rows=tuple(rows),
            verdict=verdict,
        )

    def _scores(self) -> _Found:
        """Of every row and column, of every world, the scores of its seeds."""
        # All rows with the first seed, then with the next: a table that is stopped early still has all its rows. The
        # last rows and columns, which everything is about, come first.
        wanted = [
            (world, column, row, seed)
            for seed in self._request.seeds
            for world in self._worlds
            for column in reversed(self._table.columns)
            for row in reversed(self._table.rows)
            if seed in self._seeds(row) and world.can_run(row)
        ]
        for number, (world, column, row, seed) in enumerate(() if self._request.finished_only else wanted):
            self._told(f"{self._table.name}: {row.name}, {column}, seed {seed}", number, len(wanted))
            world.scores(row, column, seed)
        found: _Found = {}
        for world in self._worlds:
            for row in self._table.rows:
                for column in self._table.columns:
                    done = [s for s in self._seeds(row) if world.is_done(row, column, s)]
                    if done:
                        runs = [world.scores(row, column, seed) for seed in done]
                        found.setdefault((row.name, column), []).append(runs)
        return found

    def _seeds(self, row: Method) -> tuple[int, ...]:
        """A trunk is trained once (as in Paper App. B.1, where the heads alone have seeds)."""
        return self._request.seeds[:1] if row.config is None else self._request.seeds

    def _cells(self, row: Method, found: _Found) -> dict[str, Measured]:
        cells = {}
        columns = [(column, measure) for column in self._table.columns for measure in self._table.measures]
        for (column, measure), paper in zip_longest(columns, row.paper):
            if worlds := found.get((row.name, column)):
                number = None if paper is None else paper / 100
                cells[f"{column} {measure}"] = measured(worlds, measure, number)
        return cells

    def _difference(self, first: str, second: str, found: _Found) -> dict[str, Measured]:
        """One method minus another on the same passages, over the seeds that both have."""
        cells: dict[str, Measured] = {}
        for column in self._table.columns:
            both = zip(found.get((first, column), ()), found.get((second, column), ()), strict=False)
            worlds = [[difference(a, b) for a, b in zip(x, y, strict=False)] for x, y in both]
            if worlds:
                cells |= {f"{column} {measure}": measured(worlds, measure, None) for measure in self._table.measures}
        return cells

    def _conditions(self) -> dict[str, str]:
        scale, request = SCALES[self._request.scale], self._request
        trunk = scale.trunk
        return {
            "seeds": f"{', '.join(map(str, request.seeds))} of the heads; one trunk for each column and source",
            "interval": "95 %, by drawing the test words again, of the mean over the seeds",
            "test": "the passages of the test episodes, by signers of their own, against all entries of the test words",
            "trunk": f"landmark encoder of width {trunk.landmark_width}, {trunk.embedding_dim} numbers, on detected "
            f"landmarks; {trunk.stage1_epochs} + {trunk.stage2_epochs} epochs",
            "head": f"{scale.hidden_dim} and {scale.embedding_dim} numbers, {scale.epochs} epochs, batch sizes "
            f"{scale.batch_share:.3f} of the paper's",
        }


def measured(worlds: Sequence[Sequence[RunScores]], measure: Measure, paper: float | None) -> Measured:
    """A cell: the mean over seeds of the test sets of all worlds together, one run for each seed."""
    joined = [joined_scores(runs) for runs in zip(*worlds, strict=False)]
    interval = interval_of(mean_scores(joined), measure)
    runs = tuple(figure_of(run, measure) for run in joined)
    return Measured(interval.estimate, runs, interval.low, interval.high, paper)
