"""Which shards count: a SQLite catalogue. A track exists from the moment its row is committed.

Vectors of dictionary clips are small and many, so they lie in the catalogue itself, each with a checksum.

One connection serves all threads, one at a time. Writers of several processes take turns; whoever waits too long is
told which process holds the catalogue.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import mmap
import os
import re
import sqlite3
import tempfile
import threading
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from signspot.domain.time import Progress, TimeAxis
from signspot.domain.tracks import LANDMARK_DIM, EmbeddingTrack, FloatArray, Vectors, WindowGrid
from signspot.errors import EnvironmentProblem, InputError, Notice, SignspotError, one_line, readable_size
from signspot.files.atomic import (
    NETWORK_FILE_SYSTEMS,
    atomic_output,
    disk_full,
    explained,
    file_system_of,
    flush,
    free_bytes,
    lock_holder,
    make_folder,
    own_folder,
    refuse_unwritable,
    take_lock,
)
from signspot.interrupts import at_interruption

_COLUMNS = "media_sha256, fingerprint, stride, video_id, n_windows, dim, partial, warnings, shard_sha256, n_bytes"
_OF_KEY = "media_sha256 = ? AND fingerprint = ? AND stride = ?"
_LONGEST_WAIT_SECONDS = 1.0  # inside SQLite, where Ctrl-C is not heard


def _create_tracks(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE track (media_sha256 TEXT NOT NULL, fingerprint TEXT NOT NULL, stride INTEGER NOT NULL,"
        " video_id TEXT NOT NULL, n_windows INTEGER NOT NULL, dim INTEGER NOT NULL, partial TEXT NOT NULL,"
        " warnings TEXT NOT NULL, shard_sha256 TEXT NOT NULL, n_bytes INTEGER NOT NULL,"
        " PRIMARY KEY (media_sha256, fingerprint, stride)) WITHOUT ROWID"
    )


def _create_entries(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE entry_vector (fingerprint TEXT NOT NULL, media_sha256 TEXT NOT NULL,"
        " landmarks_sha256 TEXT NOT NULL, part TEXT NOT NULL, name TEXT NOT NULL, vector BLOB NOT NULL,"
        " checksum BLOB NOT NULL, PRIMARY KEY (fingerprint, media_sha256, landmarks_sha256, part))"
    )
    connection.execute(
        "CREATE TABLE file (path BLOB NOT NULL PRIMARY KEY, stamp TEXT NOT NULL, sha256 TEXT NOT NULL,"
        " checksum BLOB NOT NULL) WITHOUT ROWID"
    )
    connection.execute("CREATE TABLE model (fingerprint TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID")


Migration = Callable[[sqlite3.Connection], None]
# The version of a catalogue is how many of these it has been through. Only ever add to the end.
MIGRATIONS: tuple[Migration, ...] = (_create_tracks, _create_entries)
_WITH_ENTRIES = 2  # the version that brought their tables; a folder that may only be read can have an older one
_ROWS_PER_QUERY = 500  # SQLite limits the parameters of a statement


class _Catalogue:
    """The rows of all stored tracks."""

    def __init__(
        self, path: Path, *, read_only: bool = False, on_network: bool = False, patience_seconds: float = 30.0
    ) -> None:
        self._path, self._read_only, self._patience = path, read_only, patience_seconds
        # No WAL on a network: its shared memory does not reach other machines.
        self._journal = "TRUNCATE" if on_network else "WAL"
        self._mutex = threading.RLock()
        with self._explained():
            self._connection = self._opened_read_only() if read_only else self._opened("mode=rwc")
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
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
            self._patiently("BEGIN IMMEDIATE", self._patience if patient else 0)
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
        return frozenset(_shard_name(*row) for row in self._rows("SELECT media_sha256, shard_sha256 FROM track"))

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

    def entries(self) -> tuple[_StoredEntry, ...]:
        """All vectors of dictionary clips, without the numbers."""
        columns = "fingerprint, media_sha256, landmarks_sha256, part, name, length(vector)"
        rows = self._newer_rows(f"SELECT {columns} FROM entry_vector ORDER BY name, media_sha256, part, fingerprint")
        return tuple(_StoredEntry(EntryKey(*key), fingerprint, n_bytes) for fingerprint, *key, n_bytes in rows)

    def entry_vectors(self, fingerprint: str, media: Iterable[str] | None) -> Iterator[tuple[EntryKey, bytes | None]]:
        """The vectors of clips (None: all) under one model as bytes; None in the place of a damaged one."""
        columns = "media_sha256, landmarks_sha256, part, name, vector, checksum"
        query = f"SELECT {columns} FROM entry_vector WHERE fingerprint = ?"
        if media is None:
            found = self._newer_rows(query, fingerprint)
        else:
            found = [
                row
                for some in _batches(dict.fromkeys(media))
                for row in self._newer_rows(f"{query} AND media_sha256 IN ({_marks(some)})", fingerprint, *some)
            ]
        for *key, vector, checksum in found:
            of = EntryKey(*key)
            yield of, vector if _is_sound(checksum, *_summed(of, fingerprint), vector) else None

    def add_entry_vectors(self, vectors: Mapping[EntryKey, bytes], fingerprint: str) -> None:
        """Add vectors of clips, inside `writing`, in place of those that are there."""
        rows = (
            (*_summed(key, fingerprint), one_line(key.name), vector, _checksum(*_summed(key, fingerprint), vector))
            for key, vector in vectors.items()
        )
        self._many("INSERT OR REPLACE INTO entry_vector VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def discard_entries(self, entries: Iterable[_StoredEntry]) -> None:
        where = "fingerprint = ? AND media_sha256 = ? AND landmarks_sha256 = ? AND part = ?"
        self._many(f"DELETE FROM entry_vector WHERE {where}", (_summed(e.key, e.fingerprint) for e in entries))

    def files(self, paths: Iterable[bytes]) -> dict[bytes, tuple[str, str]]:
        """What files looked like when they were hashed, and their sha256."""
        query = "SELECT path, stamp, sha256, checksum FROM file WHERE path IN"
        found = (row for some in _batches(paths) for row in self._newer_rows(f"{query} ({_marks(some)})", *some))
        return {path: (stamp, sha256) for path, stamp, sha256, made in found if _is_sound(made, path, stamp, sha256)}

    def add_files(self, files: Mapping[bytes, tuple[str, str]]) -> None:
        rows = ((path, stamp, sha256, _checksum(path, stamp, sha256)) for path, (stamp, sha256) in files.items())
        self._many("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?)", rows)

    def model_names(self) -> dict[str, str]:
        return dict(self._newer_rows("SELECT fingerprint, name FROM model"))

    def name_model(self, fingerprint: str, name: str) -> None:
        self._many("INSERT OR REPLACE INTO model VALUES (?, ?)", [(fingerprint, one_line(name))])

    def prune(self) -> None:
        """Forget files and models of which nothing is stored any more, inside `writing`."""
        self._rows(
            "DELETE FROM file WHERE sha256 NOT IN "
            "(SELECT media_sha256 FROM entry_vector UNION SELECT landmarks_sha256 FROM entry_vector)"
        )
        self._rows(
            "DELETE FROM model WHERE fingerprint NOT IN "
            "(SELECT fingerprint FROM track UNION SELECT fingerprint FROM entry_vector)"
        )

    def empty_log(self) -> None:
        """Let what was removed leave the write-ahead log, too, unless somebody reads it at this moment."""
        self._rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def faults(self) -> tuple[str, ...]:
        """What SQLite finds wrong with the file itself."""
        found = tuple(str(line) for (line,) in self._rows("PRAGMA integrity_check(20)"))
        return () if found == ("ok",) else found

    def _opened(self, query: str) -> sqlite3.Connection:
        wait = min(_LONGEST_WAIT_SECONDS, self._patience)
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
            if not self._read_only:
                self._patiently(f"PRAGMA journal_mode = {self._journal}", self._patience)
                self._rows("PRAGMA synchronous = FULL")
                self._rows("PRAGMA secure_delete = ON")  # what is withdrawn leaves no trace in free pages
        if self.version > len(MIGRATIONS):
            what = f"was written by a newer signspot (version {self.version}; this one knows {len(MIGRATIONS)})"
            raise InputError(self._path, what, "upgrade signspot, or name another folder")

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._mutex, self._explained():
            return self._connection.execute(sql, values).fetchall()

    def _newer_rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self._rows(sql, *values) if self.version >= _WITH_ENTRIES else []

    def _many(self, sql: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self._mutex, self._explained():
            self._connection.executemany(sql, rows)

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
        return DamagedCatalogue(self._path, f"the catalogue is damaged ({why})", _NEW_CATALOGUE)


class DamagedCatalogue(EnvironmentProblem):
    """A catalogue is not what SQLite wrote."""


_NEW_CATALOGUE = "move this file away and run the same command again: what lies in shards/ is found again"


def _batches(values: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(values)
    while some := list(islice(rest, _ROWS_PER_QUERY)):
        yield some


def _marks(values: list[Any]) -> str:
    return ", ".join("?" * len(values))


def _summed(key: EntryKey, fingerprint: str) -> tuple[str, ...]:
    return fingerprint, key.media_sha256, key.landmarks_sha256, key.part


def _checksum(*parts: str | bytes) -> bytes:
    """Of a row of the catalogue: SQLite does not notice flipped bits."""
    encoded = (part if isinstance(part, bytes) else part.encode() for part in parts)
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in encoded)).digest()


def _is_sound(checksum: object, *parts: object) -> bool:
    return all(isinstance(part, str | bytes) for part in parts) and checksum == _checksum(*parts)  # type: ignore[arg-type]


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


# One track as one file that never changes: a safetensors shard, named by its content. Vectors are kept as float16
# (n_windows, d), the time axis as float64 (n_frames,) in ms, everything else as one JSON text in the header. The format
# does not notice flipped bits, so the name carries the sha256 of the whole file. A shard is written piece by piece and
# read as a memory map, so that long videos need no more memory than short ones.

SUFFIX = ".safetensors"
_METADATA_KEY = "signspot"
_LARGEST_HALF = float(np.finfo(np.float16).max)
_SQUARE_TOLERANCE = 0.02  # of the squared length of a row that should be of length 1
_SHA256 = re.compile("[0-9a-f]{64}")
_BOX, _OF_CLIP = " box ", " entry "  # in fingerprints


class _DamagedShard(Exception):
    """A shard is not what the catalogue says; it has to be computed again."""


@dataclass(frozen=True, slots=True)
class TrackKey:
    """What a stored track belongs to: tracks that differ in any of these never mix."""

    media_sha256: str
    fingerprint: str  # of the embedder
    stride: int = 1

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.media_sha256):
            raise InputError(self.media_sha256, "is not the sha256 of a file", "give 64 digits from 0-9 and a-f")
        if not self.fingerprint or not self.fingerprint.isprintable():
            raise InputError(repr(self.fingerprint), "is not the fingerprint of a model", "give the embedder's own")
        if not 1 <= self.stride < 2**31:
            raise InputError(f"stride {self.stride}", "windows cannot lie that far apart", "give a small whole number")


@dataclass(frozen=True, slots=True)
class Remarks:
    """What was noticed while the video was read; an answer from the store repeats it."""

    partial: str = ""  # such as "partial, 3:52 of 42:00"
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrack:
    """What the catalogue knows about one shard."""

    key: TrackKey
    video_id: str
    n_windows: int
    dim: int
    remarks: Remarks
    shard_sha256: str
    n_bytes: int

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.shard_sha256):
            raise ValueError(f"{self.shard_sha256!r} is not a sha256")

    @property
    def file_name(self) -> str:
        return _shard_name(self.key.media_sha256, self.shard_sha256)

    @property
    def is_landmarks(self) -> bool:
        return self.dim == LANDMARK_DIM

    @property
    def is_of_clip(self) -> bool:
        return _OF_CLIP in self.key.fingerprint

    def in_words(self) -> str:
        what = "frames of landmarks" if self.is_landmarks else "windows"
        stride = f", one every {self.key.stride} frames" if self.key.stride > 1 else ""
        box = self.key.fingerprint.partition(_BOX)[2]
        return f"{self.n_windows:,} {what}{stride}{f', box {box}' if box else ''}"


@dataclass(frozen=True, slots=True)
class EntryKey:
    """What the vector of a dictionary clip depends on beside the model."""

    media_sha256: str
    landmarks_sha256: str = ""  # of the file of landmarks beside it, where they come from there
    part: str = ""  # of it that is shown
    name: str = field(default="", compare=False)  # for people: the same clip may have several


@dataclass(frozen=True, slots=True)
class _StoredEntry:
    """What the catalogue knows about the vector of one dictionary clip."""

    key: EntryKey
    fingerprint: str
    n_bytes: int


def _shard_name(media_sha256: str, shard_sha256: str) -> str:
    """Unique to the media and the content, so a name never changes its meaning."""
    return f"{media_sha256}.{shard_sha256}{SUFFIX}"


def _encode_shard(media_sha256: str, track: EmbeddingTrack, remarks: Remarks) -> tuple[StoredTrack, bytes]:
    """The row and the header of a track; the same track always gives the same bytes."""
    key = TrackKey(media_sha256, track.fingerprint, track.grid.stride)
    _refuse_unusable(track)
    card = {
        "key": asdict(key),
        "video_id": track.video_id,
        "n_frames": track.grid.n_frames,
        "length": track.grid.length,
        "origin_ms": track.axis.origin_ms,
        "remarks": asdict(remarks),
        **({} if track.unit_rows else {"unit_rows": False}),
    }
    header = _header(card, track)
    digest, n_bytes = hashlib.sha256(), 0
    for piece in _pieces(header, track):
        digest.update(piece)
        n_bytes += len(piece)
    return _stored(card, track.vectors.shape, digest.hexdigest(), n_bytes), header


def _verify_shard(path: Path, stored: StoredTrack) -> None:
    """Raise unless the file is, bit for bit, the one that was written."""
    with _readable(path), path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != stored.shard_sha256:
            raise _DamagedShard("does not have the checksum it was written with")


def _open_shard(path: Path, stored: StoredTrack) -> EmbeddingTrack:
    """The track of a shard that has been verified; its rows are a read-only map of float16, rounded as they lie there.

    Rows that should have length 1 have it but for that rounding: see `as_stored`.
    """
    with _readable(path):
        with safe_open(path, framework="numpy") as shard:
            card = json.loads(shard.metadata()[_METADATA_KEY])
            # A flipped bit in the catalogue may lead to the sound shard of another video.
            if TrackKey(**card["key"]) != stored.key:
                raise _DamagedShard("belongs to another video or model")
            axis = TimeAxis(shard.get_tensor("times_ms"), card["origin_ms"])
        grid = WindowGrid(card["n_frames"], card["length"], stored.key.stride)
        unit_rows = card.get("unit_rows", True)
        return EmbeddingTrack(card["video_id"], grid, axis, _mapped(path), stored.key.fingerprint, unit_rows)


def _stored_in(path: Path) -> StoredTrack:
    """What a shard says about itself; its checksum is taken from its name and not verified here."""
    with _readable(path):
        media_sha256, _, shard_sha256 = path.name.removesuffix(SUFFIX).partition(".")
        with safe_open(path, framework="numpy") as shard:
            card, shape = json.loads(shard.metadata()[_METADATA_KEY]), shard.get_slice("vectors").get_shape()
        stored = _stored(card, tuple(shape), shard_sha256, path.stat().st_size)
        if stored.key.media_sha256 != media_sha256:
            raise _DamagedShard("does not belong to the video it is named after")
        return stored


def _header(card: dict[str, Any], track: EmbeddingTrack) -> bytes:
    """The first bytes of a safetensors file, up to the arrays."""
    n_times, (n_rows, dim) = 8 * len(track.axis), track.vectors.shape
    parts = {
        "__metadata__": {_METADATA_KEY: json.dumps(card, sort_keys=True)},
        "times_ms": {"dtype": "F64", "shape": [len(track.axis)], "data_offsets": [0, n_times]},
        "vectors": {"dtype": "F16", "shape": [n_rows, dim], "data_offsets": [n_times, n_times + 2 * n_rows * dim]},
    }
    text = json.dumps(parts, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # what follows is read fastest where its place is a multiple of its size
    return len(text).to_bytes(8, "little") + text


def _pieces(header: bytes, track: EmbeddingTrack) -> Iterator[bytes]:
    yield header
    yield np.ascontiguousarray(track.axis.times_ms, "<f8").tobytes()
    for block in row_blocks(track.vectors):
        yield np.ascontiguousarray(block, "<f2").tobytes()


def _mapped(path: Path) -> Vectors:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        described = json.loads(file.read(length))["vectors"]
        if described["dtype"] != "F16":
            raise _DamagedShard(f"holds vectors of {described['dtype']}")
        n_rows, dim = described["shape"]
        return _mapped_rows(file, (n_rows, dim), "<f2", 8 + length + described["data_offsets"][0])


def _unusable(unit_rows: bool, rows: Vectors) -> npt.NDArray[np.bool_]:
    """Which rows must not be stored: what is not a number would win every comparison."""
    if not unit_rows:
        return np.asarray(~(np.abs(rows) <= _LARGEST_HALF).all(axis=1))
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    # A zero row is a window that could not be embedded.
    return np.asarray(~((squares == 0) | (np.abs(squares - 1) <= _SQUARE_TOLERANCE)))


def _refuse_unusable(track: EmbeddingTrack) -> None:
    if not np.isfinite(track.axis.origin_ms):
        raise InputError(track.video_id, f"an origin of {track.axis.origin_ms} ms", "check the video's timestamps")
    blocks = (_unusable(track.unit_rows, block) for block in row_blocks(track.vectors))
    unusable = np.concatenate([np.zeros(0, bool), *blocks])
    if unusable.any():
        fault = (
            "embeddings are neither of length 1 nor zero" if track.unit_rows else "vectors are no numbers or too large"
        )
        what = f"{unusable.sum()} of {len(unusable)} {fault}, first that of window {unusable.argmax()}"
        raise InputError(track.video_id, what, "nothing was stored; check the model")


def _stored(card: dict[str, Any], shape: tuple[int, ...], shard_sha256: str, n_bytes: int) -> StoredTrack:
    return StoredTrack(
        key=TrackKey(**card["key"]),
        video_id=card["video_id"],
        n_windows=shape[0],
        dim=shape[1],
        remarks=Remarks(card["remarks"]["partial"], tuple(card["remarks"]["warnings"])),
        shard_sha256=shard_sha256,
        n_bytes=n_bytes,
    )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Tell a shard that must be computed again from a disk that cannot be read."""
    try:
        yield
    except FileNotFoundError as error:
        raise _DamagedShard("is missing") from error
    except OSError as error:
        what = f"cannot be read ({error.strerror or error})"
        raise EnvironmentProblem(path, what, "check the disk and the permissions") from error
    except (SafetensorError, InputError, ValueError, KeyError, TypeError, IndexError) as error:
        raise _DamagedShard(f"is not a shard of signspot ({error})") from error


