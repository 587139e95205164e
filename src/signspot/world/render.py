"""Joints as video: landmarks in the MediaPipe layout become frames of a person who signs.

Frames are painted with Pillow at three times their size and then reduced, which smooths every edge. The same landmarks,
appearance and scene give the same bytes. Nothing but the shapes of some frames and one picture is held.

Torso, arms, neck and head with hair, eyes, brows, nose and mouth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from signspot.domain.recordings import Entry
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import LANDMARK_DIM, Bools, FloatArray, Floats, Pixels
from signspot.figures.sheets import SheetRow, contact_sheet
from signspot.files.atomic import atomic_output
from signspot.world.people import Appearance, Colour, Performance, blended, luma, shaded
from signspot.world.simulation import World

_LINE = 0.014  # outlines of the body, in shoulder widths
_LIP: Colour = (168, 74, 74)
_INSIDE_MOUTH: Colour = (70, 22, 26)
_TEETH: Colour = (240, 236, 228)
# Places on the head, in half widths from the middle between the ears.
_TURNS = np.linspace(np.pi * 1.03, np.pi * 1.97, 14)
_CROWN = [(1.1 * np.cos(a), -0.2 + 1.42 * np.sin(a)) for a in _TURNS]
_BROW = [(0.93 * np.cos(a), -0.28 + 0.72 * np.sin(a)) for a in _TURNS[::-1]]
_FRINGE = np.array(_CROWN + _BROW)
_SHINE = np.array([(0.2 * np.cos(a) - 0.35, -1.2 + 0.16 * np.sin(a)) for a in np.linspace(0, 2 * np.pi, 12)])


def _paint_person(canvas: _Canvas, figures: _Figures, appearance: Appearance) -> None:
    """Draw everything, far to near: long hair, body, head, then the arms with their hands by depth."""
    head = _Head.of(figures)
    if appearance.long_hair:
        canvas.fill(head.oval(0, 0.2, 0.72, 1.02), shaded(appearance.hair, 0.8))
    _paint_torso(canvas, figures, head, appearance)
    _paint_head(canvas, head, appearance)
    _paint_face(canvas, figures, head, appearance)
    left_is_behind = figures.pose[:, LEFT_WRIST, 2] >= figures.pose[:, LEFT_WRIST + 1, 2]
    for frames, sides in ((left_is_behind, (0, 1)), (~left_is_behind, (1, 0))):
        some_canvas, some_figures = canvas.only(frames), figures.only(frames)
        for side in sides:  # 0 left, 1 right
            _paint_arm(some_canvas, some_figures, appearance, side)


@dataclass(frozen=True, slots=True, eq=False)
class _Head:
    """A frame of its own for the head: `right` and `down` are half its width long. All (n_frames, 2)."""

    centre: Points
    right: Points
    down: Points

    @classmethod
    def of(cls, figures: _Figures) -> _Head:
        ears = figures.pose[:, [RIGHT_EAR, LEFT_EAR], :2]
        half = figures.proportions.head / 2
        across = ears[:, 1] - ears[:, 0]
        length = np.hypot(across[:, 0], across[:, 1])[:, None]
        right = np.where(length > 1e-6, across / np.maximum(length, 1e-6) * half, (half, 0.0))
        down = np.stack([-right[:, 1], right[:, 0]], axis=1)
        return cls(ears.mean(axis=1), right, down)

    def only(self, frames: Frames) -> _Head:
        return _Head(self.centre[frames], self.right[frames], self.down[frames])

    def at(self, x: float, y: float) -> Points:
        """A place in half widths from the middle between the ears: (n_frames, 2)."""
        return np.asarray(self.centre + x * self.right + y * self.down)

    def outline(self, places: Points) -> Points:
        """A polygon (k, 2) of such places: (n_frames, k, 2)."""
        x, y = places[:, :1], places[:, 1:]
        return self.centre[:, None] + x * self.right[:, None] + y * self.down[:, None]

    def oval(self, x: float, y: float, half_width: float, half_height: float) -> Points:
        return self.around(self.at(x, y), half_width, half_height)

    def around(self, places: Points, half_width: float | Points, half_height: float | Points) -> Points:
        """An upright ellipse around places (n_frames, 2) of the canvas; sizes may differ by frame: (n_frames, 1)."""
        return _ellipse(places, 2 * half_width * self.right, 2 * half_height * self.down)


def _paint_torso(canvas: _Canvas, figures: _Figures, head: _Head, appearance: Appearance) -> None:
    width = figures.proportions.shoulders
    line, top = _LINE * width, appearance.top
    shoulders, hips = figures.pose[:, [RIGHT_SHOULDER, LEFT_SHOULDER], :2], figures.pose[:, [RIGHT_HIP, LEFT_HIP], :2]
    middle, below = shoulders.mean(axis=1), hips.mean(axis=1)
    are_hips_found = np.hypot(*(below - middle).T) >= 0.3 * width
    below = np.where(are_hips_found[:, None], below, middle + np.array([0.0, 1.6 * width]))
    neck = middle + np.array([0.0, -0.2 * width])
    for grown, colour in ((line, shaded(top, 0.4)), (0.0, shaded(top, 0.7)), (-0.03 * width, shaded(top, 0.82))):
        canvas.fill(_torso_outline(shoulders, neck, below, width, grown), colour)
    lit = _LIGHT * 0.03 * width
    canvas.fill(_torso_outline(shoulders + lit, neck + lit, below + lit, width, -0.07 * width), shaded(top, 0.93))
    collar = middle + np.array([0.0, -0.1 * width])
    canvas.fill(_ellipse(collar, np.array([0.2 * width, 0]), np.array([0, 0.13 * width])), shaded(top, 0.6))
    canvas.fill(_ellipse(collar, np.array([0.175 * width, 0]), np.array([0, 0.105 * width])), appearance.skin)
    throat = np.stack([collar, head.at(0, 0.6)], axis=1)
    canvas.limb(throat, np.array([0.15, 0.135]) * width, shaded(appearance.skin, 0.88), line / 2)


def _torso_outline(shoulders: Points, neck: Points, below: Points, width: float, grown: float) -> Points:
    """A trunk from the neck over sloping shoulders to below the hips; `grown` pixels wider all around."""
    right, left = shoulders[:, 0], shoulders[:, 1]  # of the person: the right shoulder is on the left of the picture
    down, out = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    rise, waist = 0.085 * width + grown, 0.44 * width + grown
    outline = [
        neck - out * (0.15 * width + grown) - down * grown,
        right + (neck - right) * 0.28 - down * rise,
        right - out * (0.07 * width + grown) - down * rise * 0.4,
        right - out * (0.1 * width + grown) + down * 0.15 * width,
        below - out * waist,
        below - out * waist + down * width,
        below + out * waist + down * width,
        below + out * waist,
        left + out * (0.1 * width + grown) + down * 0.15 * width,
        left + out * (0.07 * width + grown) - down * rise * 0.4,
        left + (neck - left) * 0.28 - down * rise,
        neck + out * (0.15 * width + grown) - down * grown,
    ]
    return np.stack(outline, axis=1)


def _paint_head(canvas: _Canvas, head: _Head, appearance: Appearance) -> None:
    skin, hair = appearance.skin, appearance.hair
    canvas.fill(head.oval(0, -0.22, 0.565, 0.72), shaded(hair, 0.55))
    canvas.fill(head.oval(0, -0.24, 0.55, 0.7), hair)
    for x in (-1.02, 1.02):
        canvas.fill(head.oval(x, 0.08, 0.085, 0.15), shaded(skin, 0.5))
        canvas.fill(head.oval(x, 0.08, 0.068, 0.13), shaded(skin, 0.88))
    canvas.fill(head.oval(0, 0.12, 0.505, 0.655), shaded(skin, 0.5))
    for size, brightness, shift in ((0.49, 0.84, 0.0), (0.45, 0.94, 0.06), (0.37, 1.02, 0.12)):
        canvas.fill(head.oval(shift * _LIGHT[0], 0.12 + shift * _LIGHT[1], size, size * 1.3), shaded(skin, brightness))
    canvas.fill(head.outline(_FRINGE), hair)
    canvas.fill(head.outline(_SHINE), blended(hair, (255, 255, 255), 0.14))


def _paint_face(canvas: _Canvas, figures: _Figures, head: _Head, appearance: Appearance) -> None:
    pose, skin = figures.pose, appearance.skin
    for eye in (RIGHT_EYE, LEFT_EYE):
        _paint_eye(canvas, head, pose[:, eye, :2], figures.eyes_closed, appearance)
    nose = pose[:, NOSE, :2]
    canvas.fill(head.around(nose, 0.085, 0.065), shaded(skin, 0.78))
    canvas.fill(head.around(nose + _LIGHT * 0.03 * figures.proportions.head, 0.065, 0.06), shaded(skin, 1.04))
    _paint_mouth(canvas, figures, head, blended(shaded(skin, 0.75), _LIP, 0.6))


def _paint_mouth(canvas: _Canvas, figures: _Figures, head: _Head, lip: Colour) -> None:
    mouth, opening = figures.pose[:, [_RIGHT_MOUTH, _LEFT_MOUTH], :2].mean(axis=1), figures.mouth[:, None]
    half_width = 0.2 - 0.05 * opening
    canvas.fill(head.around(mouth, half_width, 0.04 + 0.13 * opening), lip)
    inside = head.around(mouth, half_width * 0.8, 0.005 + 0.115 * opening)
    upper = mouth - 2 * head.down * 0.07 * opening
    teeth = head.around(upper, half_width * 0.55, 0.035 * opening + 0.004)
    between_lips = head.around(mouth, half_width * 0.85, 0.009)
    is_open, shows_teeth = figures.mouth > 0.08, figures.mouth > 0.3
    canvas.only(is_open).fill(inside[is_open], _INSIDE_MOUTH)
    canvas.only(shows_teeth).fill(teeth[shows_teeth], _TEETH)
    canvas.only(~is_open).fill(between_lips[~is_open], shaded(lip, 0.55))


def _paint_eye(canvas: _Canvas, head: _Head, eyes: Points, are_closed: Frames, appearance: Appearance) -> None:
    skin = appearance.skin
    dark = appearance.hair if luma(appearance.hair) < luma(skin) - 25 else shaded(skin, 0.45)
    canvas.fill(head.around(eyes - 2 * head.down * 0.15, 0.125, 0.028), dark)
    closed, shut_head = canvas.only(are_closed), head.only(are_closed)
    closed.fill(shut_head.around(eyes[are_closed], 0.1, 0.018), shaded(skin, 0.45))
    opened, head, eyes = canvas.only(~are_closed), head.only(~are_closed), eyes[~are_closed]
    opened.fill(head.around(eyes, 0.115, 0.075), shaded(skin, 0.55))
    opened.fill(head.around(eyes, 0.098, 0.058), (246, 244, 240))
    opened.fill(head.around(eyes, 0.052, 0.055), (46, 34, 30))


def _paint_arm(canvas: _Canvas, figures: _Figures, appearance: Appearance, side: int) -> None:
    width, skin, pose = figures.proportions.shoulders, appearance.skin, figures.pose[..., :2]
    shoulder, elbow, wrist = (pose[:, joint + side] for joint in (LEFT_SHOULDER, LEFT_ELBOW, LEFT_WRIST))
    radii = np.array([0.155, 0.115, 0.075]) * width
    line = _LINE * width
    if appearance.long_sleeves:
        cuff = elbow + 0.9 * (wrist - elbow)
        canvas.limb(np.stack([cuff, wrist], axis=1), radii[2] * np.array([0.85, 0.8]), skin, line)
        sleeve = np.stack([shoulder, elbow, cuff], axis=1)
        canvas.limb(sleeve, radii * (1, 1, 1.08), appearance.top, line, root_gap=0.4)
    else:
        canvas.limb(np.stack([shoulder, elbow, wrist], axis=1), radii * (0.85, 0.85, 0.9), skin, line)
        hem = shoulder + 0.6 * (elbow - shoulder)
        canvas.limb(np.stack([shoulder, hem], axis=1), radii[:2] * (1, 1.1), appearance.top, line, root_gap=0.4)
    palm, hand = figures.proportions.palms[side], figures.hands[side]
    is_found = np.count_nonzero(hand, axis=(1, 2)) > 0
    _paint_hand(canvas.only(is_found), hand[is_found], palm, skin, is_left=side == 0)
    # A hand that was not found: a mitten along the pose's own three finger points.
    knuckles = pose[:, [LEFT_WRIST + 2 + side, LEFT_WRIST + 4 + side]].mean(axis=1)
    mitten = np.stack([wrist, knuckles], axis=1)[~is_found]
    canvas.only(~is_found).limb(mitten, np.array([0.25, 0.33]) * palm, skin, line)


# Frames of landmarks as joints of figures to draw, and the sizes that hold for a whole clip.

_N_POSE, _N_HAND = 33, 21
NOSE, LEFT_EYE, RIGHT_EYE, LEFT_EAR, RIGHT_EAR, _LEFT_MOUTH, _RIGHT_MOUTH = 0, 2, 5, 7, 8, 9, 10
LEFT_SHOULDER, RIGHT_SHOULDER, LEFT_ELBOW, RIGHT_ELBOW, LEFT_WRIST, RIGHT_WRIST = 11, 12, 13, 14, 15, 16
LEFT_HIP, RIGHT_HIP = 23, 24
_LEFT_HAND = slice(4 * _N_POSE, 4 * _N_POSE + 3 * _N_HAND)
_RIGHT_HAND = slice(4 * _N_POSE + 3 * _N_HAND, LANDMARK_DIM)


@dataclass(frozen=True, slots=True)
class _Proportions:
    """Sizes in pixels of the canvas that do not change while a person turns head and hands."""

    shoulders: float  # width
    head: float  # width
    palms: tuple[float, float]  # length, left and right

    @classmethod
    def of(cls, points: FloatArray, scale: float) -> _Proportions:
        """Measure a clip of landmarks (n_frames, 258); what is not there gets a usual size."""
        pose, left, right = _split(points)
        shoulders = _typical(pose[:, LEFT_SHOULDER, :2] - pose[:, RIGHT_SHOULDER, :2]) or 0.33
        # A head that turns shows its ears closer together: the widest view is the head's width.
        head = _typical(pose[:, LEFT_EAR, :2] - pose[:, RIGHT_EAR, :2], share=0.9) or 0.4 * shoulders
        head = float(np.clip(head, 0.3 * shoulders, 0.62 * shoulders))
        palms = [_typical(hand[:, 9] - hand[:, 0], share=0.75) or 0.27 * shoulders for hand in (left, right)]
        return cls(scale * shoulders, scale * head, (scale * palms[0], scale * palms[1]))


@dataclass(frozen=True, slots=True, eq=False)
class _Figures:
    """The joints of some frames in pixels of the canvas; z on the same scale, negative toward the viewer."""

    pose: Points  # (n_frames, 33, 3)
    hands: tuple[Points, Points]  # left, right: (n_frames, 21, 3), zeros where not found
    mouth: Points  # (n_frames,) opening, 0..1
    eyes_closed: Frames
    proportions: _Proportions

    def only(self, frames: Frames) -> _Figures:
        left, right = self.hands
        pose, mouth, closed = self.pose[frames], self.mouth[frames], self.eyes_closed[frames]
        return replace(self, pose=pose, hands=(left[frames], right[frames]), mouth=mouth, eyes_closed=closed)


def _split(points: FloatArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(n, 258) -> pose (n, 33, 4), left hand (n, 21, 3), right hand (n, 21, 3)."""
    wide, n = points.astype(np.float64), len(points)
    left, right = (wide[:, part].reshape(n, _N_HAND, 3) for part in (_LEFT_HAND, _RIGHT_HAND))
    return wide[:, : 4 * _N_POSE].reshape(n, _N_POSE, 4), left, right


