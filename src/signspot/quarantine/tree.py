"""Plain data as JSON and safetensors: how a tree crosses from the child process to its parent.

JSON holds what it can; everything else is an object with one key that names what it stands for. Arrays lie beside it in
a safetensors file under their number, so no name chosen by the file's author becomes a name there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from signspot.quarantine.containers import Refused
from signspot.quarantine.stand_ins import PickledArray

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
        """The JSON for `value`; its arrays are kept in `arrays`."""
        self._n_nodes += 1
        # Each part takes a byte or more of the file; parts that are used twice may be counted a few times.
        if self._n_nodes > 8 * self.n_file_bytes + _SPARE_NODES:
            raise Refused(_UNFOLDS)
        if depth > _MAX_DEPTH:
            raise Refused(f"is nested more than {_MAX_DEPTH} levels deep")
        if value is None or isinstance(value, bool | float | str):
            return value
        if isinstance(value, int):
            return _bounded(value)
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
        if isinstance(value, PickledArray):
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
        """Write both files."""
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
    match tag:
        case "dict":
            return {_decoded(key, arrays): _decoded(value, arrays) for key, value in held}
        case "tuple":
            return tuple(_decoded(member, arrays) for member in held)
        case "set":
            return {_decoded(member, arrays) for member in held}
        case "bytes":
            return held.encode("latin1")
        case "array":
            return arrays[str(held)]
        case "floats":
            return arrays[str(held)].tolist()
        case "opaque":
            return Opaque(str(held)[:100])
    raise ValueError(f"no tag {tag!r}")


def _bounded(number: int) -> int:
    if abs(number) >= _MAX_INTEGER:
        raise Refused("holds a number of more than 64 bits")
    return int(number)


def _python2_text(text: bytes) -> str:
    """Python 2 did not tell text from bytes; what is no UTF-8 is taken for Latin-1."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin1")
