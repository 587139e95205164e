from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import SignerBox
from signspot.embedding import landmarks
from signspot.embedding.detector import LandmarkOptions
from signspot.embedding.landmarks import LandmarkRequest, landmark_files, landmarks_of
from signspot.errors import InputError, MissingExtra
from signspot.formats.pose import read_pose, write_pose
from signspot.stores.features import open_store
from tests.media.stand_in_detector import coloured_video, install

TRUSTED = LandmarkOptions(isolated=False)
COLOURS = [(60, 80, 200), (120, 90, 10), (10, 10, 10), (200, 40, 255)]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install(tmp_path / "packages", monkeypatch)


def times_asked(log: Path) -> int:
    return log.read_text().count("start") if log.exists() else 0


def test_landmarks_are_found_once_and_then_come_from_the_store(tmp_path: Path, log: Path) -> None:
    video = coloured_video(tmp_path / "a.mp4", COLOURS)
    without = landmarks_of(video, options=TRUSTED)
    with open_store(tmp_path / "store") as store:
        first = landmarks_of(video, store=store, options=TRUSTED)
        asked = times_asked(log)
        renamed = video.rename(tmp_path / "b.mp4")
        again = landmarks_of(renamed, store=store, options=TRUSTED)
        assert times_asked(log) == asked == 2
        boxed = landmarks_of(
            renamed, store=store, options=LandmarkOptions(isolated=False, box=SignerBox(0.0, 0.0, 0.5, 0.5))
        )
        assert times_asked(log) == 3
    for other in (first, again):
        assert np.array_equal(without.signer.track.points, other.signer.track.points)
        assert np.array_equal(without.signer.track.axis.times_ms, other.signer.track.axis.times_ms)
        assert other.signer.aspect == without.signer.aspect == 64 / 48
    assert again.signer.track.video_id == "b" and without.pose_share == again.pose_share == 0.75
    assert without.hand_share == 0.5
    assert not np.array_equal(boxed.signer.track.points, first.signer.track.points)


def test_a_file_beside_the_video_is_believed_and_needs_no_detector(tmp_path: Path) -> None:
    video = tmp_path / "a.mp4"  # not even read
    video.write_bytes(b"")
    made = read_pose_of(tmp_path / "a.pose")
    for asked in (video, tmp_path / "a.pose"):
        assert np.array_equal(landmarks_of(asked).signer.track.points, made)


def read_pose_of(path: Path) -> np.ndarray:
    from tests.formats.test_pose import some_landmarks

    write_pose(some_landmarks(5, 0), path)
    return read_pose(path).track.points


def test_files_are_written_beside_the_videos_and_kept_when_run_again(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for name in ("a.mp4", "b.mp4"):
        coloured_video(folder / name, COLOURS)
    (folder / "broken.mp4").write_bytes(b"no video")
    steps: list[str] = []
    request = LandmarkRequest(sources=(folder,), isolated=False)
    first = list(landmark_files(request, lambda step, done, total: steps.append(step)))
    assert [one.file.name for one in first] == ["a.pose", "b.pose", "broken.pose"]
    assert [one.failure is None for one in first] == [True, True, False]
    assert set(steps) == {"finding landmarks in a.mp4", "finding landmarks in b.mp4"}
    assert first[0].made is not None and first[0].made.pose_share == 0.75
    assert np.allclose(read_pose(folder / "a.pose").track.points, first[0].made.signer.track.points, atol=1e-6)
    assert not (folder / "broken.pose").exists()
    before, asked = (folder / "a.pose").stat().st_mtime_ns, times_asked(log)
    again = list(landmark_files(request))
    assert [one.made for one in again] == [None, None, None] and again[2].failure is not None
    assert (folder / "a.pose").stat().st_mtime_ns == before and times_asked(log) == asked
    anew = next(landmark_files(LandmarkRequest(sources=(folder / "a.mp4",), isolated=False, overwrite=True)))
    assert anew.made is not None and times_asked(log) == asked + 1


def test_files_go_to_a_folder_if_asked_and_two_never_to_one(tmp_path: Path, log: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        coloured_video(tmp_path / name / "a.mp4", COLOURS[:2])
    out = tmp_path / "out"
    both = LandmarkRequest(sources=(tmp_path / "x" / "a.mp4", tmp_path / "y" / "a.mp4"), out=out, isolated=False)
    with pytest.raises(InputError, match="would hold the landmarks of two videos"):
        list(landmark_files(both))
    assert not out.exists()
    assert [one.file for one in landmark_files(LandmarkRequest(sources=both.sources[:1], out=out, isolated=False))] == [
        out / "a.pose"
    ]
    assert (out / "a.pose").exists() and not (tmp_path / "x" / "a.pose").exists()


def test_the_missing_extra_is_named_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> str:
        raise MissingExtra.named("finding landmarks in video", "pose")

    monkeypatch.setattr(landmarks, "detector_name", absent)
    video = coloured_video(tmp_path / "a.mp4", COLOURS[:1])
    with pytest.raises(MissingExtra, match="'pose'"):
        list(landmark_files(LandmarkRequest(sources=(video,), out=tmp_path / "out")))
    assert not (tmp_path / "out").exists()


def test_videos_of_one_stem_have_landmarks_of_their_own(tmp_path: Path, log: Path) -> None:
    coloured_video(tmp_path / "a.mp4", COLOURS[::-1]).rename(tmp_path / "a.mov")
    for name in ("a.mp4", "b.mp4"):
        coloured_video(tmp_path / name, COLOURS)
    done = list(landmark_files(LandmarkRequest(sources=(tmp_path,), isolated=False)))
    assert [one.file.name for one in done] == ["a.mov.pose", "a.mp4.pose", "b.pose"]
    for one in done:
        assert one.made is not None
        believed = landmarks_of(one.video).signer.track.points
        assert np.array_equal(believed, read_pose(one.file).track.points)
    assert {one.file for one in landmark_files(LandmarkRequest(sources=(tmp_path,)))} == {one.file for one in done}