def _typical(vectors: npt.NDArray[np.float64], share: float = 0.5) -> float:
    """The length that a `share` of the vectors (n, 2 or 3) stay below, those of length zero left out."""
    lengths = np.linalg.norm(vectors, axis=1)
    found = lengths[lengths > 1e-6]
    return float(np.quantile(found, share)) if len(found) else 0.0


# Hands of five fingers, painted far to near with outlines, so that the handshape can be read. Tips that bend toward the
# viewer cover the palm; nails show the back of a finger; the palm is lighter than the back of the hand. Points are (21,
# 3): x and y in pixels of the canvas, z on the same scale, negative toward the viewer.

_PALM_LIMBS = ((0, 5), (0, 9), (0, 13), (0, 17), (5, 9), (9, 13), (13, 17), (0, 1))
_PALM_HULL = [0, 5, 9, 13, 17]
_THUMB, _N_FINGERS = 0, 5
_LIMBS = np.array([*_PALM_LIMBS, *((4 * f + j, 4 * f + j + 1) for f in range(_N_FINGERS) for j in (1, 2, 3))])
_N_LIMBS, _FIRST = len(_LIMBS), len(_PALM_LIMBS)
# A part is covered and uncovered as one: the palm, then of each finger the limb at the palm and the two beyond it.
_PARTS = [slice(0, _FIRST)]
_PARTS += [slice(_FIRST + 3 * f + a, _FIRST + 3 * f + b) for f in range(_N_FINGERS) for a, b in ((0, 1), (1, 3))]
# All sizes in lengths of the palm, from the wrist to the root of the middle finger.
_FINGER_RADII = np.array([
    (0.15, 0.13, 0.11, 0.088), (0.112, 0.1, 0.09, 0.078), (0.115, 0.104, 0.093, 0.08), (0.11, 0.098, 0.088, 0.076),
    (0.1, 0.086, 0.077, 0.068),
])  # fmt: skip
_START_RADII = np.array([*(0.17 if start == 0 else 0.115 for start, _ in _PALM_LIMBS), *_FINGER_RADII[:, :-1].ravel()])
_END_RADII = np.array([*(0.115 for _ in _PALM_LIMBS), *_FINGER_RADII[:, 1:].ravel()])
_FINGER_LINE = 0.036
# No line is drawn where a part of a finger grows out of another: it starts this share of the first limb later.
_LINE_GAPS = np.zeros((_N_LIMBS, 1))
_LINE_GAPS[[part.start for part in _PARTS[1:]]] = 0.35
_NEAR, _FAR = 1.08, 0.78  # brightness over the depth of a hand
_PALM_TINT: Colour = (255, 214, 196)
_NAIL: Colour = (255, 240, 235)


