"""Memory does not grow with the length of a video: the benchmark that shows it, for lengths that fit a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
