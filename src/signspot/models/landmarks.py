"""Landmarks as a network wants them: the parts of a frame, the mirror image, and the body's own coordinates.

For the 258 numbers of a frame see `domain.tracks`. A part that was not detected is all zeros; one with a number that
is not finite counts as not detected. x and y are expected in one unit, such as picture heights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, FloatArray
from signspot.models.i3d import TrunkOutput

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
        body = Body.of(torch.from_numpy(np.array(points[numbers], dtype=np.float32)))
        left, right = (_lost(hand, span) for hand, span in zip((body.left, body.right), self.lost_hands, strict=True))
        changed = torch.cat([self._turned(part).flatten(-2) for part in (body.pose, left, right)], dim=-1)
        return np.asarray((mirrored(changed) if self.mirror else changed).numpy())

    def _turned(self, part: Part) -> torch.Tensor:
        x, y = ((part.points[..., axis] - _CENTRE) for axis in (0, 1))
        cosine, sine = math.cos(self.radians), math.sin(self.radians)
        place = torch.stack([self.stretch * (cosine * x - sine * y), sine * x + cosine * y], dim=-1) + _CENTRE
        points = torch.cat([place, part.points[..., 2:]], dim=-1)
        return torch.where(part.found[..., None, None], points, 0.0)


def _lost(hand: Part, span: tuple[float, float]) -> Part:
    n = len(hand.found)
    share = (torch.arange(n) + 0.5) / n
    found = hand.found & ~((share >= span[0]) & (share < span[1]))
    return Part(torch.where(found[..., None, None], hand.points, 0.0), found)


POSE_POINTS, POSE_NUMBERS = 33, 4
HAND_POINTS, HAND_NUMBERS = 21, 3
LEFT_SHOULDER, RIGHT_SHOULDER = 11, 12
WRIST = 0  # of a hand

_POSE_DIM = POSE_POINTS * POSE_NUMBERS
_HAND_DIM = HAND_POINTS * HAND_NUMBERS
# Eyes, then ears, mouth, arms, hips, legs, which alternate left and right; the nose (0) stays.
_POSE_PAIRS = ((1, 4), (2, 5), (3, 6), *((left, left + 1) for left in range(7, POSE_POINTS, 2)))
_SMALLEST_SCALE = 1e-4  # of a picture: a body this small carries nothing
_FARTHEST = 10.0  # shoulder widths: beyond it a landmark is a mistake of the detector


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of the body over some frames."""

    points: Tensor  # (..., n, 3 or 4) float32: x, y, z and for the pose visibility; zero where not found
    found: Tensor  # (...) bool


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """The parts of a signer over the same frames."""

    pose: Part  # 33 x 4
    left: Part  # 21 x 3
    right: Part  # 21 x 3

    def in_body_coordinates(self) -> Body:
        """Windows (B, T, ...) in shoulder widths from between the shoulders, limited to 10.

        Centre and width are averages over the frames of a window in which the body was found, so that a shaking
        detector does not shake the hands. Without a body in the whole window the hands stand in: their mean and their
        spread. Moving the signer in the picture or scaling it changes nothing. z is only scaled; visibility is kept.
        """
        centre, scale = _body_frame(self)

        def placed(part: Part) -> Part:
            plane = (part.points[..., :2] - centre[:, None, None]) / scale[:, None, None, None]
            depth = part.points[..., 2:3] / scale[:, None, None, None]
            place = torch.cat([plane, depth], dim=-1).clamp(-_FARTHEST, _FARTHEST)
            points = torch.cat([place, part.points[..., 3:]], dim=-1)
            return Part(torch.where(part.found[..., None, None], points, 0.0), part.found)

        return Body(placed(self.pose), placed(self.left), placed(self.right))

    @classmethod
    def of(cls, frames: Tensor) -> Self:
        """Split frames (..., 258) into pose and hands."""
        if frames.shape[-1:] != (LANDMARK_DIM,):
            raise ValueError(f"landmarks of shape {tuple(frames.shape)} instead of (..., {LANDMARK_DIM})")
        pose, left, right = torch.split(frames.float(), [_POSE_DIM, _HAND_DIM, _HAND_DIM], dim=-1)
        return cls(_part(pose, POSE_NUMBERS), _part(left, HAND_NUMBERS), _part(right, HAND_NUMBERS))


