from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from signspot.cli import main
from signspot.learning.config import as_toml
from signspot.learning.material import write_material
from tests.learning.planted import planted
from tests.learning.small_runs import SMALL, WORLD
from tests.test_interrupts import hears_signals

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with material, a config of seconds and one that takes hours."""
    folder = tmp_path_factory.mktemp("train")
    for name, material in zip(("train", "test"), planted(WORLD, 0, 48, 16), strict=True):
        write_material(material, folder / name)
    (folder / "run.toml").write_text(as_toml(replace(SMALL, epochs=2, decay_epochs=())))
    (folder / "long.toml").write_text(as_toml(replace(SMALL, epochs=100_000, decay_epochs=(), evaluate_every=100_000)))
    return folder


def arguments(work: Path, out: Path, *more: str, config: str = "run.toml") -> list[str]:
    return ["train", "embedding", str(work / config), "--data", str(work / "train"), "--out", str(out), *more]


def test_a_run_prints_every_epoch_and_where_the_model_is(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments(work, tmp_path / "run", "--test", str(work / "test"))) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("48 of 48 labelled passages")
    assert lines[1].startswith("epoch 1 of 2: loss ") and ", mAP " in lines[1] and lines[1].endswith(" left")
    assert lines[2].startswith("epoch 2 of 2: loss ") and not lines[2].endswith(" left")
    assert lines[3] == f"wrote {tmp_path / 'run' / 'results.json'} and {tmp_path / 'run' / 'best.safetensors'}"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--set", "epoch=3"], "--set epoch=3: 'epoch' is no option: did you mean epochs?"),
        (["--resume", "--overwrite"], "--resume and --overwrite: cannot be given together"),
        (["--test", "nowhere"], "nowhere: no such folder"),
        (["--trunk", "nowhere.safetensors"], "nowhere.safetensors: cannot be read"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert main.run(arguments(work, tmp_path / "run", *more)) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_runs_are_compared_as_a_table_and_as_json(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments(work, tmp_path / "a")) == 0
    assert main.run(arguments(work, tmp_path / "b", "--set", "temperature=0.1")) == 0
    capsys.readouterr()
    assert main.run(["train", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    table = capsys.readouterr().out
    assert "temperature" in table and "0.0700" in table and "final.loss" in table and "momentum" not in table
    assert main.run(["train", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["options"] == [{"name": "temperature", "values": [0.07, 0.1]}]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_the_state_and_says_how_to_continue(work: Path, tmp_path: Path, number: int, code: int) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "signspot", *arguments(work, out, "--save-minutes", "0", config="long.toml")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=hears_signals,
    )
    try:
        begun = time.monotonic()
        while not (out / "curves.jsonl").exists() and process.poll() is None and time.monotonic() - begun < 120:
            time.sleep(0.05)
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, error
    assert b"run the same command with --resume to continue" in error and b"Traceback" not in error
    assert (out / "state.safetensors").exists() and not list(out.glob(".signspot-*"))
