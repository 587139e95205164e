"""Writing a file whole or not at all.

The new content goes to a temporary name in the same folder, is flushed to the disk, and only then takes the final
name. Whoever opens the file, at any moment and after any crash, sees the old content or the new, never a half.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from signspot.errors import EnvironmentProblem, InputError, OutputExists

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def atomic_output(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to; on success it becomes `path`, on failure it is gone.

    An existing `path` is refused unless `overwrite` is set; another program that creates it meanwhile is noticed too.
    """
    refuse_existing(path, overwrite=overwrite)
    # The suffix stays last: libraries choose the container or the picture format by it.
    temporary = path.with_name(f".signspot-{secrets.token_hex(8)}.tmp{path.suffix}")
    try:
        yield temporary
        _flush(temporary)
        _publish(temporary, path, overwrite=overwrite)
        _flush(path.parent)
    except OSError as error:
        raise explained(error, path) from error
    finally:
        temporary.unlink(missing_ok=True)


def refuse_existing(path: Path, *, overwrite: bool = False) -> None:
    """Raise if `path` cannot be a new file: it exists, it is a folder, or its folder does not exist."""
    if not path.parent.is_dir():
        raise InputError(path, "the folder to write to does not exist", f"create {path.parent} first")
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:  # a name that is too long, say
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


def explained(error: OSError, path: Path) -> EnvironmentProblem | InputError:
    """Say in the user's words why `path` could not be written."""
    if error.errno in _NO_SPACE:
        return EnvironmentProblem(path, "the disk is full", "free some space and run the same command again")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return InputError(path, "may not be written", "choose another place, or change the folder's permissions")
    return EnvironmentProblem(path, f"could not be written ({error.strerror or error})", "check the disk and try again")


def _publish(temporary: Path, path: Path, *, overwrite: bool) -> None:
    if overwrite:
        temporary.replace(path)
        return
    try:
        os.link(temporary, path)  # unlike a rename, a link never replaces
    except FileExistsError as error:
        raise OutputExists(path, "was created by another program meanwhile", "choose another name") from error
    except OSError:  # a file system without hard links
        refuse_existing(path)
        temporary.replace(path)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
