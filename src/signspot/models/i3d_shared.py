"""The I3D at every window of a video, exactly, computing what neighbouring windows share only once.

A window starts at frame s; its maps after the first convolution stand at s, s + 2, ..., s + 14. A map in the middle of
a window is a function of the frames around it alone, whichever window asks; only near the ends, where a window sees
padding instead of frames, it also depends on how far the end is. Such distinct functions of one position are called
kinds here. In a window the kinds are

    after the first convolution   A F F F F F B C      4 kinds instead of 8 maps
    after Conv3d_2c_3x3           0 1 2 2 2 3 4 5      6 kinds
    after Mixed_3b                0 1 2 3 4 5 6 7      8 kinds: from here on windows share nothing

A kind is computed once per position and joined to the windows it belongs to. The first two convolutions in time are
split into their taps, because a convolution is linear: F = P1 + P2 + P3 + P4 and so on below. Every product of a weight
and a number is computed once, whatever the batches; only the order of sums differs from the windowed network. From the
convolutions in time of Mixed_3b on, windows are computed by themselves: 12 products for 8 places instead of 16.
Positions are the frames at which a window may start. Strides above 2 share too little to be worth it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice, repeat
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.domain.tracks import CLIP_LENGTH, FloatArray, Pixels
from signspot.models.embedders import VideoEmbedder
from signspot.models.i3d import I3D, ConvUnit, Folded, InceptionTrunk, MaxPool, same_padding

_SHARED_STRIDES = (1, 2)

_Kinds = tuple[Tensor, ...]  # for each kind (positions, channels, height, width)
Context = tuple[int | None, int, int | None]  # the kinds before, at and after a place in a window; None is padding

_STEP = 2  # frames between the maps of a window
_STEM_REACH = 6  # frames around a position that the first convolution sees: 2 before and 4 after
# The last frame needed lies so far behind the start of a window: 14 to the last map, 2 for the second convolution,
# which looks at the next map, 4 for the first.
_DELAY = 20
# Later stages have small maps and large weights, so they are faster for many windows at a time; early ones have large
# maps, which take the memory, and are as fast for few positions.
_STEPS_PER_CHUNK = 2


def _contexts(kinds: Sequence[int]) -> tuple[Context, ...]:
    """What a convolution of three taps in time sees at each place of a window."""
    return tuple(zip((None, *kinds[:-1]), kinds, (*kinds[1:], None), strict=True))


_STEM_KINDS = (0, 3, 3, 3, 3, 3, 1, 2)  # A F F F F F B C, in the order A, B, C, F
_SECOND = tuple(dict.fromkeys(_contexts(_STEM_KINDS)))
_PLACES = tuple(_SECOND.index(context) for context in _contexts(_STEM_KINDS))  # 0 1 2 2 2 3 4 5


def is_shareable(embedder: VideoEmbedder, stride: int) -> bool:
    """Whether `shared_vectors` can do the work."""
    return isinstance(embedder.trunk, I3D) and stride in _SHARED_STRIDES


def shared_vectors(frames: Iterable[Pixels], embedder: VideoEmbedder, stride: int = 1) -> Iterator[FloatArray]:
    """The trunk's vectors (n, trunk dim) of the windows that start at 0, stride, 2 stride, ... and fit into the video.

    Frames are (H, W, 3) uint8. Memory does not depend on their number.
    """
    if not is_shareable(embedder, stride):
        raise ValueError(f"windows of {embedder.name} at a stride of {stride} share nothing")
    stream, counted = _SharedStream(embedder, stride), _Counted(frames)
    per_chunk = stream.n_windows * stride
    lead = -_DELAY % per_chunk  # empty frames before the video, so that a chunk begins with the first window
    empty = np.zeros((embedder.frame_shape.crop, embedder.frame_shape.crop, 3), np.uint8)
    endless = chain(repeat(empty, lead), counted, repeat(empty))
    n_emitted = 0
    for chunk in count():
        stream.push(np.stack(list(islice(endless, per_chunk))))
        n_rows = stream.n_windows
        if counted.is_over:
            n_fitting = max(0, (counted.n_frames - CLIP_LENGTH) // stride + 1)
            n_rows = min(n_rows, n_fitting - n_emitted)
        if n_rows <= 0:
            return
        if chunk * per_chunk >= lead + _DELAY:
            yield stream.finished(n_rows)
            n_emitted += n_rows


class _SharedStream:
    """The network as a pipeline that remembers, between its stages, just what later positions still need."""

    def __init__(self, embedder: VideoEmbedder, stride: int) -> None:
        self._embedder, self._stride = embedder, stride
        self._n = n = max(1, embedder.rows_per_step // _STEPS_PER_CHUNK)  # positions at a time
        self.n_windows = n * _STEPS_PER_CHUNK  # at a time
        self._gap = gap = _STEP // stride  # positions between the maps of a window
        trunk, side = embedder.trunk, embedder.frame_shape.crop
        stem, second = _Stem(trunk, stride), _Second(trunk, gap)
        quarter, eighth = -(-side // 4), -(-side // 8)
        frames, maps = (n * stride + _STEM_REACH, 3, side, side), (n + 2 * gap, stem.outputs, quarter, quarter)
        self._stem = embedder.program(f"shared {stride} stem", lambda: stem, (frames,))
        self._second = embedder.program(f"shared {stride} second", lambda: second, (maps,) * 4)
        parts = tuple((self.n_windows, channels, eighth, eighth) for channels in second.in_space.channels)
        self._windows = embedder.program("windows", lambda: _Windows(trunk), parts * PLACES)
        self._frames = _Memory(_STEM_REACH, self.n_windows * stride)
        self._to_second = [_Memory(2 * gap, self.n_windows) for _ in range(4)]
        # The map of the last place comes last; the others wait for it.
        waiting = ((PLACES - 1 - _PLACES.index(kind)) * gap for kind in range(len(_SECOND)))
        self._to_windows = [[_Memory(n_rows, self.n_windows) for _ in parts] for n_rows in waiting]

    def push(self, frames: Pixels) -> None:
        """Take a chunk of frames (n_windows * stride, H, W, 3)."""
        for first in range(0, len(frames), self._n * self._stride):
            some = self._embedder.tensor(frames[first : first + self._n * self._stride])
            kinds = self._stem(self._frames.before(some))
            maps = self._second(*(memory.before(kind) for memory, kind in zip(self._to_second, kinds, strict=True)))
            for memory, rows in zip(chain.from_iterable(self._to_windows), maps, strict=True):
                memory.before(rows)

    def finished(self, n_rows: int) -> FloatArray:
        """The vectors of the first `n_rows` of the windows that the last chunk completed."""
        parts = (
            memory.rows[first : first + self.n_windows]
            for place, kind in enumerate(_PLACES)
            for memory in self._to_windows[kind]
            for first in [(place - _PLACES.index(kind)) * self._gap]
        )
        (vectors,) = self._windows(*parts)
        return vectors[:n_rows].float().cpu().numpy().copy()


class _Memory:
    """The last rows of a stream, zeros at first; rows come a step at a time, and move up once in a chunk of steps."""

    def __init__(self, n_kept: int, n_chunk: int) -> None:
        self._n_kept, self._n_chunk, self._n_taken = n_kept, n_chunk, 0
        self.rows = torch.empty(0)  # the remembered rows, then those of the chunk

    def before(self, rows: Tensor) -> Tensor:
        """The remembered rows, then `rows`, valid until the next call."""
        kept, chunk, n = self._n_kept, self._n_chunk, len(rows)
        if not len(self.rows):
            is_last = rows.is_contiguous(memory_format=torch.channels_last)
            layout = torch.channels_last if is_last else torch.contiguous_format
            self.rows = rows.new_zeros(kept + chunk, *rows.shape[1:]).contiguous(memory_format=layout)
        if self._n_taken == chunk:
            for row in range(0, kept, chunk):  # in steps, because source and target must not overlap
                stop = min(row + chunk, kept)
                _copy(self.rows[row + chunk : stop + chunk], self.rows[row:stop])
            self._n_taken = 0
        first = self._n_taken
        self._n_taken += n
        _copy(rows, self.rows[kept + first : kept + first + n])
        return self.rows[first : first + kept + n]


def _copy(source: Tensor, target: Tensor) -> None:
    """On a processor by NumPy: PyTorch wakes its threads for every few rows, which takes longer than the copy."""
    if target.device.type == "cpu" and target.dtype == torch.float32:
        np.copyto(target.numpy(), source.numpy())
    else:
        target.copy_(source)


class _Counted:
    """Frames on their way through, counted."""

    def __init__(self, frames: Iterable[Pixels]) -> None:
        self._frames = frames
        self.n_frames = 0
        self.is_over = False

    def __iter__(self) -> Iterator[Pixels]:
        for frame in self._frames:
            self.n_frames += 1
            yield frame
        self.is_over = True


class _Stem(nn.Module):
    """Frames -> kinds A, B, C, F: Conv3d_1a_7x7 to Conv3d_2b_1x1.

    P1 are the taps 0 and 1 of the first convolution, P2 the taps 2 and 3, P3 4 and 5, P4 6. The first place of a window
    does not see the frames of P1, the last but one not that of P4, the last neither those of P3 nor P4.
    """

    def __init__(self, trunk: InceptionTrunk, stride: int) -> None:
        super().__init__()
        first, pointwise = _folded_unit(trunk, "Conv3d_1a_7x7"), _folded_unit(trunk, "Conv3d_2b_1x1")
        taps = first.weight.unbind(2)
        self.stride, self.outputs = stride, len(pointwise.bias)
        self.parts = _frozen(*(torch.cat(taps[k : k + 2], dim=1) for k in (0, 2, 4, 6)))
        (self.bias,) = _frozen(first.bias)
        self.weight_2b, self.bias_2b = _frozen(pointwise.weight[:, :, 0], pointwise.bias)

    def forward(self, frames: Tensor) -> _Kinds:
        """(positions * stride + 6, 3, H, W) -> 4 x (positions, channels, H / 4, W / 4)."""
        before, after = zip(*(same_padding(int(size), 7, 2) for size in frames.shape[2:]), strict=True)
        frames = F.pad(frames, (before[1], after[1], before[0], after[0]))
        n = len(frames) - _STEM_REACH
        pairs = torch.cat([frames[:-1], frames[1:]], dim=1)
        # P2 is in every kind, so it brings the bias.
        p1, p2, p3 = (
            F.conv2d(pairs[k : k + n : self.stride], self.parts[k // 2], self.bias if k == 2 else None, 2)
            for k in (0, 2, 4)
        )
        p4 = F.conv2d(frames[6 : 6 + n : self.stride], self.parts[3], None, 2)
        c, p34 = p1 + p2, p3 + p4
        kinds = (p2 + p34, c + p3, c, c + p34)
        return tuple(F.relu(F.conv2d(_pooled(F.relu(maps)), self.weight_2b, self.bias_2b)) for maps in kinds)


class _Taps(nn.Module):
    """A convolution unit of 3 x 3 x 3 in every context: each tap once for each kind it meets, then the sums."""

    def __init__(self, conv: Folded, seen: Sequence[Context], gap: int) -> None:
        super().__init__()
        self.seen, self.gap, self.outputs = seen, gap, len(conv.bias)
        self.taps = _frozen(*conv.weight.unbind(2))
        (self.bias,) = _frozen(conv.bias)

    def forward(self, kinds: _Kinds) -> _Kinds:
        """Kinds of (positions + 2 gap, inputs, H, W) -> for each context (positions, outputs, H, W), not negative."""
        product = {}
        for tap, kind in dict.fromkeys(pair for context in self.seen for pair in _pairs(context)):
            # The maps that the tap meets, for all positions that have both neighbours.
            met = kinds[kind][tap * self.gap : len(kinds[kind]) - (2 - tap) * self.gap]
            product[tap, kind] = F.conv2d(met, self.taps[tap], self.bias if tap == 1 else None, padding=1)
        return tuple(F.relu(_total([product[pair] for pair in _pairs(context)])) for context in self.seen)


class _Second(nn.Module):
    """Kinds A, B, C, F -> 6 kinds: Conv3d_2c_3x3, MaxPool3d_3a_3x3 and what Mixed_3b computes of each map by itself."""

    def __init__(self, trunk: InceptionTrunk, gap: int) -> None:
        super().__init__()
        self.conv = _Taps(_folded_unit(trunk, "Conv3d_2c_3x3"), _SECOND, gap)
        self.in_space = _InSpace(trunk.get_submodule(_FIRST_STAGE))

    def forward(self, *kinds: Tensor) -> _Kinds:
        """4 x (positions + 2 gap, channels, H, W) -> 6 x 4 x (positions, channels, H / 2, W / 2)."""
        return tuple(chain.from_iterable(self.in_space(_pooled(maps)) for maps in self.conv(kinds)))


def _pairs(context: Context) -> list[tuple[int, int]]:
    """The taps that meet a map and not padding, with the kind of the map."""
    return [(tap, kind) for tap, kind in enumerate(context) if kind is not None]


def _total(maps: list[Tensor]) -> Tensor:
    total = maps[0] + maps[1]
    for more in maps[2:]:
        total += more
    return total


# What an I3D computes for each window by itself: Mixed_3b from its convolutions in time on, and all later stages. The
# maps of a window are a list, one (windows, channels, height, width) for each place in time. A convolution of three
# taps in time takes three products of maps and weights for each place. Here it takes 6 for 4 places, or 4 for 2: the
# maps of neighbouring places are added up in several ways, each sum meets weights that were added up to match, and sums
# of the products are the outputs (Winograd's short convolutions, which Lavin and Gray 2016 use in space). Nothing is
# left out: only the order of sums differs, and errors stay those of float32.

_FIRST_STAGE = "Mixed_3b"
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


class _Parts(NamedTuple):
    """What a Mixed block computes of one map by itself, each (windows, channels, height, width)."""

    b0: Tensor
    b1a: Tensor
    b2a: Tensor
    highest: Tensor  # the maximum in space of b3a


class _InSpace(nn.Module):
    """The half of a Mixed block that sees one map at a time."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.b0, self.b1a, self.b2a = (_Pointwise(_folded_unit(block, name)) for name in ("b0", "b1a", "b2a"))
        self.channels = (self.b0.outputs, self.b1a.outputs, self.b2a.outputs, self.b0.inputs)

    def forward(self, maps: Tensor) -> _Parts:
        """(windows, channels, H, W) -> parts of the same size."""
        return _Parts(self.b0(maps), self.b1a(maps), self.b2a(maps), F.max_pool2d(maps, 3, 1, 1))