def _paint_hand(canvas: _Canvas, points: Points, palm_length: float, skin: Colour, *, is_left: bool) -> None:
    """Draw one hand of joints `points` (n_frames, 21, 3); `palm_length` in pixels of the canvas."""
    depths = _depths(points[..., 2])
    shapes, hulls = _flat(_outlines(points[..., :2], palm_length)), _flat(points[:, _PALM_HULL, :2])
    nails = _nails(points, palm_length, is_left)
    colours = _colours(points, depths, palm_length, skin, is_left)
    orders = np.argsort(-depths, axis=1, kind="stable").tolist()
    for number, (strokes, order) in enumerate(zip(canvas.strokes, orders, strict=True)):
        lines, fills, lights = shapes[number]
        for part in order:
            limbs, colour = _PARTS[part], colours[number][part]
            dark, light = shaded(colour, 0.42), shaded(colour, 1.1)
            strokes += [(line, dark) for line in lines[limbs]]
            strokes += [(body, colour) for body in fills[limbs]]
            if part == 0:
                strokes.append((hulls[number], colour))
                continue
            strokes += [(lit, light) for lit in lights[limbs]]
            if (nail := nails[number].get(part)) is not None:
                strokes.append((nail, blended(colour, _NAIL, 0.5)))


def _outlines(places: Points, palm_length: float) -> Points:
    """Of every limb the dark line around it, its body and its bright side: (n_frames, 3, n_limbs, 14, 2)."""
    starts, ends = places[:, _LIMBS[:, 0]], places[:, _LIMBS[:, 1]]
    start_radii, end_radii = palm_length * _START_RADII, palm_length * _END_RADII
    line, lit = _FINGER_LINE * palm_length, 0.3 * _LIGHT
    outlines = _capsules(
        np.concatenate([starts + _LINE_GAPS * (ends - starts), starts, starts + start_radii[:, None] * lit], axis=1),
        np.concatenate([ends, ends, ends + end_radii[:, None] * lit], axis=1),
        np.concatenate([start_radii + line, start_radii, 0.45 * start_radii]),
        np.concatenate([end_radii + line, end_radii, 0.45 * end_radii]),
    )
    return outlines.reshape(len(places), 3, _N_LIMBS, *outlines.shape[-2:])


