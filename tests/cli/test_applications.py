"""The guides tell the truth: their commands are run, and what they print is what the guide shows."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from signspot.cli import main as cli
from signspot.media.writer import VideoWriter
from signspot.stores.spottings import read_spottings
from tests.toy_world import ToyWorld

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
NAMES = ("lookup", "variants", "mining", "friends", "results")


@pytest.fixture(scope="module")
def toys(toy_world: ToyWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the guides speak of."""
    folder = tmp_path_factory.mktemp("guides") / "toys"
    shutil.copytree(toy_world.dictionary, folder / "dictionary")
    shutil.copy(toy_world.broadcast, folder)
    shutil.copy(toy_world.subtitles, folder)
    shutil.copy(toy_world.dictionary / "tree" / "tree_1.mp4", folder / "me.mp4")
    other = folder / "other"
    other.mkdir()
    for word, clip in (("tree", "tree/tree_1"), ("bread", "apple/apple_1"), ("water", "house/house_1")):
        shutil.copy(toy_world.dictionary / f"{clip}.mp4", other / f"{word}.mp4")
    return folder


def steps(guide: str) -> list[tuple[str, list[str]]]:
    """The commands of a guide, each with the lines that it says are printed."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", (GUIDES / f"{guide}.md").read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line.rstrip())
    return found


@pytest.mark.parametrize("guide", NAMES)
def test_a_guide_prints_what_it_says(
    guide: str, toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(toys, tmp_path / "toys")
    monkeypatch.chdir(tmp_path / "toys")
    monkeypatch.setenv("COLUMNS", "100")
    assert steps(guide)
    for command, expected in steps(guide):
        program, *arguments = shlex.split(command)
        if program == "sed":  # the guide's way of filling in a cell
            _, change, file = arguments
            _, before, after, _ = change.split("/")
            path = Path(file)
            text = path.read_text(encoding="utf-8-sig")
            path.write_text(re.sub(before, after, text, flags=re.MULTILINE), encoding="utf-8")
            continue
        assert program == "signspot"
        arguments = [_first_id() if argument == "ID" else argument for argument in arguments]
        assert cli.run(arguments) == 0, capsys.readouterr().err
        printed = [_without_digests(line.rstrip()) for line in capsys.readouterr().out.splitlines()]
        assert expected == ["..."] or len(printed) == len(expected), command
        for line, said in zip(printed, expected, strict=False):
            assert line == said or (said.endswith("...") and line.startswith(said.removesuffix("..."))), command


def _first_id() -> str:
    return next(read_spottings(Path("found.csv"))).spotting_id


def _without_digests(line: str) -> str:
    """Digests depend on the encoder of the machine: guides show four letters and dots."""
    line = re.sub(r"spot:[0-9a-f]{16}", "spot:8f3a...", line)
    return re.sub(r"[0-9a-f]{64}", "5d41...", line)


def run(*arguments: object) -> int:
    return cli.run([str(argument) for argument in arguments])


def test_json_goes_to_the_screen_or_a_file_and_problems_are_one_line(
    toys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dictionary = ("--dictionary", toys / "dictionary", "--model", "colour", "--trust")
    assert run("lookup", toys / "me.mp4", *dictionary, "--json") == 0
    assert json.loads(capsys.readouterr().out)["guesses"][0]["word"] == "tree"
    assert run("variants", toys / "broadcast.mp4", "apple", *dictionary, "--json", tmp_path / "v.json") == 0
    assert json.loads((tmp_path / "v.json").read_text())["tallies"]["video"] == {"broadcast": [2, 1]}
    capsys.readouterr()
    with VideoWriter(tmp_path / "short.mp4", width=64, height=64) as writer:
        writer.write(np.zeros((64, 64, 3), np.uint8), 0)
    sheet = tmp_path / "sheet.png"
    for arguments, code, said in (
        (("lookup", tmp_path / "short.mp4", *dictionary, "--sheet", sheet), 2, "short.mp4 is too short (1 frame,"),
        (("lookup", toys / "gone.mp4", *dictionary), 2, "gone.mp4"),
        (("lookup", toys / "me.mp4", *dictionary, "--threshold", "7"), 2, "7.0 is out of range"),
        (("variants", toys / "broadcast.mp4", "appel", *dictionary), 2, "did you mean apple"),
        (("mine", "find", toys / "broadcast.mp4", "apple", *dictionary, "--out", toys), 2, "exists already"),
        (("mine", "accept", toys / "gone.csv", "-d", toys / "dictionary"), 2, "no such file"),
        (("friends", toys / "dictionary", toys / "gone"), 2, "no such file or folder"),
        (("export", toys / "gone.csv", "--vtt", "x.vtt"), 2, "no such file"),
        (("why", toys / "gone.csv", "spot:1234"), 2, "no such file"),
    ):
        assert run(*arguments) == code
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1, error
    assert not sheet.exists()