@dataclass(frozen=True, slots=True, eq=False)
class _BridgedPart:
    """A part of the body without gaps."""

    points: Tensor  # (B, T, n, 3 or 4); zero where the part is never found in the window
    is_known: Tensor  # (B, T) bool: whether the part is found anywhere in the window
    distance: Tensor  # (B, T) float32: frames to the nearest in which it was found; T where there is none


def mirrored(frames: Tensor) -> Tensor:
    """The same signing by the signer's mirror image: (..., 258) -> (..., 258), x -> 1 - x, left and right swapped.

    What was not detected stays so. Mirroring twice gives the landmarks back, up to rounding. The 1 is the width of a
    picture in MediaPipe's unit; in another unit the signer is only shifted, which body coordinates do not see.
    """
    body = Body.of(frames)
    order = list(range(POSE_POINTS))
    for left, right in _POSE_PAIRS:
        order[left], order[right] = right, left
    pose = Part(body.pose.points[..., order, :], body.pose.found)
    parts = []
    for part in (pose, body.right, body.left):
        x = torch.where(part.found[..., None, None], 1 - part.points[..., :1], 0.0)
        parts.append(torch.cat([x, part.points[..., 1:]], dim=-1).flatten(-2))
    return torch.cat(parts, dim=-1).to(frames.dtype)


def _bridged(part: Part) -> _BridgedPart:
    """Fill the gaps of windows (B, T, ...): on a straight line between two frames, at the ends as the nearest frame."""
    n_windows, n_frames = part.found.shape
    frame = torch.arange(n_frames, device=part.found.device).expand(n_windows, n_frames)
    before = torch.where(part.found, frame, -1).cummax(dim=1).values
    after = n_frames - 1 - torch.where(part.found.flip(1), frame, -1).cummax(dim=1).values.flip(1)
    has_before, has_after = before >= 0, after < n_frames
    first = torch.where(has_before, before, after).clamp(0, n_frames - 1)
    last = torch.where(has_after, after, before).clamp(0, n_frames - 1)
    share = torch.where(last > first, (frame - first) / (last - first).clamp_min(1), 0.0)[..., None, None]
    points = _frames(part.points, first) * (1 - share) + _frames(part.points, last) * share
    behind = torch.where(has_before, frame - before, n_frames)
    ahead = torch.where(has_after, after - frame, n_frames)
    return _BridgedPart(points, has_before | has_after, torch.minimum(behind, ahead).float())


def _frames(points: Tensor, numbers: Tensor) -> Tensor:
    """The frames (B, T) of each window of (B, T, n, d)."""
    return points.gather(1, numbers[..., None, None].expand(-1, -1, *points.shape[2:]))


