"""S3D: I3D with each k x k x k convolution split into space, then time (Paper App. B.7; Xie et al. 2018).

`gated` makes it S3D-G: every branch, and the last convolution before the first Inception block, is weighted channel by
channel by a sigmoid of its own average. The paper names S3D, so gating is off unless asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from signspot.models.layers import ConvUnit, UnitShape
from signspot.models.trunk import InceptionTrunk, TrunkConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class S3DConfig(TrunkConfig):
    """Everything that shapes an S3D."""

    gated: bool = False  # S3D-G


class SeparableUnit(nn.Module):
    """A convolution in space, then one in time, each with batch norm and ReLU."""

    def __init__(self, shape: UnitShape) -> None:
        super().__init__()
        (time, *space), (step, *pace) = shape.kernel, shape.stride
        in_time = replace(shape, inputs=shape.outputs, kernel=(time, 1, 1), stride=(step, 1, 1))
        self.spatial = ConvUnit(replace(shape, kernel=(1, space[0], space[1]), stride=(1, pace[0], pace[1])))
        self.temporal = ConvUnit(in_time)

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """(B, inputs, T, H, W) -> (B, outputs, ceil(T / stride), ...), not negative."""
        separated: Tensor = self.temporal(self.spatial(maps, domain), domain)
        return separated


class GatedUnit(nn.Module):
    """A unit whose channels are weighted by sigmoid(W average + b)."""

    def __init__(self, unit: nn.Module, channels: int) -> None:
        super().__init__()
        self.unit = unit
        self.gate = nn.Linear(channels, channels)

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """The maps of the unit, each channel times a number between 0 and 1."""
        maps = self.unit(maps, domain)
        weights = torch.sigmoid(self.gate(maps.mean(dim=(2, 3, 4))))
        return maps * weights[:, :, None, None, None]


class S3D(InceptionTrunk):
    """(B, 3, T, H, W) normalised frames -> embedding (B, 1024) and logits (B, classes)."""

    def __init__(self, config: S3DConfig | None = None) -> None:
        config = config or S3DConfig()
        super().__init__(config, partial(_unit, gated=config.gated))


def _unit(shape: UnitShape, gated: bool) -> nn.Module:
    unit: nn.Module = SeparableUnit(shape) if max(shape.kernel) > 1 else ConvUnit(shape)
    return GatedUnit(unit, shape.outputs) if gated and shape.ends_branch else unit
