"""Reading the instructions of a pickle without following them.

The scan lists every name the pickle would import. It fails closed: a name put together at run time, an instruction that
plain data does not need, or bytes that are no instruction are all reasons to refuse.
"""

from __future__ import annotations

import pickletools
import struct
from dataclasses import dataclass, field

from signspot.quarantine.containers import Container, Kind, PickleStream, Refused
from signspot.quarantine.stand_ins import STAND_INS

_STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
# Beside the weights: numbers of numpy such as a best accuracy, sets. They are swallowed, never made.
SWALLOWED = frozenset(name for name in STAND_INS if name.startswith("numpy."))
TORCH_GLOBALS = SWALLOWED | {
    "collections.OrderedDict",
    "_codecs.encode",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
    "torch.Size",
    "torch.device",
    *(f"torch.{name}Storage" for name in _STORAGES),
}
PLAIN_GLOBALS = frozenset(STAND_INS)

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
        """Raise for the first thing that has no place in a file of this kind."""
        allowed = TORCH_GLOBALS if kind.is_torch else PLAIN_GLOBALS
        foreign = [name for name in self.names if name not in allowed]
        if foreign:
            raise Refused(f"refused: wants {', '.join(foreign[:3])}{', ...' if foreign[3:] else ''}")
        if self.strange:
            raise Refused(self.strange)


def scan(container: Container) -> Findings:
    """Read the instructions of all pickles of a file."""
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
        findings.strange = findings.strange or f"is no pickle, or a damaged one ({str(error)[:80]})"


class _Reader:
    """Remembers just enough of the stack to know which two strings STACK_GLOBAL would join."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._memo: dict[int, str | None] = {}
        self._top: str | None = None  # pushed by the instruction before, if it was text
        self._below: str | None = None  # pushed by the one before that
        self._n_seen = 0

    def follow(self, name: str, argument: object) -> None:
        """Note what one instruction wants."""
        self._n_seen += 1
        if name in _STORE:
            self._store(argument)
        elif name in _TEXT or name in _FETCH:
            fetched = self._memo.get(argument) if isinstance(argument, int) else argument
            self._below, self._top = self._top, _short(fetched)
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


def _short(text: object) -> str | None:
    return text if isinstance(text, str) and len(text) <= _LONGEST_NAME else None
