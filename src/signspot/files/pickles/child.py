"""The process that reads one pickle, and nothing else: `python -m signspot.files.pickles.child KIND LIMITS...`.

The pickle comes as standard input, so the child is told no path. The result goes to the working folder, an empty one.
"""

from __future__ import annotations

import errno
import os
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
    close,
    leave_network,
    limit_time_and_disk,
    read_plain,
)

REASON = "reason.txt"
REFUSED, DISK_FULL = 3, 4  # exit codes
_WRITABLE = frozenset({STRUCTURE, ARRAYS, REASON})


def main(words: list[str]) -> int:
    kind, is_python2, limits = Kind(words[0]), words[1] == "python2", Limits(*map(int, words[2:5]))
    limit_time_and_disk(limits)
    leave_network()
    if kind.is_torch:
        import torch  # noqa: F401  # before the fence closes, and only where it is needed
    close(limits, _WRITABLE)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
