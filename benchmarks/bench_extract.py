"""How fast the I3D runs over a video at stride 1, against plain eager PyTorch, and how close to the machine's peak.

    python benchmarks/bench_extract.py [VIDEO] [--windows 120] [--rounds 3] [--backends openvino] [--json FILE]

Without VIDEO: the real broadcast clip beside the project where it is, otherwise a generated one.

Every round runs every variant once, in turn, so that a noisy neighbour hits all alike; the figures are medians over the
rounds. Window by window costs the same for every window, so only the first 8 are timed; sharing is timed on all.
"cpu/wall" far from the number of threads means the machine was busy: then trust the ratio of processor times. The first
row is the reference: the network as trained (batch norm not folded), in inference mode. "of peak" counts the nominal
multiplications of the windowed network (27.79 G a window), padding included, against a matrix product timed in the same
round: sharing can exceed 100%.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from tests.toy_world import make_toy_world

from signspot.domain.tracks import CLIP_LENGTH, FrameShape, Pixels
from signspot.embedding.pictures import window_batches
from signspot.errors import EnvironmentProblem
from signspot.media.reader import VideoReader
from signspot.models.backends import choose_backend
from signspot.models.embedders import EmbedderSettings, VideoEmbedder
from signspot.models.i3d import I3D
from signspot.models.i3d_shared import shared_vectors

GMAC_PER_WINDOW = 27.79
BACKENDS = ("torch", "openvino", "openvino-bf16")
SHAPE = FrameShape(side=256, crop=224)
REAL_CLIP = Path(__file__).parents[2] / "shared" / "data" / "real_video" / "bsl_broadcast.mp4"


@dataclass(frozen=True)
class Timing:
    wall: float  # seconds
    cpu: float  # seconds


@dataclass(frozen=True)
class Row:
    variant: str
    windows_per_second: float
    ms_per_window: float
    cpu_ms_per_window: float
    cpu_per_wall: float
    speedup_wall: float
    speedup_cpu: float
    share_of_peak: float
    least_cosine: float  # with the reference, centred over the windows


def timed(run: Callable[[], object]) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Timing(time.perf_counter() - wall, time.process_time() - cpu)


def calibrated_trunk(frames: list[Pixels]) -> I3D:
    """Random weights whose batch norms have seen the video: maps then have the sizes they have in a trained network."""
    torch.manual_seed(0)
    trunk = I3D()
    with torch.no_grad():
        for module in trunk.modules():
            if isinstance(module, torch.nn.Conv3d):
                torch.nn.init.kaiming_normal_(module.weight)
            elif isinstance(module, torch.nn.BatchNorm3d):
                module.momentum = 1.0
        clips = np.stack(
            [frames[s : s + CLIP_LENGTH] for s in np.linspace(0, len(frames) - CLIP_LENGTH, 4).astype(int)]
        )
        trunk.train()(torch.from_numpy(np.moveaxis(clips, -1, 1).astype(np.float32) / 255 - 0.5))
    return trunk.eval()


def reference(trunk: I3D, frames: list[Pixels]) -> np.ndarray:
    rows = []
    with torch.inference_mode():
        for clips in window_batches(frames, 1, per_batch=8):
            batch = torch.from_numpy(np.ascontiguousarray(np.moveaxis(clips, -1, 1))).float().div_(255).sub_(0.5)
            rows.append(trunk(batch).embedding.numpy())
    return np.concatenate(rows)


def variants(
    trunk: I3D, frames: list[Pixels], backends: Sequence[str]
) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    few = frames[: CLIP_LENGTH - 1 + 8]
    yield "torch eager, window by window", lambda: reference(trunk, few)
    for choice in backends:
        try:
            settings = EmbedderSettings(name="bench", frame_shape=SHAPE, backend=choose_backend(choice))
        except EnvironmentProblem as problem:
            print(f"left out: {problem}")
            continue
        embedder = VideoEmbedder(trunk, None, settings)

        def windowed(embedder: VideoEmbedder = embedder) -> np.ndarray:
            return np.concatenate([embedder.trunk_vectors(clips) for clips in window_batches(few, 1)])

        def shared(embedder: VideoEmbedder = embedder) -> np.ndarray:
            return np.concatenate(list(shared_vectors(frames, embedder)))

        yield f"{embedder.backend}, window by window", windowed
        yield f"{embedder.backend}, shared", shared


def gemm_peak() -> float:
    """GFLOP/s of a float32 matrix product, now."""
    left, right = torch.rand(2048, 2048), torch.rand(2048, 2048)
    return max(2 * 2048**3 / timed(lambda: left @ right).wall / 1e9 for _ in range(5))


def least_centred_cosine(got: np.ndarray, expected: np.ndarray) -> float:
    """Centred: all windows of a video share a large common part, which would hide any error."""
    got = got[: len(expected)]
    got, expected = got - expected.mean(axis=0), expected - expected.mean(axis=0)
    lengths = np.linalg.norm(got, axis=1) * np.linalg.norm(expected, axis=1)
    return float(((got * expected).sum(axis=1) / lengths).min())


def measured(frames: list[Pixels], rounds: int, backends: Sequence[str]) -> list[Row]:
    trunk = calibrated_trunk(frames)
    runs = dict(variants(trunk, frames, backends))
    vectors = {name: run() for name, run in runs.items()}  # also the warm-up: programs are compiled here
    first = next(iter(runs))
    timings: dict[str, list[Timing]] = {name: [] for name in runs}
    peaks = []
    for number in range(rounds):
        peaks.append(gemm_peak())
        for name, run in runs.items():
            timings[name].append(timed(run))
        print(f"round {number + 1} of {rounds}: matrix product {peaks[-1]:.0f} GFLOP/s", flush=True)
    rows = []
    for name, taken in timings.items():
        wall, cpu = (
            statistics.median(getattr(t, unit) for t in taken) / len(vectors[name]) for unit in ("wall", "cpu")
        )
        against = list(zip(timings[first], taken, strict=True))
        per_run = len(vectors[name]) / len(vectors[first])
        rows.append(
            Row(
                variant=name,
                windows_per_second=1 / wall,
                ms_per_window=1000 * wall,
                cpu_ms_per_window=1000 * cpu,
                cpu_per_wall=cpu / wall,
                speedup_wall=per_run * statistics.median(base.wall / own.wall for base, own in against),
                speedup_cpu=per_run * statistics.median(base.cpu / own.cpu for base, own in against),
                share_of_peak=2 * GMAC_PER_WINDOW / wall / statistics.median(peaks),
                least_cosine=least_centred_cosine(vectors[name], vectors[first]),
            )
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("video", type=Path, nargs="?")
    parser.add_argument("--windows", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=BACKENDS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        video = options.video or (REAL_CLIP if REAL_CLIP.exists() else make_toy_world(Path(folder)).broadcast)
        with VideoReader(video, shape=SHAPE) as reader:
            frames = [frame.pixels for frame in islice(reader, options.windows + CLIP_LENGTH - 1)]
    rows = measured(frames, options.rounds, options.backends)
    n_windows = len(frames) - CLIP_LENGTH + 1
    print(f"\n{video.name}: {torch.get_num_threads()} threads, {n_windows} windows, {options.rounds} rounds")
    print(f"{'':36} win/s  ms/win  cpu-ms cpu/wall  speed-up (cpu)  of peak  least cosine")
    for row in rows:
        print(
            f"{row.variant:36} {row.windows_per_second:5.2f} {row.ms_per_window:7.0f} {row.cpu_ms_per_window:7.0f}"
            f" {row.cpu_per_wall:8.2f} {row.speedup_wall:7.2f} ({row.speedup_cpu:4.2f}) {row.share_of_peak:8.0%}"
            f"  {row.least_cosine:.6f}"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
