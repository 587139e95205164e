"""What is odd in somebody else's file but does not stop the reading, as a short list."""

from __future__ import annotations

from signspot.errors import one_line

_EXAMPLES = 3  # cases named in a line; the others are counted
_EXAMPLE_LENGTH = 60


class Oddities:
    """Collects what is odd in a file but does not stop the reading; many cases of one kind become one line.

    >>> odd = Oddities()
    >>> for name in ("a1", "a2", "a3", "a4"):
    ...     odd.note("annotations without a time", name)
    >>> odd.lines()
    ('annotations without a time: 4 (a1, a2, a3, ...)',)
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def note(self, kind: str, case: str) -> None:
        """Count one case of `kind`."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) < _EXAMPLES:
            examples.append(case if len(case) <= _EXAMPLE_LENGTH else case[:_EXAMPLE_LENGTH] + "...")

    def lines(self) -> tuple[str, ...]:
        """One printable line for each kind, in the order they were met."""
        return tuple(one_line(self._line(kind)) for kind in self._counts)

    def _line(self, kind: str) -> str:
        examples, count = self._examples[kind], self._counts[kind]
        more = ["..."] if count > len(examples) else []
        return f"{kind}: {count} ({', '.join(examples + more)})"
