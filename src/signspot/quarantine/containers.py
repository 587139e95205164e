"""What kind of file a pickle comes in, told by its bytes; the name of a file says nothing.

torch writes a zip archive (since 1.6), or five pickles followed by raw numbers (before). Metadata is a bare pickle.
"""

from __future__ import annotations

import io
import re
import struct
import tarfile
import zipfile
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO

from signspot.errors import readable_size

MAX_BYTES = 2 * 1024**3
MAX_PICKLE_BYTES = 512 * 1024**2  # of a bare pickle: the largest one known has 148 MB
MAX_TORCH_PICKLE_BYTES = 64 * 1024**2  # of the pickle beside the numbers: 100 bytes a tensor in practice

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
        """Whether torch wrote it."""
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
    """Tell what `file` (at its start, `n_bytes` long) is, or refuse it."""
    if not n_bytes:
        raise Refused("is empty")
    if n_bytes > MAX_BYTES:
        raise Refused(f"has {readable_size(n_bytes)}, more than the {readable_size(MAX_BYTES)} allowed")
    start = file.read(512)
    file.seek(0)
    if start.startswith(b"PK"):
        return Container(Kind.ZIP, PickleStream(_zipped_pickle(file, n_bytes)), 1)
    if start.startswith(_LEGACY_MAGIC):
        return Container(Kind.LEGACY, PickleStream(file.read(MAX_TORCH_PICKLE_BYTES)), _LEGACY_PICKLES)
    _refuse_other_formats(start)
    if n_bytes > MAX_PICKLE_BYTES:
        allowed = readable_size(MAX_PICKLE_BYTES)
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
    """The `data.pkl` of an archive that torch.save could have written."""
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
    if any(r.filename.endswith("/data.pkl") and r.file_size > MAX_TORCH_PICKLE_BYTES for r in records):
        raise Refused("holds a pickle too long for a list of tensors")
