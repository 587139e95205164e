"""The guide to people's own videos: every command runs on the recordings it is about, and answers as it shows.

No detector is needed: the landmarks that come with the recordings lie beside them. Of the clip that is looked up there
are none: another recording of the same sign takes its place.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from experiments.lib.data_sets import LandmarkClip, read_aslearn, read_wlasl300
from experiments.lib.landmark_model import at_house_rate

from signspot.cli.main import run
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import POSE_NUMBERS, FloatArray, LandmarkTrack, SignerLandmarks
from signspot.formats.pose import write_pose
from tests.cli.test_spotting_guides import examples

NOT_FOUND = "absent with a probability"
SENTENCE, WORDS = "cheeseluncheat", ("cheese", "lunch", "eat", "fruit")


def write(points: FloatArray, seconds: FloatArray, path: Path) -> None:
    """Landmarks in picture heights, which are fractions of a square picture."""
    steady = at_house_rate(points, seconds)
    axis = TimeAxis(np.arange(len(steady)) * float(FRAME_MS))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_pose(SignerLandmarks(LandmarkTrack(path.stem, axis, steady), 1000, 1000), path)


@pytest.fixture(scope="module")
def desk(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the guide talks about."""
    folder, aslearn = tmp_path_factory.mktemp("desk"), shared_data / "aslearn"
    read = read_aslearn(aslearn)
    (sentence,) = (one for one in read.sentences if Path(one.name).stem == SENTENCE)
    write(sentence.points, sentence.seconds, folder / f"{SENTENCE}.pose")
    shutil.copy(aslearn / "sentences" / f"{SENTENCE}.mp4", folder)
    for clip in read.clips:
        if clip.word in WORDS:
            write(clip.points, clip.seconds, folder / "words" / f"{clip.word}.pose")
            shutil.copy(aslearn / "words" / f"{clip.word}.mp4", folder / "words")
    recording = _write_dictionary(read_wlasl300(shared_data / "wlasl300_landmarks"), folder / "wlasl")
    write(recording.points, recording.seconds, folder / "drink_17730.pose")
    shutil.copy(shared_data / "real_video" / "drink_17730.mp4", folder)
    for name, source in (("weather", "25October_2010_Monday_tagesschau-17"), ("pizza", "pizza")):
        shutil.copy(shared_data / "pose_files" / f"{source}.pose", folder / f"{name}.pose")
    return folder


def _write_dictionary(clips: tuple[LandmarkClip, ...], folder: Path) -> LandmarkClip:
    """The clips that the guide's answer names; gives another clip of drink, the first on which the hands are seen."""
    shown = {line.split()[-1] for _, lines in examples("real-video.md") for line in lines if line.endswith(".pose")}
    for clip in clips:
        if f"{clip.word}/{clip.clip_id}.pose" in shown:
            write(clip.points, clip.seconds, folder / clip.word / f"{clip.clip_id}.pose")
    others = (clip for clip in clips if clip.word == "drink" and f"drink/{clip.clip_id}.pose" not in shown)
    return next(clip for clip in others if clip.points[:, POSE_NUMBERS:].any(axis=1).mean() > 0.9)


def test_every_command_of_the_guide_answers_as_the_guide_shows(
    desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(desk)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "110")
    commands = examples("real-video.md")
    assert [arguments[0] for arguments, _ in commands] == ["spot", "spot", "lookup", "spot"]
    for arguments, shown in commands:
        code = run(arguments)
        printed = capsys.readouterr()
        assert code == 0, printed.err
        told = [*printed.err.splitlines(), *printed.out.splitlines()]
        assert told[0] == shown[0] and "landmark-v1" in told[0]
        assert [line for line in told if line.startswith("wrote")] == [s for s in shown if s.startswith("wrote")]
        if arguments[0] == "lookup":
            assert [_looked_up(told)[0], len(_looked_up(told))] == [_looked_up(shown)[0], 6]
        else:
            assert [line.split()[0] for line in told if NOT_FOUND in line] == [
                line.split()[0] for line in shown if NOT_FOUND in line
            ]
            assert [word for word, *_ in _found(told)] == [word for word, *_ in _found(shown)]
            for (word, *numbers), (_, *expected) in zip(_found(told), _found(shown), strict=True):
                assert numbers == pytest.approx(expected, abs=0.005), word


def _found(lines: list[str]) -> list[tuple[str, float, float, float]]:
    """Word, first and last second, and cosine of each finding."""
    rows = (re.match(r"0:00:(\d+\.\d+) +0:00:(\d+\.\d+) +(\w+) +(\d\.\d+) ", line) for line in lines)
    return [(row[3], float(row[1]), float(row[2]), float(row[4])) for row in rows if row]


def _looked_up(lines: list[str]) -> list[str]:
    """The words of an answer, the best first."""
    return [line.split()[1] for line in lines if re.match(r"\d  \w", line)]
