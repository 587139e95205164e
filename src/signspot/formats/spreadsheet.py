"""CSV as spreadsheets read it best: RFC 4180 in UTF-8 with a byte order mark, and no cell that runs as a formula.

Without the mark Excel shows mojibake; pandas and R skip it. A text that a spreadsheet would run as a formula gets a
leading apostrophe, which reading takes away again.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from signspot.atomic import atomic_output

# Apostrophes before a formula character count too, so that taking one away always gives the text back.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")


def guarded(text: str) -> str:
    """The text as a cell that no spreadsheet runs.

    >>> guarded("=1+1"), guarded("apple")
    ("'=1+1", 'apple')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(cell: str) -> str:
    """The text that `guarded` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[str | float]]) -> bytes:
    """A small table as the bytes of a CSV file; numbers stay numbers, also negative ones."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows([guarded(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue().encode("utf-8-sig", errors="backslashreplace")


def write_csv(
    header: Sequence[str], rows: Iterable[Sequence[str | float]], path: Path, *, overwrite: bool = False
) -> None:
    """Write a small table."""
    content = csv_bytes(header, rows)
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)
