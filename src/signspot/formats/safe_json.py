"""JSON from elsewhere, read without trusting it, and JSON of ours, written so that it can be read back.

Refused: files over 64 MB, nesting over 100 levels (found before anything recurses), over 5 million values, NaN and
infinite numbers, integers beyond 64 bits, a key twice in one object, text that is not UTF-8 or holds half a character.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np

from signspot.atomic import atomic_output
from signspot.errors import FormatError, readable_size
from signspot.formats.intake import MAX_FILE_BYTES, read_whole

MAX_DEPTH = 100
MAX_VALUES = 5_000_000  # bounds the memory: a 64 MB file could hold 20 million empty objects
_MAX_DIGITS = 18  # every such integer fits in 64 bits

# Possessive, and satisfied by an unfinished string: linear in time whatever the input.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_CHUNK = 1 << 20


def read_json(path: Path) -> object:
    """The value in a JSON file."""
    return parse_json(read_whole(path), path)


def parse_json(content: bytes, where: str | Path) -> object:
    """The value in `content`; `where` is named in errors."""
    skeleton = _STRING.sub(b"", content)
    opened = skeleton.count(b"[") + skeleton.count(b"{")
    if opened > MAX_DEPTH and _depth(skeleton) > MAX_DEPTH:
        raise FormatError(
            where, f"is nested more than {MAX_DEPTH} levels deep", "no file of this kind is: get a new copy"
        )
    if opened + skeleton.count(b",") > MAX_VALUES:
        raise FormatError(where, "holds more than 5 million values", "split it into several files")
    try:
        value: object = _DECODER.decode(content.decode("utf-8-sig"))
        if rb"\ud" in content.lower():
            _encoded(value)  # raises on half a character
    except UnicodeDecodeError as error:
        raise FormatError(where, "is not UTF-8 text", "save the file as UTF-8") from error
    except UnicodeEncodeError as error:
        raise FormatError(where, "holds half a character (a lone surrogate)", "correct the text") from error
    except ValueError as error:
        raise FormatError(where, f"is not valid JSON: {error}", "correct it or get a new copy") from error
    return value


def write_json(value: object, path: Path, *, overwrite: bool = False) -> None:
    """Write a JSON file that `read_json` accepts, the same bytes for the same value."""
    try:
        content = _encoded(value, indent=1)
    except (UnicodeEncodeError, ValueError) as error:
        raise FormatError(path, f"cannot be written: {error}", "correct the text or the number") from error
    if len(content) > MAX_FILE_BYTES:
        raise FormatError(path, f"would be larger than {readable_size(MAX_FILE_BYTES)}", "write several smaller files")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _encoded(value: object, indent: int | None = None) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent).encode() + b"\n"


def _depth(skeleton: bytes) -> int:
    """How deep the brackets of JSON without its strings are nested."""
    deepest = level = 0
    for start in range(0, len(skeleton), _CHUNK):
        brackets = np.frombuffer(skeleton[start : start + _CHUNK].translate(None, _NOT_BRACKETS), np.uint8)
        if not len(brackets):
            continue
        levels = level + np.cumsum(np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1))
        deepest, level = max(deepest, int(levels.max())), int(levels[-1])
    return deepest


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no number")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twice[:40]!r} comes twice in one object")
    return made


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_int=_integer, parse_float=_finite, object_pairs_hook=_unique
)
