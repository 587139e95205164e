"""JSON from elsewhere, read without trusting it, and JSON of ours, written so that it can be read back.

Refused: files over 64 MB, nesting over 100 levels (found before anything recurses), over 5 million values, NaN and
infinite numbers, integers beyond 64 bits, a key twice in one object, text that is not UTF-8 or holds half a character.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.errors import FormatError, readable_size
from signspot.files.atomic import atomic_output
from signspot.files.intake import MAX_FILE_BYTES, read_whole

MAX_DEPTH = 100
_MAX_VALUES = 5_000_000  # bounds the memory: a 64 MB file could hold 20 million empty objects
_MAX_DIGITS = 18  # every such integer fits in 64 bits

# Possessive, and satisfied by an unfinished string: linear in time whatever the input.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_CHUNK = 1 << 20


def read_json(path: Path) -> object:
    return parse_json(read_whole(path), path)


def parse_json(content: bytes, where: str | Path) -> object:
    skeleton = _STRING.sub(b"", content)
    opened = skeleton.count(b"[") + skeleton.count(b"{")
    if opened > MAX_DEPTH and _depth(skeleton) > MAX_DEPTH:
        what = f"is nested more than {MAX_DEPTH} levels deep"
        raise FormatError(where, what, "no file of this kind is: get a new copy")
    if opened + skeleton.count(b",") > _MAX_VALUES:
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
    deepest = level = 0
    for start in range(0, len(skeleton), _CHUNK):
        brackets = np.frombuffer(skeleton[start : start + _CHUNK].translate(None, _NOT_BRACKETS), np.uint8)
        if not len(brackets):
            continue
        levels = level + np.cumsum(np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1))
        deepest, level = max(deepest, int(levels.max())), int(levels[-1])
    return deepest


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
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


# Values inside a file that is not trusted: every step down says where it is, every surprise is a FormatError.

MAX_TEXT = 20_000  # characters; longer texts are damaged input
MAX_NAME = 255  # characters of a name or an id; no file system takes longer ones
_NOT_IN_NAMES = re.compile(r"[/\\\x00-\x1f\x7f-\x9f]")
_DAMAGED = "get the file again, or correct it"


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place in a file, such as videos/name[3]."""

    file: Path
    value: object
    place: str = ""

    def wrong(self, what: str) -> FormatError:
        return FormatError(self.file, f"{self.place} {what}".strip(), _DAMAGED)

    def is_not(self, wanted: str) -> FormatError:
        value = self.value
        shown = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:60]
        return self.wrong(f"is {shown}, which is not {'text' if wanted == 'text' else f'a {wanted}'}")

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing: None, an empty text or list, or the NaN that tables write for nothing."""
        value = self.value
        if isinstance(value, float):
            return math.isnan(value)
        return value is None or (isinstance(value, str | list | tuple | dict | set | np.ndarray) and not len(value))

    def members(self) -> dict[str, Node]:
        if not isinstance(self.value, dict):
            raise self.is_not("table with names")
        prefix = f"{self.place}/" if self.place else ""
        names = {str(name): value for name, value in self.value.items() if isinstance(name, str | int)}
        if len(names) != len(self.value):
            raise self.wrong("has names that are not text, or one name twice")
        return {name: Node(self.file, value, f"{prefix}{name[:MAX_NAME]}") for name, value in names.items()}

    def member(self, name: str) -> Node:
        if name not in (members := self.members()):
            raise self.wrong(f"has no field {name!r}")
        return members[name]

    def rows(self, count: int | None = None) -> list[Node]:
        value = self.value
        if not isinstance(value, list | tuple | np.ndarray) or (isinstance(value, np.ndarray) and not value.ndim):
            raise self.is_not("list")
        if count is not None and len(value) != count:
            raise self.wrong(f"has {len(value)} values where {count} are expected")
        return [Node(self.file, _plain(member), f"{self.place}[{i}]") for i, member in enumerate(value)]

    def text(self, longest: int = MAX_TEXT) -> str:
        if not isinstance(self.value, str):
            raise self.is_not("text")
        if len(self.value) > longest:
            raise self.wrong(f"has {len(self.value)} characters, over {longest}")
        try:
            self.value.encode()
        except UnicodeEncodeError as error:
            raise self.wrong("holds half a character (a lone surrogate)") from error
        return self.value

    def text_or_nothing(self) -> str:
        """A text, or a number as text; "" where there is nothing."""
        if self.is_missing:
            return ""
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return f"{self.number():g}" if isinstance(self.value, float) else str(self.value)
        return self.text()

    def name(self) -> str:
        """A text that may serve as an id: short, without control characters, and never a path."""
        text = self.text(MAX_NAME)
        if not text.strip() or text.startswith(".") or _NOT_IN_NAMES.search(text):
            raise self.is_not("name")
        return text

    def number(self) -> float:
        value = self.value
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < math.inf:
            raise self.is_not("number")
        return float(value)

    def integer(self) -> int:
        number = self.number()
        if not number.is_integer() or abs(number) > 1 << 53:
            raise self.is_not("whole number")
        return int(number)

    def texts(self) -> tuple[str, ...]:
        """The texts of a list; a single text counts as a list of one, empty texts are dropped."""
        if self.is_missing:
            return ()
        if isinstance(self.value, list) and all(type(member) is str for member in self.value):
            Node(self.file, max(self.value, key=len), self.place).text()
            Node(self.file, "".join(self.value), self.place).text(MAX_TEXT * len(self.value))
            return tuple(dict.fromkeys(filter(None, self.value)))  # millions of texts come this way
        if isinstance(self.value, set):
            members = Node(self.file, sorted(self.value, key=str), self.place).rows()
        else:
            members = [self] if isinstance(self.value, str) else self.rows()
        return tuple(dict.fromkeys(text for node in members if (text := node.text_or_nothing())))


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value
