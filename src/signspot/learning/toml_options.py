"""Frozen dataclasses of options from and to TOML files, checked strictly.

A key that is no field, a value of another type, and a value the dataclass itself refuses (ValueError in its
`__post_init__`) are errors that name the file and the key. Fields may be bool, int, float, str, Literal, Path (relative
to the file), tuples of these, dataclasses (a table), or any of them `| None` (None: the key is absent).
"""

from __future__ import annotations

import difflib
import json
import math
import tomllib
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Literal, TypeVar

from signspot.errors import InputError, one_line

MAX_BYTES = 1 << 20  # a file of options is a page of text

Kind = TypeVar("Kind")
_CALLED = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a value was written, for messages and for relative paths."""

    where: str | Path
    folder: Path


class _Misfit(Exception):
    """A value that is not what its option takes."""


def read_config(path: Path, kind: type[Kind], changes: Sequence[str] = ()) -> Kind:
    """The options of a TOML file, then `changes` of the form key=value (as in TOML; quotes may be left out)."""
    table = read_table(path)
    origin = _Origin(path, path.parent)
    values = _fields_of(table, kind, origin)
    for change in changes:
        _merge(values, _change(change, kind))
    return _made(kind, values, path)


def as_toml(config: object) -> str:
    """All options of a dataclass, defaults included; `read_config` reads it back."""
    if not is_dataclass(config):
        raise ValueError(f"{type(config).__name__} holds no options")
    plain, tables = [], []
    for item in fields(config):
        value = getattr(config, item.name)
        if is_dataclass(value):
            tables.append(f"\n[{item.name}]\n{as_toml(value)}")
        elif value is not None:
            plain.append(f"{item.name} = {_written(value)}\n")
    return "".join(plain + tables)


def read_table(path: Path) -> dict[str, object]:
    """The whole of a TOML file, unchecked."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(path, "is larger than 1 MB", "name a file of options")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror or error})", "name a TOML file of options") from error
    except UnicodeDecodeError as error:
        raise InputError(path, "is not UTF-8 text", "save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"is not valid TOML ({error})", "correct it") from error


def _change(text: str, kind: type) -> dict[str, object]:
    """The fields that one key=value of the command line sets."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {text}", "is not of the form key=value", "such as --set epochs=10")
    try:
        held: object = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        held = value.strip()  # a word without quotes
    table: dict[str, object] = {}
    *outer, last = key.strip().split(".")
    inner = table
    for name in outer:
        inner[name] = inner = {}
    inner[last] = held
    return _fields_of(table, kind, _Origin(f"--set {text}", Path()))


def _merge(values: dict[str, object], changes: dict[str, object]) -> None:
    for name, change in changes.items():
        held = values.get(name)
        if isinstance(held, dict) and isinstance(change, dict):
            _merge(held, change)
        else:
            values[name] = change


def _fields_of(table: dict[str, object], kind: type, origin: _Origin, prefix: str = "") -> dict[str, object]:
    """Values of the right types by field; those of nested dataclasses stay dictionaries until all is merged."""
    hints = typing.get_type_hints(kind)
    known = [item.name for item in fields(kind) if item.init]
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            fix = f"did you mean {prefix}{near[0]}?" if near else f"the options are {', '.join(known)}"
            raise InputError(origin.where, f"{prefix + key!r} is no option", fix)
        try:
            nested = _dataclass_in(hints[key])
            if nested is not None and isinstance(value, dict):
                values[key] = _fields_of(value, nested, origin, f"{prefix}{key}.")
            else:
                values[key] = _value(value, hints[key], origin)
        except _Misfit as misfit:
            shown = one_line(repr(value))[:60]
            raise InputError(origin.where, f"{prefix}{key} is {shown}, but it takes {misfit}", "correct it") from misfit
    return values


def _made(kind: type[Kind], values: dict[str, object], path: Path) -> Kind:
    hints = typing.get_type_hints(kind)
    complete = {
        name: _made(nested, value, path)
        if (nested := _dataclass_in(hints[name])) and isinstance(value, dict)
        else value
        for name, value in values.items()
    }
    try:
        return kind(**complete)
    except ValueError as error:
        raise InputError(path, str(error), "correct this option") from error
    except TypeError as error:  # a field without default is absent
        raise InputError(path, f"lacks options ({str(error).partition(') ')[2]})", "add them") from error


def _value(value: object, hint: object, origin: _Origin) -> object:
    """`value` as the type of its field, or a `_Misfit` that says what the field takes."""
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return _value(value, next(one for one in arguments if one is not type(None)), origin)
    if typing.get_origin(hint) is Literal:
        if not any(value == one and type(value) is type(one) for one in arguments):
            near = difflib.get_close_matches(str(value), [str(one) for one in arguments], n=1)
            raise _Misfit(" or ".join(_written(one) for one in arguments) + (f" (perhaps {near[0]}?)" if near else ""))
        return value
    if typing.get_origin(hint) is tuple:
        return _several(value, arguments, origin)
    if hint is Path:
        if not isinstance(value, str) or not value or "\0" in value:
            raise _Misfit("the name of a file")
        return (origin.folder / value).absolute()
    if hint is float and type(value) is int:
        value = float(value)
    if type(value) is not hint or (isinstance(value, float) and not math.isfinite(value)):
        raise _Misfit(_CALLED[hint] if isinstance(hint, type) and hint in _CALLED else "a table of options")
    return value


def _several(value: object, arguments: tuple[object, ...], origin: _Origin) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise _Misfit("a list in brackets")
    if arguments[-1] is Ellipsis:
        return tuple(_value(one, arguments[0], origin) for one in value)
    if len(value) != len(arguments):
        raise _Misfit(f"a list of {len(arguments)}")
    return tuple(_value(one, hint, origin) for one, hint in zip(value, arguments, strict=True))


def _dataclass_in(hint: object) -> type | None:
    candidates = (hint, *typing.get_args(hint))
    return next((one for one in candidates if isinstance(one, type) and is_dataclass(one)), None)


def _written(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case tuple() | list():
            return f"[{', '.join(_written(one) for one in value)}]"
        case str() | Path():
            # JSON's escapes are TOML's, but for the one control character JSON leaves alone.
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")
        case _:
            return repr(value)
