from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from torch import nn

from signspot.errors import InputError
from signspot.learning.runs import SavedState, restore_training, training_tensors

FACTS = {"epoch": 3, "loss": 0.1 + 0.2, "rows": [{"a": None}], "name": "Å\n"}


def saved(path: Path) -> Path:
    torch.manual_seed(0)
    SavedState({"a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.tensor(1e-45)}, FACTS).save(path)
    return path


def test_what_is_saved_comes_back_to_the_bit(tmp_path: Path) -> None:
    state = SavedState.load(saved(tmp_path / "state.safetensors"))
    torch.manual_seed(0)
    assert torch.equal(state.tensors["a"], torch.randn(3, 4))
    assert torch.equal(state.tensors["c"], torch.tensor(1e-45)) and state.tensors["b"].dtype == torch.int64
    assert state.facts == FACTS


def test_a_newer_state_replaces_an_older_one(tmp_path: Path) -> None:
    path = saved(tmp_path / "state.safetensors")
    SavedState({"a": torch.ones(1)}, {}).save(path)
    assert SavedState.load(path).tensors["a"].item() == 1
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = saved(tmp_path / "state.safetensors")
    content, whole = path.read_bytes(), SavedState.load(path)
    for place in random.Random(0).sample(range(len(content) * 8), 400):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            state = SavedState.load(path)
        except InputError:
            continue
        # A change in the spacing of the header changes nothing that is read.
        assert state.facts == whole.facts
        assert all(torch.equal(state.tensors[name], tensor) for name, tensor in whole.tensors.items())


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"PK\x03\x04", bytes(range(1, 101)), b"\x80\x04."])
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is damaged or no saved state .*--overwrite"):
        SavedState.load(path)


def test_a_state_cut_short_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "state.safetensors")
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="damaged"):
            SavedState.load(path)


def test_a_state_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        SavedState.load(tmp_path / "state.safetensors")


def trained(steps: int, *, adamw: bool = False) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    optimiser: torch.optim.Optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    if adamw:
        optimiser = torch.optim.AdamW(network.parameters(), lr=0.1)
    continued(network, optimiser, range(steps))
    return network, optimiser


def continued(network: nn.Module, optimiser: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        rows = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        optimiser.zero_grad()
        network(rows).square().mean().backward()
        optimiser.step()


@pytest.mark.parametrize("adamw", [False, True])
def test_a_network_and_its_optimiser_continue_to_the_bit(tmp_path: Path, adamw: bool) -> None:
    network, optimiser = trained(5, adamw=adamw)
    SavedState(training_tensors(network, optimiser), {}).save(tmp_path / "s.safetensors")
    continued(network, optimiser, range(5, 9))
    other, other_optimiser = trained(0, adamw=adamw)
    restore_training(other, other_optimiser, SavedState.load(tmp_path / "s.safetensors").tensors)
    continued(other, other_optimiser, range(5, 9))
    for name, tensor in network.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)


def test_the_state_of_another_network_is_no_value() -> None:
    tensors = training_tensors(*trained(2))
    network = nn.Linear(4, 3)
    with pytest.raises(ValueError, match="state_dict"):
        restore_training(network, torch.optim.SGD(network.parameters(), lr=0.1), tensors)
    network2, optimiser2 = trained(0)
    wrong = {name: tensor.new_zeros(7) if name.startswith("momentum") else tensor for name, tensor in tensors.items()}
    with pytest.raises(ValueError, match=r"momentum_buffer of 0\.weight has the shape"):
        restore_training(network2, optimiser2, wrong)
