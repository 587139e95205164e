"""How fast body and hands are found in a video, needs the extra `pose`.

    python benchmarks/bench_landmarks.py [VIDEO] [--repeat 2] [--json FILE]

Without VIDEO: the real broadcast clip beside the project.

Decoding, the detector's start and the passing of pictures count. The claim: 15 frames a second or more on 2 cores.
Where "cpu" is far below twice the seconds, the machine was busy: "cpu ms a frame" tells what an idle one would do.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from signspot.embedding.detector import detector_name, find_landmarks

REAL_CLIP = Path(__file__).parents[2] / "shared" / "data" / "real_video" / "bsl_broadcast.mp4"


@dataclass(frozen=True)
class Result:
    video: str
    detector: str
    cores: int
    load_before: float  # processes waiting or running
    frames: int
    seconds: float
    frames_a_second: float
    cpu_seconds: float
    cpu_ms_a_frame: float
    pose_share: float
    hand_share: float


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(video: Path) -> Result:
    load, wall, cpu = os.getloadavg()[0], time.perf_counter(), cpu_seconds()
    points = find_landmarks(video).signer.track.points
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return Result(
        video=video.name,
        detector=detector_name(),
        cores=len(os.sched_getaffinity(0)),
        load_before=round(load, 1),
        frames=len(points),
        seconds=round(wall, 2),
        frames_a_second=round(len(points) / wall, 1),
        cpu_seconds=round(cpu, 2),
        cpu_ms_a_frame=round(1000 * cpu / len(points), 1),
        pose_share=float(points[:, :132].any(axis=1).mean()),
        hand_share=float(points[:, 132:].any(axis=1).mean()),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("video", type=Path, nargs="?", default=REAL_CLIP)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if importlib.util.find_spec("mediapipe") is None or not options.video.exists():
        print("landmarks: not measured; it needs pip install '.[pose]' and a video")
        return
    results = [asdict(measure(options.video)) for _ in range(options.repeat)]
    print(json.dumps(results, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
