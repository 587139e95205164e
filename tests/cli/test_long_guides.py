"""The guides whose commands take longer: a dictionary from a heap of clips, training, evaluation."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from signspot.cli.main import run
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import FrameShape
from signspot.media.reader import VideoReader
from signspot.media.writer import VideoWriter
from tests.cli.test_spotting_guides import examples
from tests.workflows.shapes import make_shape_corpus
from tests.workflows.test_train_end_to_end import EMBEDDING, TRUNK


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


def printed_by(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> list[str]:
    assert run(arguments) == code, capsys.readouterr().err
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_a_heap_of_clips_becomes_the_dictionary_that_the_guide_shows(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heap, clips = tmp_path / "real", shared_data / "real_video"
    heap.mkdir()
    for name in ("computer_12306", "drink_17730", "sunday_55768"):
        shutil.copy(clips / f"{name}.mp4", heap / f"{name.split('_')[0]}.mp4")
    shutil.copy(heap / "sunday.mp4", heap / "weekend.mp4")
    (heap / "broken.mp4").write_bytes(b"broken")
    _later_and_smaller(heap / "drink.mp4", heap / "drink_2.mp4")
    (command, shown), *_ = examples("dictionary-workshop.md")
    told = printed_by(command, capsys, code=1)
    assert _plain(told) == _plain(shown[: len(told)])
    table = (tmp_path / "signs" / "dictionary.csv").read_text(encoding="utf-8-sig").splitlines()
    listed = [line for line in shown[len(told) :] if not line.startswith("$")]
    assert table[0] == listed[0]
    assert [row.split(",")[:2] for row in table[1:]] == [row.split(",")[:2] for row in listed[1:]]


def _later_and_smaller(source: Path, target: Path) -> None:
    with VideoReader(source, shape=FrameShape(160, 160)) as reader:
        frames = [np.asarray(frame.pixels) for frame in reader][4:]
    with VideoWriter(target, width=160, height=160) as writer:
        for number, frame in enumerate(frames):
            writer.write(frame, number * FRAME_MS)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_training_goes_as_the_guide_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = make_shape_corpus(tmp_path, times=True)
    place.corpus.rename(tmp_path / "my-corpus")
    place.dictionary.rename(tmp_path / "my-dictionary")
    (tmp_path / "trunk.toml").write_text(TRUNK)
    (tmp_path / "embedding.toml").write_text(EMBEDDING.replace("epochs = 8", "epochs = 5"))
    commands = examples("training.md")
    steps = ["trunk", *["material"] * 2, "embedding", "split", "embedding", "compare"]
    assert [arguments[1] for arguments, _ in commands] == steps
    for arguments, shown in commands:
        told = printed_by(arguments, capsys)
        assert not shown or _is_shown(told, shown), (arguments, told)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_evaluating_goes_as_the_guide_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "demo"]) == 0
    capsys.readouterr()
    commands = examples("evaluation.md")
    assert [arguments[0] for arguments, _ in commands] == ["train", "evaluate"]
    for arguments, shown in commands:
        told = printed_by(arguments, capsys)
        assert not shown or _is_shown(told, shown), (arguments, told)


def _is_shown(told: list[str], shown: list[str]) -> bool:
    """Whether a guide shows these lines, "..." standing for any."""
    pattern = "".join(f"{re.escape(line)}\n" if line != "#" else "(.*\n)*" for line in _plain(shown))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _plain(told))) is not None


def _plain(lines: list[str]) -> list[str]:
    """What is printed without its numbers, which differ from machine to machine."""
    return [re.sub(r"-?[\d.:%]+", "#", " ".join(line.split())) for line in lines if line.strip()]
