"""Embeddings that are computed once: an immutable shard per video, model and stride, and a catalogue of them.

    <folder>/catalogue.sqlite3                            which shards count
    <folder>/shards/<media sha256>.<shard sha256>.safetensors
    <folder>/unfinished/<media sha256>.<model>.rows       what a run that was cut short had computed

A shard is written, flushed, named and its name flushed before its row is committed, and `put` returns after that. So
whoever reads sees whole tracks only, and what `put` returned from outlives a crash. Everything here can be computed
again from the media: a shard that does not have its checksum is dropped, which is logged, and the catalogue is made
anew from the shards when it is lost.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from signspot.atomic import atomic_output, explained, flush, own_folder, refuse_unwritable
from signspot.domain.tracks import EmbeddingTrack
from signspot.errors import EnvironmentProblem, InputError, SignspotError, one_line
from signspot.features.catalogue import MIGRATIONS, Access, Catalogue
from signspot.features.rows import ROWS_SUFFIXES, RowFile, sums_path
from signspot.features.shards import (
    SUFFIX,
    DamagedShard,
    Remarks,
    StoredTrack,
    TrackKey,
    as_stored,
    encode_shard,
    open_shard,
    rows_name,
    stored_in,
    verify_shard,
)
from signspot.features.stages import StageVectors
from signspot.features.store_disk import (
    NETWORK_FILE_SYSTEMS,
    disk_full,
    file_system_of,
    free_bytes,
    make_folder,
)
from signspot.interrupts import at_interruption

_LOG = logging.getLogger(__name__)
_CATALOGUE = "catalogue.sqlite3"
_LOCAL_DISK = "name a folder on a local disk (--store, or XDG_CACHE_HOME), or in Python allow it (StoreOptions)"
ORPHAN_SECONDS = 3600.0  # a file without a row that is younger may belong to a writer at work
UNFINISHED_SECONDS = 14 * 86400.0  # what nobody went on with for so long is given up


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How a store is opened."""

    allow_network: bool = False  # SQLite's locks are not reliable on every NFS or SMB server
    patience_seconds: float = 30.0  # how long to wait for another writer
    clock: Callable[[], float] = time.time  # seconds, as in the times of files


@dataclass(frozen=True, slots=True)
class Problem:
    """Something `verify` found wrong."""

    where: Path
    what: str


@dataclass(frozen=True, slots=True)
class ModelShare:
    """How much of a store one model fills."""

    fingerprint: str
    n_tracks: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """What a store holds, by model."""

    models: tuple[ModelShare, ...]

    @property
    def n_tracks(self) -> int:
        """The number of tracks of all models."""
        return sum(share.n_tracks for share in self.models)

    @property
    def n_bytes(self) -> int:
        """The size of all shards."""
        return sum(share.n_bytes for share in self.models)


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


