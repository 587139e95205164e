"""Reading the instructions of a pickle without following them.

The scan lists every name the pickle would import. It fails closed: a name put together at run time, an instruction that
plain data does not need, or bytes that are no instruction are all reasons to refuse.

What kind of file a pickle comes in, told by its bytes; the name of a file says nothing.

torch writes a zip archive (since 1.6), or five pickles followed by raw numbers (before). Metadata is a bare pickle.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import pickletools
import re
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

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
_NUMBER_RUN = re.compile(rb"(?s:G.{8}|K.|M..|J.{4}){0,1000}+")
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


class _PickleStream(io.BytesIO):
    """The bytes of one or more pickles, read one instruction after the other."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._content = content

    def readline(self, size: int | None = -1) -> bytes:
        """One line, cut where it is too long to be a name or a number."""
        return super().readline(_MAX_LINE_BYTES)

    def skip_numbers(self) -> None:
        """Pass over instructions that push a plain number: a file of lists of floats holds millions of them."""
        run = _NUMBER_RUN.match(self._content, self.tell())
        if run is not None:
            self.seek(run.end())


@dataclass(frozen=True, slots=True)
class _Container:
    """One file, and where its pickles are."""

    kind: Kind
    pickles: _PickleStream
    n_pickles: int  # one after the other

    def scan(self) -> Findings:
        findings = Findings()
        allowed = _TORCH if self.kind.is_torch else _PLAIN
        for _ in range(self.n_pickles):
            if not findings.strange:
                _scan_one(self.pickles, allowed, _MOST_INSTRUCTIONS[self.kind], findings)
        return findings


def open_container(file: BinaryIO, n_bytes: int) -> _Container:
    if not n_bytes:
        raise Refused("is empty")
    if n_bytes > MAX_BYTES:
        raise Refused(f"has {readable_size(n_bytes)}, more than the {readable_size(MAX_BYTES)} allowed")
    start = file.read(512)
    file.seek(0)
    if start.startswith(b"PK"):
        return _Container(Kind.ZIP, _PickleStream(_zipped_pickle(file, n_bytes)), 1)
    if start.startswith(_LEGACY_MAGIC):
        return _Container(Kind.LEGACY, _PickleStream(file.read(_MAX_TORCH_PICKLE_BYTES)), _LEGACY_PICKLES)
    _refuse_other_formats(start)
    if n_bytes > _MAX_PICKLE_BYTES:
        allowed = readable_size(_MAX_PICKLE_BYTES)
        raise Refused(f"is a bare pickle of {readable_size(n_bytes)}, more than the {allowed} allowed")
    return _Container(Kind.BARE, _PickleStream(file.read(n_bytes)), 1)


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


@dataclass(frozen=True, slots=True)
class Limits:
    """What the child may use."""

    memory_bytes: int  # beyond what its libraries take
    cpu_seconds: int
    output_bytes: int  # of each file it writes


# Reading a bare pickle of plain data: every name it may use gets a harmless stand-in of ours. No function of numpy or
# of the standard library is ever reached through the file: an array is put together here, from its bytes, after its
# shape and type were checked.

_DTYPE = re.compile(r"b1|[iu][1248]|f[248]|[SU]\d{1,5}|O8?")
_MAX_DIMENSIONS = 32


class _PickledDtype:
    """numpy.dtype: a code such as f4 and, as its state, a byte order."""

    def __init__(self, code: str | bytes = "", *_: object) -> None:
        text = _text(code)
        if not _DTYPE.fullmatch(text):
            raise Refused(f"holds an array of type {text[:40]!r}, which is neither numbers nor text")
        self.code, self.order = text, "<"

    def __setstate__(self, state: tuple[object, ...]) -> None:
        order = _text(state[1])
        self.order = order if order in ("<", ">") else "<"

    @property
    def is_object(self) -> bool:
        return self.code.startswith("O")

    def array(self, content: object, shape: object, *, fortran: bool = False) -> npt.NDArray[np.generic]:
        dtype = np.dtype(self.order + self.code)
        sizes = _shape(shape)
        content = content.encode("latin1") if isinstance(content, str) else content
        if not isinstance(content, bytes | bytearray) or len(content) != math.prod(sizes) * dtype.itemsize:
            raise Refused(f"holds an array of shape {sizes} without the numbers for it")
        flat = np.frombuffer(content, dtype) if content else np.empty(0, dtype)
        return flat.reshape(sizes, order="F" if fortran else "C").astype(dtype.newbyteorder("="), order="C")


