"""How long the paper's benchmark takes: 3000 passages of 150 windows against 3000 entries, both directions, intervals.

    python benchmarks/bench_evaluation.py [--passages 3000] [--entries 3000] [--windows 150] [--json FILE]

Passages are made one at a time, as a store would give them; the time to make them is not counted. "Products alone" is
the time of as many multiplications in matrix products of 2000 windows, timed throughout the run so that a busy machine
hits both alike. The claim: under a minute on 2 cores, and the memory does not grow with the number of windows. Where
"cpu" is far below twice the seconds, the machine was busy.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from signspot.domain.tracks import FloatArray
from signspot.evaluation.measures import BootstrapOptions
from signspot.evaluation.protocol import Gallery, TestPassage, score_passages

DIM = 256
N_SIGNERS = 20
BLOCK = 2000  # windows


@dataclass(frozen=True)
class Result:
    passages: int
    entries: int
    windows: int
    scoring_seconds: float
    scoring_cpu_seconds: float
    floor_seconds: float
    intervals_seconds: float
    peak_memory_mb: float
    mean_ap: float
    mean_ap_low: float | None
    mean_ap_high: float | None
    chance_mean_ap: float


@dataclass
class Source:
    """Makes passages and counts how long that takes, and how long a bare product takes."""

    gallery: Gallery
    n_passages: int
    n_windows: int
    rng: np.random.Generator
    making_wall: float = 0.0
    making_cpu: float = 0.0
    floor: list[float] = field(default_factory=list)

    def passages(self) -> Iterator[TestPassage]:
        columns, block = np.ascontiguousarray(self.gallery.vectors.T), unit_rows(self.rng, BLOCK)
        for i in range(self.n_passages):
            wall, cpu = time.perf_counter(), time.process_time()
            word = int(self.gallery.words[self.rng.integers(len(self.gallery.words))])
            label = int(self.rng.integers(30, self.n_windows - 10))
            vectors = unit_rows(self.rng, self.n_windows)
            if i % 100 == 0:
                start = time.perf_counter()
                block @ columns
                self.floor.append(time.perf_counter() - start)
            passage = TestPassage(f"p{i}", word, label, np.arange(8, 8 + self.n_windows), vectors, f"s{i % N_SIGNERS}")
            self.making_wall += time.perf_counter() - wall
            self.making_cpu += time.process_time() - cpu
            yield passage


def unit_rows(rng: np.random.Generator, n: int) -> FloatArray:
    rows = rng.standard_normal((n, DIM), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def measure(n_passages: int, n_entries: int, n_windows: int) -> Result:
    rng = np.random.default_rng(0)
    gallery = Gallery(np.arange(n_entries) // 3, unit_rows(rng, n_entries))  # BSLDict has 3 entries a word on average
    source = Source(gallery, n_passages, n_windows, rng)
    wall, cpu = time.perf_counter(), time.process_time()
    scores = score_passages(source.passages(), gallery)
    scoring = time.perf_counter() - wall - source.making_wall
    scoring_cpu = time.process_time() - cpu - source.making_cpu
    start = time.perf_counter()
    spread = scores.intervals(BootstrapOptions(draws=2000)).mean_ap.by_class
    return Result(
        passages=n_passages,
        entries=n_entries,
        windows=n_windows,
        scoring_seconds=scoring,
        scoring_cpu_seconds=scoring_cpu,
        floor_seconds=float(np.mean(source.floor)) * n_passages * n_windows / BLOCK,
        intervals_seconds=time.perf_counter() - start,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        mean_ap=scores.mean_ap,
        mean_ap_low=spread.low,
        mean_ap_high=spread.high,
        chance_mean_ap=scores.chance_mean_ap,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=3000)
    parser.add_argument("--entries", type=int, default=3000)
    parser.add_argument("--windows", type=int, default=150)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = measure(options.passages, options.entries, options.windows)
    print(f"{result.passages} passages x {result.entries} entries x {result.windows} windows of {DIM} numbers")
    print(f"  scoring, both directions   {result.scoring_seconds:7.1f} s   ({result.scoring_cpu_seconds:.1f} s of cpu)")
    print(f"  the matrix products alone  {result.floor_seconds:7.1f} s")
    print(f"  5 figures with intervals   {result.intervals_seconds:7.1f} s   (2000 draws, by word and by signer)")
    print(f"  peak memory                {result.peak_memory_mb:7.0f} MB")
    spread = f"{result.mean_ap_low:.5f} to {result.mean_ap_high:.5f}" if result.mean_ap_low is not None else "unknown"
    print(f"  mAP of these random vectors {result.mean_ap:.5f} (95%: {spread}), chance {result.chance_mean_ap:.5f}")
    if options.json:
        options.json.write_text(json.dumps(asdict(result), indent=1) + "\n")


if __name__ == "__main__":
    main()
