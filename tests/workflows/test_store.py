from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.time import TimeAxis
from signspot.domain.tracks import LANDMARK_DIM, EmbeddingTrack, WindowGrid
from signspot.errors import InputError, SignspotError
from signspot.media.video import media_sha256
from signspot.stores.features import EntryKey, FeatureStore, Remarks, TrackKey, open_store
from signspot.workflows.store import (
    StoreRequest,
    kept_record,
    list_store,
    remove_from_store,
    verify_store,
)
from tests.stores.store_tracks import MODEL, entry_vector, make_track


def landmarks(video_id: str) -> EmbeddingTrack:
    points = np.zeros((40, LANDMARK_DIM), np.float32)
    axis = TimeAxis(np.arange(40) * 40.0)
    return EmbeddingTrack(video_id, WindowGrid(40, length=1), axis, points, "mediapipe 0.10 tracked", unit_rows=False)


def fill(store: FeatureStore, videos: dict[str, Path]) -> None:
    """News under two models and its landmarks, a walk that was cut short, and a dictionary clip."""
    news, walk, clip = (media_sha256(videos[name]) for name in ("news", "walk", "tree"))
    store.put(news, make_track(1, video_id="news"), Remarks("partial, 0:01 of 0:02", ("a warning",)), "colour")
    boxed = replace(make_track(1, video_id="news", stride=4), fingerprint=f"{'ab' * 32} box 0.0,0.0,1.0,0.5")
    store.put(news, boxed)
    store.put(news, landmarks("news"))
    with pytest.raises(KeyboardInterrupt), store.unfinished(TrackKey(walk, MODEL), 8) as rows:
        rows.append(np.ones((200, 8), np.float32))
        raise KeyboardInterrupt
    for fingerprint in (MODEL, "another"):
        store.put_entry_vectors({EntryKey(clip, name="tree.mp4"): entry_vector(1)}, fingerprint, model="colour")
    trained = replace(make_track(2, video_id="tree", n_frames=16), fingerprint=f"{MODEL} entry 0")
    store.put(clip, trained)