class _PickledArray:
    """numpy.ndarray: empty until its state arrives."""

    def __init__(self, *_: object) -> None:
        self.value: object = None

    def __setstate__(self, state: tuple[object, ...]) -> None:
        shape, dtype, fortran, content = state[-4:]
        if not isinstance(dtype, _PickledDtype):
            raise Refused("holds an array without a type")
        if not dtype.is_object:
            self.value = dtype.array(content, shape, fortran=bool(fortran))
        elif isinstance(content, list) and _shape(shape) == (len(content),):
            self.value = content  # a list in all but name; its elements passed this unpickler too
        else:
            raise Refused("holds an array of objects")


def _scalar(dtype: _PickledDtype, content: object = b"") -> object:
    if dtype.is_object:
        raise Refused("holds an array of objects")
    return dtype.array(content, ()).item()


def _from_buffer(content: object, dtype: _PickledDtype, shape: object, order: str) -> npt.NDArray[np.generic]:
    if dtype.is_object:
        raise Refused("holds an array of objects")
    return dtype.array(content, shape, fortran=order == "F")


def _encode(text: str, encoding: str = "") -> bytes:
    """How protocol 2 stores bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise Refused(f"wants the encoding {encoding!r}")
    return text.encode("latin1")


def _dict(pairs: Iterable[tuple[object, object]] = ()) -> dict[object, object]:
    return dict(pairs)


def _no_bytes() -> bytes:
    """How protocol 2 stores bytes of length zero; with a length as argument it would be a way to fill the memory."""
    return b""


_FACTORY = object()  # the default of a defaultdict: never called


def _table() -> dict[str, object]:
    arrays: dict[str, object] = {"numpy.dtype": _PickledDtype, "numpy.ndarray": _PickledArray}
    for core in ("numpy.core", "numpy._core"):
        arrays |= {f"{core}.multiarray._reconstruct": _PickledArray, f"{core}.multiarray.scalar": _scalar}
        arrays[f"{core}.numeric._frombuffer"] = _from_buffer
    plain: dict[str, object] = {"collections.OrderedDict": _dict, "collections.defaultdict": lambda *_: {}}
    plain["_codecs.encode"] = _encode
    for builtins in ("builtins", "__builtin__"):
        plain |= {f"{builtins}.{name}": lambda members=(): set(members) for name in ("set", "frozenset")}
        plain[f"{builtins}.bytes"] = _no_bytes
        plain |= {f"{builtins}.{name}": _FACTORY for name in ("list", "dict", "int", "float", "str")}
    return arrays | plain


_STAND_INS = _table()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if f"{module}.{name}" not in _STAND_INS:
            raise Refused(f"wants {module}.{name}")
        return _STAND_INS[f"{module}.{name}"]

    def persistent_load(self, pid: object) -> object:
        raise Refused("refers to something outside the file")


def read_plain(file: BinaryIO, *, is_python2: bool) -> object:
    """The plain data of a bare pickle; strings of Python 2 arrive as bytes."""
    return _PlainUnpickler(file, encoding="bytes" if is_python2 else "ASCII").load()


class Swallowed:
    """Stands for what a checkpoint holds beside its weights, such as a number of numpy: takes all and keeps nothing."""

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def _text(text: object) -> str:
    if isinstance(text, bytes):
        return text.decode("latin1")
    return text if isinstance(text, str) else ""


def _shape(shape: object) -> tuple[int, ...]:
    if (
        not isinstance(shape, tuple)
        or len(shape) > _MAX_DIMENSIONS
        or not all(type(size) is int and 0 <= size < 2**40 for size in shape)
    ):
        raise Refused("holds an array of impossible shape")
    return shape


_STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
# Beside the weights: numbers of numpy such as a best accuracy, sets. They are swallowed, never made.
SWALLOWED = frozenset(name for name in _STAND_INS if name.startswith("numpy."))
_TORCH_GLOBALS = SWALLOWED | {f"torch.{name}Storage" for name in _STORAGES}
_TORCH_GLOBALS |= {f"torch._utils._rebuild_{name}" for name in ("tensor", "tensor_v2", "parameter")}
_TORCH_GLOBALS |= {"collections.OrderedDict", "_codecs.encode", "torch.Size", "torch.device"}
_PLAIN_GLOBALS = frozenset(_STAND_INS)

_PYTHON2_TEXT = {"STRING", "BINSTRING", "SHORT_BINSTRING"}
_TEXT = _PYTHON2_TEXT | {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
_FETCH = {"GET", "BINGET", "LONG_BINGET"}
_STORE = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_SILENT = {"PROTO", "FRAME"}  # change nothing on the stack
_NUMBERS = {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
_CONSTANTS = {"NONE", "NEWTRUE", "NEWFALSE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"}
_LISTS = {"EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "MARK"}
_DICTS = {"EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "EMPTY_SET", "ADDITEMS", "FROZENSET"}
_OBJECTS = {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "STOP"}
_PLAIN = _TEXT | _FETCH | _STORE | _SILENT | _NUMBERS | _CONSTANTS | _LISTS | _DICTS | _OBJECTS
_TORCH = _PLAIN | {"BINPERSID"}  # where the numbers of a tensor are

_LONGEST_NAME = 200
_MOST_NAMES = 50  # a file with more is refused for the first of them
_MOST_INSTRUCTIONS = {Kind.ZIP: 1_000_000, Kind.LEGACY: 1_000_000, Kind.BARE: 20_000_000}
_READ_ERRORS = (ValueError, OverflowError, MemoryError, IndexError, struct.error, DeprecationWarning)


@dataclass(slots=True)
class Findings:
    """What the pickles of a file hold."""

    names: dict[str, None] = field(default_factory=dict)  # of the functions and classes wanted, in order
    n_tensors: int = 0
    is_python2: bool = False
    strange: str = ""  # the first thing that is wrong, apart from names

    def refuse_unknown(self, kind: Kind) -> None:
        allowed = _TORCH_GLOBALS if kind.is_torch else _PLAIN_GLOBALS
        foreign = [name for name in self.names if name not in allowed]
        if foreign:
            raise Refused(f"refused: wants {', '.join(foreign[:3])}{', ...' if foreign[3:] else ''}")
        if self.strange:
            raise Refused(self.strange)


def _scan_one(pickles: _PickleStream, allowed: set[str], most: int, findings: Findings) -> None:
    reader = _Reader(findings)
    try:
        for position, (instruction, argument, _) in enumerate(pickletools.genops(pickles)):
            name = instruction.name
            if name not in allowed and not findings.strange:
                findings.strange = f"uses the pickle instruction {name}, which plain data does not need"
            reader.follow(name, argument)
            if name in _NUMBERS:
                pickles.skip_numbers()
            if position >= most or len(findings.names) > _MOST_NAMES:
                findings.strange = findings.strange or "holds more instructions than any honest file"
                return
    except _READ_ERRORS as error:
        findings.strange = findings.strange or f"is not a pickle, or a damaged one ({str(error)[:80]})"


class _Reader:
    """Remembers just enough of the stack to know which two strings STACK_GLOBAL would join."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._memo: dict[int, str | None] = {}
        self._top: str | None = None  # pushed by the instruction before, if it was text
        self._below: str | None = None  # pushed by the one before that
        self._n_seen = 0

    def follow(self, name: str, argument: object) -> None:
        self._n_seen += 1
        if name in _STORE:
            self._store(argument)
        elif name in _TEXT or name in _FETCH:
            fetched = self._memo.get(argument) if isinstance(argument, int) else argument
            is_name = isinstance(fetched, str) and len(fetched) <= _LONGEST_NAME
            self._below, self._top = self._top, str(fetched) if is_name else None
            self._findings.is_python2 |= name in _PYTHON2_TEXT
        elif name not in _SILENT:
            self._note(name, argument)
            self._top = self._below = None

    def _store(self, argument: object) -> None:
        index = argument if isinstance(argument, int) else len(self._memo)
        if index > self._n_seen + 1:
            # The memo is an array: an index of four billion would ask for as much memory.
            self._findings.strange = self._findings.strange or "numbers its parts in a way that would fill the memory"
            return
        self._memo[index] = self._top

    def _note(self, name: str, argument: object) -> None:
        if name in ("GLOBAL", "INST"):
            self._findings.names[str(argument).replace(" ", ".")[:_LONGEST_NAME]] = None
        elif name == "STACK_GLOBAL" and self._below is not None and self._top is not None:
            self._findings.names[f"{self._below}.{self._top}"] = None
        elif name == "STACK_GLOBAL":
            self._findings.strange = self._findings.strange or "hides the name of a function it wants"
        elif name in ("BINPERSID", "PERSID"):
            self._findings.n_tensors += 1


