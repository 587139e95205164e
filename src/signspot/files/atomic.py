"""Writing a file whole or not at all.

The new content goes to a temporary name in the same folder, is flushed to the disk, and only then takes the final
name. Whoever opens the file, at any moment and after any crash, sees the old content or the new, never a half.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from signspot.errors import EnvironmentProblem, InputError, OutputExists, SignspotError, readable_size
from signspot.interrupts import gone_afterwards


def safe_name(text: str) -> str:
    """At most 60 letters, digits, dots and dashes of a text, for the name of a file.

    >>> safe_name("and/or: really?")
    'and_or_really'
    """
    return re.sub(r"[^\w.-]+", "_", text)[:60].strip("_.") or "clip"


_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# What file systems of a network or of a user's program say to what they cannot do: flush a folder, lock a file.
_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK}
# The machine fails, whatever the program does.
_FAILING = _NO_SPACE | {errno.EIO, errno.ESTALE, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ETIMEDOUT, errno.ENOMEM}
_FAILING |= {errno.EMFILE, errno.ENFILE, errno.EREMOTEIO, errno.ENOLCK}


@contextmanager
def atomic_output(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to; on success it becomes `path`, on failure it is gone.

    An existing `path` is refused unless `overwrite` is set; another program that creates it meanwhile is noticed too.
    """
    refuse_existing(path, overwrite=overwrite)
    # The suffix stays last: libraries choose the container or the picture format by it.
    temporary = path.with_name(f".signspot-{secrets.token_hex(8)}.tmp{path.suffix}")
    try:
        with gone_afterwards(temporary):
            yield temporary
            flush(temporary)
            _publish(temporary, path, overwrite=overwrite)
            flush(path.parent)
    except OSError as error:
        raise explained(error, path) from error


def refuse_existing(path: Path, *, overwrite: bool = False) -> None:
    """Raise if `path` cannot be a new file: it exists, it is a folder, or its folder does not exist."""
    try:
        if not path.parent.is_dir():
            raise InputError(path, "the folder to write to does not exist", f"create {path.parent} first")
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:  # a name that is too long, say
        if error.errno in _FAILING:
            raise explained(error, path) from error
        raise InputError(path, f"cannot be a file ({error.strerror or error})", "choose another name") from error
    if stat.S_ISDIR(mode):
        raise InputError(path, "is a folder", "name a file to write")
    if not overwrite:
        raise OutputExists(path, "exists already", "choose another name, or add --overwrite to replace it")


def output_folder(folder: Path) -> None:
    """Create a folder for results, and its parents, where they are missing; open to whom new folders here are open."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(folder, "is not a folder", "name a folder to write to") from error
    except OSError as error:
        raise explained(error, folder) from error


def own_folder(environment: Mapping[str, str], variable: str, below_home: str) -> Path:
    """The user's folder of one kind: what an XDG variable names, or a folder below home; raises where there is none."""
    folder = Path(environment.get(variable, ""))
    if folder.is_absolute():  # the specification has relative ones ignored
        return folder
    home = Path(environment.get("HOME", ""))
    if not home.is_absolute():
        raise EnvironmentProblem("HOME", "is not set" if home == Path() else "is not the path of a folder")
    return home / below_home


def refuse_unwritable(folder: Path) -> None:
    """Raise where a folder, or what is missing of it, could not be written; nothing is left of the attempt.

    A home that is not there, as that of users for services, is none to be made.
    """
    try:
        place = next(path for path in (folder, *folder.parents) if path.exists())
        if place == Path(place.root):
            raise EnvironmentProblem(folder, "could not be written (no such folder)")
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise EnvironmentProblem(folder, f"could not be written ({error.strerror or error})") from error


def explained(error: OSError, path: Path) -> EnvironmentProblem | InputError:
    if error.errno in _NO_SPACE:
        return EnvironmentProblem(path, "the disk is full", "free some space and run the same command again")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return InputError(path, "permission denied", "choose another place, or change the folder's permissions")
    return EnvironmentProblem(path, f"could not be written ({error.strerror or error})", "check the disk and try again")