def _depths(z: Points) -> Points:
    fingers = z[:, 1:].reshape(len(z), _N_FINGERS, 4)
    halves = np.stack([fingers[..., :2].mean(axis=-1), fingers[..., 1:].mean(axis=-1)], axis=-1)
    palm = z[:, _PALM_HULL].mean(axis=-1, keepdims=True)
    return np.concatenate([palm, halves.reshape(len(z), 2 * _N_FINGERS)], axis=1)


def _colours(points: Points, depths: Points, palm_length: float, skin: Colour, is_left: bool) -> list[list[Colour]]:
    """Of each part in each frame: nearer parts are brighter; the palm of the hand is lighter than its back."""
    up, across = points[:, 9] - points[:, 0], points[:, 5] - points[:, 17]
    faces_viewer = (up[:, 0] * across[:, 1] - up[:, 1] * across[:, 0]) * (1 if is_left else -1) < 0
    palm, back = blended(skin, _PALM_TINT, 0.22), shaded(skin, 0.93)
    nearness = np.clip((depths[:, :1] - depths) / (1.6 * palm_length) + 0.5, 0, 1)
    brightness = (_FAR + (_NEAR - _FAR) * nearness).tolist()
    bases = [palm if is_palm else back for is_palm in faces_viewer.tolist()]
    return [[shaded(base, factor) for factor in factors] for base, factors in zip(bases, brightness, strict=True)]


