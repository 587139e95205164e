"""Named arrays in one file: safetensors with a header of JSON that says what they are, and a checksum of it all.

A flipped bit in a flat file reads as a valid number, so nothing is believed before the checksum matches. The same
content always gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from signspot.errors import FormatError, readable_size
from signspot.files.atomic import atomic_output
from signspot.files.intake import require_file
from signspot.files.json import Node, parse_json

Arrays = dict[str, npt.NDArray[Any]]

_HEADER = "signspot"  # one key only: the order of several would differ from run to run
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ArraysKind:
    """A kind of file with arrays."""

    what: str  # as people call it
    fix: str  # what to do about a damaged one
    format: str = ""  # as its header calls it
    checked: str = ""  # the member of the header that the checksum covers, besides the arrays
    max_bytes: int = 2_000_000_000

    def damaged(self, path: Path, why: object) -> FormatError:
        return FormatError(path, f"is damaged or no {self.what} ({why})", self.fix)


def write_arrays(
    arrays: Arrays,
    content: object,
    path: Path,
    kind: ArraysKind,
    *,
    unchecked: Mapping[str, object] | None = None,
    overwrite: bool = False,
) -> None:
    """Write arrays with a content that JSON can hold, and whatever else the header should say."""
    header = {"format": kind.format, "version": _VERSION, **(unchecked or {})}
    header |= {"sha256": _checksum(content, arrays), kind.checked: content}
    save_arrays(arrays, {_HEADER: json.dumps(header)}, path, overwrite=overwrite)


def read_arrays(path: Path, kind: ArraysKind) -> tuple[Node, Arrays]:
    """The header and the arrays of a file; every bit is checked."""
    metadata, arrays = load_arrays(path, kind)
    header = Node(path, parse_json(metadata.get(_HEADER, "").encode(), path), "header")
    if (name := header.member("format").value) != kind.format or header.member("version").value != _VERSION:
        raise FormatError(path, f"holds {str(name)[:40]!r} of a version that is not read here", kind.fix)
    if header.member("sha256").value != _checksum(header.member(kind.checked).value, arrays):
        raise kind.damaged(path, "its checksum does not match")
    return header, arrays


def save_arrays(arrays: Arrays, metadata: Mapping[str, str], path: Path, *, overwrite: bool = False) -> None:
    with atomic_output(path, overwrite=overwrite) as temporary:
        try:
            plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
            save_file(plain, temporary, dict(metadata) or None)
        except SafetensorError as error:  # it hides the reason of the operating system
            raise OSError(str(error)) from error


def load_arrays(path: Path, kind: ArraysKind) -> tuple[dict[str, str], Arrays]:
    """The metadata and the arrays of any safetensors file, unchecked."""
    require_file(path)
    try:
        if path.stat().st_size > kind.max_bytes:
            raise ValueError(f"it is larger than {readable_size(kind.max_bytes)}")
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dict
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise kind.damaged(path, error) from error


def _checksum(content: object, arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
