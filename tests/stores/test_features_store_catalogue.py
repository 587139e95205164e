from __future__ import annotations

import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from signspot.errors import EnvironmentProblem
from signspot.stores.features import MIGRATIONS, Remarks, StoredTrack, TrackKey, _Catalogue
from tests.stores.store_tracks import media

STORED = StoredTrack(
    key=TrackKey(media(1), "model"),
    video_id="video",
    n_windows=3,
    dim=4,
    remarks=Remarks("partial, 0:01 of 0:02", ("one", "two")),
    shard_sha256=media(2),
    n_bytes=5,
)


def opened(tmp_path: Path) -> _Catalogue:
    catalogue = _Catalogue(tmp_path / "c.sqlite3", patience_seconds=0.2)
    if not catalogue.version:
        with catalogue.writing():
            catalogue.upgrade()
    return catalogue


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    catalogue = opened(tmp_path)
    with catalogue.writing():
        assert catalogue.add(STORED)
        assert not catalogue.add(replace(STORED, video_id="another"))
    catalogue.close()
    again = opened(tmp_path)
    assert again.find(STORED.key) == STORED
    assert again.tracks() == again.tracks(media(1)) == (STORED,)
    assert again.tracks(media(2)) == ()
    assert again.faults() == ()
    again.close()


def test_a_row_is_discarded_only_if_it_speaks_of_the_same_shard(tmp_path: Path) -> None:
    catalogue = opened(tmp_path)
    with catalogue.writing():
        catalogue.add(STORED)
        assert not catalogue.discard(replace(STORED, shard_sha256=media(3)))
        assert catalogue.discard(STORED)
        assert not catalogue.discard(STORED)
    catalogue.close()


def test_a_block_that_fails_changes_nothing(tmp_path: Path) -> None:
    catalogue = opened(tmp_path)
    with pytest.raises(KeyboardInterrupt), catalogue.writing():
        catalogue.add(STORED)
        raise KeyboardInterrupt
    assert catalogue.tracks() == ()
    with catalogue.writing():
        catalogue.add(STORED)
    assert catalogue.tracks() == (STORED,)
    catalogue.close()


def test_readers_see_committed_rows_only(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    with one.writing():
        one.add(STORED)
        assert other.find(STORED.key) is None
        with pytest.raises(EnvironmentProblem, match="is held by "), other.writing():
            pass
    assert other.find(STORED.key) == STORED
    one.close()
    other.close()


def test_a_writer_waits_for_its_turn(tmp_path: Path) -> None:
    one, other = opened(tmp_path), _Catalogue(tmp_path / "c.sqlite3", patience_seconds=30)

    def hold(held: threading.Event) -> None:
        with one.writing():
            held.set()
            time.sleep(1.5)  # longer than SQLite itself waits
            one.add(STORED)

    held = threading.Event()
    thread = threading.Thread(target=hold, args=(held,))
    thread.start()
    held.wait()
    with other.writing():
        assert other.find(STORED.key) == STORED
    thread.join()
    one.close()
    other.close()


def test_rows_outlive_a_power_cut_by_the_settings(tmp_path: Path) -> None:
    catalogue = opened(tmp_path)
    assert catalogue._rows("PRAGMA journal_mode") == [("wal",)]
    assert catalogue._rows("PRAGMA synchronous") == [(2,)]
    catalogue.close()


def add_a_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE track ADD COLUMN language TEXT NOT NULL DEFAULT ''")


def stumble(connection: sqlite3.Connection) -> None:
    connection.execute("no such statement")


def test_migrations_run_once_in_order_and_keep_the_rows(tmp_path: Path) -> None:
    catalogue = opened(tmp_path)
    with catalogue.writing():
        catalogue.add(STORED)
    newer = (*MIGRATIONS, add_a_column)
    for before in (len(MIGRATIONS), len(newer)):
        with catalogue.writing():
            assert catalogue.upgrade(newer) == before
    assert catalogue.version == len(newer)
    assert catalogue.tracks() == (STORED,)
    catalogue.close()


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path) -> None:
    catalogue = opened(tmp_path)
    with pytest.raises(EnvironmentProblem), catalogue.writing():
        catalogue.upgrade((*MIGRATIONS, add_a_column, stumble))
    assert catalogue.version == len(MIGRATIONS)
    assert "language" not in str(catalogue._rows("SELECT sql FROM sqlite_schema"))
    catalogue.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE track SET shard_sha256 = '../../etc/passwd'",
        "UPDATE track SET media_sha256 = 'x'",
        "UPDATE track SET warnings = '{'",
        "UPDATE track SET n_bytes = 'many'",
        "UPDATE track SET video_id = CAST(x'ff' AS TEXT)",
        "ALTER TABLE track DROP COLUMN partial",
        "DROP TABLE track",
    ],
)
def test_a_row_that_makes_no_sense_is_a_damaged_catalogue(tmp_path: Path, change: str) -> None:
    catalogue = opened(tmp_path)
    with catalogue.writing():
        catalogue.add(STORED)
    catalogue.close()
    with sqlite3.connect(tmp_path / "c.sqlite3") as connection:
        connection.execute(change)
    connection.close()
    damaged = opened(tmp_path)
    with pytest.raises(EnvironmentProblem, match="the catalogue is damaged"):
        damaged.tracks()
    damaged.close()


def test_an_odd_path_is_no_question_to_sqlite(tmp_path: Path) -> None:
    folder = tmp_path / "a?mode=memory#b%20c"
    folder.mkdir()
    opened(folder).close()
    assert (folder / "c.sqlite3").exists()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (sqlite3.SQLITE_PROTOCOL, "name a folder on a local disk"),
        (sqlite3.SQLITE_IOERR_LOCK, "check the disk"),
        (sqlite3.SQLITE_IOERR_FSYNC, "check the disk"),
        (sqlite3.SQLITE_BUSY_RECOVERY, "is held by"),
        (sqlite3.SQLITE_FULL, "free some space"),
    ],
)
def test_what_a_network_or_a_disk_does_to_a_catalogue_is_no_damage(tmp_path: Path, number: int, said: str) -> None:
    error = sqlite3.OperationalError("as SQLite puts it")
    error.sqlite_errorcode = number
    catalogue = opened(tmp_path)
    with pytest.raises(EnvironmentProblem, match=said) as caught, catalogue._explained():
        raise error
    catalogue.close()
    assert "damaged" not in str(caught.value) and caught.value.exit_code == 3
