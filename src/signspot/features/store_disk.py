"""What the operating system knows about the place of a store: its file system, its free space, who holds it."""

from __future__ import annotations

import os
import re
import shutil
import socket
from contextlib import suppress
from pathlib import Path

from signspot.atomic import explained, flush
from signspot.errors import EnvironmentProblem, InputError, readable_size

NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs"}
_MOUNTS, _LOCKS = Path("/proc/self/mountinfo"), Path("/proc/locks")
_WAL_WRITE_LOCK = "120"  # the byte of the -shm file that SQLite's writer locks (sqlite.org/walformat.html, 2.3.1)


def file_system_of(folder: Path, mounts: str | None = None) -> str:
    """The type of the file system `folder` lies on, such as ext4 or nfs4; "" where the system does not say.

    `mounts` has the form of /proc/self/mountinfo.
    """
    place, best, found = Path(os.path.realpath(folder)), -1, ""
    for line in (_text_of(_MOUNTS) if mounts is None else mounts).splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        mount = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
        # Of two mounts on the same folder the later one hides the earlier.
        if place.is_relative_to(mount) and len(mount.parts) >= best:
            best, found = len(mount.parts), after.split()[0]
    return found


def lock_holder(catalogue: Path, locks: str | None = None) -> str:
    """In words: which process writes to `catalogue` now, as far as the system tells.

    `locks` has the form of /proc/locks.
    """
    shared = catalogue.with_name(f"{catalogue.name}-shm")
    inodes = {}
    for path in (catalogue, shared):
        with suppress(OSError):
            inodes[str(path.stat().st_ino)] = path
    for line in (_text_of(_LOCKS) if locks is None else locks).splitlines():
        fields = line.split()
        if len(fields) != 8 or fields[3] != "WRITE" or not fields[4].isdecimal():
            continue
        locked = inodes.get(fields[5].rpartition(":")[2])
        if locked == catalogue or (locked == shared and fields[6] == _WAL_WRITE_LOCK):
            return f"process {fields[4]} on {socket.gethostname()}"
    return f"another process, perhaps not on {socket.gethostname()}"


def make_folder(folder: Path) -> None:
    """Create a folder and its parents for this user alone, and see it on the disk."""
    try:
        if folder.is_dir():
            return
        if folder.parent != folder:
            make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)  # embeddings of people are nobody else's business
        flush(folder.parent)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(folder, "is not a folder", "name a folder for the stored features") from error
    except OSError as error:
        raise explained(error, folder) from error


def free_bytes(folder: Path) -> int:
    """How much may still be written beside `folder`."""
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        raise explained(error, folder) from error


def disk_full(path: Path, n_bytes: int) -> EnvironmentProblem:
    """The error that says how much room is missing for `path`."""
    what = f"the disk is full: needs {readable_size(n_bytes)}, {readable_size(free_bytes(path.parent))} are free"
    return EnvironmentProblem(path, what, "free some space and run the same command again")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # not Linux, or hidden: then nothing is known