def _nails(points: Points, palm_length: float, is_left: bool) -> list[dict[int, list[float]]]:
    """Of each frame the nails that can be seen, by the part that they lie on; that of the thumb never is."""
    tips = points[:, 4::4] - points[:, 3::4]
    across = points[:, 5] - points[:, 17]
    outward = (tips[..., 0] * across[:, 1:2] - tips[..., 1] * across[:, :1]) * (-1 if is_left else 1)
    length = np.hypot(tips[..., 0], tips[..., 1])[..., None]
    along = np.where(length > 1e-6, tips[..., :2] / np.maximum(length, 1e-6), (0.0, -1.0))
    aside = np.stack([-along[..., 1], along[..., 0]], axis=-1)
    radius = palm_length * _FINGER_RADII[:, 3:]
    outlines = _flat(_ellipse(points[:, 4::4, :2] + 0.15 * radius * along, 0.62 * radius * aside, 0.7 * radius * along))
    return [
        {2 * finger + 2: nails[finger] for finger in range(_THUMB + 1, _N_FINGERS) if depths[finger] < 0}
        for nails, depths in zip(outlines, outward.tolist(), strict=True)
    ]


# Flat shapes of a drawing: tapered capsules and ellipses as polygons, painted far to near. The shapes of many frames
# are computed together, because a person is two hundred small polygons: one by one, most of the time would go into
# small arrays. Coordinates are pixels of the enlarged canvas, x right and y down. Light falls from the upper left.

Points = Floats  # (..., 2) or (..., 3), pixels of the canvas
Frames = Bools  # (n_frames,) which of them are meant

_ROUND = np.linspace(np.pi / 2, 3 * np.pi / 2, 7)[:, None]  # half a circle
_ROUND_COS, _ROUND_SIN = np.cos(_ROUND), np.sin(_ROUND)
_CIRCLE = np.linspace(0, 2 * np.pi, 24, endpoint=False)[:, None]
_CIRCLE_COS, _CIRCLE_SIN = np.cos(_CIRCLE), np.sin(_CIRCLE)
_LIGHT = np.array([-0.55, -0.83])  # where it comes from, in the picture


