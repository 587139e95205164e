"""The examples run as they stand: with paths, without any in a folder that holds a world, and the notebook's cells."""

from __future__ import annotations

import ast
import json
import runpy
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
import torch

import signspot
from signspot.formats.elan import read_eaf
from signspot.workflows.world import WorldRequest, make_world
from signspot.world.settings import PRESETS
from tests.cli.test_demo import TINY

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NOTEBOOK = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that holds the world that examples would draw, but a tiny one."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", replace(TINY, subtitles_per_episode=2))
        make_world(WorldRequest(folder=folder / "signspot-world", preset="tiny", side=64, workers=1))
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield folder


def run(name: str, *words: str | Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *map(str, words)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_words_are_found_in_landmarks_alone(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    poses = desk / "poses"
    poses.mkdir()
    for pose in (desk / "signspot-world" / "dictionary" / "clips").glob("*.pose"):
        (poses / pose.name).write_bytes(pose.read_bytes())
    word = min(poses.iterdir()).stem.rsplit("_", 1)[0]
    run("find_words.py", min(poses.iterdir()), word, "--dictionary", poses)
    found, missing = capsys.readouterr().out.splitlines()
    assert f"  {word} (like {word}_" in found and missing == "not found: none"
    run("find_words.py")
    assert capsys.readouterr().out.splitlines()[-1].startswith("not found: ")


def test_subtitles_become_tiers(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("subtitles_to_elan.py")
    *signs, said, wrote = capsys.readouterr().out.splitlines()
    assert said.startswith(f"{len(signs)} of ") and wrote == "wrote signs.eaf"
    tiers = {tier.tier_id: tier.annotations for tier in read_eaf(desk / "signs.eaf").tiers}
    assert len(tiers.get("signspot", ())) == len(signs)


def test_a_clip_is_looked_up_in_a_dictionary_or_among_learned_words(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("which_sign.py")
    clip = min((desk / "signspot-world" / "dictionary" / "clips").glob("*.mp4"))
    assert capsys.readouterr().out.splitlines()[0].split()[:2] == [clip.stem.rsplit("_", 1)[0], "likely"]
    run("which_sign.py", clip.with_suffix(".pose"))
    assert "landmark-v1: " in capsys.readouterr().out


def test_the_cells_of_the_notebook_run_in_order(
    desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    matplotlib.use("agg")
    shown: list[bool] = []
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: shown.append(True))
    names: dict[str, object] = {}
    for cell in CODE:
        exec(compile(cell, "tour.ipynb", "exec"), names)  # what Jupyter does, but for the display
    assert shown and (desk / "signs.eaf").is_file() and "likely" in capsys.readouterr().out
    monkeypatch.undo()
    names["plt"].close("all")  # type: ignore[attr-defined]


def test_the_notebook_is_kept_without_outputs() -> None:
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_examples_are_short(script: Path) -> None:
    assert len(script.read_text().splitlines()) < 40


@pytest.mark.parametrize("source", [*(script.read_text() for script in SCRIPTS), *CODE])
def test_examples_use_public_names_alone(source: str) -> None:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("signspot")
        elif isinstance(node, ast.Import):
            assert not any(name.name.startswith("signspot.") for name in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "signspot":
            assert node.attr in signspot.__all__
