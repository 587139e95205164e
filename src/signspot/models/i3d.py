"""The Inception-v1 layout that I3D and S3D share; they differ in what one convolution unit is.

A trunk takes clips (B, 3, T, H, W), float, normalised, of any length and size (16 x 224 x 224 in the paper), and gives
one embedding per clip. Its stages carry the names of the released checkpoints and can be run one by one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# What the video networks are built of: "same" padding, convolution units, pools, batch norm per domain. Maps are (B,
# channels, T, H, W) float tensors; kernels and strides are (time, height, width).

_Triple = tuple[int, int, int]

_BATCH_NORM_EPS = 1e-3  # of the released networks, as is the momentum
_BATCH_NORM_MOMENTUM = 0.01
_CHANNEL_STEP = 8  # narrower networks keep whole vector registers; every channel count of Inception is a multiple


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """How much to pad before and after an axis so that ceil(size / stride) outputs remain (TensorFlow's "same").

    >>> same_padding(224, kernel=7, stride=2), same_padding(28, kernel=3, stride=1), same_padding(5, kernel=1, stride=2)
    ((2, 3), (1, 1), (0, 0))
    """
    n_outputs = -(-size // stride)
    total = max(0, (n_outputs - 1) * stride + kernel - size)
    return total // 2, total - total // 2


def _narrowed(channels: int, width: float) -> int:
    """`channels` times `width`, as the nearest multiple of 8, at least 8."""
    return max(_CHANNEL_STEP, int(channels * width / _CHANNEL_STEP + 0.5) * _CHANNEL_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnitShape:
    """The shape of one convolution unit."""

    inputs: int
    outputs: int
    kernel: _Triple = (1, 1, 1)
    stride: _Triple = (1, 1, 1)
    domains: int = 1
    ends_branch: bool = False  # its maps leave the stage (S3D-G gates these)


class ConvUnit(nn.Module):
    """Convolution without bias, batch norm, ReLU."""

    def __init__(self, shape: _UnitShape) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(shape.inputs, shape.outputs, shape.kernel, shape.stride, bias=False)
        norms = [nn.BatchNorm3d(shape.outputs, _BATCH_NORM_EPS, _BATCH_NORM_MOMENTUM) for _ in range(shape.domains)]
        self.bn = norms[0] if len(norms) == 1 else nn.ModuleList(norms)  # one per domain (Paper App. C.1)

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """(B, inputs, T, H, W) -> (B, outputs, ceil(T / stride), ...), not negative."""
        conv = self.conv3d
        padded, padding = _padded(maps, _triple(conv.kernel_size), _triple(conv.stride), value=0.0)
        convolved = F.conv3d(padded, conv.weight, stride=_triple(conv.stride), padding=padding)
        bn = self.bn[domain] if isinstance(self.bn, nn.ModuleList) else self.bn
        return F.relu(bn(convolved), inplace=True)

    def folded_weights(self, domain: int = 0) -> Folded:
        """The weights of a unit with its batch norm, computed in double precision."""
        bn = self.bn[domain] if isinstance(self.bn, nn.ModuleList) else self.bn
        if not isinstance(bn, nn.BatchNorm3d) or bn.running_mean is None or bn.running_var is None:
            raise ValueError("only a batch norm with running averages can be folded")
        with torch.no_grad():
            factor = bn.weight.double() / (bn.running_var.double() + bn.eps).sqrt()
            weight = self.conv3d.weight.double() * factor[:, None, None, None, None]
            bias = bn.bias.double() - bn.running_mean.double() * factor
            return Folded(weight.float(), bias.float())


class MaxPool(nn.Module):
    """The maximum under a kernel; padding never wins."""

    def __init__(self, kernel: _Triple, stride: _Triple) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """(B, channels, T, H, W) -> (B, channels, ceil(T / stride), ...), the same for every domain."""
        padded, padding = _padded(maps, self.kernel, self.stride, value=float("-inf"))
        return F.max_pool3d(padded, self.kernel, self.stride, padding)


def reinitialise_batch_norm(network: nn.Module) -> None:
    """Reset weight, bias and running statistics of every batch norm inside (Paper App. C.1; deviation (j))."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm3d):
            module.reset_parameters()


def copied_to_domains(state: dict[str, Tensor], domains: int) -> dict[str, Tensor]:
    """The state of a network with one batch norm, for the same network with `domains` of them, all alike."""
    copied = {}
    for name, tensor in state.items():
        head, bn, tail = name.partition(".bn.")
        names = [f"{head}.bn.{domain}.{tail}" for domain in range(domains)] if bn and domains > 1 else [name]
        copied.update({new: tensor.clone() for new in names})
    return copied


def _padded(maps: Tensor, kernel: _Triple, stride: _Triple, value: float) -> tuple[Tensor, _Triple]:
    """Maps for an operator that pads both ends alike, and that padding; only the surplus at the end is copied in."""
    sizes = tuple(maps.shape[2:])
    ends = [same_padding(*axis) for axis in zip(sizes, kernel, stride, strict=True)]
    surplus = [after - before for before, after in ends]
    if any(surplus):
        # F.pad counts axes from the last.
        maps = F.pad(maps, (0, surplus[2], 0, surplus[1], 0, surplus[0]), value=value)
    return maps, (ends[0][0], ends[1][0], ends[2][0])


def _triple(values: tuple[int, ...]) -> _Triple:
    time, height, width = values
    return time, height, width


_UnitMaker = Callable[[_UnitShape], nn.Module]


class TrunkOutput(NamedTuple):
    """What a trunk says about each clip."""

    embedding: Tensor  # (B, embedding_dim)
    logits: Tensor  # (B, classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class I3DConfig:
    """Everything that shapes a video trunk; the defaults are the released I3D's."""

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
    kernel: _Triple
    stride: _Triple


@dataclass(frozen=True, slots=True)
class _Conv:
    outputs: int
    side: int  # of the cubic kernel
    stride: int = 1


# Channels of the four branches of an Inception block: 1; 1 then 3; 1 then 3; pool then 1.
_Branches = tuple[int, int, int, int, int, int]

# Inception-v1 (Szegedy et al. 2015), inflated as by Carreira and Zisserman 2017.
_LAYOUT: dict[str, _Pool | _Conv | _Branches] = {
    "Conv3d_1a_7x7": _Conv(64, side=7, stride=2),
    "MaxPool3d_2a_3x3": _Pool((1, 3, 3), (1, 2, 2)),
    "Conv3d_2b_1x1": _Conv(64, side=1),
    "Conv3d_2c_3x3": _Conv(192, side=3),
    "MaxPool3d_3a_3x3": _Pool((1, 3, 3), (1, 2, 2)),
    "Mixed_3b": (64, 96, 128, 16, 32, 32),
    "Mixed_3c": (128, 128, 192, 32, 96, 64),
    "MaxPool3d_4a_3x3": _Pool((3, 3, 3), (2, 2, 2)),
    "Mixed_4b": (192, 96, 208, 16, 48, 64),
    "Mixed_4c": (160, 112, 224, 24, 64, 64),
    "Mixed_4d": (128, 128, 256, 24, 64, 64),
    "Mixed_4e": (112, 144, 288, 32, 64, 64),
    "Mixed_4f": (256, 160, 320, 32, 128, 128),
    "MaxPool3d_5a_2x2": _Pool((2, 2, 2), (2, 2, 2)),
    "Mixed_5b": (256, 160, 320, 32, 128, 128),
    "Mixed_5c": (384, 192, 384, 48, 128, 128),
}


class _Mixed(nn.Module):
    """An Inception block: four branches side by side, joined along the channels."""

    def __init__(self, inputs: int, branches: _Branches, config: I3DConfig, make_unit: _UnitMaker) -> None:
        super().__init__()

        def unit(fed: int, outputs: int, side: int = 1, ends: bool = True) -> nn.Module:
            kernel = (side, side, side)
            shape = _UnitShape(inputs=fed, outputs=outputs, kernel=kernel, domains=config.domains, ends_branch=ends)
            return make_unit(shape)

        b0, b1a, b1b, b2a, b2b, b3b = (_narrowed(channels, config.width) for channels in branches)
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


class _Classifier(nn.Module):
    """A linear classifier, kept as a convolution of one tap for the sake of the released names."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(inputs, classes, kernel_size=1)

    def forward(self, embedding: Tensor) -> Tensor:
        return F.linear(embedding, self.conv3d.weight.flatten(1), self.conv3d.bias)


class InceptionTrunk(nn.Module):
    """Sixteen stages, the average over all places and times that remain, a classifier."""

    def __init__(self, config: I3DConfig, make_unit: _UnitMaker) -> None:
        super().__init__()
        self.config = config
        channels = 3
        for name, layer in _LAYOUT.items():
            channels = self._add_stage(name, layer, channels, make_unit)
        self.embedding_dim = channels  # 1024 times the width, exactly so for multiples of 1/16
        self.dropout = nn.Dropout(config.dropout)
        self.logits = _Classifier(channels, config.classes)

    def stages(self) -> dict[str, nn.Module]:
        """The stages by name, in the order they run; each is called as stage(maps, domain)."""
        return {name: self.get_submodule(name) for name in _LAYOUT}

    def features(self, maps: Tensor, domain: int = 0, *, after: str | None = None) -> Tensor:
        """(B, 3, T, H, W) -> (B, embedding_dim, ceil(T / 8), ceil(H / 32), ceil(W / 32)), not negative.

        With `after`, `maps` are what the stage of that name gives, and only the later stages run.
        """
        if not 0 <= domain < self.config.domains:
            raise ValueError(f"domain {domain} of a network with {self.config.domains}")
        if after is not None and after not in _LAYOUT:
            raise ValueError(f"no stage {after!r}; the stages are {', '.join(_LAYOUT)}")
        names = list(_LAYOUT)
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

    def _add_stage(self, name: str, layer: _Pool | _Conv | _Branches, inputs: int, make_unit: _UnitMaker) -> int:
        """Add one stage and say how many channels leave it."""
        if isinstance(layer, _Pool):
            self.add_module(name, MaxPool(layer.kernel, layer.stride))
            return inputs
        if isinstance(layer, tuple):
            block = _Mixed(inputs, layer, self.config, make_unit)
            self.add_module(name, block)
            return block.outputs
        outputs = _narrowed(layer.outputs, self.config.width)
        kernel, stride = (layer.side,) * 3, (layer.stride,) * 3
        ends = name == "Conv3d_2c_3x3"  # where the gates of S3D-G begin
        domains = self.config.domains
        shape = _UnitShape(
            inputs=inputs, outputs=outputs, kernel=kernel, stride=stride, domains=domains, ends_branch=ends
        )
        self.add_module(name, make_unit(shape))
        return outputs


# I3D: Inception-v1 with every kernel inflated in time (Paper 3.2; Carreira and Zisserman 2017). The names of its
# parameters are those of the released checkpoints, so a released state loads as it is. Only `domains > 1` changes them:
# `bn.weight` becomes `bn.0.weight`, `bn.1.weight`, ... (see `copied_to_domains`).


class I3D(InceptionTrunk):
    """(B, 3, 16, 224, 224) normalised frames -> embedding (B, 1024) and logits (B, classes)."""

    def __init__(self, config: I3DConfig | None = None) -> None:
        super().__init__(config or I3DConfig(), ConvUnit)


# S3D: I3D with each k x k x k convolution split into space, then time (Paper App. B.7; Xie et al. 2018). `gated` makes
# it S3D-G: every branch, and the last convolution before the first Inception block, is weighted channel by channel by a
# sigmoid of its own average. The paper names S3D, so gating is off unless asked for.


@dataclass(frozen=True, slots=True, kw_only=True)
class S3DConfig(I3DConfig):
    """Everything that shapes an S3D."""

    gated: bool = False  # S3D-G


class _SeparableUnit(nn.Module):
    """A convolution in space, then one in time, each with batch norm and ReLU."""

    def __init__(self, shape: _UnitShape) -> None:
        super().__init__()
        (time, *space), (step, *pace) = shape.kernel, shape.stride
        in_time = replace(shape, inputs=shape.outputs, kernel=(time, 1, 1), stride=(step, 1, 1))
        self.spatial = ConvUnit(replace(shape, kernel=(1, space[0], space[1]), stride=(1, pace[0], pace[1])))
        self.temporal = ConvUnit(in_time)

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """(B, inputs, T, H, W) -> (B, outputs, ceil(T / stride), ...), not negative."""
        return self.temporal(self.spatial(maps, domain), domain)  # type: ignore[no-any-return]


class _GatedUnit(nn.Module):
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


def _unit(shape: _UnitShape, gated: bool) -> nn.Module:
    unit: nn.Module = _SeparableUnit(shape) if max(shape.kernel) > 1 else ConvUnit(shape)
    return _GatedUnit(unit, shape.outputs) if gated and shape.ends_branch else unit


# Networks for use only: batch norm folded into the convolutions it follows. At the time of use a batch norm is one
# factor and one term per channel, so the convolution can take both over. The numbers stay the same up to rounding.

Network = TypeVar("Network", bound=nn.Module)


class Folded(NamedTuple):
    """A convolution that has taken over its batch norm."""

    weight: Tensor  # (outputs, inputs, time, height, width)
    bias: Tensor  # (outputs,)


class FoldedUnit(nn.Module):
    """What a `ConvUnit` computes in use: convolution with bias, ReLU."""

    def __init__(self, unit: ConvUnit, domain: int) -> None:
        super().__init__()
        weight, bias = unit.folded_weights(domain)
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
