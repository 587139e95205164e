"""The people of the world: bodies, looks, and a manner of signing that no linear map undoes.

From forms to landmarks: the two ways of signing, slow and full for the dictionary, quick and blended in a stream.

A plan is a row of strokes with the frames in which each is performed; what lies between two strokes is a transition.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from signspot.domain.recordings import Word
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import LANDMARK_DIM, FloatArray, Floats, Ints
from signspot.world.lexicon import DIRECTIONS, FINGER_ANGLES, LOCATIONS, ORIENTATIONS, PATHS, SHAPES, SIZES, Form, Hands
from signspot.world.settings import Difficulty, chance

_WAVES = 6  # of the field of personal offsets


@dataclass(frozen=True, slots=True, eq=False)
class _Manner:
    """A smooth field of personal offsets: where and how somebody holds the hand depends on where it is."""

    frequencies: Floats  # (6, waves) of palm point and orientation
    phases: Floats  # (waves,)
    amplitudes: Floats  # (waves, 6)

    def offsets(self, places: Floats) -> Floats:
        """(..., 6) palm points and orientations -> (..., 6) what is added to them."""
        return np.asarray(np.sin(places @ self.frequencies + self.phases) @ self.amplitudes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signer:
    """Somebody who signs in the world."""

    signer_id: str
    left_handed: bool
    body: _Proportions
    camera: _Camera  # how this person is filmed
    appearance: Appearance
    manner: _Manner
    laxness: Floats  # (5,) share by which each finger stays relaxed
    coupling: float  # how much a finger moves with its neighbours
    bow: float  # how much straight paths curve, share of their length
    haste: float  # exponent of the speed profile: above 1 starts late
    tempo: float  # duration factor
    size: float  # movement factor
    sway: float  # shoulder widths
    hanging: bool  # rests with hanging arms instead of folded hands


@lru_cache(maxsize=1024)
def draw_signer(signer_id: str, seed: int, difficulty: Difficulty, *, filmed_aside: bool) -> Signer:
    """The signer of that id; `filmed_aside` for broadcasts, where the camera rarely looks straight at the signer."""
    rng = chance(seed, "signer", signer_id)
    yaw = np.radians(difficulty.yaw_degrees) * rng.uniform(-1, 1) * (1.0 if filmed_aside else 0.25)
    shared = float(np.clip(rng.normal(difficulty.laxness, difficulty.laxness / 3), 0, 0.7))
    return Signer(
        signer_id=signer_id,
        left_handed=bool(rng.random() < 0.11),
        body=_draw_body(rng),
        camera=_Camera(
            shoulder_width=float(rng.uniform(0.235, 0.285)),
            centre=(float(rng.normal(0.5, 0.012)), float(rng.normal(0.42, 0.012))),
            yaw=float(yaw),
        ),
        appearance=_random_appearance(rng),
        manner=_draw_manner(rng, difficulty),
        laxness=np.clip(shared + rng.normal(0, difficulty.laxness / 2, 5), 0, 0.75),
        coupling=float(rng.uniform(0, 0.3)),
        bow=float(rng.normal(0, 0.11)),
        haste=float(np.exp(rng.normal(0, 0.11))),
        tempo=float(np.exp(rng.normal(0, 0.08))),
        size=float(np.exp(rng.normal(0, 0.11))),
        sway=float(rng.uniform(0.01, 0.05)),
        hanging=bool(rng.random() < 0.1),
    )


def _draw_body(rng: np.random.Generator) -> _Proportions:
    arm, hand = rng.normal(1, 0.05), rng.normal(1, 0.05)
    return _Proportions(
        upper_arm=float(np.clip(0.84 * arm * rng.normal(1, 0.02), 0.72, 0.98)),
        forearm=float(np.clip(0.70 * arm * rng.normal(1, 0.02), 0.60, 0.82)),
        hand=float(np.clip(0.50 * hand, 0.42, 0.58)),
        head=float(np.clip(rng.normal(1, 0.05), 0.88, 1.12)),
        torso=float(np.clip(rng.normal(1.5, 0.06), 1.35, 1.65)),
    )


def _draw_manner(rng: np.random.Generator, difficulty: Difficulty) -> _Manner:
    scales = np.repeat((difficulty.style_location, difficulty.style_orientation), 3)
    frequencies = rng.normal(0, 1, (6, _WAVES)) * np.repeat((2.2, 0.9), 3)[:, None]
    # A sine has the variance 1/2 and the waves add up, so the field has the standard deviation of its knob.
    amplitudes = rng.normal(0, 1, (_WAVES, 6)) * scales * np.sqrt(2 / _WAVES)
    return _Manner(frequencies, rng.uniform(0, 2 * np.pi, _WAVES), amplitudes)


# How a drawn signer looks: colours and cut, drawn so that hands stand out as interpreters dress for it.

Colour = tuple[int, int, int]  # red, green, blue in 0..255

_SKINS: tuple[Colour, ...] = (
    (246, 215, 190), (236, 196, 165), (222, 176, 140), (198, 146, 110), (166, 116, 82), (134, 90, 62), (104, 70, 50),
)  # fmt: skip
_HAIRS: tuple[Colour, ...] = ((28, 22, 20), (52, 36, 26), (94, 62, 38), (140, 96, 52), (196, 160, 104), (150, 148, 146))
_LEAST_CONTRAST = 70.0  # luma steps between hands and clothes, and between clothes and background
_MOST_DRAWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """The colours of one signer and the wall behind."""

    skin: Colour
    hair: Colour
    top: Colour  # clothes of the upper body
    background: Colour  # of the studio
    long_hair: bool = False
    long_sleeves: bool = True

    def __post_init__(self) -> None:
        for colour in (self.skin, self.hair, self.top, self.background):
            if len(colour) != 3 or not all(0 <= part <= 255 for part in colour):
                raise ValueError(f"a colour is red, green and blue in 0..255, not {colour}")


def _random_appearance(rng: np.random.Generator) -> Appearance:
    """A signer whose hands stand out against the clothes, and the clothes against the wall."""
    skin, hair = (
        shaded(some[int(rng.integers(len(some)))], float(rng.uniform(0.95, 1.05))) for some in (_SKINS, _HAIRS)
    )
    top = _contrasting(skin, rng, saturation=0.55)
    background = _contrasting(top, rng, saturation=0.35)
    long_hair, long_sleeves = bool(rng.random() < 0.4), bool(rng.random() < 0.7)
    return Appearance(
        skin=skin, hair=hair, top=top, background=background, long_hair=long_hair, long_sleeves=long_sleeves
    )


def luma(colour: Colour) -> float:
    """How bright a colour looks, 0..255 (ITU-R BT.601)."""
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue


@lru_cache(maxsize=4096)  # a person is painted with the same few colours in every frame
def shaded(colour: Colour, factor: float) -> Colour:
    """The same colour in more light (`factor` > 1) or less."""
    red, green, blue = (min(255, max(0, round(part * factor))) for part in colour)
    return red, green, blue


def blended(colour: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue


def _contrasting(other: Colour, rng: np.random.Generator, *, saturation: float) -> Colour:
    """The first drawn colour far enough from the other in brightness; the farthest drawn if none is."""
    best, farthest = other, -1.0
    for _ in range(_MOST_DRAWS):
        hue, strength, value = rng.random(3).tolist()
        red, green, blue = colorsys.hsv_to_rgb(hue, strength * saturation, 0.12 + 0.85 * value)
        drawn = (round(255 * red), round(255 * green), round(255 * blue))
        distance = abs(luma(drawn) - luma(other))
        if distance >= _LEAST_CONTRAST:
            return drawn
        if distance > farthest:
            best, farthest = drawn, distance
    return best


# From postures to joints: fingers by forward kinematics, arms by inverse kinematics, all in the MediaPipe layout. A
# posture is 26 numbers for each hand: palm point (x, y, z), orientation (swing, tilt, roll), and 20 joint angles, told
# as in lexicon.py for the right hand of the signer; the left hand is the mirror image. Everything runs over arrays of
# frames. In the result, as in MediaPipe, z of the pose is relative to the hips and z of a hand relative to its wrist,
# both in picture widths and negative toward the camera.

POSTURE = 6 + FINGER_ANGLES  # numbers of one hand
POSE_NUMBERS = 33 * 4
HAND_NUMBERS = 21 * 3

# The hand lies in the plane: x to the thumb, y along the fingers, z out of the palm; the unit is its length.
_KNUCKLES = np.array([(0.17, 0.50), (0.04, 0.52), (-0.09, 0.49), (-0.21, 0.43)])
_BONES = np.array([(0.22, 0.14, 0.10), (0.24, 0.15, 0.11), (0.22, 0.14, 0.10), (0.17, 0.10, 0.09)])
_THUMB_ROOT = (0.16, 0.14, 0.03)
_THUMB_BONES = (0.20, 0.16, 0.13)
_PALM = (0.0, 0.42, 0.0)
_REACH = 0.985  # of the stretched arm: nobody signs with locked elbows
_FORWARD = np.array((0.0, 0.0, -1.0))
_ELBOW = np.array((-0.5, 0.75**0.5, 0.0))  # down and outward of an arm that reaches forward
_NEAREST = 0.28  # wrists stay this far before the shoulders

# Nose; eyes inner, middle, outer; ear; mouth corner: of the left side, in shoulder widths.
_FACE = np.array([(0, -0.66, -0.42), (0.055, -0.77, -0.37), (0.10, -0.775, -0.36), (0.145, -0.77, -0.33),
                  (0.235, -0.70, -0.08), (0.085, -0.535, -0.36)])  # fmt: skip
_HEAD = np.array((0.0, -0.36, -0.05))  # where the head turns
_LEGS = np.array([(0.34, 2.75, -0.05), (0.33, 3.9, 0.0), (0.32, 4.05, 0.08), (0.36, 4.1, -0.25)])
_UNSEEN, _SEEN = 0.03, 0.99  # visibility of legs and of all else


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proportions:
    """A body, in shoulder widths."""

    upper_arm: float = 0.84
    forearm: float = 0.70
    hand: float = 0.50
    head: float = 1.0  # times the usual head
    torso: float = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Camera:
    """How the body lies in the square picture."""

    shoulder_width: float = 0.27  # picture widths
    centre: tuple[float, float] = (0.5, 0.42)  # between the shoulders
    yaw: float = 0.0  # radians


@dataclass(frozen=True, slots=True, eq=False)
class _Carriage:
    """What the trunk and the head do while the hands sign."""

    sway: Floats  # (n_frames, 3) shoulder widths
    turn: Floats  # (n_frames,) of the trunk about the vertical, radians
    head: Floats  # (n_frames, 3) nod, turn, tilt in radians


def _landmarks(postures: Floats, carriage: _Carriage, body: _Proportions, camera: _Camera) -> FloatArray:
    """(n_frames, 2, 26) postures of right and left hand -> (n_frames, 258) landmarks, x and y in picture widths."""
    n = len(postures)
    pose = np.empty((n, 33, 3))
    hands = []
    for side, (hand, elbow) in enumerate(((16, 14), (15, 13))):
        shoulder, bent, points = _arm_joints(postures[:, side], body)
        if side:  # the left hand was told as if it were the right
            shoulder, bent, points = (np.asarray(joints * (-1, 1, 1)) for joints in (shoulder, bent, points))
        pose[:, 12 - side], pose[:, elbow], pose[:, hand] = shoulder, bent, points[:, 0]
        pose[:, [18 - side, 20 - side, 22 - side]] = points[:, [17, 5, 3]]
        hands.append(points)
    _fill_trunk(pose, carriage.head, body)
    everything = np.concatenate([pose, hands[1], hands[0]], axis=1)  # left before right
    return _as_layout(_in_picture(everything, carriage, camera))


def _arm_joints(posture: Floats, body: _Proportions) -> tuple[Floats, Floats, Floats]:
    """The right arm: shoulder (n, 3), elbow (n, 3) and hand (n, 21, 3) in body coordinates."""
    hand = _turned(_hand_points(posture[:, 6:]) * body.hand, posture[:, 3:6])
    palm = _turned(np.broadcast_to(np.array(_PALM) * body.hand, (len(posture), 1, 3)), posture[:, 3:6])[:, 0]
    shoulder = np.broadcast_to(np.array((-0.5, 0.0, 0.0)), (len(posture), 3))
    reach = posture[:, :3] - palm - shoulder
    # About the distance before the nearest place where it is positive, and about 0 where it is not.
    reach[:, 2] = -_NEAREST - np.logaddexp(0, (-reach[:, 2] - _NEAREST) / 0.06) * 0.06
    length = _length(reach)
    longest = (body.upper_arm + body.forearm) * _REACH
    shortest = abs(body.upper_arm - body.forearm) + 0.12
    reach = reach * (np.clip(length, shortest, longest) / length)
    wrist = shoulder + reach
    return shoulder, shoulder + _elbow(reach, body), hand + wrist[:, None]


def _hand_points(angles: Floats) -> Floats:
    """(n, 20) joint angles -> (n, 21, 3) points of a hand of length about 1 with the wrist at 0."""
    joints = angles.reshape(-1, 5, 4)
    points = np.zeros((len(joints), 21, 3))
    bend = np.cumsum(joints[:, 1:, :3], axis=2)  # (n, finger, joint)
    spread = joints[:, 1:, 3:]
    flat = np.cos(bend)
    steps = np.stack([np.sin(spread) * flat, np.cos(spread) * flat, np.sin(bend)], axis=-1) * _BONES[:, :, None]
    knuckles = np.concatenate([_KNUCKLES, np.zeros((4, 1))], axis=1)
    fingers = points[:, 5:].reshape(-1, 4, 4, 3)
    fingers[:, :, 0] = knuckles
    fingers[:, :, 1:] = knuckles[:, None] + np.cumsum(steps, axis=2)
    points[:, 5:] = fingers.reshape(-1, 16, 3)
    points[:, 1] = _THUMB_ROOT
    points[:, 2:5] = np.array(_THUMB_ROOT) + _thumb(joints[:, 0])
    return points


def _turned(points: Floats, orientation: Floats) -> Floats:
    """(n, k, 3) points of a flat hand, turned by swing, tilt and roll (n, 3) into body coordinates."""
    (s, t, r), (cs, ct, cr) = (f(orientation.T[:, :, None]) for f in (np.sin, np.cos))
    x, y, z = points[..., 0], -points[..., 1], -points[..., 2]  # fingers up, palm to the camera
    x, z = x * cr - z * r, x * r + z * cr
    x, y = x * cs - y * s, x * s + y * cs
    y, z = y * ct - z * t, y * t + z * ct
    return np.stack([x, y, z], axis=-1)


def _thumb(angles: Floats) -> Floats:
    """(n, 4) opposition, two flexions, abduction -> (n, 3, 3) joints from the root of the thumb."""
    opposition, first, second, abduction = angles.T
    out, side = np.sin(opposition), np.sin(abduction) * np.cos(opposition)
    base = np.stack([side, np.cos(abduction) * np.cos(opposition / 2), 0.8 * out], axis=-1)
    base /= _length(base)
    across = np.stack([-np.cos(abduction), 0.35 + 0 * out, 0.15 * out], axis=-1)
    across -= (across * base).sum(-1, keepdims=True) * base
    across /= _length(across)
    bend = np.stack([np.zeros_like(first), first, first + second], axis=-1)[..., None]
    steps = (np.cos(bend) * base[:, None] + np.sin(bend) * across[:, None]) * np.array(_THUMB_BONES)[:, None]
    return np.cumsum(steps, axis=1)


def _elbow(reach: Floats, body: _Proportions) -> Floats:
    """Where the elbow lies, from the shoulder, for a wrist at `reach` (n, 3)."""
    length = _length(reach)
    along = reach / length
    share = (length**2 + body.upper_arm**2 - body.forearm**2) / (2 * length)
    height = np.sqrt(np.maximum(body.upper_arm**2 - share**2, 0))
    # Turning the side of the elbow along with the arm, from straight forward, is smooth everywhere but backward.
    side = _ELBOW - (along @ _ELBOW / (1 + along @ _FORWARD))[:, None] * (along + _FORWARD)
    return np.asarray(along * share + side * height)


def _fill_trunk(pose: Floats, head: Floats, body: _Proportions) -> None:
    left = (_FACE - _HEAD) * body.head
    right = left[1:] * (-1, 1, 1)
    # In the order of MediaPipe: nose, left eye, right eye, left ear, right ear, mouth left, mouth right.
    face = np.concatenate([left[:4], right[:3], left[4:5], right[3:4], left[5:], right[4:]])
    pose[:, :11] = _turned(np.broadcast_to(face * (1, -1, -1), (len(pose), 11, 3)), head[:, [2, 0, 1]]) + _HEAD
    pose[:, 23], pose[:, 24] = (0.34, body.torso, 0), (-0.34, body.torso, 0)
    legs = _LEGS + np.array((0, body.torso - 1.5, 0))
    pose[:, 25::2], pose[:, 26::2] = legs, legs * (-1, 1, 1)


def _in_picture(points: Floats, carriage: _Carriage, camera: _Camera) -> Floats:
    """Sway, turn and scale (n, 75, 3) into picture widths; z from between the hips."""
    upright = np.clip(1 - points[..., 1:2] / 1.5, 0, 1.2)  # hips stay, shoulders sway
    points = points + carriage.sway[:, None] * upright
    angle = (carriage.turn + camera.yaw)[:, None]
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    x, z = x * np.cos(angle) - z * np.sin(angle), x * np.sin(angle) + z * np.cos(angle)
    centre_x, centre_y = camera.centre
    unit = camera.shoulder_width
    return np.stack([centre_x + unit * x, centre_y + unit * y, unit * z], axis=-1)


def _as_layout(points: Floats) -> FloatArray:
    """(n, 33 + 21 + 21, 3) -> (n, 258)."""
    frames = np.empty((len(points), LANDMARK_DIM), dtype=np.float32)
    pose = frames[:, :POSE_NUMBERS].reshape(-1, 33, 4)
    pose[..., :3] = points[:, :33]
    pose[..., 3] = np.where(np.arange(33) < 25, _SEEN, _UNSEEN)
    frames[:, :POSE_NUMBERS] = pose.reshape(-1, POSE_NUMBERS)
    for hand, first in enumerate((33, 54)):
        joints = points[:, first : first + 21].copy()
        joints[..., 2] -= joints[:, :1, 2]
        begin = POSE_NUMBERS + hand * HAND_NUMBERS
        frames[:, begin : begin + HAND_NUMBERS] = joints.reshape(-1, HAND_NUMBERS)
    return frames


def _length(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt((vectors * vectors).sum(-1, keepdims=True)))


_RELAXED = 0.55 * SHAPES["c"] + 0.45 * SHAPES["flat"]
_FOLDED = np.concatenate([(-0.12, 1.02, -0.42), ORIENTATIONS["side-in"], _RELAXED])
_HANGING = np.concatenate([(-0.60, 1.40, -0.12), np.radians((4, 166, 60)), _RELAXED])
_UNDER = np.array((-0.06, 0.55, -0.80))  # where a base hand waits, in the mirror image of its own side
_BASE_ORIENTATION = ORIENTATIONS["side-up"]
_MIDDLE = np.array((-0.20, 0.35, -0.70))  # to where reduced signs sink
_APART = -0.20  # two hands that do the same keep to their sides

_VOWELS = re.compile("[aeiouy]+")
_HANDS = tuple(Hands)


@dataclass(frozen=True, slots=True, eq=False)
class Performance:
    """What a camera would see of a signer."""

    points: FloatArray  # (n_frames, 258) MediaPipe layout, picture widths, without any error of a detector
    mouth: FloatArray  # (n_frames,) opening in 0..1
    signer: Signer
    moving: FrameSpan  # the frames in which the hands are not at rest

    def __len__(self) -> int:
        return len(self.points)

    def mouthed(self, words: Sequence[Word | None], spans: Sequence[tuple[int, int]]) -> Performance:
        """The same signing with a mouth that opens once for each group of vowels of the word that is signed."""
        mouth = np.zeros(len(self), dtype=np.float32)
        for word, (start, stop) in zip(words, spans, strict=True):
            if word:
                beats = max(1, len(_VOWELS.findall(word)))
                phase = (np.arange(stop - start) + 0.5) / (stop - start)
                mouth[start:stop] = 0.85 * np.sin(np.pi * beats * phase) ** 2
        return replace(self, mouth=mouth)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Strokes in time, one row each; the first and the last are rests."""

    start: Ints  # (S,) first frame
    stop: Ints  # (S,) behind the last frame
    first: Floats  # (S, 2, 26) posture at its begin: dominant hand, other hand
    last: Floats  # (S, 2, 26) posture at its end
    axes: Floats  # (S, 2, 3) path and bow, shoulder widths
    path: Ints  # (S,) of PATHS
    repetitions: Ints  # (S,)
    moves: Floats  # (S, 2) path of each hand: 1 as told, -1 the other way round, 0 still

    def __len__(self) -> int:
        return len(self.start)

    def gap_lengths(self) -> Floats:
        """(S - 1,) how far the hands travel between strokes, in shoulder widths."""
        distance = np.linalg.norm(self.first[1:, :, :3] - self.last[:-1, :, :3], axis=-1).max(axis=1)
        return np.asarray(distance, dtype=np.float64)

    def performed(self, signer: Signer, blend_frames: float, rng: np.random.Generator) -> Performance:
        """Sign a timed plan: all frames of it."""
        n = int(self.stop[-1])
        frames = np.arange(n)
        stroke = np.searchsorted(self.start, frames, side="right") - 1
        inside = frames < self.stop[stroke]
        following = np.minimum(stroke + 1, len(self) - 1)
        length = np.where(inside, self.stop[stroke] - self.start[stroke], self.start[following] - self.stop[stroke])
        passed = np.where(inside, frames - self.start[stroke], frames - self.stop[stroke])
        phase = (passed + 0.5) / np.maximum(length, 1)
        postures = np.empty((n, 2, POSTURE))
        postures[inside] = _stroke_postures(self, stroke[inside], phase[inside], signer)
        postures[~inside] = _transition_postures(self, stroke[~inside], phase[~inside], signer)
        postures = _styled(_blurred(postures, blend_frames), signer)
        shown = postures[:, ::-1] if signer.left_handed else postures
        points = _landmarks(shown, _carriage(n, signer, rng), signer.body, signer.camera)
        return Performance(points, np.zeros(n, np.float32), signer, FrameSpan(int(self.stop[0]), int(self.start[-1])))

    def reduced(self, amounts: Floats, assimilation: float) -> Plan:
        """Quick signing: smaller paths, nearer to the middle of the signing space and to the neighbours.

        `amounts` (S,) is the share each stroke loses; an `assimilation` of 1 would put it between its neighbours.
        """
        by = amounts[:, None, None]
        first, last = self.first.copy(), self.last.copy()
        for posture, neighbour in ((first, np.roll(self.last, 1, axis=0)), (last, np.roll(self.first, -1, axis=0))):
            posture[..., :3] += 0.5 * by * (_MIDDLE - posture[..., :3]) * (np.abs(self.moves).sum(1) > 0)[:, None, None]
            posture[1:-1] += assimilation * (neighbour - posture)[1:-1]
            posture[..., 6:] += 0.5 * by * (_RELAXED - posture[..., 6:])
        return replace(self, first=first, last=last, axes=self.axes * (1 - by))

    def timed(self, durations: Ints, gaps: Ints) -> Plan:
        """Give every stroke its frames: `durations` (S,) each, `gaps` (S - 1,) transitions between them."""
        start = np.concatenate([[0], np.cumsum(durations[:-1] + gaps)])
        return replace(self, start=start, stop=start + durations)

    def varied(self, scales: tuple[float, float, float], rng: np.random.Generator) -> Plan:
        """The same strokes as another performance makes them: palm, orientation and fingers each off by a bit."""
        per_number = np.repeat(scales, (3, 3, POSTURE - 6))
        noise = rng.normal(0, 1, (len(self), 2, POSTURE)) * per_number
        return replace(self, first=self.first + noise, last=self.last + noise)


