"""Memory while vectors of long videos are computed and kept: it must not grow with their length.

python benchmarks/bench_memory.py [--minutes 2 120] [--model means|i3d] [--picture F.png] [--json F.json]

For each length a video is generated and goes through a trunk, a store and a head, in a process of its own. The memory
of that process and of its decoding process is sampled all the while: everything resident, so also what the kernel could
take back at any time. Fails if the longest video takes more than a few MB beyond the shortest (its times of frames: 8
bytes each, some of them twice), or if memory still rises while it is read.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from signspot.models.embedders import VideoEmbedder

FRAMES_PER_MINUTE = 25 * 60
SIDE = 64
ALLOWED_MB = 16.0  # more than the shortest video: frame times, the index of the file in the decoder, noise
ALLOWED_MB_PER_HOUR = 8.0  # while one video is read
SAMPLE_SECONDS = 0.2


@dataclass(frozen=True)
class Usage:
    """What one video took; seconds and MB of every sample."""

    minutes: float
    windows: int
    seconds: float
    peak_mb: float
    seen_seconds: list[float] = field(repr=False)
    seen_mb: list[float] = field(repr=False)

    @property
    def mb_per_hour(self) -> float:
        """How much memory rises for an hour of video, while it is read: not while libraries load, nor after the end."""
        share = np.array(self.seen_seconds) / self.seconds
        is_reading = (share > 0.2) & (share < 0.85)
        hours = share[is_reading] * self.minutes / 60
        return float(np.polyfit(hours, np.array(self.seen_mb)[is_reading], 1)[0]) if len(hours) > 2 else 0.0


def generate(path: Path, minutes: float) -> None:
    """A still picture that jumps every second: quick to encode, and windows differ."""
    import av

    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (50, 8, 8, 3), np.uint8).repeat(SIDE // 8, axis=1).repeat(SIDE // 8, axis=2)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "ultrafast", "threads": "1", "g": "250"})
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        frames = [av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p") for pixels in pictures]
        for number in range(round(minutes * FRAMES_PER_MINUTE)):
            frame = frames[number // 25 % len(frames)]
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


class MeansModel:
    """A trunk of 1024 numbers that costs next to nothing: what is left is the memory of everything around it."""

    name, fingerprint, trunk_fingerprint, backend = "means", "means and head", "means", "numpy"
    dim, trunk_dim, threshold = 256, 1024, 0.5

    def __init__(self) -> None:
        from signspot.domain.tracks import FrameShape

        rng = np.random.default_rng(0)
        self.frame_shape = FrameShape(SIDE // 2, SIDE // 2)
        self._trunk = rng.normal(size=(16 * 4 * 3, self.trunk_dim)).astype(np.float32)
        self._head = rng.normal(size=(self.trunk_dim, self.dim)).astype(np.float32)

    def trunk_vectors(self, clips: np.ndarray) -> np.ndarray:
        few = clips[:, :, :: SIDE // 4, :: SIDE // 4].reshape(len(clips), -1)
        return (few.astype(np.float32) / 255) @ self._trunk

    def head_vectors(self, vectors: np.ndarray) -> np.ndarray:
        rows = vectors @ self._head
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def of_dictionary(self) -> MeansModel:
        return self


def narrow_i3d() -> VideoEmbedder:
    """The real network, real sharing, at a twentieth of the width."""
    import torch

    from signspot.domain.tracks import FrameShape
    from signspot.models.embedders import EmbedderSettings, VideoEmbedder
    from signspot.models.head import Head, HeadConfig
    from signspot.models.i3d import I3D, I3DConfig

    torch.manual_seed(0)
    torch.set_num_threads(1)
    trunk = I3D(I3DConfig(classes=3, width=0.05))
    head = Head(HeadConfig(input_dim=trunk.embedding_dim, hidden_dim=64, embedding_dim=256))
    return VideoEmbedder(trunk, head, EmbedderSettings(name="narrow", frame_shape=FrameShape(SIDE // 2, SIDE // 2)))


def resident_mb() -> float:
    """Of this process and its children."""
    me = os.getpid()
    pages = 0
    children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    for process in (str(me), *children):
        try:
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
    return pages * resource.getpagesize() / 2**20


def measure(video: Path, minutes: float, kind: str) -> Usage:
    """Embed one video as `signspot embed` does, watching."""
    from signspot.domain.recordings import Episode
    from signspot.embedding.model import Reading
    from signspot.embedding.pictures import PictureModel

    seconds: list[float] = []
    megabytes: list[float] = []
    is_over = threading.Event()
    network = MeansModel() if kind == "means" else narrow_i3d()
    started = time.monotonic()

    def watch() -> None:
        while not is_over.wait(SAMPLE_SECONDS):
            seconds.append(time.monotonic() - started)
            megabytes.append(resident_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with tempfile.TemporaryDirectory(dir=video.parent) as folder:
            reading = Reading(store=Path(folder))
            made = PictureModel(network).track(Episode(video_id="long", video=video), reading)
            n_windows = len(made.track.grid)
    finally:
        is_over.set()
        watcher.join()
    return Usage(minutes, n_windows, time.monotonic() - started, max(megabytes), seconds, megabytes)


def measured_alone(minutes: float, kind: str, folder: Path) -> Usage:
    """In a process of its own, so that nothing of an earlier video is counted."""
    video = folder / f"{minutes:g}.mp4"
    generate(video, minutes)
    command = [sys.executable, __file__, "--one", str(video), "--minutes", str(minutes), "--model", kind]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    video.unlink()
    return Usage(**json.loads(done.stdout))


def faults(usages: list[Usage]) -> list[str]:
    """In words: what grows."""
    shortest, longest = usages[0], usages[-1]
    found = []
    if longest.peak_mb > shortest.peak_mb + ALLOWED_MB:
        found.append(f"{longest.minutes:g} minutes take {longest.peak_mb - shortest.peak_mb:.0f} MB more")
    # A slope needs length: over minutes, a single MB of noise is many MB an hour.
    if longest.minutes >= 60 and longest.mb_per_hour > ALLOWED_MB_PER_HOUR:
        found.append(f"memory rises by {longest.mb_per_hour:.1f} MB for an hour of video")
    return found


def draw(usages: list[Usage], kind: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for usage in usages:
        share = np.array(usage.seen_seconds) / usage.seconds
        axes.plot(share * 100, usage.seen_mb, label=f"{usage.minutes:g} minutes, {usage.windows:,} windows", lw=1.2)
    axes.set(xlabel="% of the video done", ylabel="resident memory, MB", ylim=(0, None))
    trunk = "1024 sums of a few pixels" if kind == "means" else "a narrow I3D"
    axes.set_title(f"Memory does not grow with the length of the video (trunk: {trunk})", fontsize=10)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, nargs="+", default=[2, 120])
    parser.add_argument("--model", choices=("i3d", "means"), default="means")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        json.dump(asdict(measure(options.one, options.minutes[0], options.model)), sys.stdout)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        usages = [measured_alone(minutes, options.model, Path(folder)) for minutes in sorted(options.minutes)]
    for usage in usages:
        pace = usage.windows / usage.seconds
        print(f"{usage.minutes:6g} min {usage.windows:8} windows {pace:7.0f}/s  peak {usage.peak_mb:6.0f} MB", end="  ")
        print(f"{usage.mb_per_hour:+.1f} MB for an hour of video")
    if options.picture:
        draw(usages, options.model, options.picture)
    if options.json:
        options.json.write_text(json.dumps([asdict(usage) for usage in usages]))
    for fault in faults(usages):
        print(f"memory grows: {fault}", file=sys.stderr)
    return 1 if faults(usages) else 0


if __name__ == "__main__":
    sys.exit(main())
