"""Crashes, full disks, failing disks and quarrelling writers, with real processes."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from signspot.errors import EnvironmentProblem
from signspot.stores.features import TrackKey, _StoreOptions, open_store
from tests.stores.store_tracks import MODEL, entry_key, entry_vector, make_track, media, same

ROOT = Path(__file__).parents[2]
WRITER = (sys.executable, "-m", "tests.stores.store_tracks")
IN_TWO_HOURS = _StoreOptions(clock=lambda: time.time() + 7200)
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
STRACE = (shutil.which("strace") or "", "-f", "-qq", "-y", "-s", "16")
WRITING_CALLS = ("write", "pwrite64", "fsync", "fdatasync", "rename", "ftruncate")


def can_trace() -> bool:
    return bool(STRACE[0]) and subprocess.run([*STRACE, "true"], capture_output=True).returncode == 0


needs_strace = pytest.mark.skipif(not can_trace(), reason="strace is not installed, or may not trace here")


@contextmanager
def writer(task: str, folder: Path, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [*WRITER, task, str(folder), *map(str, arguments)]
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def stored_numbers(folder: Path, numbers: range) -> set[int]:
    """Which tracks are there; everything that is there must be whole."""
    with open_store(folder) as store:
        found = {number for number in numbers if store.find(TrackKey(media(number), MODEL))}
        assert store.verify() == ()
        assert all(same(store.get(TrackKey(media(number), MODEL)), make_track(number)) for number in list(found)[-3:])
        assert store.warnings == ()
    return found


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.soak)])
def test_what_was_acknowledged_outlives_a_kill_at_any_moment(tmp_path: Path, kills: int) -> None:
    rng, acknowledged = random.Random(0), set[int]()
    for kill in range(kills):
        first = 1000 * kill
        with writer("write", tmp_path, first, first + 1000) as process:
            assert said(process) == "ready"
            fresh = {int(said(process)) for _ in range(rng.randrange(4))}
            time.sleep(rng.uniform(0, 0.03))
            process.kill()
            assert process.stdout is not None
            # The last line may be cut short; a whole one was acknowledged.
            fresh |= {int(line) for line in process.stdout if line.endswith("\n")}
        acknowledged |= fresh
        found = stored_numbers(tmp_path, range(first, first + 1000))
        assert fresh <= found
        assert len(found - fresh) <= 1  # committed, killed before it could say so
    with open_store(tmp_path, IN_TWO_HOURS) as store:
        names = {stored.file_name for stored in store.entries()}
        assert {media(number) for number in acknowledged} <= {stored.key.media_sha256 for stored in store.entries()}
    assert {path.name for path in (tmp_path / "shards").iterdir()} == names
    assert len(acknowledged) > kills


def test_two_processes_store_every_video_exactly_once(tmp_path: Path) -> None:
    # Other names make other bytes, so that the loser of a race must clear its own file away.
    with writer("write", tmp_path, 0, 50, 1, "left") as one, writer("write", tmp_path, 49, -1, -1, "right") as other:
        assert [said(process) for process in (one, other)] == ["ready", "ready"]
        assert [len(process.communicate()[0].split()) for process in (one, other)] == [50, 50]
        assert (one.returncode, other.returncode) == (0, 0)
    with open_store(tmp_path) as store:
        assert sorted(stored.key.media_sha256 for stored in store.entries()) == sorted(map(media, range(50)))
        assert store.verify() == ()
        names = {stored.file_name for stored in store.entries()}
    assert {path.name for path in (tmp_path / "shards").iterdir()} == names


def test_vectors_of_clips_outlive_a_kill_and_two_processes_store_them_at_once(tmp_path: Path) -> None:
    acknowledged = set[int]()
    for first in (0, 1000, 2000):
        with (
            writer("write-entries", tmp_path, first, first + 1000) as process,
            writer("write-entries", tmp_path, first, first + 30) as other,
        ):
            assert [said(process), said(other)] == ["ready", "ready"]
            acknowledged |= {int(said(process)) for _ in range(5)}
            process.kill()
            assert process.stdout is not None
            acknowledged |= {int(line) for line in process.stdout if line.endswith("\n")}
            assert len(other.communicate()[0].split()) == 30 and other.returncode == 0
            acknowledged |= set(range(first, first + 30))
    with open_store(tmp_path) as store:
        found = store.entry_vectors(map(entry_key, range(3000)), MODEL)
        assert {entry_key(number) for number in acknowledged} <= found.keys()
        assert all(np.array_equal(found[entry_key(n)], entry_vector(n)) for n in acknowledged)
        assert store.verify() == ()


def test_many_processes_may_create_a_store_at_once(tmp_path: Path) -> None:
    command = [*WRITER, "write", str(tmp_path / "new"), "0", "3"]
    processes = [subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE) for _ in range(4)]
    assert [process.communicate()[0].split() for process in processes] == [[b"ready", b"0", b"1", b"2"]] * 4
    assert stored_numbers(tmp_path / "new", range(5)) == {0, 1, 2}


def test_a_stopped_writer_is_named_and_does_not_block_readers(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
    (tmp_path / "shards" / ".orphan.safetensors").touch()
    with writer("hold", tmp_path) as process:
        assert [said(process), said(process)] == ["ready", "held"]
        process.send_signal(signal.SIGSTOP)
        with open_store(tmp_path, _StoreOptions(patience_seconds=0.3, clock=IN_TWO_HOURS.clock)) as store:
            assert "left-over files could not be cleared" in store.warnings[0]
            assert same(store.get(TrackKey(media(1), MODEL)), make_track(1))
            with pytest.raises(EnvironmentProblem, match=rf"is held by process {process.pid} on .+: wait for it"):
                store.put(media(2), make_track(2))
            process.kill()
            process.wait()
            store.put(media(2), make_track(2))
    assert stored_numbers(tmp_path, range(5)) == {1, 2}


def test_a_file_size_limit_is_a_typed_error_and_leaves_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
    limited = f"ulimit -f 1; exec {' '.join(WRITER)} write {tmp_path} 2 3"
    done = subprocess.run(["bash", "-c", limited], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert "refused" in done.stdout and done.stderr == ""
    assert stored_numbers(tmp_path, range(5)) == {1}
    assert len(list((tmp_path / "shards").iterdir())) == 1


@contextmanager
def small_disk(folder: Path, n_kilobytes: int) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={n_kilobytes}k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("n_frames", [20, 200, 3000])
def test_a_full_disk_stops_with_the_sizes_and_nothing_is_damaged(tmp_path: Path, n_frames: int) -> None:
    with small_disk(tmp_path / "disk", 600) as disk:
        (disk / "ballast").write_bytes(bytes(200_000))
        n_stored = 0
        with open_store(disk) as store:
            with pytest.raises(EnvironmentProblem, match=r"(bytes|kB|MB) are free.*: free some space"):
                for number in range(1000):
                    store.put(media(number), make_track(number, n_frames=n_frames))
                    n_stored += 1
            assert store.verify() == ()
            assert {stored.key.media_sha256 for stored in store.entries()} == set(map(media, range(n_stored)))
            assert not list((disk / "shards").glob(".*"))
            (disk / "ballast").unlink()
            store.put(media(n_stored), make_track(n_stored, n_frames=n_frames))
        with open_store(disk) as store:
            assert len(store.entries()) == n_stored + 1
            assert store.verify() == ()


def test_a_full_disk_keeps_the_vectors_of_clips_it_has(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 600) as disk, open_store(disk) as store:
        with pytest.raises(EnvironmentProblem, match=r"could not be written .*: free some space"):
            for number in range(1000):
                large = np.full(20_000, number, np.float32)
                store.put_entry_vectors({entry_key(number): large}, MODEL)
        assert store.verify() == ()
        assert len(store.entry_vectors(map(entry_key, range(1000)), MODEL)) == number > 0


def test_a_disk_that_is_too_small_is_noticed_before_writing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 600) as disk, open_store(disk) as store:
        with pytest.raises(EnvironmentProblem, match=r"the disk is full: needs 1\.\d MB, \d+(\.\d)? kB are free"):
            store.put(media(1), make_track(1, n_frames=10_000, dim=50))
        assert list((disk / "shards").iterdir()) == []


def unprivileged(folder: Path, program: str) -> str:
    """Run a program as a user who may only read `folder`."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    # The interpreter itself may lie where only root can read, so the change comes after the imports.
    imports = "import os, sys; from signspot.stores.features import TrackKey; from tests.stores.store_tracks import *"
    change = "os.setgroups([]); os.setgid(65534); os.setuid(65534)"
    command = [sys.executable, "-c", f"{imports}\n{change}\n{program}", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout


READER = """
with open_store(Path(sys.argv[1])) as store:
    say(same(store.get(TrackKey(media(1), MODEL)), make_track(1)))
    for change in (lambda: store.put(media(2), make_track(2)), lambda: store.remove(media(1))):
        try:
            change()
        except SignspotError as error:
            say(error)
    say(len(store.verify()))
"""


OLD_READER = """
    say(f"{len(store.kept().tracks)} {len(store.kept().entries)}")
    say(store.entry_vectors([entry_key(1)], MODEL))
"""


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike tmp_path."""
    folder = Path(f"/tmp/signspot-test-{os.getpid()}-{random.randrange(10**9)}")
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("owner_is_at_work", [False, True])
def test_a_read_only_folder_can_be_read(public_folder: Path, owner_is_at_work: bool) -> None:
    with open_store(public_folder / "store") as store:
        store.put(media(1), make_track(1))
        for path in (public_folder, *public_folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        if not owner_is_at_work:
            store.close()
        answer = unprivileged(public_folder / "store", READER).splitlines()
    assert answer[0] == "True"
    assert all("may be read but not written: change the folder's permissions" in line for line in answer[1:3])
    assert answer[3] == "0"


def test_an_older_catalogue_in_a_read_only_folder_can_be_read(public_folder: Path) -> None:
    with open_store(public_folder / "store") as store:
        store.put(media(1), make_track(1))
    with sqlite3.connect(public_folder / "store" / "catalogue.sqlite3") as connection:
        for table in ("entry_vector", "file", "model"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    for path in (public_folder, *public_folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    answer = unprivileged(public_folder / "store", READER + OLD_READER).splitlines()
    assert answer[0] == "True" and answer[3:] == ["0", "1 0", "{}"]


def test_a_read_only_folder_without_a_store_says_so(public_folder: Path) -> None:
    (public_folder / "empty").mkdir(mode=0o555)
    program = "main('write', sys.argv[1], '0', '1')"
    assert "holds no stored features and may not be written" in unprivileged(public_folder / "empty", program)
    assert "permission denied" in unprivileged(public_folder / "empty" / "new", program)
    (public_folder / "closed").mkdir(mode=0o700)
    assert "refused" in unprivileged(public_folder / "closed", program)


def traced(folder: Path, log: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Store track 2 in a folder that holds track 1, under strace."""
    shutil.rmtree(folder, ignore_errors=True)
    with open_store(folder) as store:
        store.put(media(1), make_track(1))
    command = [*STRACE, "-o", str(log), *options, *WRITER, "write", str(folder), "2", "3"]
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)


