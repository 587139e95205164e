from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from signspot.cli.embed import landmarks
from signspot.formats.pose import read_pose
from tests.media.stand_in_detector import coloured_video, install

app = typer.Typer()
app.command()(landmarks)


def test_landmarks_are_written_shown_and_given_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where the list of failures goes
    install(tmp_path / "packages", monkeypatch)
    video = coloured_video(tmp_path / "a.mp4", [(60, 80, 200), (10, 10, 10), (90, 80, 200), (90, 80, 10)])
    out = tmp_path / "out"
    shown = CliRunner().invoke(app, [str(video), "--out", str(out), "--trust"])
    assert shown.exit_code == 0
    assert shown.stdout == f"{out / 'a.pose'}: 4 frames, body in 75%, hands in 50%\n"
    assert len(read_pose(out / "a.pose").track.axis) == 4
    (tmp_path / "broken.mp4").write_bytes(b"nothing")
    listed = tmp_path / "failures.jsonl"
    asked = [str(video), str(tmp_path / "broken.mp4"), "--out", str(out), "--json=-", "--failures", str(listed)]
    again = CliRunner().invoke(app, asked)
    assert again.exit_code == 1
    assert "broken.mp4" in json.loads(listed.read_text())["video"]
    records = json.loads(again.stdout)
    assert [record["was_there"] for record in records] == [True, False]
    assert records[1]["file"] is None and "broken.mp4" in records[1]["failure"]
    assert "1 of 2 videos failed" in again.stderr
