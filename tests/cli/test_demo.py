"""The demo, whole, at a size that takes seconds: through the command, into files."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from signspot.cli import main
from signspot.domain.recordings import Word
from signspot.domain.time import MillisSpan
from signspot.embedding.zoo import load_model
from signspot.formats.elan import read_eaf
from signspot.learning.material import WordSplit
from signspot.media.reader import VideoReader
from signspot.models.checkpoints import ModelCard, describe, save_checkpoint, state_of
from signspot.models.i3d import I3D, I3DConfig
from signspot.stores.corpus import read_truth
from signspot.workflows.demo import _METHODS
from signspot.world.settings import PRESETS

TINY = replace(
    PRESETS["demo"], name="tiny", n_words=6, n_annotated=6, n_test_words=3, train_episodes=1, test_episodes=1,
    subtitles_per_episode=3, entries_per_annotated_word=1.0,
)  # fmt: skip


@dataclass(frozen=True)
class Ran:
    folder: Path
    arguments: list[str]
    printed: str


def untrained_trunk(path: Path) -> Path:
    torch.manual_seed(0)
    trunk = I3D(I3DConfig(classes=2, width=0.0625))
    frames = {"side": 36, "crop": 32, "keep_aspect": True, "signer_box": True, "mean": 0.5}
    card = ModelCard(name="untrained", architecture="i3d", config=describe(trunk), preprocessing=frames)
    save_checkpoint(path, state_of(trunk), card)
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    torch.set_num_threads(1)
    here = tmp_path_factory.mktemp("demo")
    model = untrained_trunk(here / "untrained.safetensors")
    arguments = ["demo", str(here / "out"), "--preset", "tiny", "--model", str(model), "--epochs", "2"]
    arguments += ["--backend", "torch"]  # so small a network is done before another would be compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", TINY)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert main.run(arguments) == 0
        yield Ran(here / "out", arguments, printed.getvalue())


def test_it_says_what_it_is_and_what_to_do_next(ran: Ran) -> None:
    assert "synthetic" in ran.printed and "no claim about real signing" in ran.printed
    assert len(re.findall(r"^\[ *\d+ s\] ", ran.printed, re.MULTILINE)) == 4, "a line for each step"
    assert re.search(
        r"3 words that were never annotated, \d+ passages, each looked up in \d+ dictionary clips", ran.printed
    )
    assert "signspot spot MY_VIDEO.mp4 WORD" in ran.printed


def test_the_table_holds_chance_and_every_method(ran: Ran) -> None:
    rows = json.loads((ran.folder / "scores.json").read_text())
    assert [row["name"] for row in rows] == ["chance", *(method.name for method in _METHODS)]
    assert all(0 <= row[score] <= 1 for row in rows for score in ("mean_ap", "recall_at_5", "localisation"))
    report = (ran.folder / "report.html").read_text()
    shown = re.findall(r"<td>([\d.]+)%</td>", report)
    scores = [row[score] for row in rows for score in ("mean_ap", "recall_at_5", "localisation")]
    assert shown == [f"{100 * score:.1f}" for score in scores]


def test_the_report_stands_alone(ran: Ran) -> None:
    report = (ran.folder / "report.html").read_text()
    assert "no claim about real signing" in report
    assert "http" not in report.replace("http-equiv", "")
    assert re.findall(r'src="(.{22})', report) == ["data:image/png;base64,"] * report.count("<img")
    assert "<img" in report
    links = re.findall(r'href="([^"]+)"', report)
    assert links and all((ran.folder / link).exists() for link in links)


def test_findings_are_written_for_people_and_programs(ran: Ran) -> None:
    words = set(WordSplit.read(ran.folder / "world" / "split.json").test)
    with (ran.folder / "spottings.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {Word(row["word"]) for row in rows} <= words
    assert f"{len(rows)} findings" in ran.printed
    assert f"{len(rows)} findings" in (ran.folder / "report.html").read_text()
    tiers = {tier.tier_id: tier.annotations for tier in read_eaf(ran.folder / "spottings.eaf").tiers}
    truth = [sign for sign in read_truth(ran.folder / "world" / "truth.parquet") if sign.video_id == "test-0000"]
    signed = [(one.span_ms, one.value) for one in tiers["truth"]]
    assert signed == [(MillisSpan.of(40 * sign.start_frame, 40 * sign.stop_frame), sign.word) for sign in truth]
    assert sum(len(found) for name, found in tiers.items() if name.startswith("signspot-source")) == len(rows)
    with VideoReader(ran.folder / "overlay.mp4") as reader:
        n_shown = sum(1 for _ in reader)
    with VideoReader(ran.folder / "world" / "corpus" / "episodes" / "test-0000.mp4") as reader:
        assert n_shown == sum(1 for _ in reader)


def test_what_was_learned_is_a_model(ran: Ran) -> None:
    for method in _METHODS[1:]:
        assert load_model(ran.folder / "heads" / f"{method.name}.safetensors").dim == 128
        config = (ran.folder / "heads" / method.name / "config.toml").read_text()
        assert 'training_words = "train"' in config


def test_run_again_it_replaces_its_own_files_alone(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled_again(*_: object) -> None:
        raise ValueError("the vectors are in the store")

    monkeypatch.setattr("signspot.workflows.demo._compile", compiled_again)
    notes = ran.folder / "my notes.txt"
    notes.write_text("mine")
    world = {path: path.stat().st_mtime_ns for path in (ran.folder / "world").rglob("*.mp4")}
    scores = (ran.folder / "scores.json").read_bytes()
    assert main.run(ran.arguments) == 0
    assert notes.read_text() == "mine"
    assert {path: path.stat().st_mtime_ns for path in world} == world, "nothing is drawn twice"
    assert (ran.folder / "scores.json").read_bytes() == scores


def test_a_folder_of_somebody_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trunk = untrained_trunk(tmp_path / "t.safetensors")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    assert main.run(["demo", str(tmp_path / "mine"), "--model", str(trunk)]) == 2
    assert "was not made by the demo" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_missing_trunk_is_noticed_before_anything_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["demo", str(tmp_path / "out"), "--model", str(tmp_path / "none.safetensors")]) == 2
    assert "none.safetensors: is not a file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
