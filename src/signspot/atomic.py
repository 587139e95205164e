"""Writing a file whole or not at all.

The new content goes to a temporary name in the same folder, is flushed to the disk, and only then takes the final
name. Whoever opens the file, at any moment and after any crash, sees the old content or the new, never a half.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from signspot.errors import EnvironmentProblem, InputError, OutputExists, SignspotError
from signspot.interrupts import gone_afterwards

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
    """Say in the user's words why `path` could not be written."""
    if error.errno in _NO_SPACE:
        return EnvironmentProblem(path, "the disk is full", "free some space and run the same command again")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return InputError(path, "may not be written", "choose another place, or change the folder's permissions")
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
        if _is_same(temporary, path):  # a server of a network that was asked twice, because its first answer was lost
            return
        raise OutputExists(path, "was created by another program meanwhile", "choose another name") from error
    except OSError:  # a file system without hard links
        refuse_existing(path)
        temporary.replace(path)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


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
    """What a folder holds, sorted, without what a network file system keeps of deleted files that are still open."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".nfs"))
