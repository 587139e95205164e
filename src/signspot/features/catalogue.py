"""Which shards count: one SQLite table. A track exists from the moment its row is committed.

One connection serves all threads, one at a time. Writers of several processes take turns; whoever waits too long is
told which process holds the catalogue.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signspot.errors import EnvironmentProblem, InputError, SignspotError, one_line, readable_size
from signspot.features.shards import Remarks, StoredTrack, TrackKey, shard_name
from signspot.features.store_disk import free_bytes, lock_holder

_COLUMNS = "media_sha256, fingerprint, stride, video_id, n_windows, dim, partial, warnings, shard_sha256, n_bytes"
_OF_KEY = "media_sha256 = ? AND fingerprint = ? AND stride = ?"
_LONGEST_WAIT_SECONDS = 1.0  # inside SQLite, where Ctrl-C is not heard


def _create_tracks(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE track (
            media_sha256 TEXT NOT NULL,
            fingerprint TEXT NOT NULL,
            stride INTEGER NOT NULL,
            video_id TEXT NOT NULL,
            n_windows INTEGER NOT NULL,
            dim INTEGER NOT NULL,
            partial TEXT NOT NULL,
            warnings TEXT NOT NULL,
            shard_sha256 TEXT NOT NULL,
            n_bytes INTEGER NOT NULL,
            PRIMARY KEY (media_sha256, fingerprint, stride)
        ) WITHOUT ROWID
        """
    )


