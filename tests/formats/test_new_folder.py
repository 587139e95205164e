from __future__ import annotations

from pathlib import Path

import pytest

from signspot.errors import EnvironmentProblem, InputError, OutputExists
from signspot.formats.new_folder import new_folder

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
    with pytest.raises(InputError, match="is no folder"), new_folder(tmp_path / "link", OWN, overwrite=True):
        pass
