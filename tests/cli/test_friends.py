"""`signspot friends --by parts` from the command line, on two small dictionaries of a made-up world."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from signspot.cli import main as cli
from signspot.domain.spans import FRAME_MS, TimeAxis
from signspot.domain.tracks import LandmarkTrack
from signspot.formats.pose_files import write_pose
from signspot.media.landmark_layout import SignerLandmarks
from signspot.world.lexicon import LANGUAGE, OTHER_LANGUAGE
from signspot.world.presets import preset_named
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


def truth(world: World, word: str, other: str) -> bool:
    forms = [
        {sense.form_id for sense in senses[name]}
        for senses, name in ((world.lexicon.senses, word), (world.lexicon.other_senses, other))
    ]
    return bool(forms[0] & forms[1])


def test_a_planted_pair_is_listed_as_a_false_friend_and_what_differs_is_said(
    world: World,
    planted: tuple[str, str],
    shelves: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("friends", *shelves, "--no-store", "--out", tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert "compared part by part: place, movement, palm and shape of the hands" in printed.out
    assert printed.err == ""
    said = printed.out.partition("different words, same form")[2].partition("same word, different form")[0]
    assert f"{planted[0]} - {planted[1]}  (" in said
    with (tmp_path / "out" / "friends.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        is_same = row["relation"] != "same word, different form"
        assert is_same == truth(world, row["word"], row["other_word"]), row
        assert row["cosine"] == "" and set(row["agree"].split(", ")).isdisjoint(row["differ"].split(", "))
        assert is_same or row["differ"], "what differs is named"
    assert any(row["relation"] == "same word, different form" for row in rows)


def test_json_says_how_signs_were_compared_and_nothing_is_certain(
    shelves: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    somebody = tmp_path / "somebody"
    shutil.copytree(shelves[0], somebody)
    table = somebody / "dictionary.csv"
    table.write_text(table.read_text().replace(f",{LANGUAGE},", ",bsl,"))
    assert run("friends", somebody, shelves[1], "--by", "parts", "--log-odds", 30, "--no-store", "--json") == 0
    printed = capsys.readouterr()
    record = json.loads(printed.out)
    assert "made-up signing" in printed.err
    assert record["compared"].startswith("part by part")
    assert {pair["relation"] for pair in record["pairs"]} == {"same word, different form"}


@pytest.mark.soak  # a network is loaded
def test_vectors_are_the_default_and_their_closeness_suits_the_model(
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
    video = tmp_path / "videos"
    video.mkdir()
    (video / "tea.mp4").write_bytes(b"is not opened")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "tea.pose").write_bytes(b"nothing")
    for arguments, code, words in (
        ((*shelves, "--by", "parts", "--model", "colour"), 2, "has no say in comparing part by part"),
        ((*shelves, "--by", "parts", "--log-odds", 31), 2, "give a number from -30 to 30"),
        ((shelves[0], video, "--by", "parts"), 3, "or compare --by vectors"),
        ((shelves[0], damaged, "--by", "parts"), 2, "none of its clips can be read"),
    ):
        assert run("friends", *arguments, "--no-store") == code, arguments
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1, error
