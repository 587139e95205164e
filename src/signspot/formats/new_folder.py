"""Writing a folder whole or not at all: it is filled under a temporary name beside, then takes its own name."""

from __future__ import annotations

import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from signspot.atomic import explained, flush, names_in
from signspot.errors import EnvironmentProblem, InputError, OutputExists
from signspot.interrupts import gone_afterwards


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
            _publish(temporary, folder, own_files, overwrite=overwrite)
    except OSError as error:
        raise explained(error, folder) from error


def refuse_folder(folder: Path, own_files: frozenset[str], *, overwrite: bool = False) -> None:
    """Raise if `folder` cannot be made or replaced."""
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
        raise InputError(folder, "is no folder", "name a folder to write")
    if not overwrite:
        raise OutputExists(folder, "exists already", "choose another name, or add --overwrite to replace it")
    if foreign:
        what = f"holds other files, such as {foreign[0][:80]!r}"
        raise OutputExists(folder, what, "choose another name, or move them away: nothing was replaced")


def _publish(temporary: Path, folder: Path, own_files: frozenset[str], *, overwrite: bool) -> None:
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
