"""The released files, laid out as they are but with made-up content, from import to findings."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.cli import main as cli
from signspot.domain.time import FRAME_MS
from signspot.media.writer import VideoWriter
from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, I3DConfig
from tests.formats.released_files import bsldict_tree


def test_words_are_found_with_no_dictionary_video_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    torch.manual_seed(0)
    parts = {"i3d": I3D(I3DConfig(classes=7)), "mlp": Head(HeadConfig(activation_after_last="released", classes=7))}
    state = {f"{part}.{name}": tensor for part, net in parts.items() for name, tensor in net.state_dict().items()}
    torch.save(state, tmp_path / "i3d_mlp.pth.tar")
    (tmp_path / "bsldict_v1.pkl").write_bytes(pickle.dumps(bsldict_tree()))
    with VideoWriter(tmp_path / "news.mp4", width=64, height=64) as writer:
        for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (18, 64, 64, 3), np.uint8)):
            writer.write(pixels, number * FRAME_MS)
    assert cli.run(["models", "import", str(tmp_path / "i3d_mlp.pth.tar")]) == 0
    assert "i3d+mlp: zip pickle" in capsys.readouterr().out
    assert cli.run(["dictionary", "import", str(tmp_path / "bsldict_v1.pkl"), str(tmp_path / "bsldict")]) == 0
    assert "0 with clips" in capsys.readouterr().out
    question = ["spot", str(tmp_path / "news.mp4"), "apple", "bank", "-d", str(tmp_path / "bsldict")]
    question += ["--model", "i3d_mlp", "--backend", "torch", "--threshold", "-1", "--json"]
    answers = []
    for _ in range(2):  # the second time from the store
        assert cli.run(question) == 0
        captured = capsys.readouterr()
        assert "stored vectors are used (bsldict-released-i3d)" in captured.err
        answers.append(json.loads(captured.out))
    assert answers[0] == answers[1]
    assert {spotting["word"] for spotting in answers[0]["spottings"]} == {"apple", "bank"}
    assert cli.run([*question[:6], "--json"]) == 2
    assert "which the model 'colour' cannot use" in capsys.readouterr().err


def test_embed_fills_the_store_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with VideoWriter(tmp_path / "news.mp4", width=64, height=64) as writer:
        for number in range(30):
            writer.write(np.full((64, 64, 3), 8 * number, np.uint8), number * FRAME_MS)
    (tmp_path / "bad.mp4").write_bytes(b"bad")
    videos = [str(tmp_path / "news.mp4"), str(tmp_path / "bad.mp4")]
    for state in ("computed", "was there"):
        listed = tmp_path / "failures.jsonl"
        assert cli.run(["embed", *videos, "--model", "colour", "--failures", str(listed)]) == 1
        assert json.loads(listed.read_text())["video"] == videos[1]
        captured = capsys.readouterr()
        assert f"news.mp4: 15 windows, {state}" in captured.out
        assert "1 of 2 videos failed" in captured.err
