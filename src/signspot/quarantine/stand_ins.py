"""Reading a bare pickle of plain data: every name it may use gets a harmless stand-in of ours.

No function of numpy or of the standard library is ever reached through the file: an array is put together here, from
its bytes, after its shape and type were checked.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Iterable
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from signspot.quarantine.containers import Refused

_DTYPE = re.compile(r"b1|[iu][1248]|f[248]|[SU]\d{1,5}|O8?")
_MAX_DIMENSIONS = 32


class PickledDtype:
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
        """Whether the elements are objects of Python."""
        return self.code.startswith("O")

    def array(self, content: object, shape: object, *, fortran: bool = False) -> npt.NDArray[np.generic]:
        """The array of these bytes, in the byte order of this machine."""
        dtype = np.dtype(self.order + self.code)
        sizes = _shape(shape)
        content = content.encode("latin1") if isinstance(content, str) else content
        if not isinstance(content, bytes | bytearray) or len(content) != math.prod(sizes) * dtype.itemsize:
            raise Refused(f"holds an array of shape {sizes} without the numbers for it")
        flat = np.frombuffer(content, dtype) if content else np.empty(0, dtype)
        return flat.reshape(sizes, order="F" if fortran else "C").astype(dtype.newbyteorder("="), order="C")


class PickledArray:
    """numpy.ndarray: empty until its state arrives."""

    def __init__(self, *_: object) -> None:
        self.value: object = None

    def __setstate__(self, state: tuple[object, ...]) -> None:
        shape, dtype, fortran, content = state[-4:]
        if not isinstance(dtype, PickledDtype):
            raise Refused("holds an array without a type")
        if not dtype.is_object:
            self.value = dtype.array(content, shape, fortran=bool(fortran))
        elif isinstance(content, list) and _shape(shape) == (len(content),):
            self.value = content  # a list in all but name; its elements passed this unpickler too
        else:
            raise Refused("holds an array of objects")


def _scalar(dtype: PickledDtype, content: object = b"") -> object:
    if dtype.is_object:
        raise Refused("holds an array of objects")
    return dtype.array(content, ()).item()


def _from_buffer(content: object, dtype: PickledDtype, shape: object, order: str) -> npt.NDArray[np.generic]:
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


def _default_dict(*_: object) -> dict[object, object]:
    return {}


def _set(members: Iterable[object] = ()) -> set[object]:
    return set(members)


def _no_bytes() -> bytes:
    """How protocol 2 stores bytes of length zero; with a length as argument it would be a way to fill the memory."""
    return b""


_FACTORY = object()  # the default of a defaultdict: never called


def _table() -> dict[str, object]:
    arrays: dict[str, object] = {"numpy.dtype": PickledDtype, "numpy.ndarray": PickledArray}
    for core in ("numpy.core", "numpy._core"):
        arrays |= {f"{core}.multiarray._reconstruct": PickledArray, f"{core}.multiarray.scalar": _scalar}
        arrays[f"{core}.numeric._frombuffer"] = _from_buffer
    plain: dict[str, object] = {"collections.OrderedDict": _dict, "collections.defaultdict": _default_dict}
    plain["_codecs.encode"] = _encode
    for builtins in ("builtins", "__builtin__"):
        plain |= {f"{builtins}.{name}": _set for name in ("set", "frozenset")}
        plain[f"{builtins}.bytes"] = _no_bytes
        plain |= {f"{builtins}.{name}": _FACTORY for name in ("list", "dict", "int", "float", "str")}
    return arrays | plain


STAND_INS = _table()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        """The stand-in for a name; any other name ends the reading."""
        if f"{module}.{name}" not in STAND_INS:
            raise Refused(f"wants {module}.{name}")
        return STAND_INS[f"{module}.{name}"]

    def persistent_load(self, pid: object) -> object:
        """Refuse what lies outside the file."""
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
