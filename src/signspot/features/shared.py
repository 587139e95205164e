"""The I3D at every window of a video, exactly, computing what neighbouring windows share only once.

A window starts at frame s; its maps after the first convolution stand at s, s + 2, ..., s + 14. A map in the middle of
a window is a function of the frames around it alone, whichever window asks; only near the ends, where a window sees
padding instead of frames, it also depends on how far the end is. Such distinct functions of one position are called
kinds here. In a window the kinds are

    after the first convolution   A F F F F F B C      4 kinds instead of 8 maps
    after Conv3d_2c_3x3           0 1 2 2 2 3 4 5      6 kinds
    after Mixed_3b                0 1 2 3 4 5 6 7      8 kinds: from here on windows share nothing

A kind is computed once per position and joined to the windows it belongs to. Convolutions in time are split into their
taps, because a convolution is linear: F = P1 + P2 + P3 + P4 and so on below. Every product of a weight and a number
is computed once, whatever the batches; only the order of sums differs from the windowed network.

Positions are the frames at which a window may start: every frame for stride 1, every second for stride 2. Larger
strides share too little to be worth it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice, repeat

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.domain.tracks import CLIP_LENGTH, FloatArray, Pixels
from signspot.models.embedder import LaterStages, VideoEmbedder
from signspot.models.folding import Folded, folded_weights
from signspot.models.i3d import I3D
from signspot.models.layers import ConvUnit, same_padding
from signspot.models.trunk import InceptionTrunk

SHARED_STRIDES = (1, 2)

Kinds = tuple[Tensor, ...]  # for each kind (positions, channels, height, width)
Context = tuple[int | None, int, int | None]  # the kinds before, at and after a place in a window; None is padding

_STEP = 2  # frames between the maps of a window
_STEM_REACH = 6  # frames around a position that the first convolution sees: 2 before and 4 after
# The last frame needed lies so far behind the start of a window: 14 to the last map, 2 for each of the two convolutions
# that look at the next map, 4 for the first convolution.
_DELAY = 22


def contexts(kinds: Sequence[int]) -> tuple[Context, ...]:
    """What a convolution of three taps in time sees at each place of a window.

    >>> contexts([0, 1, 1, 2])
    ((None, 0, 1), (0, 1, 1), (1, 1, 2), (1, 2, None))
    """
    return tuple(zip((None, *kinds[:-1]), kinds, (*kinds[1:], None), strict=True))


_STEM_KINDS = (0, 3, 3, 3, 3, 3, 1, 2)  # A F F F F F B C, in the order A, B, C, F
_SECOND = tuple(dict.fromkeys(contexts(_STEM_KINDS)))
_THIRD = contexts([_SECOND.index(context) for context in contexts(_STEM_KINDS)])


def is_shareable(embedder: VideoEmbedder, stride: int) -> bool:
    """Whether `shared_vectors` can do the work."""
    return isinstance(embedder.trunk, I3D) and stride in SHARED_STRIDES


def shared_vectors(frames: Iterable[Pixels], embedder: VideoEmbedder, stride: int = 1) -> Iterator[FloatArray]:
    """The trunk's vectors (n, trunk dim) of the windows that start at 0, stride, 2 stride, ... and fit into the video.

    Frames are (H, W, 3) uint8. Memory does not depend on their number.
    """
    if not is_shareable(embedder, stride):
        raise ValueError(f"windows of {embedder.name} at a stride of {stride} share nothing")
    stream, counted = _SharedStream(embedder, stride), _Counted(frames)
    rows_per_step = embedder.rows_per_step
    per_chunk = rows_per_step * stride
    lead = -_DELAY % per_chunk  # empty frames before the video, so that a chunk begins with the first window
    empty = np.zeros((embedder.frame_shape.crop, embedder.frame_shape.crop, 3), np.uint8)
    endless = chain(repeat(empty, lead), counted, repeat(empty))
    n_emitted = 0
    for chunk in count():
        maps = stream.push(np.stack(list(islice(endless, per_chunk))))
        n_rows = rows_per_step
        if counted.is_over:
            n_windows = max(0, (counted.n_frames - CLIP_LENGTH) // stride + 1)
            n_rows = min(n_rows, n_windows - n_emitted)
        if n_rows <= 0:
            return
        if chunk * per_chunk >= lead + _DELAY:
            yield stream.finished(maps, n_rows)
            n_emitted += n_rows


class _SharedStream:
    """The network as a pipeline that remembers, between its stages, just what later positions still need."""

    def __init__(self, embedder: VideoEmbedder, stride: int) -> None:
        self._embedder = embedder
        trunk, side, n = embedder.trunk, embedder.frame_shape.crop, embedder.rows_per_step
        gap = _STEP // stride  # positions between the maps of a window
        stem, second, third = _Stem(trunk, stride), _Second(trunk, gap), _Third(trunk, gap)
        reach = n + 2 * gap
        quarter, eighth = -(-side // 4), -(-side // 8)
        self._stem = embedder.program(
            f"shared {stride} stem", lambda: stem, ((n * stride + _STEM_REACH, 3, side, side),)
        )
        self._second = embedder.program(
            f"shared {stride} second", lambda: second, ((reach, stem.outputs, quarter, quarter),) * 4
        )
        self._third = embedder.program(
            f"shared {stride} third", lambda: third, ((reach, second.outputs, eighth, eighth),) * len(_SECOND)
        )
        self._later = embedder.program(
            "after Mixed_3b",
            lambda: _Joined(LaterStages(trunk, "Mixed_3b")),
            ((n, third.outputs, eighth, eighth),) * len(_THIRD),
        )
        self._frames = _Memory(_STEM_REACH)
        self._to_second = [_Memory(2 * gap) for _ in range(4)]
        self._to_third = [_Memory(2 * gap) for _ in _SECOND]
        # The map of the last place comes last; the others wait for it.
        self._to_windows = [_Memory(place * gap) for place in reversed(range(len(_THIRD)))]

    def push(self, frames: Pixels) -> Kinds:
        """Take a chunk of frames (n, H, W, 3); give the maps of each place of the windows that became complete."""
        kinds = self._stem(self._frames.before(self._embedder.tensor(frames)))
        kinds = self._second(*(memory.before(maps) for memory, maps in zip(self._to_second, kinds, strict=True)))
        kinds = self._third(*(memory.before(maps) for memory, maps in zip(self._to_third, kinds, strict=True)))
        return tuple(memory.before(maps) for memory, maps in zip(self._to_windows, kinds, strict=True))

    def finished(self, places: Kinds, n_rows: int) -> FloatArray:
        """The vectors of the first `n_rows` windows."""
        (vectors,) = self._later(*(maps[:n_rows] for maps in places))
        return vectors.float().cpu().numpy().copy()


class _Memory:
    """The last rows of a stream that comes in chunks of one size: zeros at first. One buffer serves all chunks."""

    def __init__(self, n_kept: int) -> None:
        self._n_kept = n_kept
        self._buffer: Tensor | None = None

    def before(self, rows: Tensor) -> Tensor:
        """The remembered rows, then `rows`, valid until the next call."""
        kept, n = self._n_kept, len(rows)
        if self._buffer is None:
            is_last = rows.is_contiguous(memory_format=torch.channels_last)
            layout = torch.channels_last if is_last else torch.contiguous_format
            self._buffer = rows.new_zeros(kept + n, *rows.shape[1:]).contiguous(memory_format=layout)
        for row in range(0, kept, n):  # in steps, because source and target must not overlap
            stop = min(row + n, kept)
            self._buffer[row:stop] = self._buffer[row + n : stop + n]
        self._buffer[kept:] = rows
        return self._buffer


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
        first, pointwise = _folded(trunk, "Conv3d_1a_7x7"), _folded(trunk, "Conv3d_2b_1x1")
        taps = first.weight.unbind(2)
        self.stride, self.outputs = stride, len(pointwise.bias)
        self.parts = _frozen(*(torch.cat(taps[k : k + 2], dim=1) for k in (0, 2, 4, 6)))
        (self.bias,) = _frozen(first.bias)
        self.weight_2b, self.bias_2b = _frozen(pointwise.weight[:, :, 0], pointwise.bias)

    def forward(self, frames: Tensor) -> Kinds:
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
        return tuple(self._rest(maps) for maps in (p2 + p34, c + p3, c, c + p34))

    def _rest(self, maps: Tensor) -> Tensor:
        return F.relu(F.conv2d(_pooled(F.relu(maps)), self.weight_2b, self.bias_2b))


class _Taps(nn.Module):
    """A convolution unit of 3 x 3 x 3 in every context: each tap once for each kind it meets, then the sums."""

    def __init__(self, conv: Folded, seen: Sequence[Context], gap: int) -> None:
        super().__init__()
        self.seen, self.gap, self.outputs = seen, gap, len(conv.bias)
        self.taps = _frozen(*conv.weight.unbind(2))
        (self.bias,) = _frozen(conv.bias)

    def forward(self, kinds: Kinds) -> Kinds:
        """Kinds of (positions + 2 gap, inputs, H, W) -> for each context (positions, outputs, H, W), not negative."""
        product = {
            (tap, kind): F.conv2d(
                _seen_by(tap, kinds[kind], self.gap), self.taps[tap], self.bias if tap == 1 else None, padding=1
            )
            for tap, kind in dict.fromkeys(pair for context in self.seen for pair in _pairs(context))
        }
        return tuple(F.relu(_total([product[pair] for pair in _pairs(context)])) for context in self.seen)


class _Second(nn.Module):
    """Kinds A, B, C, F -> 6 kinds: Conv3d_2c_3x3, MaxPool3d_3a_3x3 and those parts of Mixed_3b that see one map only.

    These parts are, along the channels: b0, b1a, b2a, and the maximum in space of b3a.
    """

    def __init__(self, trunk: InceptionTrunk, gap: int) -> None:
        super().__init__()
        self.conv = _Taps(_folded(trunk, "Conv3d_2c_3x3"), _SECOND, gap)
        parts = [_folded(trunk, f"Mixed_3b.{name}") for name in ("b0", "b1a", "b2a")]
        self.weight, self.bias = _frozen(
            torch.cat([part.weight[:, :, 0] for part in parts]), torch.cat([part.bias for part in parts])
        )
        self.outputs = len(self.bias) + self.conv.outputs

    def forward(self, *kinds: Tensor) -> Kinds:
        """4 x (positions + 2 gap, channels, H, W) -> 6 x (positions, channels, H / 2, W / 2)."""
        pooled = [_pooled(maps) for maps in self.conv(kinds)]
        return tuple(
            torch.cat([F.relu(F.conv2d(maps, self.weight, self.bias)), F.max_pool2d(maps, 3, 1, 1)], dim=1)
            for maps in pooled
        )


class _Third(nn.Module):
    """6 kinds -> the maps of each of the 8 places of a window: the rest of Mixed_3b."""

    def __init__(self, trunk: InceptionTrunk, gap: int) -> None:
        super().__init__()
        b0, b1a, b2a = (len(_folded(trunk, f"Mixed_3b.{name}").bias) for name in ("b0", "b1a", "b2a"))
        pooled = _folded(trunk, "Mixed_3b.b3b")
        self.gap, self.parts = gap, [b0, b1a, b2a, pooled.weight.shape[1]]
        self.b1b = _Taps(_folded(trunk, "Mixed_3b.b1b"), _THIRD, gap)
        self.b2b = _Taps(_folded(trunk, "Mixed_3b.b2b"), _THIRD, gap)
        self.weight, self.bias = _frozen(pooled.weight[:, :, 0], pooled.bias)
        self.outputs = b0 + self.b1b.outputs + self.b2b.outputs + len(self.bias)

    def forward(self, *kinds: Tensor) -> Kinds:
        """6 x (positions + 2 gap, channels, H, W) -> 8 x (positions, channels, H, W)."""
        b0, b1a, b2a, maximum = zip(*(torch.split(maps, self.parts, dim=1) for maps in kinds), strict=True)
        return tuple(
            torch.cat([_seen_by(1, b0[context[1]], self.gap), b1b, b2b, self._b3b(maximum, context)], dim=1)
            for context, b1b, b2b in zip(_THIRD, self.b1b(b1a), self.b2b(b2a), strict=True)
        )

    def _b3b(self, maximum: Kinds, context: Context) -> Tensor:
        highest, *others = (_seen_by(tap, maximum[kind], self.gap) for tap, kind in _pairs(context))
        for other in others:
            highest = torch.maximum(highest, other)
        return F.relu(F.conv2d(highest, self.weight, self.bias))


class _Joined(nn.Module):
    """The maps of each place of a window, put together, and what follows."""

    def __init__(self, later: nn.Module) -> None:
        super().__init__()
        self.later = later

    def forward(self, *places: Tensor) -> Kinds:
        """8 x (windows, channels, H, W) -> what `later` gives for (windows, channels, 8, H, W)."""
        outputs: Kinds = self.later(torch.stack(places, dim=2))
        return outputs


def _pairs(context: Context) -> list[tuple[int, int]]:
    """The taps that meet a map and not padding, with the kind of the map."""
    return [(tap, kind) for tap, kind in enumerate(context) if kind is not None]


def _seen_by(tap: int, maps: Tensor, gap: int) -> Tensor:
    """The maps that a tap (0 before, 1 at, 2 after) meets, for all positions that have both neighbours."""
    return maps[tap * gap : len(maps) - (2 - tap) * gap]


def _total(maps: list[Tensor]) -> Tensor:
    total = maps[0] + maps[1]
    for more in maps[2:]:
        total += more
    return total


def _pooled(maps: Tensor) -> Tensor:
    """The maximum of 3 x 3 at every second place; where `same_padding` is uneven, ceil_mode pads the end."""
    padding = [same_padding(int(size), 3, 2)[0] for size in maps.shape[2:]]
    return F.max_pool2d(maps, 3, 2, padding, ceil_mode=True)


def _folded(trunk: InceptionTrunk, name: str) -> Folded:
    unit = trunk.get_submodule(name)
    if not isinstance(unit, ConvUnit):
        raise ValueError(f"{name} is not the unit of an I3D")
    return folded_weights(unit)


def _frozen(*tensors: Tensor) -> nn.ParameterList:
    return nn.ParameterList(nn.Parameter(tensor.contiguous(), requires_grad=False) for tensor in tensors)
