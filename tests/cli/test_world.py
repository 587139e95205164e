from __future__ import annotations

import json
from pathlib import Path

import pytest

from signspot.cli.main import run


def test_the_measures_of_a_world_are_printed_and_given_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["world", "measure"]) == 0
    printed = capsys.readouterr().out
    assert "paper    78.00" in printed and "raw joints, nearest neighbour: mAP" in printed
    assert run(["world", "measure", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert f"mAP {measured['mean_ap']:.1%}" in printed


def test_an_unknown_preset_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["world", "make", str(tmp_path / "w"), "--preset", "huge"]) == 2
    assert capsys.readouterr().err == "signspot: huge: is not a preset of the world: choose one of demo, small, paper\n"
    assert not (tmp_path / "w").exists()
