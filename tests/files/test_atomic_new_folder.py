from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from signspot.errors import EnvironmentProblem, InputError, OutputExists
from signspot.files.atomic import new_folder

OWN = frozenset({"a", "b"})


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with new_folder(tmp_path / "d", OWN) as temporary:
        (temporary / "a").write_text("1")
        assert not (tmp_path / "d").exists() and temporary.parent == tmp_path
    assert (tmp_path / "d" / "a").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize(("error", "kind"), [(OSError(28, "full"), EnvironmentProblem), (KeyError("x"), KeyError)])
def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path: Path, error: Exception, kind: type) -> None:
    with new_folder(tmp_path / "d", OWN) as temporary:
        (temporary / "a").write_text("old")
    with pytest.raises(kind), new_folder(tmp_path / "d", OWN, overwrite=True) as temporary:
        (temporary / "a").write_text("new")
        raise error
    assert (tmp_path / "d" / "a").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_a_folder_made_by_somebody_else_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OutputExists, match="exists already"), new_folder(tmp_path / "d", OWN):
        (tmp_path / "d").mkdir()
    with (
        pytest.raises(OutputExists, match="holds other files"),
        new_folder(tmp_path / "d", OWN, overwrite=True) as temporary,
    ):
        (temporary / "a").touch()
        (tmp_path / "d" / "video.mp4").touch()
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["video.mp4"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(InputError, match="is not a folder"), new_folder(tmp_path / "link", OWN, overwrite=True):
        pass


def test_what_a_network_file_system_leaves_is_nobodys_file(tmp_path: Path) -> None:
    with new_folder(tmp_path / "d", OWN) as temporary:
        (temporary / "a").write_text("old")
    (tmp_path / "d" / ".nfs000000000000abcd00000001").touch()
    with new_folder(tmp_path / "d", OWN, overwrite=True) as temporary:
        (temporary / "a").write_text("new")
    assert (tmp_path / "d" / "a").read_text() == "new"


def test_an_old_folder_that_cannot_be_put_back_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_folder(tmp_path / "d", OWN) as temporary:
        (temporary / "a").write_text("old")
    rename = Path.rename

    def stale(path: Path, target: Path) -> Path:
        if path.name == "d":
            return rename(path, target)
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(Path, "rename", stale)
    with (
        pytest.raises(EnvironmentProblem, match=r"what it held is now in \.d\..*\.old") as caught,
        new_folder(tmp_path / "d", OWN, overwrite=True),
    ):
        pass
    (left,) = (path for path in tmp_path.iterdir() if path.name in str(caught.value))
    assert (left / "a").read_text() == "old"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_folder_whose_parent_cannot_be_flushed_appears(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", unsupported)
    with new_folder(tmp_path / "d", OWN):
        pass
    assert (tmp_path / "d").is_dir()
