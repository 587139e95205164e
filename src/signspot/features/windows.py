"""What an I3D computes for each window by itself: Mixed_3b from its convolutions in time on, and all later stages.

The maps of a window are a list, one (windows, channels, height, width) for each place in time. A convolution of three
taps in time takes three products of maps and weights for each place. Here it takes 6 for 4 places, or 4 for 2: the maps
of neighbouring places are added up in several ways, each sum meets weights that were added up to match, and sums of the
products are the outputs (Winograd's short convolutions, which Lavin and Gray 2016 use in space). Nothing is left out:
only the order of sums differs, and errors stay those of float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.models.folding import Folded, folded_weights
from signspot.models.layers import ConvUnit, MaxPool, same_padding
from signspot.models.trunk import InceptionTrunk

FIRST_STAGE = "Mixed_3b"
PLACES = 8  # of a window, after the first convolution

Maps = list[Tensor]  # by place in time, each (windows, channels, height, width)

# How the three taps are added up: a row for each product.
_TAPS_OF_4 = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
_TAPS_OF_2 = ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1))
_WITH_BIAS = 1  # this product is in every output exactly once


class Parts(NamedTuple):
    """What a Mixed block computes of one map by itself, each (windows, channels, height, width)."""

    b0: Tensor
    b1a: Tensor
    b2a: Tensor
    highest: Tensor  # the maximum in space of b3a


class InSpace(nn.Module):
    """The half of a Mixed block that sees one map at a time."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.b0, self.b1a, self.b2a = (_Pointwise(folded_unit(block, name)) for name in ("b0", "b1a", "b2a"))
        self.channels = (self.b0.outputs, self.b1a.outputs, self.b2a.outputs, self.b0.inputs)

    def forward(self, maps: Tensor) -> Parts:
        """(windows, channels, H, W) -> parts of the same size."""
        return Parts(self.b0(maps), self.b1a(maps), self.b2a(maps), F.max_pool2d(maps, 3, 1, 1))


class InTime(nn.Module):
    """The half of a Mixed block that looks along time."""

    def __init__(self, block: nn.Module, n_places: int) -> None:
        super().__init__()
        self.b1b, self.b2b = (TimeConvolution(folded_unit(block, name), n_places) for name in ("b1b", "b2b"))
        self.b3b = _Pointwise(folded_unit(block, "b3b"))

    def forward(self, places: Sequence[Parts]) -> Maps:
        """The parts of each place -> the map of each place."""
        b0, b1a, b2a, highest = (list(maps) for maps in zip(*places, strict=True))
        branches = (b0, self.b1b(b1a), self.b2b(b2a), [self.b3b(maps) for maps in _highest_in_time(highest, 3, 1)])
        return [torch.cat(maps, dim=1) for maps in zip(*branches, strict=True)]


class TimeConvolution(nn.Module):
    """A convolution unit of 3 x 3 x 3 over an even number of places, with zeros before and after."""

    def __init__(self, unit: Folded, n_places: int) -> None:
        super().__init__()
        self.per_tile = 2 if n_places % 4 else 4
        taps = [tap.double() for tap in unit.weight.unbind(2)]
        self.weights = frozen(
            *(_combined(row, taps).float() for row in (_TAPS_OF_2 if self.per_tile == 2 else _TAPS_OF_4))
        )
        (self.bias,) = frozen(unit.bias)

    def forward(self, maps: Maps) -> Maps:
        """(windows, inputs, H, W) for each place -> (windows, outputs, H, W) for each place, not negative."""
        sums, outputs = (_sums_of_2, _outputs_of_2) if self.per_tile == 2 else (_sums_of_4, _outputs_of_4)
        convolved: Maps = []
        for first in range(0, len(maps), self.per_tile):
            stop = first + self.per_tile
            before, after = (maps[place] if 0 <= place < len(maps) else None for place in (first - 1, stop))
            products = [
                F.conv2d(summed, weight, self.bias if number == _WITH_BIAS else None, padding=1)
                for number, (summed, weight) in enumerate(
                    zip(sums(before, maps[first:stop], after), self.weights, strict=True)
                )
            ]
            convolved.extend(F.relu(output) for output in outputs(products))
        return convolved