@pytest.fixture
def videos(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.mp4" for name in ("news", "walk", "tree", "unknown")}
    for name, path in paths.items():
        path.write_bytes(name.encode())
    return paths


@pytest.fixture
def folder(tmp_path: Path, videos: dict[str, Path]) -> Iterator[Path]:
    with open_store(tmp_path / "store") as store:
        fill(store, videos)
    yield tmp_path / "store"
    assert {name: path.read_bytes() for name, path in videos.items() if path.exists()} == {
        name: name.encode() for name, path in videos.items() if path.exists()
    }


def test_everything_is_listed_by_recording_and_by_model(folder: Path, videos: dict[str, Path]) -> None:
    (holding,) = list_store(StoreRequest(folder=folder))
    assert [(track.video_id, track.in_words()) for track in holding.kept.recordings()] == [
        ("news", "7 windows, one every 4 frames, box 0.0,0.0,1.0,0.5"),
        ("news", "25 windows"),
        ("news", "40 frames of landmarks"),
    ]
    assert holding.kept.n_clips() == 1
    found = {total.model: (total.recordings, total.clips) for total in holding.kept.totals()}
    assert found == {"abababababab": (1, 0), "colour": (1, 1), "colour-1": (0, 1), "mediapipe": (1, 0)}
    record = kept_record(folder, [holding])
    first = record["recordings"][1]  # type: ignore[index]
    assert (first["model"], first["partial"], first["warnings"]) == ("colour", "partial, 0:01 of 0:02", ["a warning"])
    assert record["unfinished"][0]["sha256"] == media_sha256(videos["walk"])  # type: ignore[index]
    assert record["bytes"] == holding.kept.n_bytes > sum(total.bytes for total in holding.kept.totals())
    files = [path for path in folder.rglob("*/*") if path.is_file()]
    assert record["bytes"] == sum(path.stat().st_size for path in files) + 2 * 32


def test_a_file_is_found_by_its_content_and_one_that_is_gone_by_its_name(
    folder: Path, videos: dict[str, Path], tmp_path: Path
) -> None:
    renamed = videos["news"].rename(tmp_path / "renamed.mp4")
    asked = (renamed, videos["unknown"], tmp_path / "gone" / "news.mp4", videos["tree"])
    found = list_store(StoreRequest(folder=folder, videos=asked))
    assert [(len(one.kept.tracks), len(one.kept.entries)) for one in found] == [(3, 0), (0, 0), (3, 0), (1, 2)]
    with pytest.raises(InputError, match="no such file, and nothing of this name is kept"):
        list_store(StoreRequest(folder=folder, videos=(Path("nobody.mp4"),)))
    (tmp_path / "news.mp4").write_bytes(b"another programme")
    (other,) = list_store(StoreRequest(folder=folder, videos=(tmp_path / "news.mp4",)))
    assert other.kept.tracks == () and f"--sha256 {media_sha256(renamed)[:12]}" in other.remark
    (tmp_path / "news.mp4").unlink()
    with open_store(folder) as store:
        store.put("0" * 64, make_track(1, video_id="news"))
    with pytest.raises(InputError, match=r"several recordings of this name are kept: choose with --sha256: 0{12}, "):
        remove_from_store(StoreRequest(folder=folder, videos=(Path("news"),)))


def test_a_recording_is_forgotten_with_all_its_traces(folder: Path, videos: dict[str, Path]) -> None:
    asked = StoreRequest(folder=folder, videos=(videos["news"], videos["walk"], videos["tree"]))
    assert sum(len(one.kept.tracks) for one in remove_from_store(asked)) == 4
    (left,) = list_store(StoreRequest(folder=folder))
    assert left.kept.media == frozenset()
    assert [path for path in folder.rglob("*/*") if path.is_file()] == []
    stored = b"".join(path.read_bytes() for path in folder.glob("catalogue*"))
    names = [*(media_sha256(path) for path in videos.values()), "tree.mp4"]
    assert [name for name in names if name.encode() in stored] == []


def test_what_is_removed_is_what_was_listed(folder: Path, videos: dict[str, Path]) -> None:
    for asked in (
        StoreRequest(folder=folder, sha256s=(media_sha256(videos["walk"])[:8].upper(),)),
        StoreRequest(folder=folder, model="abababababab"),
        StoreRequest(folder=folder, videos=(videos["tree"],)),
        StoreRequest(folder=folder),
    ):
        listed = list_store(asked)
        assert all(one.kept.media for one in listed)
        assert remove_from_store(asked) == listed
        (left,) = list_store(StoreRequest(folder=folder))
        assert not any(
            {*one.kept.tracks, *one.kept.entries} & {*left.kept.tracks, *left.kept.entries} for one in listed
        )
    assert left.kept.media == frozenset()


def test_the_landmarks_beside_a_recording_belong_to_it(folder: Path, videos: dict[str, Path]) -> None:
    pose = videos["unknown"].with_suffix(".pose")
    pose.write_bytes(b"landmarks")
    with open_store(folder) as store:
        store.put(media_sha256(pose), make_track(7, video_id="unknown"))
    (removed,) = remove_from_store(StoreRequest(folder=folder, videos=(videos["unknown"],)))
    assert len(removed.kept.tracks) == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"sha256s": ("abc",)}, "is not the beginning of a sha256"),
        ({"sha256s": ("../../../x",)}, "is not the beginning of a sha256"),
        ({"model": "landmark"}, "nothing of this model is kept: vectors are kept of: abababababab, colour,"),
        ({"videos": (Path("gone.mp4"), Path("news.mp4"))}, "nothing of this name is kept"),
    ],
)
def test_nothing_is_removed_where_it_is_not_clear_what(folder: Path, asked: dict[str, object], said: str) -> None:
    before = list_store(StoreRequest(folder=folder))
    with pytest.raises(InputError, match=said):
        remove_from_store(StoreRequest(folder=folder, **asked))  # type: ignore[arg-type]
    assert list_store(StoreRequest(folder=folder)) == before


def test_where_nothing_was_kept_nothing_is_made(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        assert list_store(StoreRequest(folder=folder))[0].kept.media == frozenset()
        assert remove_from_store(StoreRequest(folder=folder))[0].kept.media == frozenset()
        assert verify_store(folder).problems == ()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_looked_into_is_not_called_empty(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(SignspotError, match="store"):
        list_store(StoreRequest(folder=folder))
    monkeypatch.undo()


def test_damage_is_named_with_what_to_do(folder: Path, videos: dict[str, Path]) -> None:
    assert verify_store(folder).problems == ()
    shard = next(folder.glob(f"shards/{media_sha256(videos['news'])}*"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    (problem,) = verify_store(folder).problems
    assert (
        problem.where == str(shard) and "does not have the checksum" in problem.what and "computed again" in problem.fix
    )
    assert shard.exists(), "checking changes nothing"
    (folder / "catalogue.sqlite3").write_bytes(b"SQLite format 3\0" * 40)
    (problem,) = verify_store(folder).problems
    assert problem.where == str(folder / "catalogue.sqlite3") and "move this file away" in problem.fix
    (folder / "catalogue.sqlite3").unlink()
    shard.write_bytes(b"?")
    assert [str(shard) in problem.what for problem in verify_store(folder).problems] == [True]
