"""What the video networks are built of: "same" padding, convolution units, pools, batch norm per domain.

Maps are (B, channels, T, H, W) float tensors; kernels and strides are (time, height, width).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

Triple = tuple[int, int, int]

BATCH_NORM_EPS = 1e-3  # of the released networks, as is the momentum
BATCH_NORM_MOMENTUM = 0.01
_CHANNEL_STEP = 8  # narrower networks keep whole vector registers; every channel count of Inception is a multiple


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """How much to pad before and after an axis so that ceil(size / stride) outputs remain (TensorFlow's "same").

    >>> same_padding(224, kernel=7, stride=2), same_padding(28, kernel=3, stride=1), same_padding(5, kernel=1, stride=2)
    ((2, 3), (1, 1), (0, 0))
    """
    n_outputs = -(-size // stride)
    total = max(0, (n_outputs - 1) * stride + kernel - size)
    return total // 2, total - total // 2


def narrowed(channels: int, width: float) -> int:
    """`channels` times `width`, as the nearest multiple of 8, at least 8.

    >>> narrowed(192, 1.0), narrowed(192, 0.25), narrowed(16, 0.25)
    (192, 48, 8)
    """
    return max(_CHANNEL_STEP, int(channels * width / _CHANNEL_STEP + 0.5) * _CHANNEL_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitShape:
    """The shape of one convolution unit."""

    inputs: int
    outputs: int
    kernel: Triple = (1, 1, 1)
    stride: Triple = (1, 1, 1)
    domains: int = 1
    ends_branch: bool = False  # its maps leave the stage (S3D-G gates these)


class ConvUnit(nn.Module):
    """Convolution without bias, batch norm, ReLU."""

    def __init__(self, shape: UnitShape) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(shape.inputs, shape.outputs, shape.kernel, shape.stride, bias=False)
        self.bn = batch_norm(shape.outputs, shape.domains)

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """(B, inputs, T, H, W) -> (B, outputs, ceil(T / stride), ...), not negative."""
        conv = self.conv3d
        padded, padding = _padded(maps, _triple(conv.kernel_size), _triple(conv.stride), value=0.0)
        convolved = F.conv3d(padded, conv.weight, stride=_triple(conv.stride), padding=padding)
        bn = self.bn[domain] if isinstance(self.bn, nn.ModuleList) else self.bn
        return F.relu(bn(convolved), inplace=True)


class MaxPool(nn.Module):
    """The maximum under a kernel; padding never wins."""

    def __init__(self, kernel: Triple, stride: Triple) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, maps: Tensor, domain: int = 0) -> Tensor:
        """(B, channels, T, H, W) -> (B, channels, ceil(T / stride), ...), the same for every domain."""
        padded, padding = _padded(maps, self.kernel, self.stride, value=float("-inf"))
        return F.max_pool3d(padded, self.kernel, self.stride, padding)


def batch_norm(channels: int, domains: int) -> nn.BatchNorm3d | nn.ModuleList:
    """One batch norm, or a list of one per domain (Paper App. C.1, domain-specific batch normalisation)."""
    norms = [nn.BatchNorm3d(channels, eps=BATCH_NORM_EPS, momentum=BATCH_NORM_MOMENTUM) for _ in range(domains)]
    return norms[0] if domains == 1 else nn.ModuleList(norms)


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


def _padded(maps: Tensor, kernel: Triple, stride: Triple, value: float) -> tuple[Tensor, Triple]:
    """Maps for an operator that pads both ends alike, and that padding; only the surplus at the end is copied in."""
    sizes = tuple(maps.shape[2:])
    ends = [same_padding(*axis) for axis in zip(sizes, kernel, stride, strict=True)]
    surplus = [after - before for before, after in ends]
    if any(surplus):
        # F.pad counts axes from the last.
        maps = F.pad(maps, (0, surplus[2], 0, surplus[1], 0, surplus[0]), value=value)
    return maps, (ends[0][0], ends[1][0], ends[2][0])


def _triple(values: tuple[int, ...]) -> Triple:
    time, height, width = values
    return time, height, width