def machine_trouble(error: OSError) -> SignspotError | None:
    """What to say of a disk that fails where nobody expected it; None: the program is at fault."""
    if error.errno not in _FAILING:
        return None
    return explained(error, Path(os.fsdecode(error.filename)) if error.filename else Path("output"))


def _publish(temporary: Path, path: Path, *, overwrite: bool) -> None:
    if overwrite:
        temporary.replace(path)
        return
    try:
        os.link(temporary, path)  # unlike a rename, a link never replaces
    except FileExistsError as error:
        with suppress(OSError):
            if temporary.samefile(path):  # a network server that was asked twice, because its first answer was lost
                return
        raise OutputExists(path, "was created by another program meanwhile", "choose another name") from error
    except OSError:  # a file system without hard links
        refuse_existing(path)
        temporary.replace(path)


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, as far as the file system can tell."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)


def take_lock(file: IO[Any]) -> bool:
    """Hold an open file for this process; False where there are no locks; BlockingIOError if another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
    return True


def names_in(folder: Path) -> list[str]:
    """What a folder holds, sorted, without what NFS keeps of deleted files that are still open."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".nfs"))


# Writing a folder whole or not at all: it is filled under a temporary name beside, then takes its own name.


@contextmanager
def new_folder(folder: Path, own_files: frozenset[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder to fill; on success it becomes `folder`, on failure it is gone.

    An existing `folder` is replaced only if `overwrite` is set and it holds nothing but `own_files`: somebody may have
    put videos there.
    """
    refuse_folder(folder, own_files, overwrite=overwrite)
    temporary = folder.with_name(f".{folder.name[:80]}.{secrets.token_hex(6)}.tmp")
    try:
        with gone_afterwards(temporary):
            temporary.mkdir()
            yield temporary
            _publish_folder(temporary, folder, own_files, overwrite=overwrite)
    except OSError as error:
        raise explained(error, folder) from error


def refuse_folder(folder: Path, own_files: frozenset[str], *, overwrite: bool = False) -> None:
    try:
        if not folder.parent.is_dir():
            raise InputError(folder, "the folder to write to does not exist", f"create {folder.parent} first")
        mode = folder.lstat().st_mode
        foreign = sorted(set(names_in(folder)) - own_files) if stat.S_ISDIR(mode) else []
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(folder, "cannot be a folder to write", "choose another name") from error
    if not stat.S_ISDIR(mode):
        raise InputError(folder, "is not a folder", "name a folder to write")
    if not overwrite:
        raise OutputExists(folder, "exists already", "choose another name, or add --overwrite to replace it")
    if foreign:
        what = f"holds other files, such as {foreign[0][:80]!r}"
        raise OutputExists(folder, what, "choose another name, or move them away: nothing was replaced")


def _publish_folder(temporary: Path, folder: Path, own_files: frozenset[str], *, overwrite: bool) -> None:
    refuse_folder(folder, own_files, overwrite=overwrite)
    old = temporary.with_suffix(".old")
    replaces = folder.is_dir()
    if replaces:
        folder.rename(old)
    try:
        temporary.rename(folder)
    except OSError:
        if replaces:
            _restore(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
    flush(folder.parent)


def _restore(old: Path, folder: Path) -> None:
    try:
        old.rename(folder)
    except OSError as error:
        what = f"could not be replaced ({error.strerror or error}), and what it held is now in {old.name}"
        raise EnvironmentProblem(folder, what, "check the disk, and give that folder its name again") from error


# What the operating system knows about the place of a store: its file system, its free space, who holds it.

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
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        raise explained(error, folder) from error


def disk_full(path: Path, n_bytes: int) -> EnvironmentProblem:
    what = f"the disk is full: needs {readable_size(n_bytes)}, {readable_size(free_bytes(path.parent))} are free"
    return EnvironmentProblem(path, what, "free some space and run the same command again")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # not Linux, or hidden: then nothing is known
