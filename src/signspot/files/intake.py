"""Opening files that come from elsewhere: regular files only, in bounded pieces, every complaint a FormatError."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

from signspot.errors import FormatError, Notice, one_line, readable_size

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
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def read_whole(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
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
    return FormatError(path, f"cannot be read ({error.strerror or error})", "check the file and its permissions")


# Files under one folder, for manifests and listings that may come from elsewhere. Nothing outside the folder is ever
# reached: absolute paths, "..", web addresses and links that lead out are refused. Names are compared in Unicode form
# NFC, because macOS and Linux store the same name in different bytes.

# What is taken for a video in a folder or a list: the usual names of every container that is read (README, Formats).
_VIDEO_SUFFIXES = frozenset(
    (
        *(".mp4", ".m4v", ".mov", ".qt", ".3gp", ".3g2", ".mkv", ".webm", ".avi", ".divx", ".flv", ".f4v", ".ogv"),
        *(".mpg", ".mpeg", ".m2v", ".vob", ".ts", ".mts", ".m2ts", ".m2t", ".wmv", ".asf", ".mxf", ".dv", ".gif"),
    )
)
_LANDMARK_SUFFIX = ".pose"  # a file of landmarks: it belongs to the video of its name, or stands for one
RECORDING_SUFFIXES = _VIDEO_SUFFIXES | {_LANDMARK_SUFFIX}
_MAX_NAME = 4096  # characters of a path
_DRIVE = re.compile("[A-Za-z]:")
_DIGITS = re.compile("([0-9]+)")


def shown_by(recording: Path) -> Path:
    """The file that a player can show: a video itself; of landmarks the video of their name, if it lies beside them."""
    if recording.suffix.lower() != _LANDMARK_SUFFIX:
        return recording
    whole = recording.with_suffix("")  # a.mov.pose belongs to a.mov
    if whole.suffix.lower() in _VIDEO_SUFFIXES and whole.is_file():
        return whole
    beside = (recording.with_suffix(suffix) for suffix in sorted(_VIDEO_SUFFIXES))
    return next((video for video in beside if video.is_file()), recording)


NO_SUCH_FILE = "no such file"


def has_twin(video: Path) -> bool:
    """Whether another video lies beside it that differs in its suffix alone: files named after the stem fit both."""
    beside = (video.with_suffix(suffix) for suffix in _VIDEO_SUFFIXES if suffix != video.suffix.lower())
    return any(twin.is_file() for twin in beside)


@dataclass(frozen=True, slots=True)
class Found:
    """A file or folder under the root: where it is, and its name on every machine."""

    path: Path
    name: str  # from the root, with "/", in NFC

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()

    @property
    def last_name(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return self.last_name.removesuffix(nfc(self.path.suffix))


@dataclass(frozen=True, slots=True)
class Listing:
    """What one folder holds, sorted as people count: 2 before 10."""

    files: tuple[Found, ...]
    folders: tuple[Found, ...]
    problems: tuple[Notice, ...]


@dataclass(slots=True)
class Place:
    """A folder and the files under it."""

    root: Path
    _real: Path = field(init=False)
    _folders: dict[Path, bool] = field(init=False, default_factory=dict)  # real folder -> whether inside
    _names: dict[Path, dict[str, str]] = field(init=False, default_factory=dict)  # folder -> NFC name -> name on disk

    def __post_init__(self) -> None:
        self._real = self.root.resolve()

    def find(self, name: str) -> Found:
        """The file a manifest names; ValueError says why it is refused."""
        parts = _parts(name)
        path = self.root.joinpath(*parts)
        try:
            mode = self._mode(path)
            if mode is None:
                path = self._spelt_otherwise(parts)
                mode = self._mode(path)
            if mode is None:
                raise ValueError(NO_SUCH_FILE)
            if not self._holds(path, is_link=stat.S_ISLNK(mode)):
                raise ValueError("leads out of the folder through a link")
            if not stat.S_ISREG(mode) and not path.is_file():
                raise ValueError("is not a file")
        except (OSError, RuntimeError) as error:  # pathlib reports a circle of links as RuntimeError
            raise ValueError("cannot be opened") from error
        return Found(path, nfc("/".join(parts)))

    def listing(self, folder: Found | None = None) -> Listing:
        """What a folder holds, hidden things left out; no file is opened or measured."""
        path, prefix = (folder.path, f"{folder.name}/") if folder else (self.root, "")
        files: list[Found] = []
        folders: list[Found] = []
        problems: list[Notice] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if fault := self._fault(entry):
                        problems.append(Notice(str(path / entry.name), *fault))
                        continue
                    found = Found(path / entry.name, prefix + nfc(entry.name))
                    (folders if entry.is_dir() else files).append(found)
        except OSError as error:
            problems.append(Notice(str(path), f"cannot be read ({error.strerror})", "check the permissions"))
        by_name = partial(sorted, key=lambda found: natural(found.name))
        return Listing(tuple(by_name(files)), tuple(by_name(folders)), tuple(sorted(problems, key=lambda p: p.where)))

    def _fault(self, entry: os.DirEntry[str]) -> tuple[str, str] | None:
        try:
            _parts(entry.name)
            if entry.is_symlink() and entry.is_dir():
                return "is a link to a folder, which is not followed", "put the folder itself here"
            if entry.is_symlink() and not self._holds(Path(entry.path), is_link=True):
                return "leads out of the folder through a link", "put the file itself here"
            is_usable = entry.is_dir() or entry.is_file()
        except ValueError:
            return "the name cannot be used on every machine", "rename it"
        except (OSError, RuntimeError):
            is_usable = False
        if "\\" in entry.name:
            return "the name holds a backslash", "rename it"
        return None if is_usable else ("cannot be opened as a file", "remove it")

    def _holds(self, path: Path, *, is_link: bool) -> bool:
        if is_link:
            return path.resolve().is_relative_to(self._real)
        if path.parent not in self._folders:
            self._folders[path.parent] = path.parent.resolve().is_relative_to(self._real)
        return self._folders[path.parent]

    def _mode(self, path: Path) -> int | None:
        try:
            return path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _spelt_otherwise(self, parts: list[str]) -> Path:
        """The path as the disk spells it, in whatever Unicode form."""
        path = self.root
        for part in parts:
            if path not in self._names:
                inside = self._holds(path / part, is_link=False)
                self._names[path] = {nfc(p.name): p.name for p in path.iterdir()} if inside and path.is_dir() else {}
            path = path / self._names[path].get(nfc(part), part)
        return path


def _parts(name: str) -> list[str]:
    """The parts of a relative path; ValueError if it is anything else."""
    if len(name) > _MAX_NAME or any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in name):
        raise ValueError("is not a file name")
    path = name.replace("\\", "/")  # manifests made on Windows
    if "://" in path:
        raise ValueError("is a web address, not a file")
    if path.startswith("/") or _DRIVE.match(path):
        raise ValueError("is an absolute path; name files from the folder of the manifest")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError('leads out of the folder through ".."')
    if not parts:
        raise ValueError("is empty")
    return parts


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def natural(name: str) -> tuple[str | int, ...]:
    """A sort key that counts: apple_2 before apple_10."""
    return tuple(int(part) if at % 2 else part for at, part in enumerate(_DIGITS.split(name)))


def recordings(files: Iterable[Found]) -> tuple[list[Found], list[Found]]:
    """Part videos, and landmarks that stand for one, from other files; landmarks beside their video are neither."""
    all_files = list(files)
    videos = {n for file in all_files if file.suffix in _VIDEO_SUFFIXES for n in (file.stem, file.last_name)}
    known = [file for file in all_files if file.suffix in RECORDING_SUFFIXES]
    own = [file for file in known if file.suffix != _LANDMARK_SUFFIX or file.stem not in videos]
    return own, [file for file in all_files if file.suffix not in RECORDING_SUFFIXES]


def unread(files: Iterable[Found], where: Path) -> list[Notice]:
    """One remark about all files that were left out because of their suffix."""
    suffixes = Counter(file.suffix or "no suffix" for file in files)
    if not suffixes:
        return []
    counts = ", ".join(f"{count} with {suffix}" for suffix, count in sorted(suffixes.items())[:10])
    return [Notice(str(where), f"files that are not videos: {counts}", "they are left out", severity="note")]


# What is odd in somebody else's file but does not stop the reading, as a short list.

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
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def note(self, kind: str, case: str) -> None:
        self._counts[kind] += 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) <= _EXAMPLES:
            short = case if len(case) <= _EXAMPLE_LENGTH else case[:_EXAMPLE_LENGTH] + "..."
            examples.append(short if len(examples) < _EXAMPLES else "...")

    def lines(self) -> tuple[str, ...]:
        """One printable line for each kind, in the order they were met."""
        found = self._counts.items()
        return tuple(one_line(f"{kind}: {n} ({', '.join(self._examples[kind])})") for kind, n in found)