class Windows(nn.Module):
    """The parts of each place of a window, which `InSpace` of Mixed_3b gives -> the vector of the window."""

    def __init__(self, trunk: InceptionTrunk) -> None:
        super().__init__()
        stages, n_places = trunk.stages(), PLACES
        self.first = InTime(stages[FIRST_STAGE], n_places)
        self.later = nn.ModuleList()
        for stage in list(stages.values())[list(stages).index(FIRST_STAGE) + 1 :]:
            if isinstance(stage, MaxPool):
                self.later.append(_Pool(stage))
                n_places = -(-n_places // stage.stride[0])
            else:
                self.later.append(_Block(stage, n_places))

    def forward(self, *parts: Tensor) -> tuple[Tensor]:
        """8 x 4 x (windows, channels, H, W), the parts of one place after the other -> (windows, trunk dim)."""
        n = len(Parts._fields)
        maps: Maps = self.first([Parts(*parts[k : k + n]) for k in range(0, len(parts), n)])
        for stage in self.later:
            maps = stage(maps)
        return (torch.stack(maps).mean(dim=(0, 3, 4)),)


class _Block(nn.Module):
    """A whole Mixed block."""

    def __init__(self, block: nn.Module, n_places: int) -> None:
        super().__init__()
        self.in_space, self.in_time = InSpace(block), InTime(block, n_places)

    def forward(self, maps: Maps) -> Maps:
        joined: Maps = self.in_time([self.in_space(one) for one in maps])
        return joined


class _Pool(nn.Module):
    """A pool, first in space, then in time."""

    def __init__(self, pool: MaxPool) -> None:
        super().__init__()
        self.kernel, self.stride = pool.kernel, pool.stride

    def forward(self, maps: Maps) -> Maps:
        in_space = [pooled(one, self.kernel[1], self.stride[1]) for one in maps]
        return _highest_in_time(in_space, self.kernel[0], self.stride[0])


class _Pointwise(nn.Module):
    """A convolution unit of one tap."""

    def __init__(self, unit: Folded) -> None:
        super().__init__()
        self.outputs, self.inputs = unit.weight.shape[:2]
        self.weight, self.bias = frozen(unit.weight[:, :, 0], unit.bias)

    def forward(self, maps: Tensor) -> Tensor:
        return F.relu(F.conv2d(maps, self.weight, self.bias))


def pooled(maps: Tensor, kernel: int = 3, stride: int = 2) -> Tensor:
    """The maximum in space under a kernel; where `same_padding` is uneven, ceil_mode pads the end."""
    padding = [same_padding(int(size), kernel, stride)[0] for size in maps.shape[2:]]
    return F.max_pool2d(maps, kernel, stride, padding, ceil_mode=True)


def folded_unit(parent: nn.Module, name: str) -> Folded:
    """The weights of a convolution unit inside `parent`, its batch norm folded in."""
    unit = parent.get_submodule(name)
    if not isinstance(unit, ConvUnit):
        raise ValueError(f"{name} is not the unit of an I3D")
    return folded_weights(unit)


def frozen(*tensors: Tensor) -> nn.ParameterList:
    """Weights for use only."""
    return nn.ParameterList(nn.Parameter(tensor.contiguous(), requires_grad=False) for tensor in tensors)


def _sums_of_4(before: Tensor | None, maps: Maps, after: Tensor | None) -> Maps:
    a, b, c, d = maps
    even, odd = d - 4 * b, c - 4 * a
    near, far = d - b, 2 * (c - a)
    first, last = near - 4 * b, -c - 2 * far
    if before is not None:
        first = first + 4 * before
    if after is not None:
        last = last + after
    return [first, even + odd, even - odd, near + far, near - far, last]


def _outputs_of_4(products: Maps) -> Maps:
    first, p, q, r, s, last = products
    even, odd, twice_even, twice_odd = p + q, p - q, r + s, r - s
    return [first + even + twice_even, odd + 2 * twice_odd, even + 4 * twice_even, odd + 8 * twice_odd + last]


def _sums_of_2(before: Tensor | None, maps: Maps, after: Tensor | None) -> Maps:
    a, b = maps
    return [-b if before is None else before - b, a + b, b - a, a if after is None else a - after]


def _outputs_of_2(products: Maps) -> Maps:
    first, p, q, last = products
    return [first + p + q, p - q - last]


def _combined(factors: Sequence[float], taps: Sequence[Tensor]) -> Tensor:
    return torch.stack([factor * tap for factor, tap in zip(factors, taps, strict=True)]).sum(dim=0)


def _highest_in_time(maps: Maps, kernel: int, stride: int) -> Maps:
    before, _ = same_padding(len(maps), kernel, stride)
    highest = []
    for first in range(-before, len(maps) - before, stride):
        top, *others = maps[max(0, first) : first + kernel]
        for other in others:
            top = torch.maximum(top, other)
        highest.append(top)
    return highest