def strokes_of(forms: tuple[Form | None, ...], signer: Signer) -> Plan:
    """The strokes of forms after each other, not yet in time; None is a rest."""
    rows = [(stroke, form) for form in forms if form is not None for stroke in form.strokes]
    is_rest = np.array([form is None for form in forms for _ in (form.strokes if form else (None,))])
    plan = _resting(len(is_rest), signer)
    told = np.flatnonzero(~is_rest)
    hands = np.array([_HANDS.index(form.hands) for _, form in rows], dtype=np.int64)
    is_twin = np.array([form.hands in (Hands.SYMMETRIC, Hands.ALTERNATING) for _, form in rows], dtype=bool)
    place = np.array([LOCATIONS[stroke.location] + stroke.place for stroke, _ in rows]).reshape(-1, 3)
    place[:, 0] = np.where(is_twin, np.minimum(place[:, 0], _APART), place[:, 0])
    ends = (plan.first, "shape", "orientation"), (plan.last, "final_shape", "final_orientation")
    for posture, shape, orientation in ends:
        for number, (stroke, form), at in zip(told, rows, place, strict=True):
            angles = ORIENTATIONS[getattr(stroke, orientation)], SHAPES[getattr(stroke, shape)]
            posture[number, 0] = np.concatenate([at, *angles])
            if form.hands is Hands.BASE:
                posture[number, 1] = np.concatenate([_UNDER, _BASE_ORIENTATION, SHAPES[form.base_shape]])
        posture[told[is_twin], 1] = posture[told[is_twin], 0]
    sizes = np.array([SIZES[stroke.size] for stroke, _ in rows]) * signer.size
    axes = np.array([DIRECTIONS[stroke.direction] for stroke, _ in rows]).reshape(-1, 2, 3)
    plan.axes[told] = axes * sizes[:, None, None]
    plan.path[told] = [PATHS.index(stroke.path) for stroke, _ in rows]
    plan.repetitions[told] = [stroke.repetitions for stroke, _ in rows]
    plan.moves[told] = np.array([(1, 0), (1, 1), (1, -1), (1, 0)])[hands]
    return plan