def open_store(folder: Path, options: StoreOptions = StoreOptions()) -> FeatureStore:
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

    def __init__(self, folder: Path, options: StoreOptions = StoreOptions()) -> None:
        self._folder, self._shards, self._options = folder, folder / "shards", options
        self._unfinished = folder / "unfinished"
        self._warnings: list[str] = []
        self._verified: set[str] = set()  # names of shards whose checksum was right
        self._has_grown = False  # since it was opened
        self._told = ExitStack()
        on_network = self._is_on_network()
        self._read_only = not self._prepare_folder()
        patience = options.patience_seconds
        access = Access(read_only=self._read_only, on_network=on_network, patience_seconds=patience)
        self._catalogue = Catalogue(self._folder / _CATALOGUE, access)
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
        """Give the catalogue back; the store cannot be used any more."""
        self._catalogue.close()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was noticed and survived since the store was opened, such as a damaged shard."""
        return tuple(self._warnings)

    def find(self, media_sha256: str, fingerprint: str, stride: int = 1) -> StoredTrack | None:
        """What is known about a track without reading it; None if it is not stored."""
        return self._catalogue.find(TrackKey(media_sha256, fingerprint, stride))

    def get(self, media_sha256: str, fingerprint: str, stride: int = 1) -> EmbeddingTrack | None:
        """The stored track, verified, as float32 rows, of length 1 (or zero) unless they are a trunk's; None if absent.

        The track carries the video id of whoever stored it first: the same recording may have several names.
        """
        track = self.open_track(media_sha256, fingerprint, stride)
        return None if track is None else as_stored(track)

    def open_rows(self, media_sha256: str, fingerprint: str, stride: int = 1) -> npt.NDArray[np.float16] | None:
        """The rows of a stored track as they lie on the disk: a read-only memory map; None if absent."""
        track = self.open_track(media_sha256, fingerprint, stride)
        return None if track is None else track.vectors.astype(np.float16, copy=False)

    def open_track(self, media_sha256: str, fingerprint: str, stride: int = 1) -> EmbeddingTrack | None:
        """The stored track over the rows of `open_rows`; None if it has to be computed.

        A checksum is verified the first time only: reading a whole corpus again and again stays cheap.
        """
        stored = self.find(media_sha256, fingerprint, stride)
        if stored is None:
            return None
        try:
            if stored.file_name not in self._verified:
                verify_shard(self._path(stored), stored)
                self._verified.add(stored.file_name)
            return open_shard(self._path(stored), stored)
        except DamagedShard as damage:
            self._drop(stored, str(damage))
            return None

    def put(self, media_sha256: str, track: EmbeddingTrack, remarks: Remarks = Remarks()) -> None:
        """Store a track; when this returns it is safe on the disk. Of two tracks of one key the first stays."""
        self._refuse_read_only()
        if self.find(media_sha256, track.fingerprint, track.grid.stride):
            return
        shard = encode_shard(media_sha256, track, remarks)
        path = self._path(shard.stored)
        with self._room_for(path, shard.stored.n_bytes), ExitStack() as turn:
            with atomic_output(path, overwrite=True) as temporary:
                with temporary.open("xb") as file:
                    file.writelines(shard.pieces())
                    file.flush()
                    os.fsync(file.fileno())  # the slow part, while others may still write
                # From here to the commit no other writer and no sweep comes between the file and its row.
                turn.enter_context(self._catalogue.writing())
            self._has_grown = True
            if not self._catalogue.add(shard.stored) and path.name not in self._catalogue.file_names():
                self._unlink([path])  # another writer was first, with other bytes

    @contextmanager
    def unfinished(self, media_sha256: str, made: StageVectors, stride: int = 1) -> Iterator[RowFile]:
        """Rows for the vectors of a track that is being computed, to be put before the block ends.

        An interruption keeps them, and the next run finds those of all finished blocks. They are gone once the block
        ends well, or because of what the user gave. If another program is at the same track, both compute all of it.
        """
        self._refuse_read_only()
        make_folder(self._unfinished)
        path = self._unfinished / rows_name(TrackKey(media_sha256, made.fingerprint, stride))
        left = [path, sums_path(path)]
        try:
            rows = RowFile(made.dim, np.float16, path)
        except BlockingIOError:
            rows, left = RowFile(made.dim, np.float16), []
        with rows:
            try:
                with at_interruption(lambda: self._keep(rows)):
                    yield rows
            except InputError:
                self._unlink(left)
                raise
            self._unlink(left)

    def _keep(self, rows: RowFile) -> None:
        self._has_grown |= rows.n_safe > 0

    def entries(self) -> tuple[StoredTrack, ...]:
        """Everything stored, sorted by media, model and stride."""
        return self._catalogue.tracks()

    def summary(self) -> StoreSummary:
        """How many tracks and bytes each model has."""
        sizes: dict[str, list[int]] = defaultdict(list)
        for stored in self.entries():
            sizes[stored.key.fingerprint].append(stored.n_bytes)
        return StoreSummary(tuple(ModelShare(name, len(each), sum(each)) for name, each in sorted(sizes.items())))

    def verify(self) -> tuple[Problem, ...]:
        """Read everything and report what is damaged; nothing is changed."""
        problems = [Problem(self._folder / _CATALOGUE, fault) for fault in self._catalogue.faults()]
        for stored in self.entries():
            try:
                verify_shard(self._path(stored), stored)
                open_shard(self._path(stored), stored)
            except DamagedShard as damage:
                problems.append(Problem(self._path(stored), str(damage)))
            except EnvironmentProblem as problem:
                problems.append(Problem(self._path(stored), problem.what))
        return tuple(problems)

    def remove(self, media_sha256: str) -> int:
        """Forget one video under every model; returns how many tracks there were.

        Half-written files of a crashed writer do not say whose they are: the next sweep takes them.
        """
        self._refuse_read_only()
        key = TrackKey(media_sha256, "any")
        with self._catalogue.writing():
            removed = self._catalogue.tracks(key.media_sha256)
            # Files first: should this be cut short, rows without files are harmless, files without rows are not gone.
            self._unlink(path for path in self._files() if path.name.startswith(key.media_sha256))
            for stored in removed:
                self._catalogue.discard(stored)
        return len(removed)

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
        if self._catalogue.version == len(MIGRATIONS):
            return
        self._refuse_read_only()
        with self._catalogue.writing():
            if self._catalogue.upgrade() > 0:
                return
            # A new catalogue beside old shards: the previous one was lost, hours of computing need not be.
            for path in sorted(self._shards.glob(f"[!.]*{SUFFIX}")):
                try:
                    self._catalogue.add(stored_in(path))
                except DamagedShard as damage:
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
        ages = {self._shards: ORPHAN_SECONDS, self._unfinished: UNFINISHED_SECONDS}
        return [p for p in self._files() if p.name not in known and _modified(p) < now - ages[p.parent]]

    def _files(self) -> Iterator[Path]:
        try:
            yield from (path for path in self._shards.iterdir() if path.suffix == SUFFIX)
            if self._unfinished.is_dir():
                yield from (path for path in self._unfinished.iterdir() if path.suffix in ROWS_SUFFIXES)
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
            if _is_lack_of_space(problem.__cause__):
                raise disk_full(path, n_bytes) from problem
            raise


def _is_lack_of_space(cause: BaseException | None) -> bool:
    if isinstance(cause, OSError):
        return cause.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
    return isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL


def _modified(path: Path) -> float:
    """When a file last changed; never, if it is gone by now or cannot be looked at."""
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")
