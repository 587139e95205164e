from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from signspot.embedding.zoo import load_model
from signspot.errors import EnvironmentProblem, InputError, MissingExtra
from signspot.models.backends import Backend, TorchBackend, _openvino, _OpenVinoBackend, choose_backend

HAS_OPENVINO = importlib.util.find_spec("openvino") is not None
needs_openvino = pytest.mark.skipif(not HAS_OPENVINO, reason="openvino is not installed")
BACKENDS = [TorchBackend(), pytest.param(_OpenVinoBackend(threads=1), marks=needs_openvino)]


class Differences(nn.Module):
    """Two outputs of different sizes; the rows of the first have a neighbour each."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, maps: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
        return self.conv(maps[1:] - maps[:-1]), (maps + offset).mean(dim=(2, 3))


def examples(n_rows: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(n_rows, 3, 6, 5, generator=generator), torch.rand(n_rows, 3, 6, 5, generator=generator)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("n_rows", [6, 4, 2])
def test_a_program_computes_what_the_network_does_for_as_many_rows_or_fewer(backend: Backend, n_rows: int) -> None:
    torch.manual_seed(0)
    network = Differences().eval()
    with torch.inference_mode():
        expected = network(*examples(n_rows))
    got = backend.compiled(network, examples(6))(*examples(n_rows))
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@needs_openvino
def test_inputs_that_are_views_are_not_confused() -> None:
    program = _OpenVinoBackend(threads=1).compiled(Differences().eval(), examples(4))
    maps, offset = examples(8)
    whole = program(maps[::2].contiguous(), offset[::2].contiguous())[1].clone()
    np.testing.assert_array_equal(program(maps[::2], offset[::2])[1], whole)


def test_torch_runs_in_half_precision_by_the_same_path() -> None:
    program = TorchBackend(dtype=torch.bfloat16).compiled(Differences(), examples(4))
    assert all(rows.dtype == torch.bfloat16 for rows in program(*examples(4)))
    assert TorchBackend(dtype=torch.bfloat16).name == "torch-bfloat16"


def test_the_automatic_choice_is_the_fast_exact_one() -> None:
    assert choose_backend().name == ("openvino-fp32" if HAS_OPENVINO else "torch-float32")
    assert choose_backend("torch").name == "torch-float32"


def test_without_openvino_the_automatic_choice_is_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert choose_backend().name == "torch-float32"
    for choice in ("openvino", "openvino-bf16"):
        with pytest.raises(MissingExtra, match=r"pip install 'signspot\[openvino\]'"):
            choose_backend(choice)


@needs_openvino
def test_bf16_runs_where_the_processor_can_and_says_so_where_not() -> None:
    if "BF16" in _openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        assert choose_backend("openvino-bf16").name == "openvino-bf16"
        rng = np.random.default_rng(0)
        frames = rng.integers(0, 256, (4, 1, 8, 8, 3), dtype=np.uint8).repeat(16, axis=1)
        clips = np.kron(frames, np.ones((1, 1, 8, 8, 1), np.uint8))
        models = [load_model("world-v1", backend=name) for name in ("torch", "openvino-bf16")]
        exact, rounded = (model.network.embed(clips) for model in models)
        cosine = (exact * rounded).sum(axis=1)
        assert cosine.min() >= 0.995 and cosine.min() < 1 - 1e-7  # rounded indeed
    else:
        with pytest.raises(EnvironmentProblem, match="this processor does not compute in bf16"):
            choose_backend("openvino-bf16")


@pytest.mark.parametrize(
    ("choice", "device", "words"),
    [
        ("fast", "cpu", "choose one of: auto, torch, openvino, openvino-bf16"),
        ("auto", "tpu", "choose cpu or cuda"),
    ],
)
def test_an_unknown_backend_or_device_is_named(choice: str, device: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        choose_backend(choice, device=device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_a_missing_graphics_card_is_a_problem_of_the_machine() -> None:
    with pytest.raises(EnvironmentProblem, match="no graphics card"):
        choose_backend(device="cuda")


@needs_openvino
def test_openvino_writes_nothing_into_the_home_folder_and_needs_none(tmp_path: Path) -> None:
    script = "from signspot.models.backends import choose_backend; choose_backend('openvino', device='cpu')"
    kept = {name: value for name, value in os.environ.items() if name != "CI"}  # where its telemetry would be silent
    subprocess.run([sys.executable, "-c", script], env=kept | {"HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []
