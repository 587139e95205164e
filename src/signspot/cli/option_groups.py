"""Options that belong together as one dataclass: typer sees its fields, the command gets it filled.

A command of many options would else repeat them all in its parameters, and so would every command like it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with every parameter that is a dataclass replaced by the fields of it, in their order."""
    kinds = get_type_hints(command)
    groups: dict[str, type] = {}
    shown: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        kind = kinds[parameter.name]
        if isinstance(kind, type) and is_dataclass(kind):
            groups[parameter.name] = kind
            shown += _options(kind)
        else:
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind))

    @wraps(command)
    def run(**given: Any) -> None:
        filled = {name: kind(**{option.name: given.pop(option.name) for option in fields(kind)})
                  for name, kind in groups.items()}  # fmt: skip
        command(**given, **filled)

    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown} | {"return": None}
    return run


def _options(kind: type) -> list[Parameter]:
    own = get_type_hints(kind)
    return [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=own[option.name])
        for option in fields(kind)
    ]
