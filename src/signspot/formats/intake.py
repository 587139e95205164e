"""Opening files that come from elsewhere: regular files only, in bounded pieces, every complaint a FormatError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from signspot.errors import FormatError, readable_size

MAX_FILE_BYTES = 64_000_000  # of a file that is read whole
MAX_LINE_CHARACTERS = 1 << 20  # of a file that is read line by line


def require_file(path: Path) -> None:
    """Raise unless `path` is a regular file: a pipe or a device would block or never end."""
    try:
        if path.is_file():
            return
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise FormatError(path, "cannot be opened", "check the name and the permissions") from error
    if exists:
        raise FormatError(path, "is not a file", "name a file to read")
    raise FormatError(path, "no such file", "check the name")


def is_there(path: Path) -> bool:
    """Whether something of that name exists; False also for what no path can be."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; False also for what no path can be."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def read_whole(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The content of a file of at most `max_bytes`."""
    require_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(content) > max_bytes:
        raise FormatError(path, f"is larger than {readable_size(max_bytes)}", "split it into several files")
    return content


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file, with or without a byte order mark, line ends untouched."""
    require_file(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise unreadable(path, error) from error


def bounded_lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a text file with their ends, none longer than a million characters."""
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(MAX_LINE_CHARACTERS + 1)
        except UnicodeDecodeError as error:
            raise FormatError(path, f"line {number} or near it is not UTF-8 text", "save the file as UTF-8") from error
        if len(line) > MAX_LINE_CHARACTERS:
            raise FormatError(path, f"line {number} has over a million characters", "it is damaged or no such table")
        if not line:
            return
        yield line


def unreadable(path: Path, error: OSError) -> FormatError:
    """Say why the operating system did not let us read `path`."""
    return FormatError(path, f"cannot be read ({error.strerror or error})", "check the file and its permissions")