def calls(log: Path) -> list[tuple[str, str]]:
    """The traced calls in order: name and arguments."""
    return re.findall(r"^\d+ +(\w+)\((.*)", log.read_text(), re.MULTILINE)


@needs_strace
def test_every_step_is_on_the_disk_before_the_next_one_begins(tmp_path: Path) -> None:
    folder, log = tmp_path / "store", tmp_path / "log"
    assert traced(folder, log, "-e", f"trace={','.join(WRITING_CALLS)}").stdout == "ready\n2\n"
    found = calls(log)

    def first(*needles: str, after: int = -1) -> int:
        return next(n for n, call in enumerate(found) if n > after and all(x in " ".join(call) for x in needles))

    written = first("write ", ".tmp.safetensors")
    flushed = first("fsync", ".tmp.safetensors", after=written)
    named = first("rename", ".tmp.safetensors", after=flushed)
    folder_flushed = first("fsync", "/shards>", after=named)
    acknowledged = first("write", '"2\\n"', after=folder_flushed)
    on_the_log = [name for name, arguments in found[folder_flushed:acknowledged] if "-wal" in arguments]
    assert "pwrite64" in on_the_log
    assert on_the_log[-1] in ("fsync", "fdatasync")
    assert not any("-wal" in arguments for _, arguments in found[written:folder_flushed])