# Coats of a rounded limb: width, shift toward the light in limb radii, brightness. The first is the line around it.
_COATS = ((1.0, 0.0, 0.4), (1.0, 0.0, 0.7), (0.86, 0.07, 0.84), (0.68, 0.14, 0.95), (0.4, 0.26, 1.05))
_WIDTHS, _SHIFTS, _ = np.array(_COATS).T


def _capsules(starts: Points, ends: Points, start_radii: Points, end_radii: Points) -> Points:
    """Outlines (..., n, 14, 2) of n tapered limbs (..., n, 2) with round ends; a limb without length is a disc."""
    axis = ends - starts
    length = np.hypot(axis[..., 0], axis[..., 1])[..., None]
    along = np.where(length > 1e-6, axis / np.maximum(length, 1e-6), (1.0, 0.0))
    across = np.stack([-along[..., 1], along[..., 0]], axis=-1)
    arc = _ROUND_COS * along[..., None, :] + _ROUND_SIN * across[..., None, :]  # (..., n, 7, 2)
    behind = starts[..., None, :] + start_radii[:, None, None] * arc
    ahead = ends[..., None, :] - end_radii[:, None, None] * arc
    return np.concatenate([behind, ahead], axis=-2)


def _ellipse(centre: Points, right: Points, down: Points) -> Points:
    """The outline (..., 24, 2) of an ellipse around (..., 2) with the half axes `right` and `down`."""
    return centre[..., None, :] + _CIRCLE_COS * right[..., None, :] + _CIRCLE_SIN * down[..., None, :]


_Stroke = tuple[list[float], Colour]  # a polygon x, y, x, y, ... to fill


class _Canvas:
    """The pictures of some frames, drawn together: what is filled first is covered by what is filled later."""

    def __init__(self, strokes: list[list[_Stroke]]) -> None:
        self.strokes = strokes  # of every frame

    def only(self, frames: Frames) -> _Canvas:
        return _Canvas([strokes for strokes, is_meant in zip(self.strokes, frames.tolist(), strict=True) if is_meant])

    def paint(self, frame: int, image: Image.Image) -> None:
        """Fill everything of one frame into its picture, which is enlarged: reducing it makes smooth edges."""
        draw = ImageDraw.Draw(image)
        for outline, colour in self.strokes[frame]:
            draw.polygon(outline, fill=colour)

    def fill(self, outlines: Points, colour: Colour) -> None:
        """Fill one polygon in every frame: (n_frames, k, 2)."""
        for strokes, outline in zip(self.strokes, _flat(outlines), strict=True):
            strokes.append((outline, colour))

    def limb(self, joints: Points, radii: Points, colour: Colour, outline: float, *, root_gap: float = 0.0) -> None:
        """Draw a chain of round, shaded limbs through `joints` (n_frames, n, 2), with `radii` (n,) at the joints.

        `root_gap` is the share of the first limb without a dark edge, where it grows out of something.
        """
        coats = joints[:, None] + _SHIFTS[:, None, None] * radii[:, None] * _LIGHT  # (n_frames, n_coats, n, 2)
        coats[:, :2, 0] += root_gap * (joints[:, 1] - joints[:, 0])[:, None]
        widths = _WIDTHS[:, None] * radii
        widths[0] += outline
        for number, (_, _, brightness) in enumerate(_COATS):
            coat, width, coat_colour = coats[:, number], widths[number], shaded(colour, brightness)
            shapes = _capsules(coat[:, :-1], coat[:, 1:], width[:-1], width[1:])
            for strokes, shape in zip(self.strokes, _flat(shapes), strict=True):
                strokes += [(one, coat_colour) for one in shape]


def _flat(outlines: Points) -> Any:
    """Polygons (..., k, 2) as nested lists whose innermost are x, y, x, y, ..."""
    return outlines.reshape(*outlines.shape[:-2], 2 * outlines.shape[-2]).tolist()


SIDE = 256
_ENLARGED = 3
_MEASURED_FRAMES = 1000  # of a long video, to know the size of head and hands
_TOGETHER = 32  # frames whose shapes are computed at once: more gain nothing
_BLINK_EVERY, _BLINK_FROM, _BLINK_FRAMES = 97, 61, 3


def render_frames(
    points: FloatArray, mouth: FloatArray, appearance: Appearance, scene: Scene | None = None, *, side: int = SIDE
) -> Iterator[Pixels]:
    """Frames (side, side, 3) uint8 RGB, one a row of `points` (n_frames, 258), made as they are taken.

    `mouth` (n_frames,) is its opening, 0..1. Without a scene the signer stands before the wall of the appearance.
    A hand of zeros (not found) is drawn as a mitten.
    """
    if points.ndim != 2 or points.shape[1] != LANDMARK_DIM or mouth.shape != points.shape[:1]:
        raise ValueError(f"landmarks of shape {points.shape} and mouths of {mouth.shape}, not (n, 258) and (n,)")
    if not np.isfinite(points).all() or not ((mouth >= 0) & (mouth <= 1)).all():
        raise ValueError("landmarks must be finite numbers and mouths lie in 0..1")
    if side < 16:
        raise ValueError(f"a picture of {side} pixels is too small to draw a person")
    return _frames(points, mouth, appearance, scene or Studio(appearance.background), side)


