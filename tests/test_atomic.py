from __future__ import annotations

import errno
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signspot.atomic import atomic_output, output_folder
from signspot.errors import EnvironmentProblem, InputError, OutputExists


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


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
    with pytest.raises(InputError, match="new: may not be written: choose another place"):
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


def test_a_kill_before_the_end_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    script = (
        "import os, signal, sys; from pathlib import Path; from signspot.atomic import atomic_output\n"
        "with atomic_output(Path(sys.argv[1]), overwrite=True) as t:\n"
        "    t.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
