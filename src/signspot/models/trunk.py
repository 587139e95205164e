"""The Inception-v1 layout that I3D and S3D share; they differ in what one convolution unit is.

A trunk takes clips (B, 3, T, H, W), float, normalised, of any length and size (16 x 224 x 224 in the paper), and gives
one embedding per clip. Its stages carry the names of the released checkpoints and can be run one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.models.layers import MaxPool, Triple, UnitShape, narrowed, reinitialise_batch_norm

UnitMaker = Callable[[UnitShape], nn.Module]


class TrunkOutput(NamedTuple):
    """What a trunk says about each clip."""

    embedding: Tensor  # (B, embedding_dim)
    logits: Tensor  # (B, classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkConfig:
    """Everything that shapes a video trunk."""

    classes: int = 1064  # Paper 4.1: the words of BSL-1K
    width: float = 1.0  # times the channels of every layer, rounded to multiples of 8
    domains: int = 1  # sets of batch norm, chosen by the `domain` argument (Paper App. C.1)
    dropout: float = 0.5  # of the embedding on its way to the classifier, in training

    def __post_init__(self) -> None:
        if self.classes < 1 or self.domains < 1:
            raise ValueError(f"no trunk with {self.classes} classes and {self.domains} domains")
        if not 0 < self.width <= 4:
            raise ValueError(f"a width of {self.width} is not above 0 and at most 4")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"a dropout of {self.dropout} is not in [0, 1)")


@dataclass(frozen=True, slots=True)
class _Pool:
    kernel: Triple
    stride: Triple


@dataclass(frozen=True, slots=True)
class _Conv:
    outputs: int
    side: int  # of the cubic kernel
    stride: int = 1


@dataclass(frozen=True, slots=True)
class _Mixed:
    """Channels of the four branches: 1; 1 then 3; 1 then 3; pool then 1."""

    b0: int
    b1a: int
    b1b: int
    b2a: int
    b2b: int
    b3b: int


# Inception-v1 (Szegedy et al. 2015), inflated as by Carreira and Zisserman 2017.
LAYOUT: dict[str, _Pool | _Conv | _Mixed] = {
    "Conv3d_1a_7x7": _Conv(64, side=7, stride=2),
    "MaxPool3d_2a_3x3": _Pool((1, 3, 3), (1, 2, 2)),
    "Conv3d_2b_1x1": _Conv(64, side=1),
    "Conv3d_2c_3x3": _Conv(192, side=3),
    "MaxPool3d_3a_3x3": _Pool((1, 3, 3), (1, 2, 2)),
    "Mixed_3b": _Mixed(64, 96, 128, 16, 32, 32),
    "Mixed_3c": _Mixed(128, 128, 192, 32, 96, 64),
    "MaxPool3d_4a_3x3": _Pool((3, 3, 3), (2, 2, 2)),
    "Mixed_4b": _Mixed(192, 96, 208, 16, 48, 64),
    "Mixed_4c": _Mixed(160, 112, 224, 24, 64, 64),
    "Mixed_4d": _Mixed(128, 128, 256, 24, 64, 64),
    "Mixed_4e": _Mixed(112, 144, 288, 32, 64, 64),
    "Mixed_4f": _Mixed(256, 160, 320, 32, 128, 128),
    "MaxPool3d_5a_2x2": _Pool((2, 2, 2), (2, 2, 2)),
    "Mixed_5b": _Mixed(256, 160, 320, 32, 128, 128),
    "Mixed_5c": _Mixed(384, 192, 384, 48, 128, 128),
}


class Mixed(nn.Module):
    """An Inception block: four branches side by side, joined along the channels."""

    def __init__(self, inputs: int, branches: _Mixed, config: TrunkConfig, make_unit: UnitMaker) -> None:
        super().__init__()

        def unit(fed: int, outputs: int, side: int = 1, ends: bool = True) -> nn.Module:
            kernel = (side, side, side)
            shape = UnitShape(inputs=fed, outputs=outputs, kernel=kernel, domains=config.domains, ends_branch=ends)
            return make_unit(shape)

        b0, b1a, b1b, b2a, b2b, b3b = (narrowed(getattr(branches, name), config.width) for name in branches.__slots__)
        self.b0 = unit(inputs, b0)
        self.b1a = unit(inputs, b1a, ends=False)
        self.b1b = unit(b1a, b1b, side=3)
        self.b2a = unit(inputs, b2a, ends=False)
        self.b2b = unit(b2a, b2b, side=3)
        self.b3a = MaxPool((3, 3, 3), (1, 1, 1))
        self.b3b = unit(inputs, b3b)
        self.outputs = b0 + b1b + b2b + b3b

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """(B, inputs, T, H, W) -> (B, outputs, T, H, W)."""
        branches = (
            self.b0(maps, domain),
            self.b1b(self.b1a(maps, domain), domain),
            self.b2b(self.b2a(maps, domain), domain),
            self.b3b(self.b3a(maps), domain),
        )
        return torch.cat(branches, dim=1)


class Classifier(nn.Module):
    """A linear classifier, kept as a convolution of one tap for the sake of the released names."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(inputs, classes, kernel_size=1)

    def forward(self, embedding: Tensor) -> Tensor:
        """(B, inputs) -> (B, classes)."""
        return F.linear(embedding, self.conv3d.weight.flatten(1), self.conv3d.bias)


