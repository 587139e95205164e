"""Random bodies, cameras and detectors for batches of landmark windows (B, T, 258) in shoulder widths.

`landmark_changes` changes one clip as a picture would; these also make hands, fingers and signing space of other
people, and work on a whole batch at once. What was not found stays so.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from signspot.models.body import Body, Part, body_of, mirrored

_HAND_TURN = (0.25, 0.3, 0.2)  # radians around x, y and z
_MIDDLE = (0.0, 0.6)  # of the signing space: in front of the chest
_ARMS = slice(13, 23)  # elbows, wrists and the hand's points of the pose
_HEAD = slice(0, 11)
_LONGEST_LOSS = 10.0  # frames


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyChanges:
    """How far the changes go."""

    strength: float = 1.0  # of all changes of place and shape
    mirror: float = 0.5  # how many windows are mirrored
    lost_stretch: float = 0.2  # how often a hand is lost for a while
    flicker: float = 0.25  # how often a hand comes and goes, frame by frame
    lost_left: float = 0.04  # how often the left hand is never found

    def __post_init__(self) -> None:
        shares = (self.mirror, self.lost_stretch, self.flicker, self.lost_left)
        if self.strength < 0 or not all(0 <= share <= 1 for share in shares):
            raise ValueError(f"no change of bodies can be drawn from {self}")

    def apply(self, windows: Tensor, generator: torch.Generator) -> Tensor:
        """Windows (B, T, 258), each changed in its own way."""
        body = body_of(windows)
        drawn = _Drawn(self.strength, len(windows), generator)
        hands = [_another_hand(part, drawn) for part in (body.left, body.right)]
        seen = _another_camera(_another_space(Body(body.pose, *hands), drawn), drawn)
        left, right = self._lost(seen.left, generator, self.lost_left), self._lost(seen.right, generator, 0.0)
        changed = torch.cat([part.points.flatten(-2) for part in (seen.pose, left, right)], dim=-1)
        is_mirrored = torch.rand(len(windows), 1, 1, generator=generator) < self.mirror
        return torch.where(is_mirrored, mirrored(changed), changed)

    def _lost(self, hand: Part, generator: torch.Generator, never: float) -> Part:
        n_windows, n_frames = hand.found.shape
        chance, start, length, blinks, gone = torch.rand(5, n_windows, 1, generator=generator)
        frame, start = torch.arange(n_frames), start * n_frames
        lost = (chance < self.lost_stretch) & (frame >= start) & (frame < start + length * _LONGEST_LOSS)
        lost |= (blinks < self.flicker) & (torch.rand(n_windows, n_frames, generator=generator) < 0.3)
        return _kept(hand.points, hand.found & ~(lost | (gone < never)))


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Random numbers for a batch, scaled by the strength of the changes."""

    strength: float
    n_windows: int
    generator: torch.Generator

    def even(self, *shape: int) -> Tensor:
        """(B, *shape) between -strength and strength."""
        return self.strength * (2 * torch.rand(self.n_windows, *shape, generator=self.generator) - 1)

    def normal(self, *shape: int) -> Tensor:
        """(B, *shape) around zero with the strength as deviation."""
        return self.strength * torch.randn(self.n_windows, *shape, generator=self.generator)


def _another_hand(hand: Part, drawn: _Drawn) -> Part:
    """Turned in space, larger or smaller, with other fingers, a little off its place, and shaking."""
    wrist = hand.points[:, :, :1]
    turned = torch.einsum("btkc,bdc->btkd", hand.points - wrist, _rotations(drawn.even(3) * torch.tensor(_HAND_TURN)))
    shape = turned * (1 + 0.15 * drawn.even(1, 1, 1)) * (1 + 0.08 * drawn.even(1, 21, 1))
    shift = torch.nn.functional.pad(0.07 * drawn.normal(1, 1, 2), (0, 1))
    noise = 0.012 * drawn.normal(*hand.points.shape[1:])
    return _kept(wrist + shape + shift + noise, hand.found)


def _another_space(body: Body, drawn: _Drawn) -> Body:
    """Wider, narrower, higher or lower signing, another head and other proportions."""
    middle, extent, shift = torch.tensor(_MIDDLE), 1 + 0.15 * drawn.even(1, 1, 2), 0.08 * drawn.normal(1, 1, 2)

    def moved(place: Tensor) -> Tensor:
        return (place - middle) * extent + middle + shift

    hands = []
    for hand in (body.left, body.right):
        wrist = hand.points[:, :, :1, :2]
        step = torch.nn.functional.pad(moved(wrist) - wrist, (0, 1))
        hands.append(_kept(hand.points + step, hand.found))
    pose = body.pose.points.clone()
    pose[:, :, _ARMS, :2] = moved(pose[:, :, _ARMS, :2])
    pose[:, :, _HEAD, :2] += 0.06 * drawn.normal(1, 1, 2)
    n_frames, n_points = pose.shape[1:3]
    pose[..., :2] += 0.01 * drawn.normal(n_frames, n_points, 2) + 0.03 * drawn.normal(1, n_points, 2)
    return Body(_kept(pose, body.pose.found), *hands)


def _another_camera(body: Body, drawn: _Drawn) -> Body:
    """Tilted, stretched and sheared, and the hands seen from another side."""
    tilt, stretch, shear, side = 0.2 * drawn.even(), 1 + 0.15 * drawn.even(), 0.1 * drawn.even(), 0.25 * drawn.even()
    rows = [torch.cos(tilt) * stretch, -torch.sin(tilt) + shear, torch.sin(tilt), torch.cos(tilt)]
    matrix = torch.stack(rows, dim=-1).view(-1, 2, 2)
    cosine, sine = (number[:, None, None] for number in (torch.cos(side), torch.sin(side)))

    def placed(part: Part) -> Tensor:
        return torch.einsum("btkc,bdc->btkd", part.points[..., :2], matrix)

    def hand(part: Part) -> Part:
        place, depth = placed(part), part.points[..., 2]
        across = place[..., 0] - place[..., :1, 0]
        x = place[..., :1, 0] + across * cosine + depth * sine
        return _kept(torch.stack([x, place[..., 1], depth * cosine - across * sine], dim=-1), part.found)

    pose = torch.cat([placed(body.pose), body.pose.points[..., 2:]], dim=-1)
    return Body(_kept(pose, body.pose.found), hand(body.left), hand(body.right))


def _rotations(angles: Tensor) -> Tensor:
    """Rotations (B, 3, 3) around x, then y, then z by angles (B, 3)."""
    (cx, cy, cz), (sx, sy, sz) = torch.cos(angles).unbind(-1), torch.sin(angles).unbind(-1)
    none, one = torch.zeros_like(cx), torch.ones_like(cx)

    def matrix(*numbers: Tensor) -> Tensor:
        return torch.stack(numbers, dim=-1).view(-1, 3, 3)

    around_x = matrix(one, none, none, none, cx, -sx, none, sx, cx)
    around_y = matrix(cy, none, sy, none, one, none, -sy, none, cy)
    return matrix(cz, -sz, none, sz, cz, none, none, none, one) @ around_y @ around_x


def _kept(points: Tensor, found: Tensor) -> Part:
    return Part(torch.where(found[..., None, None], points, 0.0), found)
