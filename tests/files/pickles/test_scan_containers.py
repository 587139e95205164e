"""The fence is tried in a process of its own: it cannot be opened again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TRIES = """
import ctypes, os, resource, shutil, socket, subprocess, sys
from pathlib import Path
from signspot.files.pickles.child import _close, _leave_network, _limit_time_and_disk
from signspot.files.pickles.scan import Limits, Refused

limits = Limits(memory_bytes=100_000_000, cpu_seconds=20, output_bytes=1000)
_limit_time_and_disk(limits)
before = os.readlink("/proc/self/ns/net")
_leave_network()
moved = before != os.readlink("/proc/self/ns/net")
interfaces = Path("/proc/net/dev").read_text().count(":")
_close(limits, frozenset({"allowed"}))

def tried(action):
    try:
        action()
    except (Refused, MemoryError, OSError) as error:
        return f"{type(error).__name__} {error}"
    return "done"

for name, action in {
    "socket": lambda: socket.socket(),
    "system": lambda: os.system("touch canary"),
    "fork": lambda: os.fork(),
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "popen": lambda: subprocess.Popen(["true"]),
    "library": lambda: ctypes.CDLL(None),
    "rename": lambda: os.rename("kept", "gone"),
    "remove": lambda: os.remove("kept"),
    "foreign file": lambda: open("canary", "w"),
    "memory": lambda: bytearray(300_000_000),
    "some memory": lambda: bytearray(30_000_000),
    "own file": lambda: Path("allowed").write_text("x" * 900),
    "long file": lambda: Path("allowed").write_text("x" * 100_000),
    "core": lambda: print(resource.getrlimit(resource.RLIMIT_CORE)),
}.items():
    print(name, "->", tried(action))
print("moved", moved, "interfaces", interfaces)
"""


def test_inside_the_fence_there_is_no_program_no_network_and_little_memory(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", TRIES], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    said = dict(line.split(" -> ") for line in done.stdout.splitlines() if " -> " in line)
    for name in ("socket", "system", "fork", "exec", "spawn", "popen", "library", "rename", "remove", "foreign file"):
        assert said[name].startswith("Refused tried"), name
    assert said["memory"].startswith("MemoryError")
    assert said["some memory"] == said["own file"] == "done"
    assert "File too large" in said["long file"]
    assert "(0, 0)" in done.stdout
    # Where the system permits it, only the loopback of an empty network is left.
    assert "moved False" in done.stdout or "moved True interfaces 1" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["allowed", "kept"]
