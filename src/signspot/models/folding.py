"""Networks for use only: batch norm folded into the convolutions it follows.

At the time of use a batch norm is one factor and one term per channel, so the convolution can take both over. The
numbers stay the same up to rounding.
"""

from __future__ import annotations

import copy
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.models.layers import ConvUnit, same_padding

Network = TypeVar("Network", bound=nn.Module)


class Folded(NamedTuple):
    """A convolution that has taken over its batch norm."""

    weight: Tensor  # (outputs, inputs, time, height, width)
    bias: Tensor  # (outputs,)


class FoldedUnit(nn.Module):
    """What a `ConvUnit` computes in use: convolution with bias, ReLU."""

    def __init__(self, unit: ConvUnit, domain: int) -> None:
        super().__init__()
        weight, bias = folded_weights(unit, domain)
        self.weight, self.bias = nn.Parameter(weight, requires_grad=False), nn.Parameter(bias, requires_grad=False)
        self.kernel, self.stride = tuple(unit.conv3d.kernel_size), tuple(unit.conv3d.stride)

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """(B, inputs, T, H, W) -> (B, outputs, ceil(T / stride), ...), not negative."""
        sizes = [int(size) for size in maps.shape[2:]]
        ends = [same_padding(*axis) for axis in zip(sizes, self.kernel, self.stride, strict=True)]
        padding = [before for before, _ in ends]
        if any(before != after for before, after in ends):
            maps = F.pad(maps, [amount for end in reversed(ends) for amount in end])
            padding = [0, 0, 0]
        return F.relu(F.conv3d(maps, self.weight, self.bias, self.stride, padding), inplace=True)


def folded(network: Network, domain: int = 0) -> Network:
    """A copy of `network` for use, without batch norm; `network` stays as it is."""
    copied = copy.deepcopy(network).eval()
    for module in list(copied.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, ConvUnit):
                setattr(module, name, FoldedUnit(child, domain))
    return copied


def folded_weights(unit: ConvUnit, domain: int = 0) -> Folded:
    """The weights of a unit with its batch norm, computed in double precision."""
    bn = unit.bn[domain] if isinstance(unit.bn, nn.ModuleList) else unit.bn
    if not isinstance(bn, nn.BatchNorm3d) or bn.running_mean is None or bn.running_var is None:
        raise ValueError("only a batch norm with running averages can be folded")
    with torch.no_grad():
        factor = bn.weight.double() / (bn.running_var.double() + bn.eps).sqrt()
        weight = unit.conv3d.weight.double() * factor[:, None, None, None, None]
        bias = bn.bias.double() - bn.running_mean.double() * factor
        return Folded(weight.float(), bias.float())
