"""Random changes of landmark clips in training: turned, stretched, faster or slower, mirrored, a hand lost.

Moving and scaling the signer are not among them: the landmark encoder does not see these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from signspot.domain.tracks import FloatArray
from signspot.models.body import Part, body_of, mirrored

_CENTRE = 0.5  # of the picture


@dataclass(frozen=True, slots=True)
class LandmarkChange:
    """One drawn change, the same for all frames of a clip but for the lost hands."""

    mirror: bool
    radians: float
    stretch: float  # of x against y
    speed: float
    lost_hands: tuple[tuple[float, float], ...]  # left, right: from which share of the clip to which

    def apply(self, points: FloatArray) -> FloatArray:
        """(n, 258) -> (n, 258) float32; what was not detected stays so, and `points` stay as they are."""
        n = len(points)
        middle = (n - 1) / 2
        # The nearest frames, not between them: a hand half detected is none.
        numbers = np.rint(middle + self.speed * (np.arange(n) - middle)).clip(0, n - 1).astype(np.int64)
        body = body_of(torch.from_numpy(np.array(points[numbers], dtype=np.float32)))
        left, right = (_lost(hand, span) for hand, span in zip((body.left, body.right), self.lost_hands, strict=True))
        changed = torch.cat([self._turned(part).flatten(-2) for part in (body.pose, left, right)], dim=-1)
        result: FloatArray = (mirrored(changed) if self.mirror else changed).numpy()
        return result

    def _turned(self, part: Part) -> torch.Tensor:
        x, y = ((part.points[..., axis] - _CENTRE) for axis in (0, 1))
        cosine, sine = math.cos(self.radians), math.sin(self.radians)
        place = torch.stack([self.stretch * (cosine * x - sine * y), sine * x + cosine * y], dim=-1) + _CENTRE
        points = torch.cat([place, part.points[..., 2:]], dim=-1)
        return torch.where(part.found[..., None, None], points, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkAugmentation:
    """How far the changes may go; the paper works from pixels, so all of these are ours."""

    mirror_probability: float = 0.5
    rotation_degrees: float = 10.0
    stretch_jitter: float = 0.1  # x is multiplied by U(1 - jitter, 1 + jitter)
    speed_jitter: float = 0.2
    hand_dropout: float = 0.1  # how likely each hand is lost for a part of the clip

    def __post_init__(self) -> None:
        shares = (self.mirror_probability, self.stretch_jitter, self.speed_jitter, self.hand_dropout)
        if not all(0 <= share <= 1 for share in shares) or not 0 <= self.rotation_degrees <= 180:
            raise ValueError(f"no change of landmarks can be drawn from {self}")

    def draw(self, rng: np.random.Generator) -> LandmarkChange:
        """Draw the change of one clip; always ten numbers of `rng`, whatever the settings."""
        mirror, turn, stretch, speed, *hands = rng.random(10).tolist()
        lost = tuple(
            (min(ends), max(ends)) if chance < self.hand_dropout else (0.0, 0.0)
            for chance, *ends in (hands[:3], hands[3:])
        )
        return LandmarkChange(
            mirror=mirror < self.mirror_probability,
            radians=math.radians(self.rotation_degrees) * (2 * turn - 1),
            stretch=1 + self.stretch_jitter * (2 * stretch - 1),
            speed=1 + self.speed_jitter * (2 * speed - 1),
            lost_hands=lost,
        )


def _lost(hand: Part, span: tuple[float, float]) -> Part:
    n = len(hand.found)
    share = (torch.arange(n) + 0.5) / n
    found = hand.found & ~((share >= span[0]) & (share < span[1]))
    return Part(torch.where(found[..., None, None], hand.points, 0.0), found)
