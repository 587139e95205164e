"""Memory does not grow with the length of a video: the benchmark that shows it, for lengths that fit a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.embedding.test_pictures_extract import write_noise

BENCH = Path(__file__).parents[2] / "benchmarks" / "bench_memory.py"


def peaks(folder: Path, *options: str) -> list[float]:
    """In MB, by length; the benchmark fails by itself where memory grows."""
    command = [sys.executable, str(BENCH), *options, "--json", str(folder / "usage.json")]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return [usage["peak_mb"] for usage in json.loads((folder / "usage.json").read_text())]


def test_a_video_ten_times_as_long_takes_no_more_memory(tmp_path: Path) -> None:
    """Nine minutes more are 13,500 windows: 55 MB of vectors of the trunk, if anything held them."""
    short, long = peaks(tmp_path, "--minutes", "1", "10")
    assert long < short + 16


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("model", ["means", "i3d"])
def test_two_hours_take_no_more_memory_than_two_minutes(tmp_path: Path, model: str) -> None:
    short, long = peaks(tmp_path, "--minutes", "2", "120", "--model", model)
    assert long < short + 16
    assert long < 1000


FULL_SIZE = """
import re, sys
from pathlib import Path
from signspot.domain.recordings import Episode
from signspot.embedding.pictures import embed_video
from signspot.models.backends import choose_backend
from signspot.models.embedders import EmbedderSettings, VideoEmbedder
from signspot.models.i3d import I3D

model = VideoEmbedder(I3D(), None, EmbedderSettings(name="full", backend=choose_backend()))
track = embed_video(Episode(video_id="noise", video=Path(sys.argv[1])), model).track
# Not ru_maxrss: a new process inherits that of the one that started it.
(peak_kb,) = re.findall(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(len(track.grid), int(peak_kb) * 1024)
"""


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_full_network_takes_less_than_a_gigabyte(tmp_path: Path) -> None:
    """Without the process that decodes; a longer video takes no more."""
    peak_bytes = []
    for n_frames in (60, 120):  # both longer than what the stages keep between them
        video = write_noise(tmp_path / f"{n_frames}.mp4", n_frames)
        done = subprocess.run([sys.executable, "-c", FULL_SIZE, str(video)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        n_windows, peak = map(int, done.stdout.split())
        assert n_windows == n_frames - 15
        peak_bytes.append(peak)
    assert peak_bytes[1] < peak_bytes[0] + 16e6
    assert max(peak_bytes) < 1e9
