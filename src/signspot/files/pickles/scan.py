"""Reading the instructions of a pickle without following them.

The scan lists every name the pickle would import. It fails closed: a name put together at run time, an instruction that
plain data does not need, or bytes that are no instruction are all reasons to refuse.
"""

from __future__ import annotations

import json
import math
import pickle
import pickletools
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from signspot.files.pickles.containers import Container, Kind, PickleStream, Refused

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


def scan(container: Container) -> Findings:
    findings = Findings()
    allowed = _TORCH if container.kind.is_torch else _PLAIN
    for _ in range(container.n_pickles):
        if not findings.strange:
            _scan_one(container.pickles, allowed, _MOST_INSTRUCTIONS[container.kind], findings)
    return findings


def _scan_one(pickles: PickleStream, allowed: set[str], most: int, findings: Findings) -> None:
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
