"""The door: what is in a pickle, as numbers and words, without running anything the file asks for."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

import numpy as np

from signspot.errors import EnvironmentProblem, InputError
from signspot.files.pickles import child
from signspot.files.pickles.scan import MAX_BYTES, Array, Findings, Kind, Limits, Refused, open_container, read_tree
from signspot.interrupts import gone_afterwards

_NOTHING_RAN = "Nothing was run. Get a .safetensors file, or the data in an open format"
_MB = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileReport:
    """What reading a file as bytes says about it."""

    path: Path
    kind: Kind | None  # None: of no kind that is read here
    n_bytes: int
    sha256: str  # "" for a file too large to read
    n_tensors: int = 0
    names: tuple[str, ...] = ()  # of all functions and classes the file wants
    is_python2: bool = False  # written by Python 2
    refusal: str = ""  # why it is not let in; "" if it is

    @property
    def summary(self) -> str:
        return self.refusal or f"{self.kind}, {self.n_tensors} tensors, 0 foreign objects"


@dataclass(frozen=True, slots=True, eq=False)
class _TensorFile:
    """The tensors of a file by their place in it, such as state_dict/module.logits.bias, and what else it holds."""

    report: _FileReport
    tensors: dict[str, Array]
    others: tuple[str, ...]  # the places of everything that is no tensor


def inspect(path: Path) -> _FileReport:
    """Say what a file holds, and whether it is let in; reads bytes only."""
    with _opened(path) as file:
        return _report(path, file)


def read_metadata(path: Path) -> object:
    """The plain data of a pickle: None, bool, int, float, str, bytes, list, tuple, dict, set and arrays of numbers."""
    return _read(path)[1]


def read_tensors(path: Path) -> _TensorFile:
    report, tree = _read(path)
    tensors: dict[str, Array] = {}
    others: list[str] = []
    for place, value in _leaves(tree, ""):
        if not isinstance(value, np.ndarray):
            others.append(place)
        elif place in tensors:
            raise InputError(path, f"holds two tensors at {place!r}", "get the file again")
        else:
            tensors[place] = value
    return _TensorFile(report, tensors, tuple(others))


def _leaves(tree: object, place: str) -> Iterator[tuple[str, object]]:
    if isinstance(tree, dict):
        members = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list | tuple):
        members = [(str(i), value) for i, value in enumerate(tree)]
    else:
        yield place, tree
        return
    for name, value in members:
        yield from _leaves(value, f"{place}/{name}" if place else name)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    try:
        # Without O_NONBLOCK a named pipe would wait for somebody to write to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(path, f"cannot be opened ({reason})", "check the name") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(path, "is not a file", "name a file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _report(path: Path, file: BufferedReader) -> _FileReport:
    n_bytes = os.fstat(file.fileno()).st_size
    kind, findings, refusal = None, Findings(), ""
    try:
        container = open_container(file, n_bytes)
        kind = container.kind
        findings = container.scan()
        findings.refuse_unknown(kind)
    except Refused as refused:
        refusal = str(refused)
    file.seek(0)
    return _FileReport(
        path=path,
        kind=kind,
        n_bytes=n_bytes,
        sha256=hashlib.file_digest(file, "sha256").hexdigest() if n_bytes <= MAX_BYTES else "",
        n_tensors=findings.n_tensors,
        names=tuple(findings.names),
        is_python2=findings.is_python2,
        refusal=refusal,
    )


def _read(path: Path) -> tuple[_FileReport, object]:
    with _opened(path) as file:
        report = _report(path, file)
        if report.kind is None or report.refusal:
            raise InputError(path, report.refusal, _NOTHING_RAN)
        try:
            return report, _tree_from_child(report, report.kind, file)
        except Refused as refused:
            raise InputError(path, str(refused), _NOTHING_RAN) from refused


def _limits(kind: Kind, n_bytes: int) -> Limits:
    """Generous for an honest file of this length, and nothing beyond."""
    size_mb = n_bytes // _MB
    if kind.is_torch:  # importing torch alone takes seconds
        return Limits(4 * n_bytes + 256 * _MB, 30 + size_mb // 4, 4 * n_bytes + 16 * _MB)
    return Limits(min(16 * n_bytes + 256 * _MB, 6144 * _MB), 5 + size_mb // 2, 8 * n_bytes + 16 * _MB)


def _tree_from_child(report: _FileReport, kind: Kind, file: BinaryIO) -> object:
    if sys.platform == "win32":
        raise EnvironmentProblem(report.path, "pickles are read only on Linux and macOS", "import the file there")
    limits = _limits(kind, report.n_bytes)
    words = [kind.value, "python2" if report.is_python2 else "python3", *map(str, astuple(limits))]
    with tempfile.TemporaryDirectory(prefix="signspot-quarantine-") as scratch, gone_afterwards(Path(scratch)):
        try:
            finished = subprocess.run(
                [sys.executable, "-P", "-B", "-m", child.__name__, *words],
                stdin=file,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=scratch,
                env=_environment(),
                start_new_session=True,
                timeout=3 * limits.cpu_seconds + 60,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Refused("takes too much time or memory to read") from error
        _raise_for(finished.returncode, Path(scratch), report.path)
        return read_tree(Path(scratch), limits.output_bytes)


def _environment() -> dict[str, str]:
    """Only what Python needs to find the same libraries: no token, no proxy, no switch of torch."""
    library_folders = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
    needed = {"PYTHONPATH": library_folders, "OMP_NUM_THREADS": "1"}
    return needed | {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def _raise_for(exit_code: int, scratch: Path, path: Path) -> None:
    if exit_code == 0:
        return
    if exit_code == child.DISK_FULL:
        what = f"could not be unpacked: the disk of {scratch.parent} is full"
        raise EnvironmentProblem(path, what, "free some space")
    reason_file = scratch / child.REASON
    reason = reason_file.read_bytes()[:400].decode("utf-8", "replace") if reason_file.is_file() else ""
    if exit_code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Refused("takes too much time or memory to read")
    if exit_code != child.REFUSED or not reason:
        raise Refused(f"made the process that read it fail (exit {exit_code})")
    raise Refused(reason)
