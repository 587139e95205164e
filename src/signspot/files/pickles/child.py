"""The process that reads one pickle, and nothing else: `python -m signspot.files.pickles.child KIND LIMITS...`.

The pickle comes as standard input, so the child is told no path. The result goes to the working folder, an empty one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import sys
from pathlib import Path
from typing import BinaryIO

from signspot.errors import readable_size
from signspot.files.pickles.scan import (
    ARRAYS,
    STRUCTURE,
    SWALLOWED,
    Encoder,
    Kind,
    Limits,
    Opaque,
    Refused,
    Swallowed,
    read_plain,
)

REASON = "reason.txt"
REFUSED, DISK_FULL = 3, 4  # exit codes
_WRITABLE = frozenset({STRUCTURE, ARRAYS, REASON})


def main(words: list[str]) -> int:
    kind, is_python2, limits = Kind(words[0]), words[1] == "python2", Limits(*map(int, words[2:5]))
    _limit_time_and_disk(limits)
    _leave_network()
    if kind.is_torch:
        import torch  # noqa: F401  # before the fence closes, and only where it is needed
    _close(limits, _WRITABLE)
    try:
        with open(0, "rb", closefd=False) as file:
            file.seek(0)
            size = os.fstat(0).st_size
            encoder = Encoder(size, leaf=_tensor_or_type) if kind.is_torch else Encoder(size, is_python2)
            tree = _torch_tree(file) if kind.is_torch else read_plain(file, is_python2=is_python2)
        encoder.write(encoder.encode(tree), Path())
    except Exception as error:  # the border of the process: whatever a hostile file provokes becomes one sentence
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return DISK_FULL
        Path(REASON).write_text(_reason(error, limits)[:400], encoding="utf-8", errors="replace")
        return REFUSED
    return 0


def _reason(error: Exception, limits: Limits) -> str:
    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return f"needs more than the {readable_size(limits.memory_bytes)} of memory a file of this length may take"
    return f"cannot be read ({type(error).__name__}: {error})"


def _torch_tree(file: BinaryIO) -> object:
    import torch

    swallowed = [(Swallowed, name) for name in SWALLOWED]
    with torch.serialization.safe_globals(swallowed):  # type: ignore[arg-type]  # pairs of class and name are allowed
        return torch.load(file, map_location="cpu", weights_only=True)


def _tensor_or_type(value: object) -> object:
    """A dense tensor as an array; of anything else only the type."""
    import torch

    if not isinstance(value, torch.Tensor):
        return Opaque(type(value).__name__)
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise Refused("holds a tensor with fewer numbers than its shape has places")
    dense = value.detach().float() if value.dtype == torch.bfloat16 else value.detach()
    return dense.contiguous().numpy()


# The fence around the process that reads a pickle: no network, no new programs, little memory, time and disk.

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_FORBIDDEN_EVENTS = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill", "os.remove",
    "os.rename", "os.link", "os.symlink", "os.chmod", "pty.", "ctypes.", "shutil.",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _limit_time_and_disk(limits: Limits) -> None:
    """Hold from the start, also while torch is imported."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    _lower(resource.RLIMIT_FSIZE, limits.output_bytes)


def _leave_network() -> None:
    """Move to a network of its own, with nothing in it, where the system permits that (Linux)."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.unshare(_CLONE_NEWNET) != 0:
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)  # an ordinary user; where this fails too, the audit hook remains


def _close(limits: Limits, writable: frozenset[str]) -> None:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