class _InTime(nn.Module):
    """The half of a Mixed block that looks along time."""

    def __init__(self, block: nn.Module, n_places: int) -> None:
        super().__init__()
        self.b1b, self.b2b = (_TimeConvolution(_folded_unit(block, name), n_places) for name in ("b1b", "b2b"))
        self.b3b = _Pointwise(_folded_unit(block, "b3b"))

    def forward(self, places: Sequence[_Parts]) -> Maps:
        """The parts of each place -> the map of each place."""
        b0, b1a, b2a, highest = (list(maps) for maps in zip(*places, strict=True))
        branches = (b0, self.b1b(b1a), self.b2b(b2a), [self.b3b(maps) for maps in _highest_in_time(highest, 3, 1)])
        return [torch.cat(maps, dim=1) for maps in zip(*branches, strict=True)]


class _TimeConvolution(nn.Module):
    """A convolution unit of 3 x 3 x 3 over an even number of places, with zeros before and after."""

    def __init__(self, unit: Folded, n_places: int) -> None:
        super().__init__()
        self.per_tile = 2 if n_places % 4 else 4
        taps = [tap.double() for tap in unit.weight.unbind(2)]
        rows = _TAPS_OF_2 if self.per_tile == 2 else _TAPS_OF_4
        summed = (torch.stack([f * tap for f, tap in zip(row, taps, strict=True)]).sum(dim=0) for row in rows)
        self.weights = _frozen(*(weight.float() for weight in summed))
        (self.bias,) = _frozen(unit.bias)

    def forward(self, maps: Maps) -> Maps:
        """(windows, inputs, H, W) for each place -> (windows, outputs, H, W) for each place, not negative."""
        sums, outputs = (_sums_of_2, _outputs_of_2) if self.per_tile == 2 else (_sums_of_4, _outputs_of_4)
        convolved: Maps = []
        for first in range(0, len(maps), self.per_tile):
            stop = first + self.per_tile
            before, after = (maps[place] if 0 <= place < len(maps) else None for place in (first - 1, stop))
            pairs = zip(sums(before, maps[first:stop], after), self.weights, strict=True)
            products = [
                F.conv2d(summed, weight, self.bias if number == _WITH_BIAS else None, padding=1)
                for number, (summed, weight) in enumerate(pairs)
            ]
            convolved.extend(F.relu(output) for output in outputs(products))
        return convolved


