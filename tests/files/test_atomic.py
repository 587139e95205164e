from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from signspot.errors import EnvironmentProblem, InputError, OutputExists, SignspotError
from signspot.files.atomic import atomic_output, names_in, output_folder, refuse_existing, take_lock


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with atomic_output(target) as temporary:
        temporary.write_text("all of it")
        assert not target.exists()
    assert target.read_text() == "all of it"
    assert names_in(tmp_path) == ["out.txt"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError, match="midway"), atomic_output(target, overwrite=True) as temporary:
        temporary.write_text("half")
        raise RuntimeError("midway")
    assert target.read_text() == "old"
    assert names_in(tmp_path) == ["out.txt"]


def test_an_existing_file_is_not_replaced_unless_asked(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with (
        pytest.raises(OutputExists, match="exists already: choose another name, or add --overwrite"),
        atomic_output(target),
    ):
        raise AssertionError("must not get here")
    with atomic_output(target, overwrite=True) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"


def test_a_file_that_another_program_creates_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with pytest.raises(OutputExists, match="created by another program"), atomic_output(target) as temporary:
        temporary.write_text("ours")
        target.write_text("theirs")
    assert target.read_text() == "theirs"
    assert names_in(tmp_path) == ["out.txt"]


def test_a_folder_or_a_missing_folder_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"), atomic_output(tmp_path):
        pass
    with pytest.raises(InputError, match="the folder to write to does not exist"), atomic_output(tmp_path / "a" / "b"):
        pass


def test_a_folder_for_results_is_as_open_as_others_and_its_absence_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    output_folder(tmp_path / "a" / "b")
    output_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a folder: name a folder to write to"):
        output_folder(tmp_path / "file")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)  # for root, everything is allowed
    with pytest.raises(InputError, match="new: permission denied: choose another place"):
        output_folder(tmp_path / "new")


def test_a_full_disk_is_explained(tmp_path: Path) -> None:
    def write_much() -> None:
        with atomic_output(tmp_path / "out.bin") as temporary:
            temporary.write_bytes(bytes(1 << 20))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(EnvironmentProblem, match="the disk is full"):
            write_much()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert names_in(tmp_path) == []


def failing(monkeypatch: pytest.MonkeyPatch, name: str, number: int, *, folders_only: bool = False) -> None:
    """Let a call of the system fail, as on a disk or a network that does."""
    real = getattr(os, name)

    def fail(*arguments: object, **options: object) -> object:
        if folders_only and not stat.S_ISDIR(os.fstat(arguments[0]).st_mode):  # type: ignore[arg-type]
            return real(*arguments, **options)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_disk_is_explained_and_the_old_file_stays(
    call: str, number: int, overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.txt"
    if overwrite:
        target.write_text("old")
    failing(monkeypatch, call, number)
    failing(monkeypatch, "link", number)
    failing(monkeypatch, "unlink", number)  # not even the temporary file can be removed
    with pytest.raises(SignspotError) as caught, atomic_output(target, overwrite=overwrite) as temporary:
        temporary.write_text("new")
    assert caught.value.where == str(target)
    assert caught.value.exit_code == (2 if number == errno.EROFS else 3)
    assert target.exists() == overwrite and (not overwrite or target.read_text() == "old")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_that_flushes_no_folders_will_do(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "fsync", number, folders_only=True)
    with atomic_output(tmp_path / "out.txt") as temporary:
        temporary.write_text("all of it")
    assert names_in(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.EMLINK])
def test_a_file_system_without_links_will_do(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "link", number)
    with atomic_output(tmp_path / "out.txt") as temporary:
        temporary.write_text("all of it")
    assert names_in(tmp_path) == ["out.txt"]


def test_a_server_that_makes_a_link_twice_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to the first request was lost on the way; the second one finds the file there."""
    real = os.link

    def twice(source: Path, target: Path) -> None:
        real(source, target)
        real(source, target)

    monkeypatch.setattr(os, "link", twice)
    with atomic_output(tmp_path / "out.txt") as temporary:
        temporary.write_text("all of it")
    assert names_in(tmp_path) == ["out.txt"]


@pytest.mark.parametrize(("number", "code"), [(errno.EACCES, 2), (errno.EIO, 3), (errno.ESTALE, 3)])
def test_a_folder_that_cannot_be_looked_at_is_explained(
    number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "stat", number)
    with pytest.raises(SignspotError) as caught:
        refuse_existing(tmp_path / "out.txt")
    assert caught.value.exit_code == code and os.strerror(number) in str(caught.value)


def test_a_file_system_without_locks_has_none_to_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with (tmp_path / "lock").open("w") as file, (tmp_path / "lock").open("w") as other:
        assert take_lock(file)
        with pytest.raises(BlockingIOError):
            take_lock(other)
        monkeypatch.setattr(fcntl, "flock", no_locks)
        assert not take_lock(other)


def test_a_kill_before_the_end_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    script = (
        "import os, signal, sys; from pathlib import Path; from signspot.files.atomic import atomic_output\n"
        "with atomic_output(Path(sys.argv[1]), overwrite=True) as t:\n"
        "    t.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