def as_stored(track: EmbeddingTrack) -> EmbeddingTrack:
    """The track as it comes back from a shard: rounded to halves, then float32 again, and of length 1 if it was.

    So a question has the same answer the first time and later.
    """
    with RowFile(track.vectors.shape[1]) as rows:
        for block in row_blocks(track.vectors):
            halves = block.astype(np.float16).astype(np.float32)
            if track.unit_rows:  # zero stays zero
                lengths = np.linalg.norm(halves, axis=1, keepdims=True)
                halves = (halves / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
            rows.append(halves)
        return replace(track, vectors=rows.mapped())


# Embeddings that are computed once: an immutable shard per video, model and stride, and a catalogue of them.
#
#     <folder>/catalogue.sqlite3                            which shards count, and vectors of dictionary clips
#     <folder>/shards/<media sha256>.<shard sha256>.safetensors
#     <folder>/unfinished/<media sha256>.<model>.rows       what a run that was cut short had computed
#
# A shard is written, flushed, named and its name flushed before its row is committed, and `put` returns after that. So
# whoever reads sees whole tracks only, and what `put` returned from outlives a crash. Everything here can be computed
# again from the media: a shard that does not have its checksum is dropped, which is logged, and the catalogue is made
# anew from the shards when it is lost.

_LOG = logging.getLogger(__name__)
_CATALOGUE, _SHARDS = "catalogue.sqlite3", "shards"
_LOCAL_DISK = "name a folder on a local disk (--store, or XDG_CACHE_HOME), or in Python allow it (StoreOptions)"
ORPHAN_SECONDS = 3600.0  # a file without a row that is younger may belong to a writer at work
UNFINISHED_SECONDS = 14 * 86400.0  # what nobody went on with for so long is given up
_FRESH_SECONDS = 2.0  # a file that changed so recently may change again without another time of change
_HASHED_AT_ONCE = 200  # files: a run that is stopped loses no more
_OLD_VECTORS = "entry-vectors"  # where versions up to 0.2.0 kept vectors of dictionary clips, by the names of files


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoreOptions:
    """How a store is opened."""

    allow_network: bool = False  # SQLite's locks are not reliable on every NFS or SMB server
    patience_seconds: float = 30.0  # how long to wait for another writer
    clock: Callable[[], float] = time.time  # seconds, as in the times of files


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """Rows of a track whose computation was cut short."""

    path: Path
    n_bytes: int

    @property
    def media_sha256(self) -> str:
        return self.path.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class _ModelTotal:
    """How much of a store belongs to one model."""

    model: str
    recordings: int
    clips: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What a store holds, or a part of it."""

    tracks: tuple[StoredTrack, ...] = ()
    entries: tuple[_StoredEntry, ...] = ()  # dictionary clips
    unfinished: tuple[_Unfinished, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict, compare=False)  # of models, by their fingerprints

    @property
    def n_bytes(self) -> int:
        kinds: tuple[tuple[StoredTrack | _StoredEntry | _Unfinished, ...], ...]
        kinds = (self.tracks, self.entries, self.unfinished)
        return sum(one.n_bytes for kind in kinds for one in kind)

    @property
    def media(self) -> frozenset[str]:
        recordings = (one.key.media_sha256 for one in self.tracks)
        clips = (one.key.media_sha256 for one in self.entries)
        return frozenset((*recordings, *clips, *(one.media_sha256 for one in self.unfinished)))

    def model(self, fingerprint: str) -> str:
        """What people call a model; the beginning of its fingerprint where nobody said."""
        return self.names.get(fingerprint) or fingerprint.partition(" ")[0][:12]

    def of(self, media_sha256: str | None = None, model: str | None = None) -> Kept:
        """What belongs to a recording, also as the landmarks of another, and to a model, by its name or fingerprint."""

        def chosen(fingerprint: str, *sources: str) -> bool:
            is_its = media_sha256 is None or media_sha256 in sources or media_sha256 in fingerprint
            named = (fingerprint, fingerprint.partition(" ")[0], fingerprint[:12], self.names.get(fingerprint))
            return is_its and (model is None or model in named)

        return replace(
            self,
            tracks=tuple(one for one in self.tracks if chosen(one.key.fingerprint, one.key.media_sha256)),
            entries=tuple(
                one for one in self.entries if chosen(one.fingerprint, one.key.media_sha256, one.key.landmarks_sha256)
            ),
            # The names of their files do not say which model they are of.
            unfinished=tuple(
                one for one in self.unfinished if model is None and media_sha256 in (None, one.media_sha256)
            ),
        )

    def recordings(self) -> tuple[StoredTrack, ...]:
        """The tracks of recordings by their names, without those of dictionary clips, which training keeps."""
        tracks = (track for track in self.tracks if not track.is_of_clip)
        return tuple(sorted(tracks, key=lambda track: (track.video_id, track.key.media_sha256, track.key.fingerprint)))

    def n_clips(self) -> int:
        tracks = {track.key.media_sha256 for track in self.tracks if track.is_of_clip}
        return len(tracks | {entry.key.media_sha256 for entry in self.entries})

    def totals(self) -> tuple[_ModelTotal, ...]:
        media: dict[str, set[str]] = defaultdict(set)
        clips: dict[str, set[str]] = defaultdict(set)
        sizes: Counter[str] = Counter()
        for track in self.tracks:
            model = self.model(track.key.fingerprint)
            (clips if track.is_of_clip else media)[model].add(track.key.media_sha256)
            sizes[model] += track.n_bytes
        for entry in self.entries:
            model = self.model(entry.fingerprint)
            clips[model].add(entry.key.media_sha256)
            sizes[model] += entry.n_bytes
        return tuple(_ModelTotal(name, len(media[name]), len(clips[name]), sizes[name]) for name in sorted(sizes))


def default_store_folder(environment: Mapping[str, str]) -> Path:
    """Where features are kept unless the user says otherwise: `$XDG_CACHE_HOME/signspot` or ~/.cache/signspot."""
    try:
        return own_folder(environment, "XDG_CACHE_HOME", ".cache") / "signspot"
    except EnvironmentProblem as error:
        what = f"{error.what}, so there is no place for stored features"
        raise EnvironmentProblem(error.where, what, "name a folder with --store") from error


def usable_store_folder(environment: Mapping[str, str]) -> Path:
    """The default folder, where it can be written; raises EnvironmentProblem otherwise."""
    folder = default_store_folder(environment)
    try:
        refuse_unwritable(folder)
    except EnvironmentProblem as error:
        raise EnvironmentProblem(folder, error.what, "name a folder with --store") from error
    return folder


def is_store(folder: Path) -> bool:
    """Whether anything is stored in a folder; opening one that does not exist would make it."""
    try:
        return (folder / _CATALOGUE).exists() or (folder / _SHARDS).is_dir()
    except OSError as error:  # nobody can tell
        raise explained(error, folder) from error


def open_store(folder: Path, options: _StoreOptions = _StoreOptions()) -> FeatureStore:
    """Open the store in `folder`, which is created if need be, and clear away what crashed writers left."""
    store = FeatureStore(folder, options)
    try:
        store.sweep()
    except BaseException:
        store.close()
        raise
    return store


class FeatureStore:
    """The stored tracks of one folder. Several threads and processes may use it at once."""

    def __init__(self, folder: Path, options: _StoreOptions = _StoreOptions()) -> None:
        self._folder, self._shards, self._options = folder, folder / _SHARDS, options
        self._unfinished, self._old_vectors = folder / "unfinished", folder / _OLD_VECTORS
        self._warnings: list[str] = []
        self._verified: set[str] = set()  # names of shards whose checksum was right
        self._has_grown = False  # since it was opened
        self._told = ExitStack()
        on_network = self._is_on_network()
        self._read_only = not self._prepare_folder()
        self._catalogue = _Catalogue(
            self._folder / _CATALOGUE,
            read_only=self._read_only,
            on_network=on_network,
            patience_seconds=options.patience_seconds,
        )
        try:
            self._upgrade()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        self._told.enter_context(at_interruption(self._kept))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._told.__exit__(kind, error, traceback)
        self.close()

    def _kept(self) -> str:
        return f"what was computed is kept in {self._folder} and is not computed again" if self._has_grown else ""

    def close(self) -> None:
        self._catalogue.close()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was noticed and survived since the store was opened, such as a damaged shard."""
        return tuple(self._warnings)

    def find(self, key: TrackKey) -> StoredTrack | None:
        """What is known about a track without reading it; None if it is not stored."""
        return self._catalogue.find(key)

    def get(self, key: TrackKey) -> EmbeddingTrack | None:
        """The stored track, verified, as float32 rows, of length 1 (or zero) unless they are a trunk's; None if absent.

        The track carries the video id of whoever stored it first: the same recording may have several names.
        """
        track = self.open_track(key)
        return None if track is None else as_stored(track)

    def open_rows(self, key: TrackKey) -> npt.NDArray[np.float16] | None:
        """The rows of a stored track as they lie on the disk: a read-only memory map; None if absent."""
        track = self.open_track(key)
        return None if track is None else track.vectors.astype(np.float16, copy=False)

    def open_track(self, key: TrackKey) -> EmbeddingTrack | None:
        """The stored track over the rows of `open_rows`; None if it has to be computed.

        A checksum is verified the first time only: reading a whole corpus again and again stays cheap.
        """
        stored = self.find(key)
        if stored is None:
            return None
        try:
            if stored.file_name not in self._verified:
                _verify_shard(self._path(stored), stored)
                self._verified.add(stored.file_name)
            return _open_shard(self._path(stored), stored)
        except _DamagedShard as damage:
            self._drop(stored, str(damage))
            return None

    def put(self, media_sha256: str, track: EmbeddingTrack, remarks: Remarks = Remarks(), model: str = "") -> None:
        """Store a track; when this returns it is safe on the disk. Of two tracks of one key the first stays.

        `model` is what people call what made it.
        """
        self._refuse_read_only()
        if self.find(TrackKey(media_sha256, track.fingerprint, track.grid.stride)):
            return
        stored, header = _encode_shard(media_sha256, track, remarks)
        path = self._path(stored)
        with self._room_for(path, stored.n_bytes), ExitStack() as turn:
            with atomic_output(path, overwrite=True) as temporary:
                with temporary.open("xb") as file:
                    file.writelines(_pieces(header, track))
                    file.flush()
                    os.fsync(file.fileno())  # the slow part, while others may still write
                # From here to the commit no other writer and no sweep comes between the file and its row.
                turn.enter_context(self._catalogue.writing())
            self._has_grown = True
            if not self._catalogue.add(stored) and path.name not in self._catalogue.file_names():
                self._unlink([path])  # another writer was first, with other bytes
            if model:
                self._catalogue.name_model(track.fingerprint, model)

    @contextmanager
    def unfinished(self, key: TrackKey, dim: int) -> Iterator[RowFile]:
        """Rows for the vectors of a track that is being computed, to be put before the block ends.

        An interruption keeps them, and the next run finds those of all finished blocks. They are gone once the block
        ends well, or because of what the user gave. If another program is at the same track, both compute all of it.
        """
        self._refuse_read_only()
        make_folder(self._unfinished)
        model = hashlib.sha256(f"{key.fingerprint} {key.stride}".encode()).hexdigest()
        path = self._unfinished / f"{key.media_sha256}.{model[:16]}.rows"
        left = [path, _sums_path(path)]
        try:
            rows = RowFile(dim, np.float16, path)
        except BlockingIOError:
            rows, left = RowFile(dim, np.float16), []

        def keep() -> None:
            self._has_grown |= rows.n_safe > 0

        with rows:
            try:
                with at_interruption(keep):
                    yield rows
            except InputError:
                self._unlink(left)
                raise
            self._unlink(left)

    def entry_vectors(self, keys: Iterable[EntryKey], fingerprint: str) -> dict[EntryKey, FloatArray]:
        """The vectors (d,) of those dictionary clips that have one under a model."""
        wanted = set(keys)
        found: dict[EntryKey, FloatArray] = {}
        for key, content in self._catalogue.entry_vectors(fingerprint, (key.media_sha256 for key in wanted)):
            if key in wanted and content is None:
                where = self._folder / _CATALOGUE
                self._lost(f"{where}: the stored vector of {key.name} is damaged: it is computed again")
            elif key in wanted and content is not None:
                found[key] = np.frombuffer(content, "<f4").astype(np.float32, copy=False)
        return found

    def put_entry_vectors(self, vectors: Mapping[EntryKey, FloatArray], fingerprint: str, *, model: str = "") -> None:
        """Store vectors (d,) of dictionary clips, all or none; when this returns they are safe on the disk.

        Those that are not finite are left out: they would win every comparison.
        """
        self._refuse_read_only()
        for key in vectors:
            for sha256 in filter(None, (key.media_sha256, key.landmarks_sha256)):
                TrackKey(sha256, fingerprint)
        usable = {key: np.asarray(v, "<f4").tobytes() for key, v in vectors.items() if np.isfinite(v).all()}
        with self._catalogue.writing():
            self._catalogue.add_entry_vectors(usable, fingerprint)
            if model and usable:
                self._catalogue.name_model(fingerprint, model)
        self._has_grown |= bool(usable)

    def sha256s(self, paths: Iterable[Path], digest: Callable[[Path], str]) -> dict[Path, str]:
        """The sha256 of every file that can be read; `digest` hashes those that are new or have changed.

        A file is believed to be the same while its size, its times of change and its number on the disk are.
        """
        names = {path: os.fsencode(path.absolute()) for path in paths}
        known = self._catalogue.files(names.values())
        found: dict[Path, str] = {}
        fresh: dict[bytes, tuple[str, str]] = {}
        for path, name in names.items():
            try:
                before, is_settled = self._stamp(path)
                stamp, sha256 = known.get(name, ("", ""))
                found[path] = sha256 if stamp == before else digest(path)
                if stamp != before and is_settled and self._stamp(path)[0] == before:
                    fresh[name] = (before, found[path])
            except (OSError, ValueError, InputError):  # reading it will say so
                continue
            if len(fresh) == _HASHED_AT_ONCE:
                self._remember(fresh)
                fresh = {}
        self._remember(fresh)
        return found

    def _stamp(self, path: Path) -> tuple[str, bool]:
        """What changes when a file does, and whether it is old enough to tell."""
        seen = path.stat()
        changed = max(seen.st_mtime, seen.st_ctime)
        stamp = f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns} {seen.st_dev} {seen.st_ino}"
        return stamp, changed < self._options.clock() - _FRESH_SECONDS

    def _remember(self, files: Mapping[bytes, tuple[str, str]]) -> None:
        if self._read_only or not files:
            return
        with suppress(SignspotError), self._catalogue.writing():  # it only saves time
            self._catalogue.add_files(files)

    def entries(self) -> tuple[StoredTrack, ...]:
        """Everything stored of recordings, sorted by media, model and stride."""
        return self._catalogue.tracks()

    def kept(self) -> Kept:
        """Everything stored: of recordings, of dictionary clips, and of runs that were cut short."""
        rows = (path for path in self._files() if path.parent == self._unfinished)
        unfinished = tuple(_Unfinished(path, _size_and_change(path)[0]) for path in sorted(rows))
        names = self._catalogue.model_names()
        return Kept(self.entries(), self._catalogue.entries(), unfinished, names)

    def verify(self, progress: Progress | None = None) -> tuple[Notice, ...]:
        """Read everything and report what is damaged; nothing is changed."""
        catalogue = str(self._folder / _CATALOGUE)
        problems = [Notice(catalogue, fault, _NEW_CATALOGUE) for fault in self._catalogue.faults()]
        for fingerprint in dict.fromkeys(entry.fingerprint for entry in self._catalogue.entries()):
            for key, content in self._catalogue.entry_vectors(fingerprint, None):
                if content is None:
                    what = f"the stored vector of the dictionary clip {key.name} is damaged"
                    problems.append(Notice(catalogue, what, _computed_again(key.media_sha256)))
        stored_tracks = self.entries()
        for number, stored in enumerate(stored_tracks):
            again = _computed_again(stored.key.media_sha256)
            try:
                _verify_shard(self._path(stored), stored)
                _open_shard(self._path(stored), stored)
            except _DamagedShard as damage:
                problems.append(Notice(str(self._path(stored)), str(damage), again))
            except EnvironmentProblem as problem:
                problems.append(Notice(str(self._path(stored)), problem.what, problem.fix))
            if progress is not None:
                progress("checking vectors", number + 1, len(stored_tracks))
        return tuple(problems)

    def remove(self, media_sha256: str | None, model: str | None = None) -> Kept:
        """Forget one video (None: all) under one model (None: every one); returns what there was.

        Half-written files of a crashed writer do not say whose they are: the next sweep takes them. Vectors of
        dictionary clips that older versions kept do not say so either, and nothing uses them: they all go.
        """
        self._refuse_read_only()
        if media_sha256 is not None:
            TrackKey(media_sha256, "any")
        with self._catalogue.writing():
            removed = self.kept().of(media_sha256, model)
            files = set(map(self._path, removed.tracks))
            if model is None:  # unfinished rows, and files that no row speaks of
                begins = media_sha256 or ""
                named = (p for p in self._files() if p.name.startswith(begins) and not p.name.startswith("."))
                files.update(named, (p for p in self._files() if p.parent == self._old_vectors))
            # Files first: should this be cut short, rows without files are harmless, files without rows are not gone.
            self._unlink(files)
            for stored in removed.tracks:
                self._catalogue.discard(stored)
            self._catalogue.discard_entries(removed.entries)
            self._catalogue.prune()
        self._catalogue.empty_log()
        return removed

    def sweep(self) -> int:
        """Delete old files that no row speaks of; returns how many. No turn to write: none."""
        if self._read_only or not self._orphans():
            return 0
        try:
            with self._catalogue.writing(patient=False):
                orphans = self._orphans()
                self._unlink(orphans)
                return len(orphans)
        except SignspotError as problem:
            self._warnings.append(f"left-over files could not be cleared: {problem}")
            return 0

    def _path(self, stored: StoredTrack) -> Path:
        return self._shards / stored.file_name

    def _prepare_folder(self) -> bool:
        """Make the folders unless they are there; False if they may only be read."""
        try:
            if not self._folder.is_dir() or os.access(self._folder, os.W_OK):
                make_folder(self._shards)
            places = (self._folder, self._shards, self._folder / _CATALOGUE)
            is_writable = all(os.access(place, os.W_OK) for place in places if place.exists())
            if not is_writable and not (self._folder / _CATALOGUE).exists():
                what = "holds no stored features and may not be written"
                raise InputError(self._folder, what, "name another folder")
        except OSError as error:
            raise explained(error, self._folder) from error
        return is_writable

    def _is_on_network(self) -> bool:
        system = file_system_of(self._folder)
        if system in NETWORK_FILE_SYSTEMS and not self._options.allow_network:
            what = f"lies on a network file system ({system}), where simultaneous writers may damage the catalogue"
            raise InputError(self._folder, what, _LOCAL_DISK)
        return system in NETWORK_FILE_SYSTEMS

    def _upgrade(self) -> None:
        if self._catalogue.version == len(MIGRATIONS) or (self._read_only and self._catalogue.version):
            return  # an older catalogue that may only be read lacks what came later, and serves for the rest
        self._refuse_read_only()
        with self._catalogue.writing():
            if self._catalogue.upgrade() > 0:
                return
            # A new catalogue beside old shards: the previous one was lost, hours of computing need not be.
            for path in sorted(self._shards.glob(f"[!.]*{SUFFIX}")):
                try:
                    self._catalogue.add(_stored_in(path))
                except _DamagedShard as damage:
                    self._lost(f"{path}: {damage}: its vectors are lost and computed again when needed")

    def _refuse_read_only(self) -> None:
        if self._read_only:
            fix = "change the folder's permissions, or name another folder"
            raise InputError(self._folder, "may be read but not written", fix)

    def _drop(self, stored: StoredTrack, why: str) -> None:
        """Let a damaged track be computed again."""
        self._verified.discard(stored.file_name)
        try:
            self._refuse_read_only()
            with self._catalogue.writing():
                if self._catalogue.discard(stored):
                    self._unlink([self._path(stored)])
        except SignspotError as problem:
            why = f"{why} (and could not be dropped: {problem.what})"
        self._lost(f"{self._path(stored)}: the stored vectors of {stored.video_id}: {why}: the track is computed again")

    def _lost(self, what: str) -> None:
        """Whoever runs a command waits longer for this, and learns that the disk may be failing."""
        self._warnings.append(what)
        _LOG.warning("%s", one_line(what))

    def _orphans(self) -> list[Path]:
        known, now = self._catalogue.file_names(), self._options.clock()
        ages = {self._shards: ORPHAN_SECONDS, self._unfinished: UNFINISHED_SECONDS, self._old_vectors: ORPHAN_SECONDS}
        return [p for p in self._files() if p.name not in known and _size_and_change(p)[1] < now - ages[p.parent]]

    def _files(self) -> Iterator[Path]:
        try:
            places = {self._shards: (SUFFIX,), self._unfinished: ROWS_SUFFIXES, self._old_vectors: (SUFFIX,)}
            for folder, suffixes in places.items():
                if folder.is_dir():
                    yield from (path for path in folder.iterdir() if path.suffix in suffixes)
        except OSError as error:
            raise explained(error, self._folder) from error

    def _unlink(self, paths: Iterable[Path]) -> None:
        try:
            folders = set()
            for path in paths:
                path.unlink(missing_ok=True)
                folders.add(path.parent)
            for folder in folders:
                flush(folder)
        except OSError as error:
            raise explained(error, self._folder) from error

    @contextmanager
    def _room_for(self, path: Path, n_bytes: int) -> Iterator[None]:
        """Say how much room is missing, before writing if it is known by then."""
        if free_bytes(self._shards) < n_bytes:
            raise disk_full(path, n_bytes)
        try:
            yield
        except EnvironmentProblem as problem:
            cause = problem.__cause__
            is_full = getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
            if is_full or (isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}):
                raise disk_full(path, n_bytes) from problem
            raise


