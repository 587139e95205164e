"""An OpenVINO model computes what the PyTorch network does, or is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.models.backends import _openvino_model

openvino = pytest.importorskip("openvino")


class Of(nn.Module):
    """A network that is one function."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        torch.manual_seed(0)
        self.conv, self.conv3d = nn.Conv2d(4, 6, 3, stride=2, padding=1), nn.Conv3d(4, 2, (3, 1, 2), bias=False)
        self.linear = nn.Linear(4, 3)

    def forward(self, *inputs: Tensor) -> tuple[Tensor]:
        return (self.function(self, *inputs),)


def answers(network: nn.Module, *inputs: Tensor) -> tuple[np.ndarray, np.ndarray]:
    model = _openvino_model(openvino, network.eval(), [tuple(rows.shape) for rows in inputs])
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    with torch.no_grad():
        expected = network(*inputs)[0].numpy()
    return compiled([rows.numpy() for rows in inputs])[0], expected


MAPS = torch.randn(3, 4, 7, 10, generator=torch.Generator().manual_seed(0))
CLIP = torch.randn(2, 4, 5, 7, 6, generator=torch.Generator().manual_seed(1))
FUNCTIONS: dict[str, tuple[Callable[..., Tensor], Tensor]] = {
    "convolution": (lambda net, x: net.conv(x), MAPS),
    "convolution in time, no bias": (lambda net, x: net.conv3d(x), CLIP),
    "convolution padded on one axis": (lambda net, x: F.conv3d(x, net.conv3d.weight, padding=(1, 0, 0)), CLIP),
    "pool": (lambda net, x: F.max_pool2d(x, 3, 2), MAPS),
    "pool, rounded up": (lambda net, x: F.max_pool2d(x, 3, 2, ceil_mode=True), MAPS),
    "pool, rounded up and padded": (lambda net, x: F.max_pool2d(x, 3, 2, (1, 0), ceil_mode=True), MAPS),
    "pool of two, rounded up": (lambda net, x: F.max_pool2d(x, 2, 2, ceil_mode=True), MAPS),
    "pool at its own stride": (lambda net, x: F.max_pool2d(x, 2), MAPS),
    "pool in time": (lambda net, x: F.max_pool3d(x, (3, 3, 3), (1, 1, 1), (1, 1, 1)), CLIP),
    "padding": (lambda net, x: F.pad(x, (1, 2, 3, 4)), MAPS),
    "padding with the least": (lambda net, x: F.max_pool2d(F.pad(x, (0, 1, 0, 2), value=float("-inf")), 2), MAPS),
    "rows": (lambda net, x: x[1:] - x[:-1], MAPS),
    "every second row, to the last but one": (lambda net, x: x[0:-1:2], MAPS),
    "a part of two axes": (lambda net, x: x[:, 1:3], MAPS),
    "gates": (lambda net, x: x * torch.sigmoid(net.linear(x.mean(dim=(2, 3))))[:, :1, None, None], MAPS),
    "joined": (lambda net, x: torch.cat([x, 2 * x, -x], dim=1), MAPS),
    "stacked": (lambda net, x: torch.stack([x, x + 1]).mean(dim=(0, 3, 4)), MAPS),
    "highest": (lambda net, x: torch.maximum(F.relu(x, inplace=False), x - 0.5), MAPS),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_operation_has_its_counterpart(name: str) -> None:
    function, inputs = FUNCTIONS[name]
    got, expected = answers(Of(function), inputs)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_sum_in_place_does_not_change_its_parts() -> None:
    def total(net: nn.Module, one: Tensor, other: Tensor) -> Tensor:
        both = one + other
        both += other
        return torch.cat([both, one])

    got, expected = answers(Of(total), MAPS, MAPS.flip(0))
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda net, x: torch.tanh(x), "tanh has no counterpart in OpenVINO"),
        (lambda net, x: x[0], "an index 0 has no counterpart"),
        (lambda net, x: F.conv2d(x, net.conv.weight[:, :1], groups=4), "conv2d in groups"),
        (lambda net, x: F.conv2d(x, net.conv.weight, padding="same"), "padded 'same'"),
        (lambda net, x: torch.add(x, x, alpha=2), "add with"),
    ],
)
def test_what_has_no_counterpart_is_refused(function: Callable[..., Tensor], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _openvino_model(openvino, Of(function), [tuple(MAPS.shape)])
