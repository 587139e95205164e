from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from signspot.embedding.landmarks import landmarks_of
from signspot.embedding.model import Reading
from signspot.errors import InputError, MissingExtra
from signspot.formats.pose import read_pose
from signspot.workflows import embed as landmarks
from signspot.workflows.embed import Landmarked, LandmarkRequest, landmark_files
from tests.embedding.test_landmarks import COLOURS, HERE, log, times_asked
from tests.media.stand_in_detector import coloured_video

__all__ = ["log"]


def results(request: LandmarkRequest) -> list[Landmarked]:
    outcomes = list(landmark_files(request))
    assert [one.failure for one in outcomes] == [None] * len(outcomes)
    return [one.result for one in outcomes if one.result is not None]


def test_files_are_written_beside_the_videos_and_kept_when_run_again(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for name in ("a.mp4", "b.mp4"):
        coloured_video(folder / name, COLOURS)
    (folder / "broken.mp4").write_bytes(b"no video")
    steps: list[str] = []
    reading = Reading(isolated=False, progress=lambda step, done, total: steps.append(step))
    request = LandmarkRequest(sources=(folder,), reading=reading, failures=tmp_path / "failures.jsonl")
    first = list(landmark_files(request))
    assert [one.item.video.name for one in first] == ["a.mp4", "b.mp4", "broken.mp4"]
    assert [one.failure is None for one in first] == [True, True, False]
    made = [one.result for one in first if one.result is not None]
    assert [one.file.name for one in made] == ["a.pose", "b.pose"]
    (failed,) = map(json.loads, request.failures.read_text().splitlines())
    assert failed["video"] == str(folder / "broken.mp4")
    assert set(steps) == {"finding landmarks in a.mp4", "finding landmarks in b.mp4"}
    assert made[0].made is not None and made[0].made.pose_share == 0.75
    assert np.allclose(read_pose(folder / "a.pose").track.points, made[0].made.signer.track.points, atol=1e-6)
    assert not (folder / "broken.pose").exists()
    before, asked = (folder / "a.pose").stat().st_mtime_ns, times_asked(log)
    again = list(landmark_files(request))
    assert [one.result and one.result.made for one in again] == [None, None, None] and again[2].failure is not None
    assert again[0].result is not None and again[2].result is None
    assert (folder / "a.pose").stat().st_mtime_ns == before and times_asked(log) == asked
    (anew,) = results(replace(request, sources=(folder / "a.mp4",), overwrite=True))
    assert anew.made is not None and times_asked(log) == asked + 1
    assert request.failures.exists()  # a video in it was not looked at this time


def test_files_go_to_a_folder_if_asked_and_two_never_to_one(tmp_path: Path, log: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        coloured_video(tmp_path / name / "a.mp4", COLOURS[:2])
    out = tmp_path / "out"
    both = LandmarkRequest(sources=(tmp_path / "x" / "a.mp4", tmp_path / "y" / "a.mp4"), out=out, reading=HERE)
    with pytest.raises(InputError, match="would hold the landmarks of two videos"):
        landmark_files(both)
    assert not out.exists()
    (made,) = results(replace(both, sources=both.sources[:1]))
    assert made.file == out / "a.pose"
    assert (out / "a.pose").exists() and not (tmp_path / "x" / "a.pose").exists()


def test_the_missing_extra_is_named_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> str:
        raise MissingExtra.named("finding landmarks in video", "pose")

    monkeypatch.setattr(landmarks, "detector_name", absent)
    video = coloured_video(tmp_path / "a.mp4", COLOURS[:1])
    with pytest.raises(MissingExtra, match="'pose'"):
        landmark_files(LandmarkRequest(sources=(video,), out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_videos_of_one_stem_have_landmarks_of_their_own(tmp_path: Path, log: Path) -> None:
    coloured_video(tmp_path / "a.mp4", COLOURS[::-1]).rename(tmp_path / "a.mov")
    for name in ("a.mp4", "b.mp4"):
        coloured_video(tmp_path / name, COLOURS)
    request = LandmarkRequest(sources=(tmp_path,), reading=HERE, failures=tmp_path / "failures.jsonl")
    outcomes = list(landmark_files(request))
    done = [one.result for one in outcomes if one.result is not None]
    assert [one.file.name for one in done] == ["a.mov.pose", "a.mp4.pose", "b.pose"]
    for outcome, one in zip(outcomes, done, strict=True):
        assert one.made is not None
        believed = landmarks_of(outcome.item.video).signer.track.points
        assert np.array_equal(believed, read_pose(one.file).track.points)
    assert {one.file for one in results(request)} == {one.file for one in done}


def test_two_processes_write_the_same_files_as_one(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for name in ("a.mp4", "b.mp4"):
        coloured_video(folder / name, COLOURS)
    (folder / "broken.mp4").write_bytes(b"no video")
    alone, both = (
        LandmarkRequest(
            sources=(folder,), out=tmp_path / str(n), reading=HERE, jobs=n, failures=tmp_path / f"{n}.jsonl"
        )
        for n in (1, 2)
    )
    for request in (alone, both):
        outcomes = list(landmark_files(request))
        assert [one.item.video_id for one in outcomes] == ["a", "b", "broken"]
        assert [one.failure is None for one in outcomes] == [True, True, False]
    for name in ("a.pose", "b.pose"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert (tmp_path / "1.jsonl").read_text() == (tmp_path / "2.jsonl").read_text()
