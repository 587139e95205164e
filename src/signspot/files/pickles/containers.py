"""What kind of file a pickle comes in, told by its bytes; the name of a file says nothing.

torch writes a zip archive (since 1.6), or five pickles followed by raw numbers (before). Metadata is a bare pickle.
"""

from __future__ import annotations

import ctypes
import io
import os
import re
import resource
import struct
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from signspot.errors import readable_size

MAX_BYTES = 2 * 1024**3
_MAX_PICKLE_BYTES = 512 * 1024**2  # of a bare pickle: the largest one known has 148 MB
_MAX_TORCH_PICKLE_BYTES = 64 * 1024**2  # of the pickle beside the numbers: 100 bytes a tensor in practice

_LEGACY_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LEGACY_PICKLES = 5  # magic number, version, system, the object, the keys of its numbers
_MAX_LINE_BYTES = 64 * 1024
_MAX_DIRECTORY_BYTES = 32 * 1024**2
_TORCH_RECORD = re.compile(
    r"data\.pkl|data/\d+|version|byteorder|\.data/serialization_id|\.format_version|\.storage_alignment"
)
# BINFLOAT, BININT1, BININT2, BININT, each with an argument of fixed length.
_NUMBERS = re.compile(rb"(?s:G.{8}|K.|M..|J.{4}){0,1000}+")
_NOT_PICKLES = {
    b"\x1f\x8b": "is compressed with gzip",
    b"BZh": "is compressed with bzip2",
    b"\xfd7zXZ": "is compressed with xz",
    b"\x89HDF": "is an HDF5 file",
    b"<": "is a web page or XML, not a pickle",
    b"version https://git-lfs": "is a Git LFS pointer, not the file itself",
}


class Refused(Exception):
    """A file is not let in; the text says why."""


class Kind(StrEnum):
    """How a pickle is stored."""

    ZIP = "zip pickle"
    LEGACY = "legacy pickle"
    BARE = "bare pickle"

    @property
    def is_torch(self) -> bool:
        return self is not Kind.BARE


class PickleStream(io.BytesIO):
    """The bytes of one or more pickles, read one instruction after the other."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._content = content

    def readline(self, size: int | None = -1) -> bytes:
        """One line, cut where it is too long to be a name or a number."""
        return super().readline(_MAX_LINE_BYTES)

    def skip_numbers(self) -> None:
        """Pass over instructions that push a plain number: a file of lists of floats holds millions of them."""
        run = _NUMBERS.match(self._content, self.tell())
        if run is not None:
            self.seek(run.end())


@dataclass(frozen=True, slots=True)
class Container:
    """One file, and where its pickles are."""

    kind: Kind
    pickles: PickleStream
    n_pickles: int  # one after the other


def open_container(file: BinaryIO, n_bytes: int) -> Container:
    if not n_bytes:
        raise Refused("is empty")
    if n_bytes > MAX_BYTES:
        raise Refused(f"has {readable_size(n_bytes)}, more than the {readable_size(MAX_BYTES)} allowed")
    start = file.read(512)
    file.seek(0)
    if start.startswith(b"PK"):
        return Container(Kind.ZIP, PickleStream(_zipped_pickle(file, n_bytes)), 1)
    if start.startswith(_LEGACY_MAGIC):
        return Container(Kind.LEGACY, PickleStream(file.read(_MAX_TORCH_PICKLE_BYTES)), _LEGACY_PICKLES)
    _refuse_other_formats(start)
    if n_bytes > _MAX_PICKLE_BYTES:
        allowed = readable_size(_MAX_PICKLE_BYTES)
        raise Refused(f"is a bare pickle of {readable_size(n_bytes)}, more than the {allowed} allowed")
    return Container(Kind.BARE, PickleStream(file.read(n_bytes)), 1)


def is_pickle(start: bytes) -> bool:
    """Whether a file that starts so is a pickle, or an archive that holds one."""
    return start.startswith(b"PK") or (start[:1] == b"\x80" and not is_safetensors(start))


def is_safetensors(start: bytes) -> bool:
    """Whether a file that starts so is a safetensors file: the length of a header below 4 GB, then the header."""
    return start[4:9] == b"\0\0\0\0{"


def _refuse_other_formats(start: bytes) -> None:
    for magic, reason in _NOT_PICKLES.items():
        if start.lstrip().startswith(magic):
            raise Refused(reason)
    if is_safetensors(start):
        raise Refused("is a safetensors file, which needs no quarantine")
    try:
        tarfile.TarInfo.frombuf(start, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return
    raise Refused("is a tar archive, a form that lets a file run code")


def _zipped_pickle(file: BinaryIO, n_bytes: int) -> bytes:
    try:
        _refuse_long_directory(file, n_bytes)
        with zipfile.ZipFile(file) as archive:
            records = archive.infolist()
            _refuse_strange_records([record.filename for record in records])
            _refuse_bombs(records, n_bytes)
            return archive.read(next(r for r in records if r.filename.endswith("/data.pkl")))
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, KeyError, struct.error, RuntimeError) as error:
        raise Refused(f"is a damaged zip archive ({error})") from error


def _refuse_long_directory(file: BinaryIO, n_bytes: int) -> None:
    """The list of records is read into memory whole, so its length is checked first."""
    file.seek(max(0, n_bytes - 98))
    tail = file.read()
    file.seek(0)
    if tail[-22:-18] != b"PK\x05\x06":
        raise Refused("is a zip archive that is cut off, or has something after its end")
    (length,) = struct.unpack("<L", tail[-10:-6])
    if length == 0xFFFFFFFF and tail[-98:-94] == b"PK\x06\x06":
        (length,) = struct.unpack("<Q", tail[-58:-50])
    if length > _MAX_DIRECTORY_BYTES:
        raise Refused(f"is a zip archive with a directory of {readable_size(length)}")


def _refuse_strange_records(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise Refused("is a zip archive that holds two records of one name")
    folders = {name.partition("/")[0] for name in names}
    inside = {name.partition("/")[2] for name in names}
    if any(name == "constants.pkl" or name.startswith("code/") for name in inside):
        raise Refused("is a TorchScript archive, a program and not only weights")
    if "data.pkl" not in inside or len(folders) != 1:
        raise Refused("is a zip archive, but not one that torch.save wrote")
    for name in sorted(inside):
        if not _TORCH_RECORD.fullmatch(name):
            raise Refused(f"holds {name!r}, which no file of weights has")


def _refuse_bombs(records: list[zipfile.ZipInfo], n_bytes: int) -> None:
    """torch never compresses, so an honest archive is as long as what it holds."""
    unpacked = sum(record.file_size for record in records)
    packed = any(record.compress_type != zipfile.ZIP_STORED for record in records)
    if packed or unpacked > n_bytes:
        ratio = unpacked / n_bytes
        raise Refused(f"is a zip archive of {readable_size(n_bytes)} that would unpack {ratio:.1f} times as much")
    if any(r.filename.endswith("/data.pkl") and r.file_size > _MAX_TORCH_PICKLE_BYTES for r in records):
        raise Refused("holds a pickle too long for a list of tensors")


# The fence around the process that reads a pickle: no network, no new programs, little memory, time and disk.

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_FORBIDDEN_EVENTS = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill", "os.remove",
    "os.rename", "os.link", "os.symlink", "os.chmod", "pty.", "ctypes.", "shutil.",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, slots=True)
class Limits:
    """What the child may use."""

    memory_bytes: int  # beyond what its libraries take
    cpu_seconds: int
    output_bytes: int  # of each file it writes


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