# Plain data as JSON and safetensors: how a tree crosses from the child process to its parent. JSON holds what it can;
# everything else is an object with one key that names what it stands for. Arrays lie beside it in a safetensors file
# under their number, so no name chosen by the file's author becomes a name there.

STRUCTURE, ARRAYS = "structure.json", "arrays.safetensors"

_MAX_DEPTH = 64
_MAX_INTEGER = 2**64
_MIN_FLOATS = 16  # a list of so many floats travels as an array
_SPARE_NODES = 10_000
_UNFOLDS = "unfolds to far more than the file holds"

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that was not read; only its type is known."""

    type_name: str


def _refused(value: object) -> object:
    raise Refused(f"holds an object of type {type(value).__name__}, not plain data")


@dataclass(slots=True)
class Encoder:
    """Turns a tree into JSON and arrays; refuses what is deeper or larger than the file can honestly hold."""

    n_file_bytes: int
    is_python2: bool = False
    leaf: Callable[[object], object] = _refused  # brings an unknown object to a known type
    arrays: list[Array] = field(default_factory=list)
    _n_nodes: int = 0
    _n_array_bytes: int = 0

    def encode(self, value: object, depth: int = 0) -> object:
        self._n_nodes += 1
        # Each part takes a byte or more of the file; parts that are used twice may be counted a few times.
        if self._n_nodes > 8 * self.n_file_bytes + _SPARE_NODES:
            raise Refused(_UNFOLDS)
        if depth > _MAX_DEPTH:
            raise Refused(f"is nested more than {_MAX_DEPTH} levels deep")
        if value is None or isinstance(value, bool | float | str):
            return value
        if isinstance(value, int):
            if abs(value) >= _MAX_INTEGER:
                raise Refused("holds a number of more than 64 bits")
            return int(value)
        if isinstance(value, bytes | bytearray):
            return _python2_text(bytes(value)) if self.is_python2 else {"bytes": value.decode("latin1")}
        return self._encode_container(value, depth + 1)

    def _encode_container(self, value: object, depth: int) -> object:
        if isinstance(value, list):
            if len(value) >= _MIN_FLOATS and all(type(member) is float for member in value):
                return {"floats": self._kept(np.array(value, dtype=np.float64))}
            return [self.encode(member, depth) for member in value]
        if isinstance(value, dict):
            return {"dict": [[self.encode(key, depth), self.encode(held, depth)] for key, held in value.items()]}
        if isinstance(value, tuple):
            return {"tuple": [self.encode(member, depth) for member in value]}
        if isinstance(value, set | frozenset):
            return {"set": [self.encode(member, depth) for member in value]}
        if isinstance(value, _PickledArray):
            return self.encode(value.value, depth)
        if isinstance(value, np.ndarray):
            return {"array": self._kept(value)} if value.dtype.kind in "biuf" else self.encode(value.tolist(), depth)
        if isinstance(value, Opaque):
            return {"opaque": value.type_name}
        return self.encode(self.leaf(value), depth)

    def _kept(self, array: Array) -> int:
        self.arrays.append(array)
        self._n_array_bytes += array.nbytes
        if self._n_array_bytes > 8 * self.n_file_bytes:
            raise Refused(_UNFOLDS)
        return len(self.arrays) - 1

    def write(self, encoded: object, folder: Path) -> None:
        (folder / STRUCTURE).write_text(json.dumps(encoded), encoding="ascii")
        save_file({str(i): np.asarray(array, order="C") for i, array in enumerate(self.arrays)}, folder / ARRAYS)


def read_tree(folder: Path, max_bytes: int) -> object:
    """Read what an `Encoder` wrote, believing none of it."""
    for name in (STRUCTURE, ARRAYS):
        if not (folder / name).is_file() or (folder / name).lstat().st_size > max_bytes:
            raise Refused("was read, but gave no usable result")
    try:
        encoded = json.loads((folder / STRUCTURE).read_text(encoding="ascii"))
        return _decoded(encoded, load_file(folder / ARRAYS))
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError, SafetensorError) as error:
        raise Refused("was read, but gave no usable result") from error


def _decoded(node: object, arrays: dict[str, Array]) -> object:
    if isinstance(node, list):
        return [_decoded(member, arrays) for member in node]
    if not isinstance(node, dict):
        return node
    ((tag, held),) = node.items()
    if tag == "dict":
        return {_decoded(key, arrays): _decoded(value, arrays) for key, value in held}
    if tag in ("tuple", "set"):
        return (tuple if tag == "tuple" else set)(_decoded(member, arrays) for member in held)
    if tag in ("array", "floats"):
        return arrays[str(held)] if tag == "array" else arrays[str(held)].tolist()
    if tag not in ("bytes", "opaque"):
        raise ValueError(f"no tag {tag!r}")
    return held.encode("latin1") if tag == "bytes" else Opaque(str(held)[:100])


def _python2_text(text: bytes) -> str:
    """Python 2 did not tell text from bytes; what is no UTF-8 is taken for Latin-1."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin1")
