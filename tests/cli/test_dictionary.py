from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import signspot
from signspot.cli import main as cli
from signspot.media.copies import FaceReader
from tests.media.moving_clips import make_clip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    make_clip(tmp_path / "source" / "Apple.mp4", 1)
    make_clip(tmp_path / "source" / "tree_02.mp4", 2)
    (tmp_path / "source" / "bad.mp4").write_text("no video")
    return tmp_path / "source"


def build(*arguments: object) -> int:
    return cli.run(["dictionary", "build", *map(str, arguments), "--trust"])


def test_a_build_says_what_it_made_and_what_it_left_out(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(source, tmp_path / "built") == 1
    printed = capsys.readouterr().out
    assert "2 words · 2 variants · 2 clips · 0 signers" in printed
    assert re.search("trimmed from 40 to (18|19|20|21|22) frames", printed)
    assert "bad.mp4: is not a video that can be read" in printed
    assert f"use it with --dictionary {tmp_path / 'built'}" in printed
    (source / "bad.mp4").unlink()
    assert build(source, tmp_path / "built") == 0
    assert "2 clips were finished before" in capsys.readouterr().out
    assert [entry.word for entry in signspot.open_dictionary(tmp_path / "built")] == ["apple", "tree"]


def test_json_holds_all_of_it_on_the_screen_and_in_a_file(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(source, tmp_path / "built", "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["counts"] == {"words": 2, "variants": 2, "clips": 2, "signers": 0}
    assert shown["problems"][0]["where"].endswith("bad.mp4") and shown["frames"] == 80
    assert build(source, tmp_path / "built", "--json", tmp_path / "report.json") == 1
    assert json.loads((tmp_path / "report.json").read_text()) == shown | {"read_before": 2}
    assert build(source, tmp_path / "other", "--json", tmp_path / "report.json") == 2
    assert not (tmp_path / "other").exists()


def test_many_lines_of_a_kind_are_counted_not_listed(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(30):
        (source / f"bad{number}.mp4").write_text(f"no video {number}")
    assert build(source, tmp_path / "built") == 1
    printed = capsys.readouterr().out
    assert printed.count("left out:") == 11
    assert f"left out: 21 more in {tmp_path / 'built' / 'problems.csv'}" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["S", "S"], 2, "is the source itself"),
        (["nowhere", "D"], 2, "no such file or folder"),
        (["S", "no/such/place"], 2, "the folder to write to does not exist"),
        (["S", "D", "--clips", "S"], 2, "so --clips says nothing"),
        (["S", "D", "--margin", "-1"], 2, "--margin"),
    ],
)
def test_wrong_input_is_one_line(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    places = {"S": source, "D": tmp_path / "built"}
    assert build(*(places.get(word, word) for word in arguments)) == code
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "built").exists()


def test_faces_are_looked_at_only_when_asked_and_need_the_extra(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dlib", None)
    assert build(source, tmp_path / "built", "--signers-by-face") == 3
    assert "pip install 'signspot[faces]'" in capsys.readouterr().err
    assert not (tmp_path / "built").exists()

    def refuse(_: FaceReader) -> None:
        raise RuntimeError("a face was looked at")

    monkeypatch.setattr(FaceReader, "__init__", refuse)
    assert build(source, tmp_path / "built") == 1
    assert "face group" not in (tmp_path / "built" / "index.html").read_text()