def fault_points(folder: Path, log: Path) -> list[tuple[str, int]]:
    """Every writing call within the store: its name and how many of that name came before."""
    traced(folder, log, "-e", f"trace={','.join(WRITING_CALLS)}")
    counts, points = dict.fromkeys(WRITING_CALLS, 0), []
    for name, arguments in calls(log):
        counts[name] += 1
        # SQLite fills its shared memory with zeros, page after page: one of these pages stands for all.
        if str(folder) in arguments and ("-shm" not in arguments or counts[name] == 1):
            points.append((name, counts[name]))
    return points


def check_after_fault(folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert "Traceback" not in done.stderr
    found = stored_numbers(folder, range(5))
    assert 1 in found
    if "2" in done.stdout.split("\n"):
        assert 2 in found
    with open_store(folder) as store:
        store.put(media(2), make_track(2))
        assert same(store.get(TrackKey(media(2), MODEL)), make_track(2))
        assert store.verify() == ()


@needs_strace
@pytest.mark.parametrize(
    "errors",
    [
        None,
        *(pytest.param((error, error), marks=pytest.mark.soak) for error in ("ENOSPC", "EIO", "EDQUOT")),
    ],
)
def test_every_failing_write_and_flush_is_a_typed_error(tmp_path: Path, errors: tuple[str, str] | None) -> None:
    """Without `errors`: only the last call of each kind."""
    folder, log = tmp_path / "store", tmp_path / "log"
    points = fault_points(folder, log)
    assert len(points) > 10
    if errors is None:
        points, errors = list(dict(points).items()), ("ENOSPC", "EIO")
    for name, count in points:
        error = errors["sync" in name]
        done = traced(folder, log, "-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={count}")
        assert done.returncode == 0, (name, count, done.stderr)
        assert "(INJECTED)" in log.read_text()
        if (name, error) == ("write", "ENOSPC"):
            assert re.search(r"the disk is full: needs [1-9][\d.]* (bytes|kB), ", done.stdout)
        check_after_fault(folder, done)


@needs_strace
@pytest.mark.soak
def test_a_kill_at_every_system_call_loses_nothing(tmp_path: Path) -> None:
    folder, log = tmp_path / "store", tmp_path / "log"
    for name, count in fault_points(folder, log):
        done = traced(folder, log, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={count}")
        assert done.returncode != 0
        check_after_fault(folder, done)