Migration = Callable[[sqlite3.Connection], None]
# The version of a catalogue is how many of these it has been through. Only ever add to the end.
MIGRATIONS: tuple[Migration, ...] = (_create_tracks,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a catalogue is opened."""

    read_only: bool = False
    on_network: bool = False  # no WAL there: its shared memory does not reach other machines
    patience_seconds: float = 30.0


class Catalogue:
    """The rows of all stored tracks."""

    def __init__(self, path: Path, access: Access) -> None:
        self._path, self._access = path, access
        self._mutex = threading.RLock()
        with self._explained():
            self._connection = self._opened_read_only() if access.read_only else self._opened("mode=rwc")
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        with self._mutex, self._explained():
            self._connection.close()

    @property
    def version(self) -> int:
        """How many migrations the file has been through; 0 for a new one."""
        return int(self._rows("PRAGMA user_version")[0][0])

    def upgrade(self, migrations: tuple[Migration, ...] = MIGRATIONS) -> int:
        """Run the missing migrations, inside `writing`; return the version there was before."""
        before = self.version
        for migrate in migrations[before:]:
            migrate(self._connection)
        self._rows(f"PRAGMA user_version = {max(before, len(migrations))}")
        return before

    @contextmanager
    def writing(self, *, patient: bool = True) -> Iterator[None]:
        """All changes of the block together or none; nobody else writes meanwhile."""
        with self._mutex, self._explained():
            self._patiently("BEGIN IMMEDIATE", self._access.patience_seconds if patient else 0)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    def find(self, key: TrackKey) -> StoredTrack | None:
        """The row of `key`."""
        found = self._stored(f"WHERE {_OF_KEY}", key.media_sha256, key.fingerprint, key.stride)
        return found[0] if found else None

    def tracks(self, media_sha256: str = "") -> tuple[StoredTrack, ...]:
        """All rows, or those of one video, sorted by key."""
        order = "ORDER BY media_sha256, fingerprint, stride"
        return self._stored(f"WHERE media_sha256 = ? {order}", media_sha256) if media_sha256 else self._stored(order)

    def file_names(self) -> frozenset[str]:
        """The names of all shards that count."""
        return frozenset(shard_name(*row) for row in self._rows("SELECT media_sha256, shard_sha256 FROM track"))

    def add(self, stored: StoredTrack) -> bool:
        """Add a row, inside `writing`; False if the key has one already."""
        values = (
            *(stored.key.media_sha256, stored.key.fingerprint, stored.key.stride),
            *(one_line(stored.video_id), stored.n_windows, stored.dim),
            *(one_line(stored.remarks.partial), json.dumps(stored.remarks.warnings)),
            *(stored.shard_sha256, stored.n_bytes),
        )
        with self._mutex, self._explained():
            marks = ", ".join("?" * len(values))
            added = self._connection.execute(f"INSERT OR IGNORE INTO track ({_COLUMNS}) VALUES ({marks})", values)
            return added.rowcount == 1

    def discard(self, stored: StoredTrack) -> bool:
        """Remove a row, inside `writing`; False if it is gone or speaks of another shard by now."""
        key, where = stored.key, f"{_OF_KEY} AND shard_sha256 = ?"
        values = (key.media_sha256, key.fingerprint, key.stride, stored.shard_sha256)
        with self._mutex, self._explained():
            return self._connection.execute(f"DELETE FROM track WHERE {where}", values).rowcount == 1

    def faults(self) -> tuple[str, ...]:
        """What SQLite finds wrong with the file itself."""
        found = tuple(str(line) for (line,) in self._rows("PRAGMA integrity_check(20)"))
        return () if found == ("ok",) else found

    def _opened(self, query: str) -> sqlite3.Connection:
        wait = min(_LONGEST_WAIT_SECONDS, self._access.patience_seconds)
        uri = f"{self._path.absolute().as_uri()}?{query}"
        return sqlite3.connect(uri, timeout=wait, isolation_level=None, check_same_thread=False, uri=True)

    def _opened_read_only(self) -> sqlite3.Connection:
        connection = self._opened("mode=ro")
        try:
            connection.execute("PRAGMA user_version")
        except sqlite3.OperationalError:
            connection.close()
            # Where not even the shared memory of WAL may be made. With a log left over, rows would be missed.
            if self._path.with_name(f"{self._path.name}-wal").exists():
                raise
            return self._opened("mode=ro&immutable=1")
        return connection

    def _prepare(self) -> None:
        with self._explained():
            if not self._access.read_only:
                journal = "TRUNCATE" if self._access.on_network else "WAL"
                self._patiently(f"PRAGMA journal_mode = {journal}", self._access.patience_seconds)
                self._rows("PRAGMA synchronous = FULL")
                self._rows("PRAGMA secure_delete = ON")  # what is withdrawn leaves no trace in free pages
        if self.version > len(MIGRATIONS):
            what = f"was written by a newer signspot (version {self.version}; this one knows {len(MIGRATIONS)})"
            raise InputError(self._path, what, "upgrade signspot, or name another folder")

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._mutex, self._explained():
            return self._connection.execute(sql, values).fetchall()

    def _stored(self, where: str, *values: object) -> tuple[StoredTrack, ...]:
        rows = self._rows(f"SELECT {_COLUMNS} FROM track {where}", *values)
        try:
            return tuple(_from_row(row) for row in rows)
        except (InputError, ValueError, TypeError) as error:
            raise self._damaged(str(error)) from error

    def _patiently(self, sql: str, seconds: float) -> None:
        """Run a statement, again and again while others hold the catalogue."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._connection.execute(sql)
                return
            except sqlite3.OperationalError as error:
                if not _is(error, sqlite3.SQLITE_BUSY) or time.monotonic() >= deadline:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:  # a bug, or a store used after it was closed
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged schema makes messages that are no text
            raise self._in_words(error) from error

    def _in_words(self, error: Exception) -> SignspotError:
        if _is(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            holder = lock_holder(self._path)
            fix = "wait for it, let it continue, or end it, and run the same command again"
            return EnvironmentProblem(self._path, f"is held by {holder}", fix)
        if _is(error, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            what = f"could not be written ({error}; {readable_size(free_bytes(self._path.parent))} are free)"
            return EnvironmentProblem(self._path, what, "free some space or check the disk, then run it again")
        if _is(error, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOLFS):
            what = f"cannot be locked or written as this file system is ({error})"
            return EnvironmentProblem(self._path, what, "name a folder on a local disk")
        if _is(error, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            fix = "change its permissions, or name another folder"
            return InputError(self._path, f"cannot be opened ({error})", fix)
        return self._damaged(str(error))

    def _damaged(self, why: str) -> SignspotError:
        fix = "move this file away and run the same command again: what lies in shards/ is found again"
        return EnvironmentProblem(self._path, f"the catalogue is damaged ({why})", fix)


def _is(error: Exception, *codes: int) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes  # the low byte; the rest says more precisely why


def _from_row(row: tuple[Any, ...]) -> StoredTrack:
    media_sha256, fingerprint, stride, video_id, n_windows, dim, partial, warnings, shard_sha256, n_bytes = row
    return StoredTrack(
        key=TrackKey(media_sha256, fingerprint, int(stride)),
        video_id=video_id,
        n_windows=int(n_windows),
        dim=int(dim),
        remarks=Remarks(partial, tuple(json.loads(warnings))),
        shard_sha256=shard_sha256,
        n_bytes=int(n_bytes),
    )