def _resting(n: int, signer: Signer) -> Plan:
    rest = np.broadcast_to(_HANGING if signer.hanging else _FOLDED, (n, 2, POSTURE))
    whole = np.zeros(n, dtype=np.int64)
    return Plan(
        start=whole,
        stop=whole.copy(),
        first=rest.copy(),
        last=rest.copy(),
        axes=np.zeros((n, 2, 3)),
        path=np.full(n, PATHS.index("hold")),
        repetitions=np.ones(n, dtype=np.int64),
        moves=np.zeros((n, 2)),
    )


def _stroke_postures(plan: Plan, stroke: Ints, phase: Floats, signer: Signer) -> Floats:
    """(n, 2, 26) postures within strokes at a phase in 0..1."""
    phase = phase**signer.haste
    share = _minimum_jerk(phase)[:, None, None]
    posture = plan.first[stroke] * (1 - share) + plan.last[stroke] * share
    offset = _path_offsets(plan.path[stroke], plan.repetitions[stroke], phase, signer.bow)  # (n, 2)
    step = np.einsum("na,nax->nx", offset, plan.axes[stroke])
    posture[..., :3] += step[:, None] * plan.moves[stroke][..., None]
    return np.asarray(posture, dtype=np.float64)


def _transition_postures(plan: Plan, stroke: Ints, phase: Floats, signer: Signer) -> Floats:
    """(n, 2, 26) postures between a stroke and the next, on a path that bows toward the camera."""
    whole = np.arange(len(plan))
    ends = _stroke_postures(plan, whole, np.ones(len(plan)), signer)
    begins = _stroke_postures(plan, whole, np.zeros(len(plan)), signer)
    share = _minimum_jerk(phase)[:, None, None]
    posture = ends[stroke] * (1 - share) + begins[stroke + 1] * share
    way = np.linalg.norm(begins[stroke + 1, :, :3] - ends[stroke, :, :3], axis=-1)  # (n, 2)
    posture[..., 2] -= (0.18 + 0.3 * signer.bow) * way * np.sin(np.pi * phase)[:, None]
    return np.asarray(posture, dtype=np.float64)


