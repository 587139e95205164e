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
from signspot.learning.material import WordSplit
from tests.learning.planted import planted
from tests.learning.small_runs import SMALL, WORLD
from tests.test_interrupts import hears_signals

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with material, a config of seconds and one that takes hours."""
    folder = tmp_path_factory.mktemp("train")
    for name, material in zip(("train", "test"), planted(WORLD, 0, 48, 16), strict=True):
        material.write(folder / name)
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
        (["--set", "epoch=3"], "--set epoch=3: 'epoch' is not an option: did you mean epochs?"),
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


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """Twelve words, the i-th of them annotated i + 1 times, every other time in a test video; ten have an entry."""
    for name in ("corpus/a.mp4", "corpus/b.mp4", *(f"dictionary/word{i:02}/x.mp4" for i in range(10))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "corpus" / "corpus.csv").write_text("video,split\na.mp4,train\nb.mp4,test\n")
    rows = [f"{'ab'[k % 2]},word{i:02},{k},1" for i in range(12) for k in range(i + 1)]
    unsure = ["a,unsure,5,0.1"]
    (tmp_path / "corpus" / "annotations.csv").write_text("\n".join(["video,word,frame,confidence", *rows, *unsure]))
    (tmp_path / "marks.txt").write_text("apple\n?!\n")
    (tmp_path / "words.txt").write_text("Apple\npear\n\nplum\n")
    return tmp_path


def test_words_are_drawn_and_counted(
    annotated: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(annotated)
    command = ["train", "split", "--corpus", "corpus", "-d", "dictionary", "--test-words", "3", "--out", "split.json"]
    assert main.run(command) == 0
    split = WordSplit.read(annotated / "split.json")
    n_test = sum(int(word.removeprefix("word")) + 1 for word in split.test)
    expected = [
        f"7 training words: {55 - n_test} annotations",
        f"3 test words: {n_test} annotations",
        "2 words left out: the dictionary has no entry for them",
    ]
    assert capsys.readouterr().out.splitlines()[:3] == expected
    assert {min(int(word.removeprefix("word")) // 3, 2) for word in split.test} == {0, 1, 2}  # rare and frequent ones
    assert main.run(command) == 2 and "exists already" in capsys.readouterr().err
    assert main.run([*command, "--overwrite"]) == 0 and WordSplit.read(annotated / "split.json") == split
    capsys.readouterr()
    assert main.run([*command, "--overwrite", "--seed", "5", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["seed"], record["train"]["words"], record["test"]["words"]) == (5, 7, 3)
    assert record["train"]["annotations"] + record["test"]["annotations"] == 55 and record["not_in_dictionary"] == 2
    assert WordSplit.read(annotated / "split.json") != split


def test_a_word_that_no_test_video_shows_is_told(annotated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (annotated / "corpus" / "annotations.csv").write_text("video,word,frame\na,one,1\na,two,2\nb,none,9\n")
    out = ["--test-words", "2", "--out", str(annotated / "s.json")]
    assert main.run(["train", "split", "--corpus", str(annotated / "corpus"), *out, "--seed", "1"]) == 0
    n_untested = sum(word != "none" for word in WordSplit.read(annotated / "s.json").test)
    assert f"{n_untested} test words cannot be tested: no video of the split 'test'" in capsys.readouterr().out


def test_words_come_from_a_list_or_from_material(
    annotated: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--test-words", "1", "--out", str(annotated / "split.json")]
    assert main.run(["train", "split", "--words", str(annotated / "words.txt"), *out]) == 0
    split = WordSplit.read(annotated / "split.json")
    assert sorted((*split.train, *split.test)) == ["apple", "pear", "plum"]
    assert capsys.readouterr().out.startswith("2 training words\n1 test words\nwrote ")
    assert main.run(["train", "split", "--data", str(work / "train"), *out, "--overwrite"]) == 0
    assert "passages" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "needs words to draw from: give one of --corpus, --data and --words"),
        (("--words", "w", "--data", "d"), "give one of"),
        (("--words", "words.txt", "--test-words", "3"), "3 test words: cannot be drawn from 3 labelled words"),
        (("--words", "words.txt", "--seed", "-1"), "seed -1: is negative"),
        (("--words", "marks.txt"), "marks.txt: '?!' is not a word: correct or remove the line"),
    ],
)
def test_a_split_that_cannot_be_drawn_is_told(
    annotated: Path,
    options: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(annotated)
    assert main.run(["train", "split", "--test-words", "1", "--out", "s.json", *options]) == 2
    assert words in capsys.readouterr().err and not Path("s.json").exists()
