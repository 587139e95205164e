from __future__ import annotations

import json
from pathlib import Path

import pytest

from signspot.cli import main
from tests.learning.planted import planted
from tests.learning.small_runs import WORLD


@pytest.fixture(scope="module")
def test_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate") / "test"
    planted(WORLD, 0, 48, 16)[1].write(folder)
    return folder


def test_a_table_says_what_was_tested(test_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["evaluate", "--truth", "--test", str(test_set), "--out", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["score", "other", "words", "other", "videos", "chance", "paper"]
    assert lines[1].startswith("mAP ") and "100.0%" in lines[1] and "[100.0, 100.0]" in lines[1]
    assert "16 passages of 8 words, each looked up in 16 dictionary clips (limited dictionary, stride 1)" in lines
    assert lines[-1] == f"wrote {tmp_path / 'out' / 'index.html'}"


def test_json_is_the_same_on_the_screen_and_in_a_file(
    test_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["evaluate", "random", "--test", str(test_set), "--seed", "3"]
    assert main.run([*asked, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert main.run([*asked, "--json", str(tmp_path / "scores.json")]) == 0
    assert json.loads((tmp_path / "scores.json").read_text()) == shown
    assert shown["measures"][0]["name"] == "mAP" and shown["protocol"]["name"] == "all"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "there is nothing to evaluate"),
        (["random", "--truth"], "--truth stands in place of a model"),
        (["random", "--protocol", "half"], "--protocol half: is not a protocol: choose seen, unseen or all"),
        (["random", "--protocol", "unseen"], "needs the split into training and test words"),
        (["random", "--checkpoint", "first"], "--checkpoint first: is unknown: choose last or best"),
        (["no-such-model"], "no-such-model: no model of this name is on this computer"),
        (["random", "--out", "nowhere/out"], "the folder to write to does not exist"),
        (["random", "--challenge", "nowhere.json", "nowhere.json"], "nowhere.json: no such file: check the name"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(
    test_set: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert main.run(["evaluate", "--test", str(test_set), *more]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_the_challenge_needs_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, answers = tmp_path / "truth.json", tmp_path / "answers.json"
    truth.write_text(json.dumps({"a": [[1, 0, 1000], [2, 0, 1000]]}))
    answers.write_text(json.dumps({"a": [[1, 0, 1000]]}))
    assert main.run(["evaluate", "--challenge", str(truth), str(answers)]) == 0
    assert capsys.readouterr().out.startswith("F1 0.6667 [")
    assert main.run(["evaluate", "--challenge", str(truth), str(answers), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["f1"], shown["precision"], shown["recall"]) == (pytest.approx(2 / 3), 1.0, 0.5)
    assert len(shown["f1_by_iou_percent"]) == 13
