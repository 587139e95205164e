"""The fence around the process that reads a pickle: no network, no new programs, little memory, time and disk."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

from signspot.quarantine.containers import Refused

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_FORBIDDEN_EVENTS = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.kill",
    "os.remove",
    "os.rename",
    "os.link",
    "os.symlink",
    "os.chmod",
    "pty.",
    "ctypes.",
    "shutil.",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, slots=True)
class Limits:
    """What the child may use."""

    memory_bytes: int  # beyond what its libraries take
    cpu_seconds: int
    output_bytes: int  # of each file it writes

    def as_words(self) -> list[str]:
        """For the command line of the child."""
        return [str(self.memory_bytes), str(self.cpu_seconds), str(self.output_bytes)]


def limit_time_and_disk(limits: Limits) -> None:
    """Hold from the start, also while torch is imported."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    _lower(resource.RLIMIT_FSIZE, limits.output_bytes)


def leave_network() -> None:
    """Move to a network of its own, with nothing in it, where the system permits that (Linux)."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.unshare(_CLONE_NEWNET) != 0:
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)  # an ordinary user; where this fails too, the audit hook remains


def close(limits: Limits, writable: frozenset[str]) -> None:
    """Hold from now on, when all libraries are loaded and nothing of the file has been read."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        in_use = int(statm.read_text().split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, in_use + limits.memory_bytes)
    _lower(resource.RLIMIT_NPROC, 0)

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        if event.startswith(_FORBIDDEN_EVENTS):
            raise Refused(f"tried {event}")
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if writes and str(arguments[0]) not in writable:
            raise Refused("tried to write a file")

    sys.addaudithook(refuse)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (lowest, lowest))