def _part(numbers: Tensor, per_point: int) -> Part:
    found = (numbers != 0).any(-1) & numbers.isfinite().all(-1)
    points = numbers.reshape(*numbers.shape[:-1], numbers.shape[-1] // per_point, per_point)
    return Part(torch.where(found[..., None, None], points, 0.0), found)


def _body_frame(body: Body) -> tuple[Tensor, Tensor]:
    """The origin (B, 2) and the unit (B,) of each window."""
    shoulders = body.pose.points[..., [LEFT_SHOULDER, RIGHT_SHOULDER], :2]  # (B, T, 2, 2)
    width = torch.linalg.vector_norm(shoulders[..., 0, :] - shoulders[..., 1, :], dim=-1, keepdim=True)
    found = body.pose.found
    by_shoulders = _mean_where(shoulders.mean(-2), found), _mean_where(width, found)[:, 0]

    hands = torch.cat([body.left.points, body.right.points], dim=1)[..., :2]  # (B, 2 T, 21, 2)
    hand_found = torch.cat([body.left.found, body.right.found], dim=1)
    middle = _mean_where(hands.mean(-2), hand_found)
    distance = torch.linalg.vector_norm(hands - middle[:, None, None], dim=-1).mean(-1, keepdim=True)
    by_hands = middle, _mean_where(distance, hand_found)[:, 0]

    has_body = found.any(-1)
    centre = torch.where(has_body[:, None], by_shoulders[0], by_hands[0])
    return centre, torch.where(has_body, by_shoulders[1], by_hands[1]).clamp_min(_SMALLEST_SCALE)


def _mean_where(values: Tensor, chosen: Tensor) -> Tensor:
    """The mean of the chosen rows of (B, n, d): (B, d), zero where none is chosen."""
    kept = torch.where(chosen[..., None], values, 0.0)
    return kept.sum(1) / chosen.sum(1).clamp_min(1)[:, None]


# What the landmark encoder is told about each frame: hand shapes, hand places, the body, and how they relate.
# Everything is in body coordinates. A hand is described as a right hand, so that one network reads both:
# the left hand arrives mirrored. Gaps of a hand are bridged; where it was not found, the wrist of the pose stands in.

_POSE = (0, 2, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)  # nose, eyes, ears, mouth, shoulders, elbows, wrists
_ELBOWS_AND_WRISTS = (13, 14, 15, 16)
_MOUTH = (9, 10)
_LEFT_WRIST, _RIGHT_WRIST = 15, 16  # of the pose
_TIPS = (4, 8, 12, 16, 20)
_INDEX_KNUCKLE, _MIDDLE_KNUCKLE, _LITTLE_KNUCKLE = 5, 9, 17
# Distances tell hand shapes apart however the hand is turned: tips to tips, to the wrist, and to the knuckles.
_NEAR = (
    *((first, second) for number, first in enumerate(_TIPS) for second in _TIPS[number + 1 :]),
    *((tip, WRIST) for tip in _TIPS),
    *((4, 5), (4, 9), (4, 6), (8, 5), (12, 9), (16, 13), (20, 17)),
)
_STEPS = 5.0  # brings motion from one frame to the next to the size of places
_SMALLEST_HAND = 0.05  # shoulder widths: what is smaller is a mistake of the detector
_TINY = 1e-6  # keeps the gradient of a length finite at zero

_BODY_NUMBERS = 4 * len(_POSE) + len(_ELBOWS_AND_WRISTS)
_SHAPE_NUMBERS = 20 * 3 + len(_NEAR) + 3 + 3 * len(_TIPS)
_PLACE_NUMBERS = 4 * (2 + len(_TIPS)) + 4 + 3
_RELATION_NUMBERS = 12 + 9

# What a contact is between: which fingertip touches what tells many signs apart.
_TOUCHING = (WRIST, *_TIPS)
_TOUCHED = (0, 2, 5, 7, 8, 9, 10, 11, 12, 13, 14)  # of the pose: nose, eyes, ears, mouth, shoulders, elbows
_MIRRORED_TOUCHED = (0, 5, 2, 8, 7, 10, 9, 12, 11, 14, 13)
_CLOSE = 0.35  # shoulder widths: about a hand; what is farther hardly counts
_CONTACT_NUMBERS = len(_TOUCHING) ** 2
_BODY_CONTACT_NUMBERS = len(_TOUCHING) * len(_TOUCHED) + 4


@dataclass(frozen=True, slots=True, eq=False)
class _HandNumbers:
    """A hand over the frames of windows."""

    shape: Tensor  # (B, T, SHAPE_NUMBERS)
    place: Tensor  # (B, T, PLACE_NUMBERS)
    is_known: Tensor  # (B, T) bool: whether the shape means anything
    wrist: Tensor  # (B, T, 2) in body coordinates, mirrored as the hand is
    tips: Tensor  # (B, T, 6, 2) the hand's own wrist and its finger tips, likewise


@dataclass(frozen=True, slots=True, eq=False)
class _FrameNumbers:
    """All that the encoder is told."""

    body: Tensor  # (B, T, BODY_NUMBERS)
    left: _HandNumbers
    right: _HandNumbers
    relation: Tensor  # (B, T, RELATION_NUMBERS)


@dataclass(frozen=True, slots=True, eq=False)
class _ContactNumbers:
    """How near the finger tips come to the other hand and to the body: 1 where they touch, towards 0 from there."""

    hands: Tensor  # (B, T, CONTACT_NUMBERS)
    left: Tensor  # (B, T, BODY_CONTACT_NUMBERS) and how the hand gets faster and slower
    right: Tensor


def _contact_numbers(body: Body, numbers: _FrameNumbers) -> _ContactNumbers:
    """Describe windows (B, T, ...) in body coordinates. In the picture only: each hand has a depth of its own."""
    pose, seen = body.pose.points[..., :2], body.pose.found[..., None]
    mirror = pose.new_tensor([-1.0, 1.0])
    both = numbers.left.is_known & numbers.right.is_known

    def touching(hand: _HandNumbers, places: Tensor) -> Tensor:
        known = hand.is_known[..., None] & seen
        speed = _motion(hand.wrist)
        return torch.cat([torch.where(known, _closeness(hand.tips, places), 0.0), _motion(speed), speed.abs()], -1)

    return _ContactNumbers(
        torch.where(both[..., None], _closeness(numbers.left.tips * mirror, numbers.right.tips), 0.0),
        touching(numbers.left, pose[:, :, _MIRRORED_TOUCHED] * mirror),
        touching(numbers.right, pose[:, :, _TOUCHED]),
    )


def _closeness(some: Tensor, others: Tensor) -> Tensor:
    """(B, T, n, 2) and (B, T, m, 2) -> (B, T, n m)."""
    return torch.exp(-_length(some[:, :, :, None] - others[:, :, None]) / _CLOSE).flatten(2)


def _frame_numbers(body: Body) -> _FrameNumbers:
    """Describe windows (B, T, ...) in body coordinates."""
    pose = body.pose.points
    mirror = pose.new_tensor([-1.0, 1.0, 1.0, 1.0])
    left_hand = Part(body.left.points * mirror[:3], body.left.found)
    left = _hand_numbers(left_hand, pose[:, :, _LEFT_WRIST] * mirror)
    right = _hand_numbers(body.right, pose[:, :, _RIGHT_WRIST])
    place = pose[:, :, _POSE, :2].flatten(2)
    seen = pose[:, :, _ELBOWS_AND_WRISTS, 3]
    relation = _relation(left.wrist * mirror[:2], right.wrist, pose)
    return _FrameNumbers(torch.cat([place, _motion(place), seen], dim=-1), left, right, relation)


def _motion(numbers: Tensor) -> Tensor:
    """How far (B, T, n) moved since the frame before, in fifths; zero for the first frame."""
    return F.pad(_STEPS * (numbers[:, 1:] - numbers[:, :-1]), (0, 0, 1, 0))


def _hand_numbers(hand: Part, pose_wrist: Tensor) -> _HandNumbers:
    """A right hand (B, T, 21, 3) and the same wrist (B, T, 4) as the pose sees it."""
    whole = _bridged(hand)
    points = whole.points
    size = torch.linalg.vector_norm(points[:, :, _MIDDLE_KNUCKLE] - points[:, :, WRIST], dim=-1).mean(1)
    shape = (points - points[:, :, WRIST : WRIST + 1]) / size.clamp_min(_SMALLEST_HAND)[:, None, None, None]
    first, second = (list(ends) for ends in zip(*_NEAR, strict=True))
    normal = F.normalize(torch.linalg.cross(shape[:, :, _INDEX_KNUCKLE], shape[:, :, _LITTLE_KNUCKLE]), dim=-1)
    near, bending = _length(shape[:, :, first] - shape[:, :, second]), _motion(shape[:, :, _TIPS].flatten(2))
    shape_numbers = torch.cat([shape[:, :, 1:].flatten(2), near, normal, bending], dim=-1)
    place = points[:, :, (WRIST, _MIDDLE_KNUCKLE, *_TIPS), :2].flatten(2)
    wrist = torch.where(hand.found[..., None], points[:, :, WRIST, :2], pose_wrist[..., :2])
    nearness = torch.exp(-whole.distance)[..., None]  # 1 where the hand was found
    known = whole.is_known[..., None].to(points.dtype)
    place_numbers = torch.cat([place, _motion(place), wrist, _motion(wrist), pose_wrist[..., 3:], nearness, known], -1)
    return _HandNumbers(shape_numbers, place_numbers, whole.is_known, wrist, points[:, :, _TOUCHING, :2])


def _relation(left: Tensor, right: Tensor, pose: Tensor) -> Tensor:
    """Where the wrists (B, T, 2) are from each other and from the face, and how fast they move."""
    mouth, nose = pose[:, :, _MOUTH, :2].mean(2), pose[:, :, 0, :2]
    apart, both = left - right, left + right
    offsets = torch.stack([apart, left - mouth, right - mouth, left - nose, right - nose], dim=2)
    speeds = torch.stack([_motion(left), _motion(right), _motion(apart), _motion(both / 2)], dim=2)
    places = torch.cat([apart, left - mouth, right - mouth, _motion(apart), _motion(both), both], dim=-1)
    return torch.cat([places, _length(offsets), _length(speeds)], dim=-1)


def _length(vectors: Tensor) -> Tensor:
    return torch.linalg.vector_norm(vectors + _TINY, dim=-1)  # type: ignore[no-any-return]


# A small trunk over landmarks instead of pixels: windows of 16 frames -> embedding 1024. Each frame is described in the
# body's own coordinates (see `_frame_numbers`): the shape of each hand, whatever its size, the place of each hand,
# the body, and how far hands and face are apart. Gaps in a hand are bridged; a hand that is never found becomes a
# learned vector. Convolutions in time see the motion, a small transformer the order. The embedding does not change when
# the signer moves in the picture or the picture is scaled.

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
    # Is told how near finger tips are to the other hand and to the body. Not in what a fingerprint is made of: it shows
    # in the weights, and models without it keep their stored vectors.
    contacts: bool = field(default=False, repr=False)

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


class _NumbersEncoder(nn.Sequential):
    """(B, T, numbers) -> (B, T, width)."""

    def __init__(self, numbers: int, width: int) -> None:
        super().__init__(nn.Linear(numbers, width), nn.LayerNorm(width), nn.GELU())


class _ShapeEncoder(nn.Module):
    """Turns the numbers of a hand shape into a vector; a hand that is never found into a learned one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_NumbersEncoder(_SHAPE_NUMBERS, width), nn.Linear(width, width))
        self.missing = nn.Parameter(torch.zeros(width))

    def forward(self, hand: _HandNumbers) -> Tensor:
        return torch.where(hand.is_known[..., None], self.layers(hand.shape), self.missing)


class _TemporalConv(nn.Module):
    """A residual convolution over five frames, channel by channel, then across channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.in_time = _drawn(_KERNEL, width, _KERNEL**-0.5)
        self.across = nn.Linear(width, width)

    def forward(self, frames: Tensor) -> Tensor:
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
        self.body = _NumbersEncoder(_BODY_NUMBERS, half)
        self.shape = _ShapeEncoder(width)
        self.place = _NumbersEncoder(_PLACE_NUMBERS, half)
        self.relation = _NumbersEncoder(_RELATION_NUMBERS, half)
        if config.contacts:
            self.hand_contact = _NumbersEncoder(_CONTACT_NUMBERS, half)
            self.body_contact = _NumbersEncoder(_BODY_CONTACT_NUMBERS, half)
        parts = 7 if config.contacts else 4
        self.join = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(2 * width + parts * half, width))
        self.convolutions = nn.Sequential(*(_TemporalConv(width) for _ in range(config.convolutions)))
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
        body = Body.of(points).in_body_coordinates()
        numbers = _frame_numbers(body)
        described = [
            torch.where(body.pose.found[..., None], self.body(numbers.body), 0.0),
            self.shape(numbers.left),
            self.shape(numbers.right),
            self.place(numbers.left.place),
            self.place(numbers.right.place),
            self.relation(numbers.relation),
        ]
        if self.config.contacts:
            contact = _contact_numbers(body, numbers)
            described += [self.hand_contact(contact.hands), *map(self.body_contact, (contact.left, contact.right))]
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
