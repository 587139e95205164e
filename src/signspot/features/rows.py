"""Rows of vectors on the disk: however many a video has, memory stays flat.

Rows are written as they come and read back as a memory map. A file with a name outlives the program that wrote it: it
keeps a checksum of every block, so that another run goes on after the last block that is sound.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from signspot.atomic import explained, take_lock
from signspot.domain.tracks import FloatArray, Vectors

ROWS_SUFFIXES = (".rows", ".sums")
BLOCK_ROWS = 64  # rows that are written, and may be lost, together
_ROWS_AT_ONCE = 4096
_SUM_BYTES = 4


class RowFile:
    """A growing file of rows (n, dim), float16 or float32; without a path it is gone when nothing uses it any more."""

    def __init__(self, dim: int, dtype: npt.DTypeLike = np.float32, path: Path | None = None) -> None:
        self.dim, self._dtype, self._path = dim, np.dtype(dtype), path
        self._waiting: list[npt.NDArray[Any]] = []  # rows of an unfinished block
        self._n_rows = 0  # those of finished blocks
        with self._explained():
            self._file = tempfile.TemporaryFile() if path is None else _opened(path)  # noqa: SIM115 (close)
            self._sums = tempfile.TemporaryFile() if path is None else _opened(sums_path(path))  # noqa: SIM115
        try:
            with self._explained():
                if path is not None and not take_lock(self._file):  # BlockingIOError: somebody else writes it
                    for new in (path, sums_path(path)):
                        if not new.stat().st_size:
                            new.unlink()
                    raise BlockingIOError(errno.EWOULDBLOCK, "nobody can tell whether somebody else writes it")
                self._keep_sound_blocks()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._n_rows + sum(map(len, self._waiting))

    @property
    def n_safe(self) -> int:
        """How many rows the next run would find."""
        return max(0, self._n_rows - BLOCK_ROWS) if self._path is not None else 0

    def close(self) -> None:
        """Let go of the file; maps of its rows stay usable."""
        for file in (self._file, self._sums):
            with suppress(OSError):  # what could not be written has been told, and closing tries it once more
                file.close()

    def append(self, rows: FloatArray) -> None:
        """Add rows (n, dim)."""
        with np.errstate(over="ignore"):  # what a half cannot hold is infinite, and refused where it matters
            self._waiting.append(np.array(rows, self._dtype))
        if sum(map(len, self._waiting)) < BLOCK_ROWS:
            return
        waiting = np.concatenate(self._waiting)
        n_whole = len(waiting) // BLOCK_ROWS * BLOCK_ROWS
        self._waiting = [waiting[n_whole:]]
        for first in range(0, n_whole, BLOCK_ROWS):
            self._write(waiting[first : first + BLOCK_ROWS])

    def mapped(self) -> Vectors:
        """All rows (n, dim), read-only; nothing may be appended any more."""
        if self._waiting:
            self._write(np.concatenate(self._waiting))
            self._waiting = []
        return mapped_rows(self._file, (self._n_rows, self.dim), self._dtype)

    def _write(self, block: npt.NDArray[Any]) -> None:
        content = block.tobytes()
        with self._explained():
            self._file.write(content)
            self._file.flush()
            if len(block) == BLOCK_ROWS:
                self._sums.write(zlib.crc32(content).to_bytes(_SUM_BYTES, "little"))
                self._sums.flush()
        self._n_rows += len(block)

    def _keep_sound_blocks(self) -> None:
        """Go to the end of what an earlier run left; the last block is written again.

        That one may hold the last window of the video, which is pulled back and so is no start for those that follow.
        """
        block_bytes = BLOCK_ROWS * self.dim * self._dtype.itemsize
        n_sound = 0
        while (block := self._file.read(block_bytes)) and len(block) == block_bytes:
            if self._sums.read(_SUM_BYTES) != zlib.crc32(block).to_bytes(_SUM_BYTES, "little"):
                break
            n_sound += 1
        n_kept = max(0, n_sound - 1)
        for file, n_bytes in ((self._file, n_kept * block_bytes), (self._sums, n_kept * _SUM_BYTES)):
            file.seek(n_bytes)
            file.truncate()
        self._n_rows = n_kept * BLOCK_ROWS

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:
            raise
        except OSError as error:
            raise explained(error, self._path or Path(tempfile.gettempdir())) from error


def sums_path(path: Path) -> Path:
    """Where the checksums of a file of rows are."""
    return path.with_suffix(".sums")


def mapped_rows(file: BinaryIO, shape: tuple[int, int], dtype: npt.DTypeLike, offset: int = 0) -> npt.NDArray[Any]:
    """Rows of an open file as a read-only memory map, which outlives the file object."""
    if not shape[0] * shape[1]:
        return np.empty(shape, dtype)
    length = offset + shape[0] * shape[1] * np.dtype(dtype).itemsize
    mapping = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)
    return np.ndarray(shape, dtype, mapping, offset)


def row_blocks(rows: Vectors) -> Iterator[Vectors]:
    """The rows a few thousand at a time; what has been seen of a memory map leaves the memory again."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        yield rows[first : first + _ROWS_AT_ONCE]
        if isinstance(rows.base, mmap.mmap):
            rows.base.madvise(mmap.MADV_DONTNEED)  # the kernel still has it, and gives it back if need be


def _opened(path: Path) -> BinaryIO:
    # Embeddings of people are nobody else's business.
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
