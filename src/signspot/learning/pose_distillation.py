"""Learning to see the body before learning signs: the landmarks of a clip, regressed from its embedding.

Paper App. C.1 names "pose distillation" as the first training of the trunk and leaves the details open (deviation (h)):
here a linear layer reads all 16 frames' upper body and hands from the embedding, in shoulder widths from between the
shoulders, so that scaling and moving the picture leave the answer as it is; the mean absolute error over the points
that were detected is the loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from signspot.domain.tracks import CLIP_LENGTH
from signspot.models.body import HAND_POINTS, Part, body_of, in_body_coordinates

UPPER_BODY_POINTS = 25  # the pose down to the hips
_N_POINTS = UPPER_BODY_POINTS + 2 * HAND_POINTS


@dataclass(frozen=True, slots=True, eq=False)
class PoseTarget:
    """Where the points of a body are."""

    places: Tensor  # (B, 16, 67, 2) float32, in shoulder widths
    found: Tensor  # (B, 16, 67) bool


class PoseReader(nn.Module):
    """(B, embedding dim) -> (B, 16, 67, 2)."""

    def __init__(self, embedding_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(embedding_dim, CLIP_LENGTH * _N_POINTS * 2)

    def forward(self, embedding: Tensor) -> Tensor:
        """The places of all points in all frames."""
        places: Tensor = self.linear(embedding).unflatten(1, (CLIP_LENGTH, _N_POINTS, 2))
        return places


def pose_target(landmarks: Tensor) -> PoseTarget:
    """What is to be read from clips with these landmarks (B, 16, 258)."""
    body = in_body_coordinates(body_of(landmarks))
    pose = Part(body.pose.points[..., :UPPER_BODY_POINTS, :], body.pose.found)
    parts = (pose, body.left, body.right)
    places = torch.cat([part.points[..., :2] for part in parts], dim=-2)
    found = torch.cat([part.found[..., None].expand(part.points.shape[:-1]) for part in parts], dim=-1)
    return PoseTarget(places, found)


def pose_loss(places: Tensor, target: PoseTarget) -> Tensor:
    """The mean absolute error of the points that were detected; zero where none was."""
    error = torch.where(target.found[..., None], (places.float() - target.places).abs(), 0.0)
    return error.sum() / (2 * target.found.sum()).clamp_min(1)
