"""How fast the shipped model of landmarks is, once landmarks are there.

    python benchmarks/bench_landmark_model.py [--repeat 3] [--threads 2] [--json FILE]

The claims: 2,000 windows a second on 2 cores; loaded in 0.3 s, without network, pickle or torch.compile; a minute of
video embedded in windows of four lengths in a few seconds. Finding landmarks is measured by bench_landmarks.py, looking
a recording up by bench_lookup.py. Where "cpu" is far below the seconds, the machine was busy.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from signspot.domain.time import FRAME_MS, FRAME_RATE, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, LandmarkTrack, SignerLandmarks
from signspot.embedding.landmarks import RateRows
from signspot.embedding.model import LANDMARK_MODEL
from signspot.embedding.zoo import model_path
from signspot.models.embedders import LandmarkEmbedder, landmark_embedder_from_checkpoint

WINDOWS = 2048


def best_of(repeat: int, work: Callable[[], object]) -> dict[str, float]:
    """The shortest of some runs, and the processor time of that run."""
    runs = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        runs.append((time.perf_counter() - wall, time.process_time() - cpu))
    seconds, used = min(runs)
    return {"seconds": round(seconds, 3), "cpu": round(used, 3), "least_cpu": round(min(used for _, used in runs), 3)}


def minute() -> SignerLandmarks:
    """A minute of landmarks: numbers at random, which cost as much as any."""
    points = np.random.default_rng(0).random((60 * FRAME_RATE, LANDMARK_DIM), np.float32)
    return SignerLandmarks(
        LandmarkTrack("minute", TimeAxis(np.arange(len(points)) * float(FRAME_MS)), points), 640, 360
    )


def main(repeat: int, threads: int, out: Path | None) -> None:
    """Measure and print JSON."""
    torch.set_num_threads(threads)
    path = model_path(LANDMARK_MODEL)
    load = best_of(repeat, lambda: landmark_embedder_from_checkpoint(path))
    model: LandmarkEmbedder = landmark_embedder_from_checkpoint(path)
    windows = np.random.default_rng(0).random((WINDOWS, CLIP_LENGTH, LANDMARK_DIM), np.float32)
    model.embed(windows[:256])
    embed = best_of(repeat, lambda: model.embed(windows))
    video = minute()
    found = {
        "cores": len(os.sched_getaffinity(0)),
        "threads": threads,
        "load_before": round(os.getloadavg()[0], 1),
        "load": load,
        "embed": embed | {"windows_a_second": round(WINDOWS / embed["seconds"])},
        "embed_windows_a_cpu_second": round(WINDOWS / embed["least_cpu"]),
        "a_minute_of_video": best_of(repeat, lambda: list(RateRows(model).blocks(video))),
        "compiled": "torch._dynamo" in sys.modules,
    }
    text = json.dumps(found, indent=1)
    print(text)
    if out is not None:
        out.write_text(text + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    main(given.repeat, given.threads, given.json)
