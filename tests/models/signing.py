"""Made-up landmarks of a moving signer."""

from __future__ import annotations

import torch
from torch import Tensor

POSE, LEFT, RIGHT = slice(0, 132), slice(132, 195), slice(195, 258)


def signing(windows: int = 2, frames: int = 16, seed: int = 0, gaps: bool = True) -> Tensor:
    """(windows, frames, 258): a body of plausible size; with `gaps`, parts are missing here and there."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(windows, frames, 258, generator=generator) * 0.3 + 0.35
    pose = points[..., POSE].view(windows, frames, 33, 4)
    pose[..., 11, :2] = torch.tensor([0.62, 0.5])
    pose[..., 12, :2] = torch.tensor([0.38, 0.5])
    if gaps:
        for part in (POSE, LEFT, RIGHT):
            missing = torch.rand(windows, frames, 1, generator=generator) < 0.3
            points[..., part] = torch.where(missing, 0.0, points[..., part])
    return points


def moved(points: Tensor, scale: float, right: float, down: float) -> Tensor:
    """The same signer in a scaled and shifted picture; what is missing stays missing."""
    result = points.clone()
    for part, numbers in ((POSE, 4), (LEFT, 3), (RIGHT, 3)):
        view = points[..., part].reshape(*points.shape[:-1], -1, numbers).clone()
        found = (view != 0).any(-1).any(-1)[..., None, None]
        view[..., :3] *= scale
        view[..., :2] += torch.tensor([right, down])
        result[..., part] = torch.where(found, view, 0.0).flatten(-2)
    return result
