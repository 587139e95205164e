"""How long a learner waits: one recording looked up in a dictionary whose vectors are kept.

    python benchmarks/bench_lookup.py [--entries 10000] [--json FILE]

Two models: a landmark encoder of the default size, given landmarks (a .pose file), and the shipped world-v1, given the
video. Weights do not matter for the time, so the encoder is not trained, and the dictionary's vectors are random. Not
counted: starting Python, loading the model, detecting landmarks in a video (see bench_landmarks.py). The claim: under
2 s on a CPU. Where "cpu" is far below the seconds, the machine was busy.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from signspot.domain.recordings import Entry, normalise
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import LandmarkTrack, SignerLandmarks, unit
from signspot.embedding.landmarks import LandmarkModel
from signspot.embedding.model import Model
from signspot.embedding.zoo import load_model
from signspot.formats.pose import write_pose
from signspot.media.writer import VideoWriter
from signspot.models.embedders import LandmarkEmbedder
from signspot.models.landmarks import LandmarkEncoder
from signspot.spotting.friends import Gallery
from signspot.workflows.lookup import look_up
from signspot.world.render import render_frames
from signspot.world.settings import preset_named
from signspot.world.simulation import World

REPEATS = 5


def random_gallery(n_entries: int, dim: int) -> Gallery:
    """A dictionary of random vectors."""
    entries = tuple(Entry(entry_id=str(i), word=normalise(f"word {i // 2}")) for i in range(n_entries))
    vectors = np.random.default_rng(0).normal(size=(n_entries, dim)).astype(np.float32)
    return Gallery(entries, unit(vectors))


def timed(ask: Callable[[], object]) -> dict[str, float]:
    """The first answer, and the median of some more."""
    seconds, cpu = [], []
    for _ in range(REPEATS):
        begun, begun_cpu = time.perf_counter(), time.process_time()
        ask()
        seconds.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - begun_cpu)
    return {
        "first_seconds": round(seconds[0], 3),
        "first_cpu": round(cpu[0], 3),
        "median_seconds": round(float(np.median(seconds)), 3),
        "median_cpu": round(float(np.median(cpu)), 3),
    }


def main(n_entries: int, out: Path | None) -> None:
    """Make a recording of one sign, look it up, print JSON."""
    torch.set_num_threads(1)
    world = World.of(preset_named("demo"))
    entry = world.dictionary_entries()[0]
    performance = world.perform_entry(entry)
    points = world.detected(performance, entry.entry_id)
    found: dict[str, object] = {"entries": n_entries, "frames": len(points)}
    with tempfile.TemporaryDirectory() as folder:
        pose, video = Path(folder) / "me.pose", Path(folder) / "me.mp4"
        axis = TimeAxis(np.arange(len(points), dtype=np.float64) * FRAME_MS)
        write_pose(SignerLandmarks(LandmarkTrack("me", axis, points), 256, 256), pose)
        with VideoWriter(video, width=256, height=256) as writer:
            frames = render_frames(performance.points, performance.mouth, performance.signer.appearance, None)
            for number, frame in enumerate(frames):
                writer.write(frame, number * FRAME_MS)
        network = LandmarkEmbedder(LandmarkEncoder().eval(), None, name="untrained")
        models: dict[str, tuple[Model, Path]] = {
            "landmarks": (LandmarkModel(network), pose),
            "world-v1": (load_model("world-v1"), video),
        }
        for name, (model, recording) in models.items():
            gallery = random_gallery(n_entries, model.dim)
            found[name] = timed(partial(look_up, recording, model, gallery))
    text = json.dumps(found, indent=1)
    print(text)
    if out is not None:
        out.write_text(text + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    main(given.entries, given.json)
