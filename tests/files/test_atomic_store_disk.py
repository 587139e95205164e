from __future__ import annotations

import stat
from pathlib import Path

import pytest

from signspot.errors import EnvironmentProblem, InputError
from signspot.files.atomic import NETWORK_FILE_SYSTEMS, disk_full, file_system_of, lock_holder, make_folder

MOUNTS = r"""
24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 24 0:25 / /data rw,nosuid - nfs4 server:/export rw,vers=4.2
31 30 254:1 / /data/local rw shared:7 master:2 - xfs /dev/vdb rw
32 24 0:26 / /with\040space rw - cifs //server/share rw
33 24 0:27 / /twice rw - nfs server:/x rw
34 24 0:28 / /twice rw - tmpfs tmpfs rw
a line that is none
"""


@pytest.mark.parametrize(
    ("folder", "system"),
    [
        ("/home/me", "ext4"),
        ("/data", "nfs4"),
        ("/data/a/b", "nfs4"),
        ("/data/local/a", "xfs"),
        ("/database", "ext4"),
        ("/with space/a", "cifs"),
        ("/twice/a", "tmpfs"),
    ],
)
def test_a_folder_lies_on_the_file_system_of_its_nearest_mount(folder: str, system: str) -> None:
    assert file_system_of(Path(folder), MOUNTS) == system


def test_links_are_followed_to_the_file_system_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/data/videos")
    (tmp_path / "loop").symlink_to("loop")
    assert file_system_of(tmp_path / "link", MOUNTS) == "nfs4"
    assert file_system_of(tmp_path / "loop", MOUNTS) == "ext4"


def test_the_real_file_system_is_known_and_local(tmp_path: Path) -> None:
    assert file_system_of(tmp_path) not in NETWORK_FILE_SYSTEMS | {""}
    assert file_system_of(tmp_path, "") == ""


def test_the_holder_is_who_locks_the_writers_byte(tmp_path: Path) -> None:
    catalogue, shared = tmp_path / "c.sqlite3", tmp_path / "c.sqlite3-shm"
    catalogue.touch()
    shared.touch()
    inode = shared.stat().st_ino
    reader = f"1: POSIX  ADVISORY  READ 11 fe:00:{inode} 123 123"
    other_file = "2: POSIX  ADVISORY  WRITE 22 fe:00:1 120 120"
    waiting = f"3: -> POSIX  ADVISORY  WRITE 33 fe:00:{inode} 120 120"
    holder = f"4: POSIX  ADVISORY  WRITE 44 fe:00:{inode} 120 120"
    assert lock_holder(catalogue, "\n".join((reader, other_file, waiting, holder))).startswith("process 44 on ")
    assert lock_holder(catalogue, "\n".join((reader, other_file))).startswith("another process")
    assert lock_holder(tmp_path / "none", holder).startswith("another process")


def test_folders_are_made_for_their_owner_only(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["file", "file/below", "loop"])
def test_what_cannot_be_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="is not a folder: name a folder"):
        make_folder(tmp_path / name)
    with pytest.raises(EnvironmentProblem, match="could not be written"):
        make_folder(tmp_path / ("x" * 300))


def test_a_full_disk_is_described_by_sizes(tmp_path: Path) -> None:
    assert "needs 12.3 MB, " in str(disk_full(tmp_path / "x", 12_345_678))
    assert "needs 4.3 kB, " in str(disk_full(tmp_path / "x", 4321))
    with pytest.raises(EnvironmentProblem, match="could not be written"):
        disk_full(tmp_path / "none" / "x", 1)
