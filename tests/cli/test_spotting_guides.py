"""The guides of spotting and annotating: every command runs and prints what the guide shows."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from signspot.cli.main import run
from tests.toy_world import ToyWorld

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BATCH = 13  # copies of the broadcast: as many candidates as a calibration needs; the store knows them for one


def examples(guide: str) -> list[tuple[list[str], list[str]]]:
    """The commands of a guide, each with the lines that it prints."""
    found: list[tuple[list[str], list[str]]] = []
    fence = ""  # that opened the block; a closing one is always plain
    text = (GUIDES / guide).read_text(encoding="utf-8").replace("\\\n", "")  # a long command, on two lines
    for line in text.splitlines():
        if line.startswith("```"):
            fence = "" if fence else line
        elif fence == "```" and line.startswith("$ signspot "):
            found.append((line.split()[2:], []))
        elif fence == "```" and found:
            found[-1][1].append(line.rstrip())
    return found


@pytest.fixture(scope="module")
def desk(toy_world: ToyWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the guides talk about."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(toy_world.dictionary, folder / "dictionary")
    (folder / "corpus").mkdir()
    rows = ["video,word,time_ms"]
    for name in ("news", *(f"corpus/news{number}" for number in range(BATCH))):
        shutil.copy(toy_world.broadcast, folder / f"{name}.mp4")
        shutil.copy(toy_world.subtitles, folder / f"{name}.vtt")
        if name != "news":
            rows += [f"{name[7:]},{one.sign.word},{one.span_ms.stop - 40}" for one in toy_world.truth]
    (folder / "corpus" / "annotations.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "words.txt").write_text("garden\nwater\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("guide", ["spotting.md", "annotating.md"])
def test_every_command_of_the_guide_prints_what_the_guide_shows(
    guide: str, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(desk)
    monkeypatch.setenv("COLUMNS", "110")
    commands = examples(guide)
    assert len(commands) >= 3
    if guide == "annotating.md":
        monkeypatch.setenv("XDG_DATA_HOME", str(desk / "data"))
        (calibrate,) = (arguments for arguments, _ in examples("spotting.md") if arguments[0] == "calibrate")
        assert run([*calibrate, "--trust", "--overwrite"]) == 0, capsys.readouterr().err
        capsys.readouterr()
    for number, (arguments, shown) in enumerate(commands, start=1):
        # The first guide calibrates; of the second only the last command is meant to have a calibration.
        is_calibrated = guide == "spotting.md" or number == len(commands)
        monkeypatch.setenv("XDG_DATA_HOME", str(desk / ("data" if is_calibrated else "no data")))
        code = run([*arguments, "--trust"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        assert _form(printed.out.replace(f"{desk}/", "").splitlines()) == _form(shown), arguments
        assert not printed.err


def _form(lines: list[str]) -> list[str]:
    """What is printed without its numbers: a codec of another version moves the last digit."""
    return [re.sub(r"[\d.:%+-]+", "#", " ".join(line.split())) for line in lines if line.strip()]


def test_json_says_the_same_on_the_screen_in_a_file_and_in_a_batch(
    desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(desk)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    asked = ["annotate", "-d", "dictionary", "--model", "colour", "--store", "vectors", "--trust", "--json"]
    assert run([*asked[:1], "news.mp4", "-s", "news.vtt", *asked[1:]]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [mention["word"] for mention in shown["unexplained"]] == ["house"]
    assert shown["not_in_dictionary"][0] == {"word": "be", "mentions": 4} and len(shown["not_in_dictionary"]) == 14
    assert run([*asked[:1], "news.mp4", "-s", "news.vtt", *asked[1:], str(tmp_path / "one.json")]) == 0
    assert run([*asked[:1], "corpus", *asked[1:], str(tmp_path / "all.json")]) == 0
    one, (first, *_) = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("one", "all"))
    capsys.readouterr()
    assert run([*asked[:1], "corpus", *asked[1:-1], "--vtt", "corpus", "--overwrite"]) == 2
    assert "corpus/news0.vtt: is an input and is never written to: choose another folder" in capsys.readouterr().err
    assert run(["annotate", "news.mp4", *asked[1:-1]]) == 0
    printed = capsys.readouterr()
    assert "news.mp4: the subtitles beside it are taken: news.vtt" in printed.err
    assert "signs for 8 of 9 subtitle words" in printed.out and "results were not saved; add --eaf" in printed.out
    assert one == shown and first["unexplained"] == shown["unexplained"] and first["known_words"]["n"] == 8