class InceptionTrunk(nn.Module):
    """Sixteen stages, the average over all places and times that remain, a classifier."""

    def __init__(self, config: TrunkConfig, make_unit: UnitMaker) -> None:
        super().__init__()
        self.config = config
        channels = 3
        for name, layer in LAYOUT.items():
            channels = self._add_stage(name, layer, channels, make_unit)
        self.embedding_dim = channels  # 1024 times the width, exactly so for multiples of 1/16
        self.dropout = nn.Dropout(config.dropout)
        self.logits = Classifier(channels, config.classes)

    def stages(self) -> dict[str, nn.Module]:
        """The stages by name, in the order they run; each is called as stage(maps, domain)."""
        return {name: self.get_submodule(name) for name in LAYOUT}

    def features(self, maps: Tensor, domain: int = 0, *, after: str | None = None) -> Tensor:
        """(B, 3, T, H, W) -> (B, embedding_dim, ceil(T / 8), ceil(H / 32), ceil(W / 32)), not negative.

        With `after`, `maps` are what the stage of that name gives, and only the later stages run.
        """
        if not 0 <= domain < self.config.domains:
            raise ValueError(f"domain {domain} of a network with {self.config.domains}")
        if after is not None and after not in LAYOUT:
            raise ValueError(f"no stage {after!r}; the stages are {', '.join(LAYOUT)}")
        names = list(LAYOUT)
        for name in names[names.index(after) + 1 if after else 0 :]:
            maps = self.get_submodule(name)(maps, domain)
        return maps

    def summary(self, maps: Tensor) -> TrunkOutput:
        """The output for the maps of the last stage: their average is the embedding, taken before dropout."""
        embedding = maps.mean(dim=(2, 3, 4))
        return TrunkOutput(embedding, self.logits(self.dropout(embedding)))

    def forward(self, clips: Tensor, domain: int = 0) -> TrunkOutput:
        """Embed and classify clips (B, 3, T, H, W), all of one domain."""
        if clips.ndim != 5 or clips.shape[1] != 3 or 0 in clips.shape[2:]:
            raise ValueError(f"clips of shape {tuple(clips.shape)} instead of (B, 3, T, H, W)")
        return self.summary(self.features(clips, domain))

    def reinitialise_batch_norm(self) -> None:
        """Reset weight, bias and running statistics of every batch norm (Paper App. C.1)."""
        reinitialise_batch_norm(self)

    def _add_stage(self, name: str, layer: _Pool | _Conv | _Mixed, inputs: int, make_unit: UnitMaker) -> int:
        """Add one stage and say how many channels leave it."""
        if isinstance(layer, _Pool):
            self.add_module(name, MaxPool(layer.kernel, layer.stride))
            return inputs
        if isinstance(layer, _Mixed):
            block = Mixed(inputs, layer, self.config, make_unit)
            self.add_module(name, block)
            return block.outputs
        outputs = narrowed(layer.outputs, self.config.width)
        shape = UnitShape(
            inputs=inputs,
            outputs=outputs,
            kernel=(layer.side, layer.side, layer.side),
            stride=(layer.stride, layer.stride, layer.stride),
            domains=self.config.domains,
            ends_branch=name == "Conv3d_2c_3x3",  # where the gates of S3D-G begin
        )
        self.add_module(name, make_unit(shape))
        return outputs