class _Windows(nn.Module):
    """The parts of each place of a window, which `_InSpace` of Mixed_3b gives -> the vector of the window."""

    def __init__(self, trunk: InceptionTrunk) -> None:
        super().__init__()
        stages, n_places = trunk.stages(), PLACES
        self.first = _InTime(stages[_FIRST_STAGE], n_places)
        self.later = nn.ModuleList()
        for stage in list(stages.values())[list(stages).index(_FIRST_STAGE) + 1 :]:
            if isinstance(stage, MaxPool):
                self.later.append(_Pool(stage))
                n_places = -(-n_places // stage.stride[0])
            else:
                self.later.append(_Block(stage, n_places))

    def forward(self, *parts: Tensor) -> tuple[Tensor]:
        """8 x 4 x (windows, channels, H, W), the parts of one place after the other -> (windows, trunk dim)."""
        n = len(_Parts._fields)
        maps: Maps = self.first([_Parts(*parts[k : k + n]) for k in range(0, len(parts), n)])
        for stage in self.later:
            maps = stage(maps)
        return (torch.stack(maps).mean(dim=(0, 3, 4)),)


class _Block(nn.Module):
    """A whole Mixed block."""

    def __init__(self, block: nn.Module, n_places: int) -> None:
        super().__init__()
        self.in_space, self.in_time = _InSpace(block), _InTime(block, n_places)

    def forward(self, maps: Maps) -> Maps:
        return self.in_time([self.in_space(one) for one in maps])  # type: ignore[no-any-return]


class _Pool(nn.Module):
    """A pool, first in space, then in time."""

    def __init__(self, pool: MaxPool) -> None:
        super().__init__()
        self.kernel, self.stride = pool.kernel, pool.stride

    def forward(self, maps: Maps) -> Maps:
        in_space = [_pooled(one, self.kernel[1], self.stride[1]) for one in maps]
        return _highest_in_time(in_space, self.kernel[0], self.stride[0])


class _Pointwise(nn.Module):
    """A convolution unit of one tap."""

    def __init__(self, unit: Folded) -> None:
        super().__init__()
        self.outputs, self.inputs = unit.weight.shape[:2]
        self.weight, self.bias = _frozen(unit.weight[:, :, 0], unit.bias)

    def forward(self, maps: Tensor) -> Tensor:
        return F.relu(F.conv2d(maps, self.weight, self.bias))


def _pooled(maps: Tensor, kernel: int = 3, stride: int = 2) -> Tensor:
    """The maximum in space under a kernel; where `same_padding` is uneven, ceil_mode pads the end."""
    padding = [same_padding(int(size), kernel, stride)[0] for size in maps.shape[2:]]
    return F.max_pool2d(maps, kernel, stride, padding, ceil_mode=True)


def _folded_unit(parent: nn.Module, name: str) -> Folded:
    """The weights of a convolution unit inside `parent`, its batch norm folded in."""
    unit = parent.get_submodule(name)
    if not isinstance(unit, ConvUnit):
        raise ValueError(f"{name} is not the unit of an I3D")
    return unit.folded_weights()


def _frozen(*tensors: Tensor) -> nn.ParameterList:
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


def _highest_in_time(maps: Maps, kernel: int, stride: int) -> Maps:
    before, _ = same_padding(len(maps), kernel, stride)
    highest = []
    for first in range(-before, len(maps) - before, stride):
        top, *others = maps[max(0, first) : first + kernel]
        for other in others:
            top = torch.maximum(top, other)
        highest.append(top)
    return highest