def _frames(points: FloatArray, mouth: FloatArray, appearance: Appearance, scene: Scene, side: int) -> Iterator[Pixels]:
    enlarged = side * _ENLARGED
    backdrops = scene.backdrops(enlarged)
    for figures in _figures(points, mouth, scene.placement, enlarged):
        canvas = _Canvas([[] for _ in figures.pose])
        _paint_person(canvas, figures, appearance)
        for frame, image in zip(range(len(figures.pose)), backdrops, strict=False):
            canvas.paint(frame, image)
            yield np.array(image.reduce(_ENLARGED))


def _figures(points: FloatArray, mouth: FloatArray, placement: _Placement, side: int) -> Iterator[_Figures]:
    measured = points[:: len(points) // _MEASURED_FRAMES + 1]
    proportions = _Proportions.of(placement.apply(measured), side)
    for first in range(0, len(points), _TOGETHER):
        pose, left, right = _split(placement.apply(points[first : first + _TOGETHER]))
        openings = mouth[first : first + _TOGETHER].astype(np.float64)
        in_blink = (np.arange(first, first + len(pose)) % _BLINK_EVERY - _BLINK_FROM) % _BLINK_EVERY
        closed = in_blink < _BLINK_FRAMES
        yield _Figures(pose[..., :3] * side, (left * side, right * side), openings, closed, proportions)


# What is behind the signer: a plain studio wall, or a moving broadcast beside whom the signer stands. A scene gives one
# enlarged backdrop a frame and says where in the picture the signer's own square lies.

_SHORTEST_SHOT, _LONGEST_SHOT = 40, 140  # frames
_PANORAMA = 1.7  # picture widths a camera can pan over
_BLUR = 18  # pixels of the enlarged picture
_DIM = 0.78  # a programme behind a signer is kept darker and paler
_GREY: Colour = (128, 128, 128)


@dataclass(frozen=True, slots=True)
class _Placement:
    """Where the signer's square lies in the picture: its upper left corner and its side, in picture sides."""

    left: float = 0.0
    top: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 4 or not np.isfinite((self.left, self.top)).all():
            raise ValueError(f"a signer cannot be placed at {self}")

    def apply(self, points: FloatArray) -> FloatArray:
        """Landmarks (n, 258) of the signer's square -> landmarks of the picture; what was not found stays zero."""
        pose, *hands = _split(points)
        moved = [pose[:, :, :3], *hands]
        for part in moved:
            found = part.any(axis=(1, 2))
            part[found] = part[found] * self.scale + (self.left, self.top, 0.0)
        flat = (part.reshape(len(points), part.shape[1] * part.shape[2]) for part in (pose, *hands))
        return np.concatenate(list(flat), axis=1).astype(np.float32)


class Scene(Protocol):
    """A place to sign in."""

    @property
    def placement(self) -> _Placement: ...

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        """Without end, one RGB picture of side x side pixels a frame, to paint on: the next frame takes its place."""


@dataclass(frozen=True, slots=True)
class Studio:
    """A plain wall, a little brighter in the middle."""

    colour: Colour
    placement: _Placement = _Placement()

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        axis = np.linspace(-1, 1, side)
        light = 1.06 - 0.16 * (axis[:, None] ** 2 + axis[None, :] ** 2) / 2
        wall = np.clip(light[:, :, None] * np.array(self.colour), 0, 255).astype(np.uint8)
        clean = Image.fromarray(wall)
        picture = clean.copy()
        while True:
            picture.paste(clean)  # a new picture for each frame costs more than the painting of a head
            yield picture


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A programme of changing, panning shots with things that move; the signer stands on the right."""

    seed: int
    placement: _Placement = _Placement(0.24, 0.12, 0.9)

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        rng, picture = np.random.default_rng(self.seed), Image.new("RGB", (side, side))
        while True:
            yield from _shot(rng, picture)


@dataclass(frozen=True, slots=True)
class _Mover:
    """A thing that crosses a shot: place, size and speed a frame in picture sides."""

    x: float
    y: float
    width: float
    height: float
    speed: float
    colour: Colour

    def paint(self, draw: ImageDraw.ImageDraw, frame: int, side: int) -> None:
        x = (self.x + self.speed * frame) % 1.6 - 0.3
        edges = (x - self.width, self.y - self.height, x + self.width, self.y + self.height)
        draw.ellipse([edge * side for edge in edges], fill=self.colour)


def _shot(rng: np.random.Generator, picture: Image.Image) -> Iterator[Image.Image]:
    side = picture.width
    length = int(rng.integers(_SHORTEST_SHOT, _LONGEST_SHOT))
    panorama = _panorama(rng, side)
    room = panorama.width - side
    start, end = (room * rng.random(2)).tolist()
    movers = []
    for _ in range(int(rng.integers(2, 5))):
        x, y, width, height, speed = (rng.random(5) * (1.6, 0.6, 0.08, 0.12, 0.03)).tolist()
        movers.append(_Mover(x, 0.3 + y, 0.03 + width, 0.04 + height, speed - 0.015, _some_colour(rng)))
    for frame in range(length):
        left = round(start + (end - start) * frame / length)
        picture.paste(panorama, (-left, 0))
        draw = ImageDraw.Draw(picture)
        for mover in movers:
            mover.paint(draw, frame, side)
        yield picture


def _panorama(rng: np.random.Generator, side: int) -> Image.Image:
    width = round(side * _PANORAMA)
    small = Image.new("RGB", (width // _BLUR, side // _BLUR))
    draw = ImageDraw.Draw(small)
    horizon = small.height * float(rng.uniform(0.4, 0.75))
    draw.rectangle((0, 0, small.width, horizon), fill=_some_colour(rng))
    draw.rectangle((0, horizon, small.width, small.height), fill=_some_colour(rng))
    for _ in range(int(rng.integers(8, 20))):
        left, wide, tall = (rng.random(3) * (small.width, 0.2 * small.width, 0.5 * small.height)).tolist()
        draw.rectangle((left, horizon - tall, left + wide, horizon + 0.3 * tall), fill=_some_colour(rng))
    grain = rng.normal(1.0, 0.06, (small.height, small.width, 1))
    small = Image.fromarray(np.clip(np.asarray(small) * grain, 0, 255).astype(np.uint8))
    return small.resize((width, side), Image.Resampling.BICUBIC)


def _some_colour(rng: np.random.Generator) -> Colour:
    red, green, blue = rng.integers(20, 236, 3).tolist()
    return shaded(blended((red, green, blue), _GREY, 0.45), _DIM)


# Pictures of a world for people: a contact sheet, minimal pairs, and two clips that move.

_SIDE = 192
_EVERY = 2  # frames a moving picture leaves out
_EPISODE_FRAMES = 75
_ENTRIES, _PAIRS = 8, 3  # on the sheets
_CLOSE = _Placement(-0.31, -0.15, 1.6)  # the hands fill the picture


def write_preview(world: World, folder: Path) -> tuple[Path, ...]:
    """Write entries.png, minimal-pairs.png, dictionary.gif and continuous.gif into `folder`."""
    entries = world.dictionary_entries()
    some = entries[:: max(1, len(entries) // _ENTRIES)][:_ENTRIES]
    first = {entry.type_id: entry for entry in reversed(entries)}
    pairs = [(first[a], first[b]) for a, b in world.lexicon.minimal_pairs if a in first and b in first]
    sheets = {
        "entries.png": [_row(world, entry, entry.entry_id) for entry in some],
        # Both by one signer, so that nothing else differs.
        "minimal-pairs.png": [
            _row(world, replace(entry, signer=pair[0].signer), f"{mark} {entry.entry_id}")
            for pair in pairs[:_PAIRS]
            for entry, mark in zip(pair, ("/", "\\"), strict=True)
        ],
    }
    written = []
    for name, rows in sheets.items():
        if rows:
            written.append(folder / name)
            sheet = Image.fromarray(contact_sheet(rows, columns=7, tile_height=112))
            with atomic_output(folder / name, overwrite=True) as temporary:
                sheet.save(temporary, format="PNG", optimize=True)
    clip = world.perform_entry(some[0])
    episode = world.perform_episode(world.episodes("test")[0]).performance
    written.append(_moving(_preview_frames(clip, None), folder / "dictionary.gif"))
    written.append(_moving(_preview_frames(episode, Broadcast(world.seed), _EPISODE_FRAMES), folder / "continuous.gif"))
    return tuple(written)


def _row(world: World, entry: Entry, title: str) -> SheetRow:
    clip = world.perform_entry(entry)
    frames = list(_preview_frames(clip, Studio(clip.signer.appearance.background, _CLOSE)))
    return SheetRow(title, frames[clip.moving.start : clip.moving.stop])


def _preview_frames(performance: Performance, scene: Scene | None, n_frames: int | None = None) -> Iterator[Pixels]:
    points, mouth = performance.points[:n_frames], performance.mouth[:n_frames]
    return render_frames(points, mouth, performance.signer.appearance, scene, side=_SIDE)


def _moving(frames: Iterator[Pixels], path: Path) -> Path:
    pictures = map(Image.fromarray, islice(frames, 0, None, _EVERY))
    first, *rest = (picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=64) for picture in pictures)
    with atomic_output(path, overwrite=True) as temporary:
        first.save(temporary, save_all=True, append_images=rest, duration=FRAME_MS * _EVERY, loop=0, optimize=True)
    return path
