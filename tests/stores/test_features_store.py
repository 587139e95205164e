from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import random
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from signspot.domain.time import TimeAxis
from signspot.domain.tracks import EmbeddingTrack, WindowGrid
from signspot.errors import EnvironmentProblem, InputError, SignspotError, VideoError
from signspot.stores import features as store_module
from signspot.stores.features import (
    EntryKey,
    FeatureStore,
    Kept,
    Remarks,
    TrackKey,
    _encode_shard,
    _pieces,
    _StoreOptions,
    default_store_folder,
    open_store,
)
from tests.stores.store_tracks import MODEL, entry_key, entry_vector, make_track, media, same

IN_TWO_HOURS = _StoreOptions(clock=lambda: time.time() + 7200)


def shard_files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "shards").iterdir())


@st.composite
def tracks(draw: st.DrawFn) -> EmbeddingTrack:
    n_frames, dim = draw(st.integers(0, 60)), draw(st.integers(1, 20))
    grid = WindowGrid(n_frames, draw(st.integers(1, 20)), draw(st.integers(1, 20)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    vectors = rng.normal(size=(len(grid), dim)) * rng.choice([1, 1e-3, 1e3], size=(len(grid), dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[rng.random(len(grid)) < 0.2] = 0
    times = draw(st.lists(st.floats(0, 1e9), min_size=n_frames, max_size=n_frames).map(sorted))
    axis = TimeAxis(np.array(times, np.float64), draw(st.floats(-1e12, 1e12)))
    names = st.text(st.characters(codec=None), min_size=1)  # file names may hold anything, even lone surrogates
    return EmbeddingTrack(draw(names), grid, axis, vectors.astype(np.float32), draw(st.sampled_from(["a", "ß/1"])))


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FeatureStore]:
    with open_store(tmp_path_factory.mktemp("store")) as store:
        yield store


@given(track=tracks(), number=st.integers(0, 2**64), partial=st.text(), warnings=st.lists(st.text(), max_size=3))
@settings(max_examples=80, deadline=None)
def test_what_is_put_comes_back(
    shared_store: FeatureStore, track: EmbeddingTrack, number: int, partial: str, warnings: list[str]
) -> None:
    shared_store.remove(media(number))
    shared_store.put(media(number), track, Remarks(partial, tuple(warnings)))
    found = shared_store.get(TrackKey(media(number), track.fingerprint, track.grid.stride))
    assert same(found, track)
    assert found is not None and found.vectors.dtype == np.float32
    is_zero = ~track.vectors.any(axis=1)
    lengths = np.linalg.norm(found.vectors, axis=1)
    assert (lengths[is_zero] == 0).all()
    assert np.allclose(lengths[~is_zero], 1, rtol=0, atol=1e-6)
    assert np.allclose((found.vectors * track.vectors).sum(axis=1)[~is_zero], 1, rtol=0, atol=1e-5)
    stored = shared_store.find(TrackKey(media(number), track.fingerprint, track.grid.stride))
    assert stored is not None and stored.remarks.warnings == tuple(warnings)


def test_views_with_gaps_and_other_byte_orders_are_stored_as_they_read(tmp_path: Path) -> None:
    track = make_track(1)
    wide = np.zeros((len(track.vectors), 16), ">f4")
    wide[:, ::2] = track.vectors
    odd = replace(track, vectors=wide[:, ::2], axis=TimeAxis(track.axis.times_ms.astype(">f8"), track.axis.origin_ms))
    with open_store(tmp_path) as store:
        store.put(media(1), odd)
        assert same(store.get(TrackKey(media(1), MODEL)), track)


def test_the_same_track_gives_the_same_file_in_every_store(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with open_store(tmp_path / name) as store:
            store.put(media(1), make_track(1))
    (first,), (second,) = shard_files(tmp_path / "a"), shard_files(tmp_path / "b")
    assert (first.name, first.read_bytes()) == (second.name, second.read_bytes())


def test_videos_models_and_strides_do_not_mix(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        originals = {
            (media(n), model, stride): replace(make_track(10 * n + stride, stride=stride), fingerprint=model)
            for n in range(2)
            for model in ("a", "b")
            for stride in (1, 2)
        }
        for (sha, _, _), track in originals.items():
            store.put(sha, track)
        for key, track in originals.items():
            assert same(store.get(TrackKey(*key)), track)
        assert store.get(TrackKey(media(0), "a", 3)) is None
        assert store.get(TrackKey(media(2), "a")) is None
        assert [(e.key.media_sha256, e.key.fingerprint, e.key.stride) for e in store.entries()] == sorted(originals)


def test_the_first_of_two_tracks_stays_and_the_second_leaves_no_file(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
        store.put(media(1), make_track(2))
        assert same(store.get(TrackKey(media(1), MODEL)), make_track(1))
    assert len(shard_files(tmp_path)) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, 3.0])
def test_rows_that_are_no_unit_vectors_are_refused_and_named(tmp_path: Path, value: float) -> None:
    track = make_track(1)
    vectors = track.vectors.copy()
    vectors[5, 3] = value
    with open_store(tmp_path) as store:
        with pytest.raises(InputError, match=r"video-1: 1 of 25 embeddings are neither .* window 5"):
            store.put(media(1), replace(track, vectors=vectors))
        assert store.entries() == ()
    assert shard_files(tmp_path) == []


def trunk_track(number: int = 1, **changes: int) -> EmbeddingTrack:
    track = make_track(number, **changes)
    scales = np.random.default_rng(number).uniform(0, 3000, (len(track.vectors), 1))
    return replace(track, vectors=(track.vectors * scales).astype(np.float32), fingerprint="trunk", unit_rows=False)


def test_vectors_of_a_trunk_keep_their_lengths(tmp_path: Path) -> None:
    track = trunk_track()
    with open_store(tmp_path) as store:
        store.put(media(1), track)
        found = store.get(TrackKey(media(1), "trunk"))
        assert found is not None and not found.unit_rows
        assert found.vectors.dtype == np.float32
        np.testing.assert_array_equal(found.vectors, track.vectors.astype(np.float16).astype(np.float32))
        assert store.verify() == ()
    (tmp_path / "catalogue.sqlite3").unlink()
    with open_store(tmp_path) as store:
        found = store.get(TrackKey(media(1), "trunk"))
        assert found is not None and not found.unit_rows


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 65520.0, -1e6])
def test_vectors_of_a_trunk_that_halves_cannot_hold_are_refused(tmp_path: Path, value: float) -> None:
    track = trunk_track()
    vectors = track.vectors.copy()
    vectors[5, 3] = value
    with open_store(tmp_path) as store:
        with pytest.raises(InputError, match=r"1 of 25 vectors are no numbers or too large.* window 5"):
            store.put(media(1), replace(track, vectors=vectors))
        assert store.entries() == ()


@pytest.mark.parametrize("track", [make_track(1), trunk_track(1), make_track(1, n_frames=0)], ids=str)
def test_rows_are_mapped_as_they_lie_on_the_disk(tmp_path: Path, track: EmbeddingTrack) -> None:
    with open_store(tmp_path) as store:
        assert store.open_rows(TrackKey(media(1), track.fingerprint)) is None
        store.put(media(1), track)
        rows = store.open_rows(TrackKey(media(1), track.fingerprint))
    assert rows is not None and rows.dtype == np.float16
    np.testing.assert_array_equal(rows, track.vectors.astype(np.float16))
    if len(rows):
        with pytest.raises(ValueError, match="read-only"):
            rows[0] = 0


def test_a_checksum_is_verified_once(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
        (path,) = shard_files(tmp_path)
        assert store.open_rows(TrackKey(media(1), MODEL)) is not None
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        assert store.open_rows(TrackKey(media(1), MODEL)) is not None
    with open_store(tmp_path) as store:
        assert store.open_rows(TrackKey(media(1), MODEL)) is None
        assert "does not have the checksum" in store.warnings[0]
        assert shard_files(tmp_path) == []


@given(track=tracks(), is_trunk=st.booleans())
@settings(max_examples=40)
def test_a_shard_is_what_the_safetensors_library_writes(track: EmbeddingTrack, is_trunk: bool) -> None:
    stored, header = _encode_shard(media(1), replace(track, unit_rows=not is_trunk), Remarks("", ('a "quoted" ü',)))
    content = b"".join(_pieces(header, track))
    card = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["signspot"]
    assert ("unit_rows" in json.loads(card)) == is_trunk
    arrays = {"vectors": track.vectors.astype(np.float16), "times_ms": track.axis.times_ms.copy()}
    assert content == save(arrays, {"signspot": card})
    assert (len(content), hashlib.sha256(content).hexdigest()) == (stored.n_bytes, stored.shard_sha256)


def test_what_is_computed_before_an_interruption_is_found_again(tmp_path: Path) -> None:
    key = TrackKey(media(1), "trunk")
    rows = np.ones((200, 8), np.float32)
    with open_store(tmp_path) as store:
        with pytest.raises(KeyboardInterrupt), store.unfinished(key, 8) as started:
            started.append(rows)
            raise KeyboardInterrupt
        with (
            store.unfinished(TrackKey(media(1), "trunk", 2), 8) as other,
            store.unfinished(TrackKey(media(2), "trunk"), 8) as another,
        ):
            assert len(other) == len(another) == 0
        with store.unfinished(key, 8) as again, store.unfinished(key, 8) as meanwhile:
            assert (len(again), len(meanwhile)) == (128, 0)
        assert list((tmp_path / "unfinished").iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_without_locks_a_track_is_computed_whole(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with open_store(tmp_path) as store, store.unfinished(TrackKey(media(1), "trunk"), 8) as rows:
        rows.append(np.ones((200, 8), np.float32))
        assert len(rows.mapped()) == 200
    assert list((tmp_path / "unfinished").iterdir()) == []


def test_a_folder_that_cannot_be_flushed_or_looked_at_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush_file = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        flush_file(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with open_store(tmp_path / "a" / "store") as store:
        store.put(media(1), make_track(1))
        store.put(media(2), make_track(2))
        store.remove(media(2))
        assert same(store.get(TrackKey(media(1), MODEL)), make_track(1))
    look = Path.stat

    def stale(path: Path, **options: bool) -> os.stat_result:
        if path.suffix == ".safetensors":
            raise OSError(errno.ESTALE, "Stale file handle")
        return look(path, **options)

    (tmp_path / "a" / "store" / "shards" / "left.safetensors").touch()
    monkeypatch.setattr(Path, "stat", stale)
    open_store(tmp_path / "a" / "store", IN_TWO_HOURS).close()


def test_what_the_user_gave_leaves_nothing_unfinished(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        with pytest.raises(VideoError, match="broken"), store.unfinished(TrackKey(media(1), "trunk"), 8) as rows:
            rows.append(np.ones((200, 8), np.float32))
            raise VideoError("x.mp4", "broken")
        assert list((tmp_path / "unfinished").iterdir()) == []


def test_unfinished_rows_are_removed_with_their_video_and_swept_when_old(tmp_path: Path) -> None:
    def leave(store: FeatureStore, number: int) -> None:
        with pytest.raises(KeyboardInterrupt), store.unfinished(TrackKey(media(number), "trunk"), 8) as rows:
            rows.append(np.ones((200, 8), np.float32))
            raise KeyboardInterrupt

    with open_store(tmp_path) as store:
        leave(store, 1)
        leave(store, 2)
        store.remove(media(1))
        assert {path.name[:64] for path in (tmp_path / "unfinished").iterdir()} == {media(2)}
    open_store(tmp_path, IN_TWO_HOURS).close()
    assert len(list((tmp_path / "unfinished").iterdir())) == 2
    open_store(tmp_path, _StoreOptions(clock=lambda: time.time() + 15 * 86400)).close()
    assert list((tmp_path / "unfinished").iterdir()) == []


@pytest.mark.parametrize("sha", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_only_a_sha256_names_media(tmp_path: Path, sha: str) -> None:
    with open_store(tmp_path) as store:
        for call in (
            lambda: store.put(sha, make_track()),
            lambda: store.get(TrackKey(sha, MODEL)),
            lambda: store.remove(sha),
        ):
            with pytest.raises(InputError, match="is not the sha256 of a file"):
                call()


def test_odd_fingerprints_and_strides_are_refused(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for fingerprint in ("", "a\0b", "\udc80"):
            with pytest.raises(InputError, match="is not the fingerprint of a model"):
                store.get(TrackKey(media(1), fingerprint))
        for stride in (0, 2**63):
            with pytest.raises(InputError, match="windows cannot lie that far apart"):
                store.get(TrackKey(media(1), MODEL, stride))


def test_every_one_of_200_flipped_bits_is_detected(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
        (path,) = shard_files(tmp_path)
        sound = path.read_bytes()
        rng = random.Random(0)
        for _ in range(200):
            damaged = bytearray(sound)
            damaged[rng.randrange(len(sound))] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            (problem,) = store.verify()
            assert (problem.where, problem.what) == (str(path), "does not have the checksum it was written with")
        path.write_bytes(sound)
        assert store.verify() == ()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "missing"])
def test_a_damaged_shard_is_dropped_with_a_warning_and_stored_again(tmp_path: Path, damage: str) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
        store.put(media(2), make_track(2))
        path = next(path for path in shard_files(tmp_path) if path.name.startswith(media(1)))
        content = path.read_bytes()
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes({"flip": content[:-1] + b"?", "cut": content[:99], "empty": b""}[damage])
        assert store.get(TrackKey(media(1), MODEL)) is None
        assert len(store.warnings) == 1 and "the track is computed again" in store.warnings[0]
        assert store.find(TrackKey(media(1), MODEL)) is None
        assert [path.name[:64] for path in shard_files(tmp_path)] == [media(2)]
        store.put(media(1), make_track(1))
        assert same(store.get(TrackKey(media(1), MODEL)), make_track(1))
        assert same(store.get(TrackKey(media(2), MODEL)), make_track(2))
        assert len(store.warnings) == 1


@pytest.mark.parametrize("flips", [150, pytest.param(5000, marks=pytest.mark.soak)])
def test_a_flipped_bit_in_the_catalogue_never_gives_a_wrong_track(tmp_path: Path, flips: int) -> None:
    folder = tmp_path / "store"
    with open_store(folder) as store:
        for number in range(2):
            store.put(media(number), make_track(number))
    catalogue = folder / "catalogue.sqlite3"
    sound, shards = catalogue.read_bytes(), {path: path.read_bytes() for path in shard_files(folder)}
    used = [place for place, byte in enumerate(sound) if byte]
    rng, refused, recomputed = random.Random(0), 0, 0
    for _ in range(flips):
        damaged = bytearray(sound)
        damaged[rng.choice(used)] ^= 1 << rng.randrange(8)
        catalogue.write_bytes(damaged)
        try:
            with open_store(folder) as store:
                for number in range(2):
                    found = store.get(TrackKey(media(number), MODEL))
                    recomputed += found is None
                    assert found is None or same(found, make_track(number))
        except SignspotError:
            refused += 1
        for path in folder.glob("catalogue.sqlite3-*"):
            path.unlink()
        for path, content in shards.items():
            path.write_bytes(content)
    assert refused > 0 and recomputed > 0


def test_what_is_lost_is_logged_with_the_recording_it_belongs_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
        store.put(media(2), make_track(2))
    first, second = (next(tmp_path.glob(f"shards/{media(number)}*")) for number in (1, 2))
    first.write_bytes(b"")
    with open_store(tmp_path) as store:
        assert store.get(TrackKey(media(1), MODEL)) is None
        assert store.get(TrackKey(media(2), MODEL)) is not None
    assert [f"{first}: the stored vectors of {make_track(1).video_id}: " in said for said in caplog.messages] == [True]
    second.write_bytes(b"")
    for path in tmp_path.glob("catalogue*"):
        path.unlink()
    with open_store(tmp_path) as store:
        assert store.entries() == ()
    assert str(second) in caplog.messages[1] and "computed again when needed" in caplog.messages[1]


def test_a_row_that_points_to_the_shard_of_another_video_is_dropped(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
    (path,) = shard_files(tmp_path)
    path.rename(path.with_name(path.name.replace(media(1), media(2))))
    with sqlite3.connect(tmp_path / "catalogue.sqlite3") as connection:
        connection.execute("UPDATE track SET media_sha256 = ?", (media(2),))
    connection.close()
    with open_store(tmp_path) as store:
        assert store.get(TrackKey(media(2), MODEL)) is None
        assert "belongs to another video or model" in store.warnings[0]


def test_a_lost_catalogue_is_made_anew_from_the_shards(tmp_path: Path) -> None:
    remarks = Remarks("partial, 0:01 of 0:02", ("a warning",))
    with open_store(tmp_path) as store:
        for number in range(3):
            store.put(media(number), make_track(number), remarks)
        before = store.entries()
    (tmp_path / "catalogue.sqlite3").unlink()
    (tmp_path / "shards" / "foreign.safetensors").write_bytes(b"?")
    with open_store(tmp_path, IN_TWO_HOURS) as store:
        assert store.entries() == before
        assert store.verify() == ()
        assert all(same(store.get(TrackKey(media(number), MODEL)), make_track(number)) for number in range(3))


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be looked at" * 20, b"SQLite format 3\0" * 40]
)
def test_a_catalogue_that_is_no_database_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "catalogue.sqlite3").write_bytes(content)
    with pytest.raises(EnvironmentProblem, match=r"the catalogue is damaged .* move this file away"):
        open_store(tmp_path)


def test_remove_forgets_one_video_under_every_model(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for stride in (1, 2):
            store.put(media(1), make_track(1, stride=stride))
        store.put(media(2), make_track(2))
        orphan = tmp_path / "shards" / f"{media(1)}.{'0' * 64}.safetensors"
        orphan.write_bytes(b"left by a crash")
        assert len(store.remove(media(1)).tracks) == 2
        assert store.remove(media(1)) == Kept()
        assert [stored.key.media_sha256 for stored in store.entries()] == [media(2)]
        assert [path.name[:64] for path in shard_files(tmp_path)] == [media(2)]
    assert media(1).encode() not in (tmp_path / "catalogue.sqlite3").read_bytes()


def test_remove_leaves_no_trace_of_a_clip_even_while_others_read(tmp_path: Path) -> None:
    clip, pose = tmp_path / "häschen-secret.mp4", tmp_path / "häschen-secret.pose"
    for path in (clip, pose):
        path.write_bytes(path.name.encode())
    with open_store(tmp_path / "store", IN_TWO_HOURS) as store, open_store(tmp_path / "store") as other:
        hashed = store.sha256s([clip, pose], sha256_of)
        key = EntryKey(hashed[clip], hashed[pose], "frames 1-2", clip.name)
        store.put_entry_vectors({key: entry_vector(1)}, "shared", model="colour")
        store.put_entry_vectors({replace(key, landmarks_sha256=""): entry_vector(1)}, "its own")
        store.put_entry_vectors({entry_key(2): entry_vector(2)}, "shared")
        store.put(media(2), make_track(2))
        assert other.entry_vectors([key], "shared")
        removed = store.remove(hashed[clip])
        assert [(entry.key, entry.fingerprint) for entry in removed.entries] == [
            (replace(key, landmarks_sha256=""), "its own"),
            (key, "shared"),
        ]
        left = b"".join(path.read_bytes() for path in (tmp_path / "store").glob("catalogue*"))
        traces = (*hashed.values(), clip.name, pose.name, "its own")
        assert [trace for trace in traces if trace.encode() in left] == [] and b"clip-2.mp4" in left
        assert store.kept().names == {"shared": "colour"} and len(store.entries()) == 1


def test_remove_finds_vectors_by_the_landmarks_they_were_made_of(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put_entry_vectors({EntryKey(media(1), media(9)): entry_vector(1)}, MODEL)
        store.put(media(2), replace(make_track(2), fingerprint=f"{MODEL} pose with wrists {media(9)}"))
        store.put(media(3), make_track(3))
        removed = store.remove(media(9))
        assert (len(removed.entries), len(removed.tracks)) == (1, 1)
        assert store.kept().media == {media(3)}


def test_remove_forgets_one_model_or_everything(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for model in ("one", "two"):
            store.put(media(1), replace(make_track(1), fingerprint=f"{model} box 0,0,1,1"), model=f"called {model}")
            store.put_entry_vectors({entry_key(1): entry_vector(1)}, model)
        with pytest.raises(KeyboardInterrupt), store.unfinished(TrackKey(media(5), "two"), 8) as rows:
            rows.append(np.ones((200, 8), np.float32))
            raise KeyboardInterrupt
        assert len(store.remove(None, "called one").tracks) == 1
        assert len(store.remove(None, "one").entries) == 1
        left = store.kept()
        assert [track.key.fingerprint for track in left.tracks] == ["two box 0,0,1,1"]
        assert left.media == {media(1), media(5)}
        assert store.remove(None).media == left.media
        assert store.kept() == Kept() and [path for path in tmp_path.rglob("*/*") if path.is_file()] == []


def test_vectors_of_clips_that_older_versions_kept_are_swept(tmp_path: Path) -> None:
    (tmp_path / "entry-vectors").mkdir()
    old = tmp_path / "entry-vectors" / "0123456789abcdef.safetensors"
    old.touch()
    open_store(tmp_path).close()
    assert old.exists()  # an older version may be at work
    open_store(tmp_path, IN_TWO_HOURS).close()
    assert not old.exists()
    old.touch()
    with open_store(tmp_path) as store:
        store.remove(media(1))
    assert not old.exists()


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_vectors_of_clips_come_back_exactly_and_never_mix(tmp_path: Path) -> None:
    keys = (EntryKey(media(1)), EntryKey(media(1), media(2)), EntryKey(media(1), part="box"), EntryKey(media(2)))
    stored = {key: entry_vector(number) for number, key in enumerate(keys)}
    with open_store(tmp_path) as store:
        store.put_entry_vectors(stored, MODEL)
        store.put_entry_vectors({keys[0]: entry_vector(9)}, "another")
    with open_store(tmp_path) as store:
        found = store.entry_vectors([*keys, EntryKey(media(3))], MODEL)
        assert found.keys() == stored.keys()
        assert all(np.array_equal(found[key], stored[key]) and found[key].dtype == np.float32 for key in keys)
        assert np.array_equal(store.entry_vectors(keys, "another")[keys[0]], entry_vector(9))
        assert store.entry_vectors(keys, "nobody") == {} and store.verify() == ()


def test_a_vector_that_is_no_number_is_not_kept_and_only_a_sha256_names_a_clip(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put_entry_vectors({entry_key(1): np.array([1, np.nan], np.float32)}, MODEL)
        assert store.kept() == Kept()
        for key in (EntryKey("clip.mp4"), EntryKey(media(1), "clip.pose")):
            with pytest.raises(InputError, match="is not the sha256 of a file"):
                store.put_entry_vectors({key: entry_vector(1)}, MODEL)


@pytest.mark.parametrize(
    "change", ["vector = zeroblob(32)", "vector = x'00'", "checksum = x''", "fingerprint = 'other'", "part = 'other'"]
)
def test_a_damaged_vector_of_a_clip_is_named_and_computed_again(tmp_path: Path, change: str) -> None:
    with open_store(tmp_path) as store:
        store.put_entry_vectors({entry_key(1): entry_vector(1), entry_key(2): entry_vector(2)}, MODEL)
        store._catalogue._rows(f"UPDATE entry_vector SET {change} WHERE media_sha256 = ?", media(1))
        asked = {entry_key(1): MODEL, replace(entry_key(1), part="other"): MODEL, entry_key(2): MODEL}
        found = store.entry_vectors(asked, MODEL) | store.entry_vectors([entry_key(1)], "other")
        assert list(found) == [entry_key(2)] and "clip-1.mp4 is damaged" in store.warnings[0]
        (problem,) = store.verify()
        assert "clip-1.mp4 is damaged" in problem.what and f"--sha256 {media(1)[:12]}" in problem.fix
        store.remove(media(1))
        store.put_entry_vectors({entry_key(1): entry_vector(1)}, MODEL)
        assert np.array_equal(store.entry_vectors([entry_key(1)], MODEL)[entry_key(1)], entry_vector(1))
        assert store.verify() == ()


def test_a_flipped_bit_in_the_catalogue_never_gives_a_wrong_vector_of_a_clip(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put_entry_vectors({entry_key(1): entry_vector(1), entry_key(2): entry_vector(2)}, MODEL)
    catalogue = tmp_path / "catalogue.sqlite3"
    sound = catalogue.read_bytes()
    used = [place for place, byte in enumerate(sound) if byte]
    rng, missing = random.Random(0), 0
    for _ in range(100):
        damaged = bytearray(sound)
        damaged[rng.choice(used)] ^= 1 << rng.randrange(8)
        catalogue.write_bytes(damaged)
        try:
            with open_store(tmp_path) as store:
                found = store.entry_vectors([entry_key(1), entry_key(2)], MODEL)
        except SignspotError:
            found = {}
        missing += len(found) < 2
        assert all(np.array_equal(found[key], entry_vector(n)) for n in (1, 2) if (key := entry_key(n)) in found)
        for path in tmp_path.glob("catalogue.sqlite3-*"):
            path.unlink()
    assert missing > 5


def test_a_file_is_hashed_again_only_when_it_changed(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.mp4", os.fsdecode(b"\xff.mp4"), "gone.mp4")]
    hashed: list[Path] = []

    def digest(path: Path) -> str:
        hashed.append(path)
        return sha256_of(path)

    for path in paths[:2]:
        path.write_bytes(path.name.encode(errors="surrogateescape"))
    with open_store(tmp_path / "store") as store:
        first = store.sha256s(paths, digest)
        assert store.sha256s(paths, digest) == first == {path: sha256_of(path) for path in paths[:2]}
        assert len(hashed) == 4, "what changed a moment ago may change again unseen"
    with open_store(tmp_path / "store", IN_TWO_HOURS) as store:
        store.sha256s(paths, digest)
        hashed.clear()
        assert store.sha256s(paths, digest) == first and hashed == []
        times = paths[0].stat()
        paths[0].write_bytes(b"b.mp4")  # of the same length, and said to be as old
        os.utime(paths[0], ns=(times.st_atime_ns, times.st_mtime_ns))
        assert store.sha256s(paths, digest)[paths[0]] == sha256_of(paths[0]) and hashed == [paths[0]]
        store._catalogue._rows("UPDATE file SET sha256 = ?", media(1))
        assert media(1) not in store.sha256s(paths, digest).values()


def test_ten_thousand_vectors_of_clips_are_found_in_under_a_second(tmp_path: Path) -> None:
    vectors = {EntryKey(media(number)): np.full(256, number, np.float32) for number in range(10_000)}
    with open_store(tmp_path) as store:
        store.put_entry_vectors(vectors, MODEL)
    started = time.process_time()
    with open_store(tmp_path) as store:
        assert len(store.entry_vectors(vectors, MODEL)) == 10_000
    assert time.process_time() - started < 1


def test_an_older_catalogue_is_brought_up_to_date_and_keeps_its_tracks(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
        for table in ("entry_vector", "file", "model"):
            store._catalogue._rows(f"DROP TABLE {table}")
        store._catalogue._rows("PRAGMA user_version = 1")
    with open_store(tmp_path) as store:
        assert same(store.get(TrackKey(media(1), MODEL)), make_track(1))
        store.put_entry_vectors({entry_key(1): entry_vector(1)}, MODEL)
        assert len(store.entry_vectors([entry_key(1)], MODEL)) == 1


def test_the_summary_adds_up(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for number in range(3):
            store.put(media(number), make_track(number))
        store.put(media(0), replace(make_track(0), fingerprint="another"))
        kept = store.kept()
    assert [len(kept.of(model=model).tracks) for model in ("another", MODEL, "nobody")] == [1, 3, 0]
    assert len(kept.tracks) == 4 and kept.media == {media(number) for number in range(3)}
    assert kept.n_bytes == sum(path.stat().st_size for path in shard_files(tmp_path))


def test_opening_sweeps_orphans_once_they_are_old(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(1), make_track(1))
    kept = shard_files(tmp_path)
    orphans = [kept[0].with_name(name) for name in (f".{media(2)}.abc.tmp.safetensors", f"{media(3)}.x.safetensors")]
    for orphan in orphans:
        orphan.write_bytes(b"half")
    open_store(tmp_path).close()
    assert set(shard_files(tmp_path)) == {*kept, *orphans}
    with open_store(tmp_path, IN_TWO_HOURS) as store:
        assert same(store.get(TrackKey(media(1), MODEL)), make_track(1))
    assert shard_files(tmp_path) == kept


def test_a_store_serves_many_threads(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work(store: FeatureStore, first: int) -> None:
        try:
            for number in range(first, first + 10):
                store.put(media(number), make_track(number))
                assert same(store.get(TrackKey(media(number), MODEL)), make_track(number))
        except BaseException as error:
            failures.append(error)

    with open_store(tmp_path) as store:
        threads = [threading.Thread(target=work, args=(store, 5 * n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(store.entries()) == len(shard_files(tmp_path)) == 25
        assert store.verify() == ()


def test_a_newer_catalogue_is_refused_and_left_alone(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    with sqlite3.connect(tmp_path / "catalogue.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InputError, match=r"written by a newer signspot \(version 99; this one knows 2\): upgrade"):
        open_store(tmp_path)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="is not a folder"):
            open_store(folder)


def test_a_network_file_system_is_refused_unless_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "file_system_of", lambda folder: "nfs4")
    with pytest.raises(InputError, match=r"lies on a network file system \(nfs4\)"):
        open_store(tmp_path)
    with open_store(tmp_path, _StoreOptions(allow_network=True)) as store:
        store.put(media(1), make_track(1))
        assert same(store.get(TrackKey(media(1), MODEL)), make_track(1))
        assert not list(tmp_path.glob("*-wal"))
    with sqlite3.connect(tmp_path / "catalogue.sqlite3") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)  # TRUNCATE is not persistent
    connection.close()


def test_the_default_folder_follows_the_environment() -> None:
    assert default_store_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/signspot")
    assert default_store_folder({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == Path("/h/.cache/signspot")
    assert default_store_folder({"HOME": "/h"}) == Path("/h/.cache/signspot")
    with pytest.raises(EnvironmentProblem, match="HOME: is not set"):
        default_store_folder({})


def test_ten_thousand_tracks_are_found_in_under_a_second(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(media(0), make_track(0))
        (template,) = store.entries()
        with store._catalogue.writing():
            for number in range(1, 10_000):
                stored = replace(template, key=replace(template.key, media_sha256=media(number)))
                store._catalogue.add(stored)
                (tmp_path / "shards" / stored.file_name).touch()
    started = time.process_time()
    with open_store(tmp_path, IN_TWO_HOURS) as store:
        assert all(store.find(TrackKey(media(number), MODEL)) for number in range(10_000))
    assert time.process_time() - started < 1
