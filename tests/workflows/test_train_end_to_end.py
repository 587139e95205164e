"""From pixels to spottings: every command of training, one after the other, on files of moving shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import signspot
from signspot.cli import main
from signspot.domain.time import Tolerance
from tests.workflows.shapes import WORDS, make_shape_corpus

TRUNK = """
sources = "both"
width = 0.0625
side = 36
crop = 32
batch_size = 8
stage1_epochs = 2
stage2_epochs = 3
steps_per_epoch = 10
decay_epochs = []
batch_norm_momentum = 0.2
flip_probability = 0.0
colour_jitter = 0.05
evaluate_every = 0
window_after = 5
threads = 1
"""
EMBEDDING = """
hidden_dim = 32
embedding_dim = 16
batch_size = 8
epochs = 8
decay_epochs = []
threads = 1
"""


def done(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    """Run a command; the lines it prints."""
    assert main.run([str(one) for one in arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out.splitlines()


def best_frames(spotted: dict[str, list[dict[str, object]]]) -> dict[str, int]:
    """Where each word was found most surely."""
    best = {word: max((one for one in spotted["spottings"] if one["word"] == word), key=cosine_of) for word in WORDS}
    return {word: int(str(one["frame"])) for word, one in best.items()}


def cosine_of(spotting: dict[str, object]) -> float:
    return float(str(spotting["cosine"]))


@pytest.mark.timeout(300)
def test_from_files_of_video_to_spottings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = make_shape_corpus(tmp_path, times=True)
    (tmp_path / "trunk.toml").write_text(TRUNK)
    (tmp_path / "embedding.toml").write_text(EMBEDDING)
    files = ("--corpus", place.corpus, "--dictionary", place.dictionary)

    told = done(capsys, "train", "trunk", tmp_path / "trunk.toml", *files, "--out", tmp_path / "trunk", "--trust")
    assert told[:3] == ["16 annotated clips", "8 test clips", "8 dictionary clips"]
    assert told[3].startswith("11 of 11 recordings do not say whether they may be used for training")
    trunk = tmp_path / "trunk" / "last.safetensors"
    final = json.loads((tmp_path / "trunk" / "results.json").read_text())["final"]
    assert final["tests"]["test"]["top1"] > 0.5  # chance: 0.25

    store = ("--store", tmp_path / "store", "--trust", "--backend", "torch")
    for split, n_passages in (("train", 16), ("test", 8)):
        out = ("--out", tmp_path / split, "--split", split)
        told = done(capsys, "train", "material", *files, "--trunk", trunk, *out, *store)
        assert told[0].startswith(f"{n_passages} labelled passages of {n_passages // 8} videos, 4 words; 8 dictionary")
        assert any("recordings do not say whether they may be used for training" in line for line in told)
        assert told[-1] == f"wrote {tmp_path / split}"

    material = ("--data", tmp_path / "train", "--test", tmp_path / "test", "--trunk", trunk)
    told = done(capsys, "train", "embedding", tmp_path / "embedding.toml", *material, "--out", tmp_path / "run")
    assert told[-1].endswith(f"and {tmp_path / 'run' / 'best.safetensors'}")
    best = json.loads((tmp_path / "run" / "results.json").read_text())["best"]
    assert best["localisation"] >= 0.75  # chance: 0.2, as passages last some 140 frames

    model = signspot.load_model(tmp_path / "run" / "best.safetensors")
    assert model.trunk() is not None and model.dim == 16
    asked = (place.corpus / "test.mp4", *WORDS, "-d", place.dictionary, "--threshold", "0.0", *store)
    spotted = json.loads(
        "\n".join(done(capsys, "spot", *asked, "--model", tmp_path / "run/best.safetensors", "--json"))
    )
    signed = {word: [one for one in place.truth["test"] if one.word == word] for word in WORDS}
    found = best_frames(spotted)
    hits = [any(found[word] in Tolerance().around(one.stop) for one in signed[word]) for word in WORDS]
    assert sum(hits) >= 3  # chance: 0.12 each
