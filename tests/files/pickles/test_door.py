from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import pickle
import random
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.errors import InputError
from signspot.files.pickles import door as load
from signspot.files.pickles.door import inspect, read_metadata, read_tensors
from signspot.files.pickles.scan import Findings, Kind
from tests.files.pickles import crafted

WORDS = {
    "words": ["apple", "ice-cream", "œuf"],
    "features": np.arange(12, dtype=np.float32).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "big endian": np.arange(3, dtype=">i2"),
    "text": np.array(["ab", "c"]),
    "objects": np.array(["x", [1, None]], dtype=object),
    "scalar": np.float32(1.5),
    "empty": np.zeros((0, 3)),
    "mixed": (1, -(2**40), 2.5, None, True, b"\xff\x00", "\ud800"),
    "set": {1, 2},
    "frozen": frozenset({"a"}),
    "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
    "default": collections.defaultdict(list, {"k": [1]}),
    "floats": [i / 7 for i in range(100)],
    7: {(1, "x"): float("inf")},
}


@pytest.mark.parametrize(("make", "words"), crafted.STATIC.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_a_hostile_file_is_refused_with_its_reason_before_any_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: crafted.Maker, words: str
) -> None:
    monkeypatch.setattr(load.subprocess, "run", None)
    canary, path = tmp_path / "canary", tmp_path / "model.pth.tar"
    make(path, canary)
    before, started = path.read_bytes(), time.monotonic()
    for read in (read_tensors, read_metadata):
        with pytest.raises(InputError, match=words):
            read(path)
    assert inspect(path).refusal
    assert time.monotonic() - started < 5
    assert not canary.exists()
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [crafted.plain_pickle, crafted.names_from_the_memo, crafted.hidden_name, crafted.inst])
def test_the_canary_sings_when_python_itself_opens_the_file(tmp_path: Path, make: crafted.Maker) -> None:
    canary, path = tmp_path / "canary", tmp_path / "model.pth.tar"
    make(path, canary)
    pickle.loads(path.read_bytes())
    assert canary.exists()


@pytest.mark.parametrize(("make", "words"), crafted.IN_THE_CHILD.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_what_only_reading_can_tell_is_refused_by_the_child(tmp_path: Path, make: object, words: str) -> None:
    path = tmp_path / "words.pkl"
    make(path)  # type: ignore[operator]
    with pytest.raises(InputError, match=words):
        read_metadata(path)


@pytest.mark.parametrize("make", [crafted.plain_pickle, crafted.getattr_chain, crafted.inst, crafted.hidden_name])
def test_the_child_refuses_by_itself_what_a_blind_scan_lets_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: crafted.Maker
) -> None:
    monkeypatch.setattr(Findings, "refuse_unknown", lambda *_: None)
    canary, path = tmp_path / "canary", tmp_path / "words.pkl"
    make(path, canary)
    with pytest.raises(InputError, match=r"wants (posix.system|builtins.getattr|os.system)"):
        read_metadata(path)
    assert not canary.exists()


def test_torch_refuses_what_a_blind_scan_lets_through_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Findings, "refuse_unknown", lambda *_: None)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    canary, path = tmp_path / "canary", tmp_path / "model.pth.tar"
    crafted.legacy_payload(path, canary)
    with pytest.raises(InputError, match="cannot be read"):
        read_tensors(path)
    assert not canary.exists()


@pytest.mark.parametrize(
    ("make", "words"), [(crafted.huge_storage, "of memory"), (crafted.expanded_tensor, "fewer numbers than its shape")]
)
def test_a_tensor_larger_than_its_file_is_refused(tmp_path: Path, make: object, words: str) -> None:
    path = tmp_path / "model.pth"
    make(path)  # type: ignore[operator]
    with pytest.raises(InputError, match=words):
        read_tensors(path)