def _computed_again(media_sha256: str) -> str:
    forget = f"`signspot store remove --sha256 {media_sha256[:12]}` forgets it now"
    return f"it is computed again when it is needed, or {forget}"


def _size_and_change(path: Path) -> tuple[int, float]:
    """The size of a file and when it last changed; 0 and never, if it is gone by now or cannot be looked at."""
    try:
        seen = path.stat()
    except OSError:
        return 0, float("inf")
    return seen.st_size, seen.st_mtime


# Rows of vectors on the disk: however many a video has, memory stays flat. Rows are written as they come and read back
# as a memory map. A file with a name outlives the program that wrote it: it keeps a checksum of every block, so that
# another run goes on after the last block that is sound.

ROWS_SUFFIXES = (".rows", ".sums")
BLOCK_ROWS = 64  # rows that are written, and may be lost, together
_ROWS_AT_ONCE = 4096
_SUM_BYTES = 4


class RowFile:
    """A growing file of rows (n, dim), float16 or float32; without a path it is gone when nothing uses it any more."""

    def __init__(self, dim: int, dtype: npt.DTypeLike = np.float32, path: Path | None = None) -> None:
        self.dim, self._dtype, self._path = dim, np.dtype(dtype), path
        self._waiting: list[npt.NDArray[Any]] = []  # rows of an unfinished block
        self._n_rows = 0  # those of finished blocks
        with self._explained():
            self._file = tempfile.TemporaryFile() if path is None else _opened(path)  # noqa: SIM115 (close)
            self._sums = tempfile.TemporaryFile() if path is None else _opened(_sums_path(path))  # noqa: SIM115
        try:
            with self._explained():
                if path is not None and not take_lock(self._file):  # BlockingIOError: somebody else writes it
                    for new in (path, _sums_path(path)):
                        if not new.stat().st_size:
                            new.unlink()
                    raise BlockingIOError(errno.EWOULDBLOCK, "nobody can tell whether somebody else writes it")
                self._keep_sound_blocks()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._n_rows + sum(map(len, self._waiting))

    @property
    def n_safe(self) -> int:
        """How many rows the next run would find."""
        return max(0, self._n_rows - BLOCK_ROWS) if self._path is not None else 0

    def close(self) -> None:
        for file in (self._file, self._sums):
            with suppress(OSError):  # what could not be written has been told, and closing tries it once more
                file.close()

    def append(self, rows: FloatArray) -> None:
        with np.errstate(over="ignore"):  # what a half cannot hold is infinite, and refused where it matters
            self._waiting.append(np.array(rows, self._dtype))
        if sum(map(len, self._waiting)) < BLOCK_ROWS:
            return
        waiting = np.concatenate(self._waiting)
        n_whole = len(waiting) // BLOCK_ROWS * BLOCK_ROWS
        self._waiting = [waiting[n_whole:]]
        for first in range(0, n_whole, BLOCK_ROWS):
            self._write(waiting[first : first + BLOCK_ROWS])

    def mapped(self) -> Vectors:
        """All rows (n, dim), read-only; nothing may be appended any more."""
        if self._waiting:
            self._write(np.concatenate(self._waiting))
            self._waiting = []
        return _mapped_rows(self._file, (self._n_rows, self.dim), self._dtype)

    def _write(self, block: npt.NDArray[Any]) -> None:
        content = block.tobytes()
        with self._explained():
            self._file.write(content)
            self._file.flush()
            if len(block) == BLOCK_ROWS:
                self._sums.write(zlib.crc32(content).to_bytes(_SUM_BYTES, "little"))
                self._sums.flush()
        self._n_rows += len(block)

    def _keep_sound_blocks(self) -> None:
        """Go to the end of what an earlier run left; the last block is written again.

        That one may hold the last window of the video, which is pulled back and so is no start for those that follow.
        """
        block_bytes = BLOCK_ROWS * self.dim * self._dtype.itemsize
        n_sound = 0
        while (block := self._file.read(block_bytes)) and len(block) == block_bytes:
            if self._sums.read(_SUM_BYTES) != zlib.crc32(block).to_bytes(_SUM_BYTES, "little"):
                break
            n_sound += 1
        n_kept = max(0, n_sound - 1)
        for file, n_bytes in ((self._file, n_kept * block_bytes), (self._sums, n_kept * _SUM_BYTES)):
            file.seek(n_bytes)
            file.truncate()
        self._n_rows = n_kept * BLOCK_ROWS

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:
            raise
        except OSError as error:
            raise explained(error, self._path or Path(tempfile.gettempdir())) from error


def _sums_path(path: Path) -> Path:
    """Where the checksums of a file of rows are."""
    return path.with_suffix(".sums")


def _mapped_rows(file: BinaryIO, shape: tuple[int, int], dtype: npt.DTypeLike, offset: int = 0) -> npt.NDArray[Any]:
    """Rows of an open file as a read-only memory map, which outlives the file object."""
    if not shape[0] * shape[1]:
        return np.empty(shape, dtype)
    length = offset + shape[0] * shape[1] * np.dtype(dtype).itemsize
    mapping = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)
    return np.ndarray(shape, dtype, mapping, offset)


def row_blocks(rows: Vectors) -> Iterator[Vectors]:
    """The rows a few thousand at a time; what has been seen of a memory map leaves the memory again."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        yield rows[first : first + _ROWS_AT_ONCE]
        if isinstance(rows.base, mmap.mmap):
            rows.base.madvise(mmap.MADV_DONTNEED)  # the kernel still has it, and gives it back if need be


def _opened(path: Path) -> BinaryIO:
    # Embeddings of people are nobody else's business.
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
