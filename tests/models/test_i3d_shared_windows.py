"""Fewer products give the same maps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from signspot.models.embedders import _LaterStages
from signspot.models.i3d import Folded
from signspot.models.i3d_shared import _InSpace, _TimeConvolution, _Windows
from tests.embedding.test_pictures_extract import one_thread
from tests.models.networks import tiny_i3d

__all__ = ["one_thread"]


def unit(inputs: int = 5, outputs: int = 7) -> Folded:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(outputs, inputs, 3, 3, 3, generator=generator) / (27 * inputs) ** 0.5
    return Folded(weight, torch.randn(outputs, generator=generator) / 10)


def maps_of(n_places: int, channels: int = 5) -> Tensor:
    return torch.randn(2, channels, n_places, 6, 5, generator=torch.Generator().manual_seed(1))


def direct(maps: Tensor, conv: Folded) -> Tensor:
    """In double precision, with all taps."""
    return F.relu(F.conv3d(maps.double(), conv.weight.double(), conv.bias.double(), padding=1))


@pytest.mark.parametrize("n_places", [2, 4, 6, 8, 12])
def test_a_convolution_in_time_is_that_of_all_taps(n_places: int) -> None:
    maps, conv = maps_of(n_places), unit()
    got = torch.stack(_TimeConvolution(conv, n_places)(list(maps.unbind(2))), dim=2)
    torch.testing.assert_close(got.double(), direct(maps, conv), rtol=0, atol=5e-6)


def test_rounding_stays_that_of_float32() -> None:
    maps, conv = maps_of(8, 64), unit(64, 32)
    exact = direct(maps, conv)
    plain = F.relu(F.conv3d(maps, conv.weight, conv.bias, padding=1))
    fast = torch.stack(_TimeConvolution(conv, 8)(list(maps.unbind(2))), dim=2)
    assert (fast - exact).square().mean().sqrt() < 8 * (plain - exact).square().mean().sqrt()


@pytest.mark.parametrize(("n_places", "n_products"), [(2, 4), (4, 6), (8, 12)])
def test_a_convolution_in_time_takes_fewer_products(
    monkeypatch: pytest.MonkeyPatch, n_places: int, n_products: int
) -> None:
    """Taps that meet maps, and not padding, are 4, 10 and 22."""
    taken: list[Tensor] = []
    conv2d = F.conv2d

    def noted(maps: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        taken.append(maps)
        return conv2d(maps, *args, **kwargs)

    monkeypatch.setattr(F, "conv2d", noted)
    _TimeConvolution(unit(), n_places)(list(maps_of(n_places).unbind(2)))
    assert len(taken) == n_products


@pytest.mark.parametrize("side", [64, 50])
def test_a_window_has_the_vector_that_the_network_gives(side: int) -> None:
    trunk = tiny_i3d(side=side)
    maps = trunk.stages()["MaxPool3d_3a_3x3"](torch.rand(3, 24, 8, side // 4, side // 4))
    in_space = _InSpace(trunk.get_submodule("Mixed_3b"))
    with torch.inference_mode():
        (expected,) = _LaterStages(trunk, "MaxPool3d_3a_3x3")(maps)
        parts = [part for place in maps.unbind(2) for part in in_space(place)]
        (got,) = _Windows(trunk)(*parts)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