def _minimum_jerk(phase: Floats) -> Floats:
    """How far a hand has come at a phase in 0..1 of a reach: smooth at both ends."""
    return phase**3 * (10 - 15 * phase + 6 * phase**2)


def _path_offsets(path: Ints, repetitions: Ints, phase: Floats, bow: float = 0.0) -> Floats:
    """(n, 2) how far along and aside a path is at a phase in 0..1, in sizes of the path."""
    eased = _minimum_jerk(phase)
    there = np.where(repetitions > 1, 0.5 - 0.5 * np.cos(2 * np.pi * repetitions * phase), eased) - 0.5
    hump = 1 - 4 * there**2  # 0 at both ends of the way, 1 in the middle
    turn = 2 * np.pi * repetitions * eased
    knock = 0.5 - 0.5 * np.cos(2 * np.pi * (repetitions + 1) * phase)
    still = np.zeros_like(phase)
    along = [there, there, 0.5 * np.cos(turn), there, 0.45 * knock, still]
    weave = 0.3 * np.sin(2 * np.pi * (repetitions + 1) * eased)
    aside = [bow * hump, (0.5 + bow) * hump, 0.5 * np.sin(turn), weave, bow * 0.2 * knock, still]
    return np.stack([np.choose(path, along), np.choose(path, aside)], axis=-1)