@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "legacy"])
def test_a_checkpoint_of_a_training_run_gives_its_tensors_and_names_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_zip: bool
) -> None:
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:0")
    weights = collections.OrderedDict(
        {
            "module.a.weight": torch.randn(3, 4).t(),
            "half": torch.randn(5).half(),
            "brain": torch.randn(5).bfloat16(),
            "count": torch.tensor(7),
            "shared": torch.arange(10.0)[2:5],
            "parameter": torch.nn.Parameter(torch.ones(2)),
        }
    )
    rest = {"epoch": 3, "arch": "InceptionI3d", "best": np.float64(0.5), "size": torch.Size([2]), "array": np.ones(3)}
    optimizer = {"state": {0: {"momentum_buffer": torch.ones(2)}}, "param_groups": [{"lr": 0.01}]}
    path = tmp_path / "model.pth.tar"
    torch.save({**rest, "state_dict": weights, "optimizer": optimizer}, path, _use_new_zipfile_serialization=is_zip)
    read = read_tensors(path)
    assert read.report.summary == f"{'zip' if is_zip else 'legacy'} pickle, 7 tensors, 0 foreign objects"
    assert read.report.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert set(read.tensors) == {f"state_dict/{name}" for name in weights} | {"optimizer/state/0/momentum_buffer"}
    for name, tensor in weights.items():
        kept = read.tensors[f"state_dict/{name}"]
        expected = tensor.detach().float() if name == "brain" else tensor.detach()
        assert kept.shape == tuple(expected.shape) and kept.dtype == expected.numpy().dtype
        np.testing.assert_array_equal(kept, expected.numpy())
    assert set(read.others) == {"epoch", "arch", "best", "size/0", "array", "optimizer/param_groups/0/lr"}


@pytest.mark.parametrize("protocol", range(6))
def test_metadata_of_every_protocol_comes_back_as_it_was(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "words.pkl"
    path.write_bytes(pickle.dumps(WORDS, protocol))
    read = read_metadata(path)
    assert isinstance(read, dict) and set(read) == set(WORDS)
    for key, value in WORDS.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "if":
            np.testing.assert_array_equal(read[key], value)
            assert read[key].dtype == value.dtype.newbyteorder("=")
        else:
            assert read[key] == (value.tolist() if isinstance(value, np.ndarray) else value)
    assert inspect(path).kind is Kind.BARE


def test_text_and_arrays_of_python_2_are_understood(tmp_path: Path) -> None:
    minus_one = b"J\xff\xff\xff\xff"
    dtype = b"cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNN" + minus_one + minus_one + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    array += b"(K\x01K\x02\x85" + dtype + b"\x89U\x08" + np.array([1.5, -2], "<f4").tobytes() + b"tb"
    path = tmp_path / "words.pkl"
    path.write_bytes(b"\x80\x02}(U\x05caf\xc3\xa9K\x01U\x04caf\xe9K\x02U\x01x" + array + b"u.")
    read = read_metadata(path)
    assert isinstance(read, dict)
    assert read["café"] == 2  # both spellings are the same word, one in UTF-8 and one in Latin-1
    np.testing.assert_array_equal(read["x"], np.array([1.5, -2], np.float32))


def test_a_large_file_of_metadata_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    videos = {"name": [f"a_001_{i:03}_apple.mp4" for i in range(3000)], "i3d": [rng.random(1024) for _ in range(300)]}
    path = tmp_path / "bsldict.pkl"
    path.write_bytes(pickle.dumps({"videos": videos}, 4))
    read = read_metadata(path)
    assert isinstance(read, dict) and read["videos"]["name"] == videos["name"]
    np.testing.assert_array_equal(read["videos"]["i3d"], videos["i3d"])


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        with pytest.raises(InputError, match="is not a file"):
            read_metadata(path)
    with pytest.raises(InputError, match="cannot be opened"):
        inspect(tmp_path / "missing.pkl")
    with pytest.raises(InputError, match="cannot be opened"):
        inspect(Path("nul\0byte.pkl"))


def test_a_file_over_two_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.pth"
    with path.open("wb") as file:
        file.truncate(2 * 1024**3 + 1)
    assert "has 2.1 GB" in inspect(path).refusal


def test_the_error_text_of_a_file_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "words.pkl"
    path.write_bytes(crafted.PROTO4 + crafted.text("a\x1b[2J") + crafted.text("b\n") + b"\x93.")
    with pytest.raises(InputError, match=r"wants a\\x1b\[2J.b\\n"):
        read_metadata(path)


@pytest.mark.parametrize("n_files", [10, pytest.param(300, marks=pytest.mark.soak)])
def test_a_damaged_file_gives_data_or_one_typed_error(tmp_path: Path, n_files: int) -> None:
    whole, rng, path = pickle.dumps(WORDS, 2), random.Random(n_files), tmp_path / "words.pkl"
    for _ in range(n_files):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        path.write_bytes(damaged)
        with contextlib.suppress(InputError):
            read_metadata(path)
