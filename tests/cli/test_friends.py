"""`signspot friends` from the command line, on two small dictionaries of a made-up world."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from signspot.cli import main as cli
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import LandmarkTrack, SignerLandmarks
from signspot.formats.pose import write_pose
from signspot.world.lexicon import LANGUAGE, OTHER_LANGUAGE
from signspot.world.settings import preset_named
from signspot.world.simulation import World

SIDE = 400  # pixels


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(preset_named("demo"), 50)


@pytest.fixture(scope="module")
def planted(world: World) -> tuple[str, str]:
    """The words of a form that means something else there."""
    friend = world.lexicon.false_friends[0]
    return friend.word, friend.other_word


@pytest.fixture(scope="module")
def shelves(world: World, planted: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Four words of each language as .pose files, the planted pair among them; nobody says who is left-handed."""
    rest = [word for word in sorted(world.lexicon.senses) if word not in planted][:2]
    folders = []
    for language in (LANGUAGE, OTHER_LANGUAGE):
        folder = tmp_path_factory.mktemp(language) / language
        folder.mkdir()
        lines = ["word,file,language,variant,signer"]
        for entry in world.dictionary_entries(language):
            if entry.word in {*rest, *planted}:
                points = world.detected(world.perform_entry(entry), entry.entry_id)
                track = LandmarkTrack(entry.entry_id, TimeAxis(np.arange(len(points)) * float(FRAME_MS)), points)
                write_pose(SignerLandmarks(track, SIDE, SIDE), folder / f"{entry.entry_id}.pose")
                signer = entry.signer.signer_id if entry.signer else ""
                lines.append(f"{entry.word},{entry.entry_id}.pose,{language},{entry.variant},{signer}")
        (folder / "dictionary.csv").write_text("\n".join(lines))
        folders.append(folder)
    return folders[0], folders[1]


def run(*arguments: object) -> int:
    return cli.run([str(argument) for argument in arguments])


def test_a_planted_pair_is_a_false_friend_by_the_default_model(
    planted: tuple[str, str], shelves: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("friends", *shelves, "--no-store", "--out", tmp_path / "out", "--json", tmp_path / "friends.json") == 0
    assert "model landmark-v1" in capsys.readouterr().err
    record = json.loads((tmp_path / "friends.json").read_text())
    assert record["compared"] == "by one vector of landmark-v1 for each clip"
    with (tmp_path / "out" / "friends.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert rows == [{name: str(value) for name, value in pair.items()} for pair in record["pairs"]]
    assert list(rows[0])[-2:] == ["cosine", "closeness"]
    false = [(row["word"], row["other_word"]) for row in rows if row["relation"] == "different words, same form"]
    assert false == [planted]
    assert len(rows) == 5, "the four words that both have are listed, too"


@pytest.mark.soak  # a network is loaded
def test_the_least_closeness_suits_the_model(
    shelves: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (shelves[0] / "dictionary.csv").open() as file:
        first = {row["word"]: row["file"] for row in csv.DictReader(file)}
    for word, name in first.items():
        shutil.copy(shelves[0] / name, tmp_path / f"{word[::-1]}.pose")
    assert run("friends", shelves[0], tmp_path, "--no-store", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["compared"] == "by one vector of landmark-v1 for each clip"
    close = {(pair["word"], pair["other_word"]): float(pair["closeness"]) for pair in record["pairs"]}
    assert all(close[word, word[::-1]] >= 0.25 for word in first) and min(close.values()) < 0.5


def test_bad_requests_end_in_one_line(
    shelves: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "tea.pose").write_bytes(b"nothing")
    for arguments, words in (
        ((*shelves, "--by", "parts"), "No such option: --by"),
        ((*shelves, "--closeness", 2.1), "use -2 to 2"),
        ((shelves[0], damaged), "none of its clips can be read"),
    ):
        assert run("friends", *arguments, "--no-store") == 2, arguments
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1, error