def _blurred(postures: Floats, frames: float) -> Floats:
    """A Gaussian over time, `frames` wide: neighbours run into each other."""
    reach = int(np.ceil(2.5 * frames))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / frames) ** 2)
    padded = np.pad(postures, ((reach, reach), (0, 0), (0, 0)), mode="edge")
    blurred = np.zeros_like(postures)
    for shift, weight in enumerate(weights / weights.sum()):
        blurred += weight * padded[shift : shift + len(postures)]
    return blurred


def _styled(postures: Floats, signer: Signer) -> Floats:
    """What this signer makes of postures: personal offsets, relaxed fingers that move together."""
    places = postures[..., :6] + signer.manner.offsets(postures[..., :6])
    fingers = postures[..., 6:].reshape(*postures.shape[:2], 5, 4)
    fingers = fingers + signer.laxness[:, None] * (_RELAXED.reshape(5, 4) - fingers)
    neighbours = fingers.copy()
    neighbours[..., 2:4, :] = (fingers[..., 1:3, :] + fingers[..., 3:5, :]) / 2  # middle and ring finger
    neighbours[..., 4, :] = fingers[..., 3, :]
    joined = fingers + signer.coupling * (neighbours - fingers)
    return np.concatenate([places, joined.reshape(*postures.shape[:2], -1)], axis=-1)


def _carriage(n: int, signer: Signer, rng: np.random.Generator) -> _Carriage:
    """Slow waves of trunk and head, with periods of 1.5 to 6 seconds."""
    periods, phases = rng.uniform(38, 150, (2, 7)), rng.uniform(0, 2 * np.pi, (2, 7))
    waves = np.sin(2 * np.pi * np.arange(n)[:, None, None] / periods + phases).mean(axis=1)
    moved = waves * (signer.sway * np.array((1, 0.25, 0.7, 1.6, 2.0, 2.4, 1.6)))
    return _Carriage(moved[:, :3], moved[:, 3], moved[:, 4:])
