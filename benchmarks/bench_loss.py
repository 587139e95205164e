"""What a training step of the head costs: gather, embed, compare, learn; against the head's own forward and backward.

    python benchmarks/bench_loss.py [--steps 5] [--rounds 5] [--json FILE]

The minibatch is the paper's: 128 items of 11 clips, 8 words of 3 entries each, 1024 numbers a clip. Words are drawn
from 1,064 by a Zipf distribution, so that items share words. The head embeds each distinct entry once. Clips are
gathered from an array of float16 on the disk.

Every round runs every variant once, in turn, so that a noisy neighbour hits all alike; the figures are medians over the
rounds. "cpu/wall" far from the number of threads means the machine was busy: then trust the ratio of processor times.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from signspot.learning.batches import BACKGROUND, Minibatch
from signspot.learning.losses import Formulation, Released, watch_read_lookup
from signspot.models.head import Head

N_ITEMS, N_CLIPS, N_WORDS, N_ENTRIES, DIM = 128, 11, 8, 3, 1024
VOCABULARY = 1064
PAPER_STEPS = 611 * 50  # 78,211 labelled segments by 128, 50 epochs
N_STORED = 40_000  # rows of the array on the disk


@dataclass(frozen=True)
class Timing:
    wall: float  # seconds a step
    cpu: float


@dataclass(frozen=True)
class Row:
    variant: str
    threads: int
    ms: float
    cpu_ms: float
    cpu_per_wall: float
    against_head: float  # wall, median of the rounds' ratios
    against_head_cpu: float


def drawn_words(rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """(items, words): different within an item; the first, the label, different in every item."""
    often = 1 / np.arange(1, VOCABULARY + 1)
    labels = rng.permutation(VOCABULARY)[:N_ITEMS]
    words = []
    for label in labels:
        chance = np.where(np.arange(VOCABULARY) == label, 0, often)
        others = rng.choice(VOCABULARY, N_WORDS - 1, replace=False, p=chance / chance.sum())
        words.append([label, *others])
    return np.array(words)


class Problem:
    """A minibatch whose clips lie on the disk, and a head to train on it."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        path = folder / "clips.npy"
        self.stored = np.lib.format.open_memmap(path, "w+", np.float16, (N_STORED, DIM))
        for start in range(0, N_STORED, 1000):  # in parts: the peak of memory is to be that of training
            self.stored[start : start + 1000] = rng.normal(size=(1000, DIM))
        words = drawn_words(rng)
        used, place = np.unique(words, return_inverse=True)
        self.clip_places = rng.integers(0, N_STORED, N_ITEMS * N_CLIPS)
        self.entry_places = rng.integers(0, N_STORED, len(used) * N_ENTRIES)
        label = torch.full((N_ITEMS, N_CLIPS), BACKGROUND)
        label[:, 0] = torch.from_numpy(words[:, 0])
        entries = torch.from_numpy(place.reshape(N_ITEMS, N_WORDS, 1) * N_ENTRIES + np.arange(N_ENTRIES))
        self.batch = Minibatch(
            n_items=N_ITEMS,
            segments=torch.empty(N_ITEMS * N_CLIPS, 0),
            segment_item=torch.arange(N_ITEMS).repeat_interleave(N_CLIPS),
            segment_word=label.flatten(),
            entries=torch.empty(len(used) * N_ENTRIES, 0),
            entry_word=torch.from_numpy(used).repeat_interleave(N_ENTRIES),
            row_entry=entries.flatten(),
            row_item=torch.arange(N_ITEMS).repeat_interleave(N_WORDS * N_ENTRIES),
            row_is_foreground=(torch.arange(N_WORDS * N_ENTRIES) < N_ENTRIES).repeat(N_ITEMS),
        )
        torch.manual_seed(0)
        self.head = Head()
        self.optimiser = torch.optim.SGD(self.head.parameters(), lr=1e-2, momentum=0.9)
        self.vectors = self.gathered()

    def gathered(self) -> tuple[Tensor, Tensor]:
        clips, entries = (
            torch.from_numpy(self.stored[p].astype(np.float32)) for p in (self.clip_places, self.entry_places)
        )
        return clips, entries

    def head_alone(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        for vectors in self.vectors:
            embedding = self.head(vectors).embedding
            embedding.backward(torch.ones_like(embedding))

    def loss_alone(self, formulation: Formulation) -> None:
        segments, entries = (v[:, :256].clone().requires_grad_() for v in self.vectors)
        watch_read_lookup(self.batch.with_vectors(segments, entries), formulation).backward()

    def whole_step(self, formulation: Formulation) -> None:
        clips, entries = self.gathered()
        self.optimiser.zero_grad(set_to_none=True)
        embedded = self.batch.with_vectors(self.head(clips).embedding, self.head(entries).embedding)
        watch_read_lookup(embedded, formulation).backward()
        self.optimiser.step()


def timed(run: Callable[[], object], steps: int) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        run()
    return Timing((time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps)


def variants(problem: Problem) -> dict[str, Callable[[], object]]:
    return {
        "head alone, forward and backward": problem.head_alone,
        "gather alone": problem.gathered,
        "loss alone, paper": lambda: problem.loss_alone("paper"),
        "loss alone, released": lambda: problem.loss_alone(Released()),
        "whole step, paper": lambda: problem.whole_step("paper"),
        "whole step, released": lambda: problem.whole_step(Released()),
    }


def measured(problem: Problem, rounds: int, steps: int) -> list[Row]:
    runs = variants(problem)
    thread_counts = sorted({1, os.cpu_count() or 1})
    timings: dict[tuple[int, str], list[Timing]] = {(n, name): [] for n in thread_counts for name in runs}
    for number in range(rounds):
        for threads in thread_counts:
            torch.set_num_threads(threads)
            for name, run in runs.items():
                run()  # threads start here
                timings[threads, name].append(timed(run, steps))
        print(f"round {number + 1} of {rounds}", flush=True)
    rows = []
    for (threads, name), taken in timings.items():
        base = timings[threads, next(iter(runs))]
        wall, cpu = (statistics.median(getattr(t, unit) for t in taken) for unit in ("wall", "cpu"))
        rows.append(
            Row(
                variant=name,
                threads=threads,
                ms=1000 * wall,
                cpu_ms=1000 * cpu,
                cpu_per_wall=cpu / wall,
                against_head=statistics.median(t.wall / b.wall for t, b in zip(taken, base, strict=True)),
                against_head_cpu=statistics.median(t.cpu / b.cpu for t, b in zip(taken, base, strict=True)),
            )
        )
    return rows


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def extra_megabytes(problem: Problem) -> float:
    """How much the peak of a whole step lies above that of the head alone."""
    problem.head_alone()
    problem.optimiser.step()
    before = peak_megabytes()
    problem.whole_step("paper")
    problem.whole_step("released")
    return peak_megabytes() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problem = Problem(Path(folder))
        extra = extra_megabytes(problem)
        rows = measured(problem, options.rounds, options.steps)
    batch = problem.batch
    print(f"\n{len(batch.segments)} segments, {len(batch.entries)} entries in {len(batch.row_entry)} rows")
    print(f"{'':34} threads      ms  cpu-ms cpu/wall  of head (cpu)")
    for row in rows:
        print(
            f"{row.variant:34} {row.threads:7} {row.ms:7.0f} {row.cpu_ms:7.0f} {row.cpu_per_wall:8.2f}"
            f" {row.against_head:8.2f} ({row.against_head_cpu:4.2f})"
        )
    for name in ("whole step, paper", "whole step, released"):
        one, *more = (row.ms for row in rows if row.variant == name)
        best = min(one, *more)
        gain = "".join(f"{one / many:.2f}x one core; " for many in more)
        print(f"{name}: {gain}{PAPER_STEPS} steps take {PAPER_STEPS * best / 3.6e6:.2f} hours")
    print(f"a whole step needs {extra:.0f} MB more than the head alone; peak memory {peak_megabytes():.0f} MB")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
