"""A small trunk over landmarks instead of pixels: windows of 16 frames -> embedding 1024.

Each frame is described in the body's own coordinates (see `landmark_numbers`): the shape of each hand, whatever its
size, the place of each hand, the body, and how far hands and face are apart. Gaps in a hand are bridged; a hand that is
never found becomes a learned vector. Convolutions in time see the motion, a small transformer the order. The embedding
does not change when the signer moves in the picture or the picture is scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM
from signspot.models.body import body_of, in_body_coordinates
from signspot.models.landmark_numbers import (
    BODY_NUMBERS,
    PLACE_NUMBERS,
    RELATION_NUMBERS,
    SHAPE_NUMBERS,
    HandNumbers,
    frame_numbers,
)
from signspot.models.trunk import TrunkOutput

_KERNEL = 5  # frames


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkEncoderConfig:
    """Everything that shapes a landmark encoder."""

    classes: int = 1064
    frames: int = CLIP_LENGTH
    width: int = 256  # of a frame's vector
    heads: int = 4
    convolutions: int = 2
    transformer_layers: int = 2
    embedding_dim: int = 1024
    dropout: float = 0.1  # of what is known about a frame; the classifier has 0.5 as the video trunks have

    def __post_init__(self) -> None:
        if min(self.classes, self.frames, self.width, self.heads, self.embedding_dim) < 1:
            raise ValueError(f"a landmark encoder without classes, frames or width: {self}")
        if min(self.convolutions, self.transformer_layers) < 0:
            raise ValueError(f"a negative number of layers: {self}")
        if self.frames % 2 or self.width % 2:
            raise ValueError(f"frames and width must be even, not {self.frames} and {self.width}")
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} does not divide among {self.heads} heads")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"a dropout of {self.dropout} is not in [0, 1)")


class NumbersEncoder(nn.Sequential):
    """(B, T, numbers) -> (B, T, width)."""

    def __init__(self, numbers: int, width: int) -> None:
        super().__init__(nn.Linear(numbers, width), nn.LayerNorm(width), nn.GELU())


class ShapeEncoder(nn.Module):
    """Turns the numbers of a hand shape into a vector; a hand that is never found into a learned one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*NumbersEncoder(SHAPE_NUMBERS, width), nn.Linear(width, width))
        self.missing = nn.Parameter(torch.zeros(width))

    def forward(self, hand: HandNumbers) -> Tensor:
        """(B, T, width)."""
        return torch.where(hand.is_known[..., None], self.layers(hand.shape), self.missing)


class TemporalConv(nn.Module):
    """A residual convolution over five frames, channel by channel, then across channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.in_time = _drawn(_KERNEL, width, _KERNEL**-0.5)
        self.across = nn.Linear(width, width)

    def forward(self, frames: Tensor) -> Tensor:
        """(B, T, width) -> (B, T, width)."""
        n_frames = frames.shape[1]
        around = F.pad(self.norm(frames), (0, 0, _KERNEL // 2, _KERNEL // 2))
        # A sum of shifted frames: torch's own convolution, channel by channel, is several times slower on a CPU.
        moved = sum((around[:, i : i + n_frames] * self.in_time[i] for i in range(_KERNEL)), frames.new_zeros(()))
        change: Tensor = self.across(F.gelu(moved))
        return frames + change


class LandmarkEncoder(nn.Module):
    """(B, 16, 258) landmarks -> embedding (B, 1024) and logits (B, classes)."""

    def __init__(self, config: LandmarkEncoderConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or LandmarkEncoderConfig()
        width, half = config.width, config.width // 2
        self.embedding_dim = config.embedding_dim
        self.body = NumbersEncoder(BODY_NUMBERS, half)
        self.shape = ShapeEncoder(width)
        self.place = NumbersEncoder(PLACE_NUMBERS, half)
        self.relation = NumbersEncoder(RELATION_NUMBERS, half)
        self.join = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(2 * width + 4 * half, width))
        self.convolutions = nn.Sequential(*(TemporalConv(width) for _ in range(config.convolutions)))
        self.pairs = nn.Linear(2 * width, width)
        self.position = _drawn(config.frames // 2, width, 0.02)
        self.transformer = nn.Sequential(*(_attention(config) for _ in range(config.transformer_layers)))
        self.project = nn.Sequential(nn.LayerNorm(3 * width), nn.Linear(3 * width, config.embedding_dim), nn.GELU())
        self.dropout = nn.Dropout(0.5)
        self.logits = nn.Linear(config.embedding_dim, config.classes)

    def forward(self, points: Tensor) -> TrunkOutput:
        """Embed and classify windows of landmarks (B, frames, 258), zeros where not detected."""
        if points.shape[1:] != (self.config.frames, LANDMARK_DIM):
            expected = f"(B, {self.config.frames}, {LANDMARK_DIM})"
            raise ValueError(f"landmarks of shape {tuple(points.shape)} instead of {expected}")
        body = in_body_coordinates(body_of(points))
        numbers = frame_numbers(body)
        described = (
            torch.where(body.pose.found[..., None], self.body(numbers.body), 0.0),
            self.shape(numbers.left),
            self.shape(numbers.right),
            self.place(numbers.left.place),
            self.place(numbers.right.place),
            self.relation(numbers.relation),
        )
        frames = self.convolutions(self.join(torch.cat(described, dim=-1)))
        # Two frames to a step: order matters over more than a frame, and half the steps take half the time.
        steps = self.transformer(self.pairs(frames.unflatten(1, (-1, 2)).flatten(2)) + self.position)
        embedding = self.project(torch.cat([steps.mean(1), steps.amax(1), _middle(steps)], dim=-1))
        return TrunkOutput(embedding, self.logits(self.dropout(embedding)))


def _drawn(rows: int, columns: int, deviation: float) -> nn.Parameter:
    # Evenly, not normally: on torch's meta device, where cards are checked, normal numbers take a second of imports.
    limit = deviation * 3**0.5
    drawn = nn.Parameter(torch.empty(rows, columns))
    nn.init.uniform_(drawn, -limit, limit)
    return drawn


def _middle(steps: Tensor) -> Tensor:
    """The mean of the two steps around the middle of a window, where the sign is: (B, T, width) -> (B, width)."""
    half = steps.shape[1] // 2
    return steps[:, max(0, half - 1) : half + 1].mean(1)


def _attention(config: LandmarkEncoderConfig) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(
        config.width,
        config.heads,
        dim_feedforward=2 * config.width,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )
