"""A small trunk over landmarks instead of pixels: windows of 16 frames -> embedding 1024.

Each frame becomes three vectors (body, left hand, right hand) in the body's own coordinates (see `body`); a part
that was not detected becomes a learned vector. Convolutions in time see the motion, a small transformer the order.
The embedding does not change when the signer moves in the picture or the picture is scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM
from signspot.models.body import HAND_POINTS, WRIST, Part, body_of, in_body_coordinates
from signspot.models.trunk import TrunkOutput

_BODY_POINTS = 25  # the pose down to the hips; legs say nothing
_BODY_NUMBERS = _BODY_POINTS * (2 + 1 + 2)  # place, visibility, motion
_HAND_NUMBERS = HAND_POINTS * (3 + 2 + 2)  # shape (from the wrist), place, motion


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
    dropout: float = 0.1  # inside; the classifier has 0.5 as the video trunks have

    def __post_init__(self) -> None:
        if min(self.classes, self.frames, self.width, self.heads, self.embedding_dim) < 1:
            raise ValueError(f"a landmark encoder without classes, frames or width: {self}")
        if min(self.convolutions, self.transformer_layers) < 0:
            raise ValueError(f"a negative number of layers: {self}")
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} does not divide among {self.heads} heads")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"a dropout of {self.dropout} is not in [0, 1)")


class PartEncoder(nn.Module):
    """Turns the numbers of one part of the body into a vector; a missing part into a learned one."""

    def __init__(self, numbers: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(numbers, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, width))
        self.missing = nn.Parameter(torch.zeros(width))

    def forward(self, numbers: Tensor, found: Tensor) -> Tensor:
        """(B, T, numbers), (B, T) bool -> (B, T, width)."""
        return torch.where(found[..., None], self.layers(numbers), self.missing)


class TemporalConv(nn.Module):
    """A residual convolution over five frames, channel by channel, then across channels."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.in_time = nn.Conv1d(width, width, kernel_size=5, padding=2, groups=width)
        self.across = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, frames: Tensor) -> Tensor:
        """(B, T, width) -> (B, T, width)."""
        moved = self.in_time(self.norm(frames).transpose(1, 2)).transpose(1, 2)
        change: Tensor = self.dropout(self.across(F.gelu(moved)))
        return frames + change


class LandmarkEncoder(nn.Module):
    """(B, 16, 258) landmarks -> embedding (B, 1024) and logits (B, classes)."""

    def __init__(self, config: LandmarkEncoderConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or LandmarkEncoderConfig()
        self.embedding_dim = config.embedding_dim
        self.body = PartEncoder(_BODY_NUMBERS, config.width)
        self.hand = PartEncoder(_HAND_NUMBERS, config.width)
        self.join = nn.Linear(3 * config.width, config.width)
        self.position = nn.Parameter(0.02 * torch.randn(config.frames, config.width))
        self.convolutions = nn.Sequential(
            *(TemporalConv(config.width, config.dropout) for _ in range(config.convolutions))
        )
        self.transformer = nn.Sequential(*(_attention(config) for _ in range(config.transformer_layers)))
        self.project = nn.Sequential(
            nn.LayerNorm(2 * config.width), nn.Linear(2 * config.width, config.embedding_dim), nn.GELU()
        )
        self.dropout = nn.Dropout(0.5)
        self.logits = nn.Linear(config.embedding_dim, config.classes)

    def forward(self, points: Tensor) -> TrunkOutput:
        """Embed and classify windows of landmarks (B, frames, 258), zeros where not detected."""
        if points.shape[1:] != (self.config.frames, LANDMARK_DIM):
            expected = f"(B, {self.config.frames}, {LANDMARK_DIM})"
            raise ValueError(f"landmarks of shape {tuple(points.shape)} instead of {expected}")
        body = in_body_coordinates(body_of(points))
        # Both hands share one encoder, which knows right hands.
        left = Part(body.left.points * body.left.points.new_tensor([-1.0, 1.0, 1.0]), body.left.found)
        described = (
            self.body(_body_numbers(body.pose), body.pose.found),
            self.hand(_hand_numbers(left), left.found),
            self.hand(_hand_numbers(body.right), body.right.found),
        )
        frames = self.convolutions(self.join(torch.cat(described, dim=-1)))
        frames = self.transformer(frames + self.position)
        embedding = self.project(torch.cat([frames.mean(dim=1), frames.amax(dim=1)], dim=-1))
        return TrunkOutput(embedding, self.logits(self.dropout(embedding)))


def _attention(config: LandmarkEncoderConfig) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(
        config.width,
        config.heads,
        dim_feedforward=2 * config.width,
        dropout=config.dropout,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )


def _body_numbers(pose: Part) -> Tensor:
    """(B, T, 33, 4) -> (B, T, 125): place, visibility and motion of the upper body."""
    place, visibility = pose.points[..., :_BODY_POINTS, :2], pose.points[..., :_BODY_POINTS, 3:]
    return torch.cat([place, visibility, _motion(place, pose.found)], dim=-1).flatten(2)


def _hand_numbers(hand: Part) -> Tensor:
    """(B, T, 21, 3) -> (B, T, 147): shape, place and motion of a hand."""
    shape = hand.points - hand.points[..., WRIST : WRIST + 1, :]
    place = hand.points[..., :2]
    return torch.cat([shape, place, _motion(place, hand.found)], dim=-1).flatten(2)


def _motion(place: Tensor, found: Tensor) -> Tensor:
    """How far each point moved since the frame before; zero for the first frame and next to a gap."""
    both = (found[:, 1:] & found[:, :-1])[..., None, None]
    return F.pad(torch.where(both, place[:, 1:] - place[:, :-1], 0.0), (0, 0, 0, 0, 1, 0))
