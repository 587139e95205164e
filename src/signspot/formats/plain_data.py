"""Values inside a file that is not trusted: every step down says where it is, every surprise is a FormatError."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.errors import FormatError

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
        """The error that says what is wrong with this value."""
        return FormatError(self.file, f"{self.place} {what}".strip(), _DAMAGED)

    def is_not(self, wanted: str) -> FormatError:
        """The error that says this value is not what it should be."""
        value = self.value
        shown = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:60]
        return self.wrong(f"is {shown}, which is no {wanted}")

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing: None, an empty text or list, or the NaN that tables write for nothing."""
        value = self.value
        if isinstance(value, float):
            return math.isnan(value)
        return value is None or (isinstance(value, str | list | tuple | dict | set | np.ndarray) and not len(value))

    def members(self) -> dict[str, Node]:
        """What an object holds, by name."""
        if not isinstance(self.value, dict):
            raise self.is_not("table with names")
        prefix = f"{self.place}/" if self.place else ""
        names = {str(name): value for name, value in self.value.items() if isinstance(name, str | int)}
        if len(names) != len(self.value):
            raise self.wrong("has names that are no text, or one name twice")
        return {name: Node(self.file, value, f"{prefix}{name[:MAX_NAME]}") for name, value in names.items()}

    def member(self, name: str) -> Node:
        """What an object holds under `name`."""
        if name not in (members := self.members()):
            raise self.wrong(f"has no field {name!r}")
        return members[name]

    def rows(self, count: int | None = None) -> list[Node]:
        """The members of a list, `count` of them if given."""
        value = self.value
        if not isinstance(value, list | tuple | np.ndarray) or (isinstance(value, np.ndarray) and not value.ndim):
            raise self.is_not("list")
        if count is not None and len(value) != count:
            raise self.wrong(f"has {len(value)} values where {count} are expected")
        return [Node(self.file, _plain(member), f"{self.place}[{i}]") for i, member in enumerate(value)]

    def text(self, longest: int = MAX_TEXT) -> str:
        """A text of bounded length without half characters."""
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
        """A finite number."""
        value = self.value
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < math.inf:
            raise self.is_not("number")
        return float(value)

    def integer(self) -> int:
        """A whole number of at most 53 bits."""
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
        return tuple(dict.fromkeys(text for node in self._members_or_self() if (text := node.text_or_nothing())))

    def _members_or_self(self) -> Iterator[Node]:
        if isinstance(self.value, str):
            yield self
        elif isinstance(self.value, set):
            yield from Node(self.file, sorted(self.value, key=str), self.place).rows()
        else:
            yield from self.rows()


def _plain(value: object) -> object:
    """A number of numpy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value
