"""Hands of five fingers, painted far to near with outlines, so that the handshape can be read.

Tips that bend toward the viewer cover the palm; nails show the back of a finger; the palm is lighter than the back of
the hand. Points are (21, 3): x and y in pixels of the canvas, z on the same scale, negative toward the viewer.
"""

from __future__ import annotations

import numpy as np

from signspot.world.appearance import Colour, blended, shaded
from signspot.world.render_shapes import LIGHT, Canvas, Points, capsules, ellipse

_PALM_LIMBS = ((0, 5), (0, 9), (0, 13), (0, 17), (5, 9), (9, 13), (13, 17), (0, 1))
_PALM_HULL = [0, 5, 9, 13, 17]
_THUMB, _N_FINGERS = 0, 5
_LIMBS = np.array([*_PALM_LIMBS, *((4 * f + j, 4 * f + j + 1) for f in range(_N_FINGERS) for j in (1, 2, 3))])
_N_LIMBS, _FIRST = len(_LIMBS), len(_PALM_LIMBS)
# A part is covered and uncovered as one: the palm, then of each finger the limb at the palm and the two beyond it.
_PARTS = [slice(0, _FIRST)]
_PARTS += [slice(_FIRST + 3 * f + a, _FIRST + 3 * f + b) for f in range(_N_FINGERS) for a, b in ((0, 1), (1, 3))]
# All sizes in lengths of the palm, from the wrist to the root of the middle finger.
_FINGER_RADII = np.array(
    [
        (0.15, 0.13, 0.11, 0.088),
        (0.112, 0.1, 0.09, 0.078),
        (0.115, 0.104, 0.093, 0.08),
        (0.11, 0.098, 0.088, 0.076),
        (0.1, 0.086, 0.077, 0.068),
    ]
)
_START_RADII = np.array([*(0.17 if start == 0 else 0.115 for start, _ in _PALM_LIMBS), *_FINGER_RADII[:, :-1].ravel()])
_END_RADII = np.array([*(0.115 for _ in _PALM_LIMBS), *_FINGER_RADII[:, 1:].ravel()])
_LINE = 0.036
# No line is drawn where a part of a finger grows out of another: it starts this share of the first limb later.
_LINE_GAPS = np.zeros((_N_LIMBS, 1))
_LINE_GAPS[[part.start for part in _PARTS[1:]]] = 0.35
_NEAR, _FAR = 1.08, 0.78  # brightness over the depth of a hand
_PALM_TINT: Colour = (255, 214, 196)
_NAIL: Colour = (255, 240, 235)


def paint_hand(canvas: Canvas, points: Points, palm_length: float, skin: Colour, *, is_left: bool) -> None:
    """Paint one hand of joints `points` (21, 3); `palm_length` in pixels of the canvas."""
    lines, fills, lights = _outlines(points[:, :2], palm_length)
    depths = _depths(points[:, 2])
    colours = _colours(points, depths, palm_length, skin, is_left)
    nails = _shows_back(points, is_left)
    for part in np.argsort(-depths, kind="stable").tolist():
        limbs, colour = _PARTS[part], colours[part]
        dark = shaded(colour, 0.42)
        canvas.fill_all(lines[limbs], dark)
        canvas.fill_all(fills[limbs], colour)
        if part == 0:
            canvas.fill(points[_PALM_HULL, :2], colour)
            continue
        canvas.fill_all(lights[limbs], shaded(colour, 1.1))
        finger, is_outer = divmod(part - 1, 2)
        if is_outer and nails[finger] and finger != _THUMB:
            tip = points[4 * finger + 3 : 4 * finger + 5, :2]
            canvas.fill(_nail(tip, palm_length * float(_FINGER_RADII[finger, 3])), blended(colour, _NAIL, 0.5))


def _outlines(places: Points, palm_length: float) -> Points:
    """Of every limb the dark line around it, its body and its bright side: (3, n_limbs, 14, 2)."""
    starts, ends = places[_LIMBS[:, 0]], places[_LIMBS[:, 1]]
    start_radii, end_radii = palm_length * _START_RADII, palm_length * _END_RADII
    line, lit = _LINE * palm_length, 0.3 * LIGHT
    outlines = capsules(
        np.concatenate([starts + _LINE_GAPS * (ends - starts), starts, starts + start_radii[:, None] * lit]),
        np.concatenate([ends, ends, ends + end_radii[:, None] * lit]),
        np.concatenate([start_radii + line, start_radii, 0.45 * start_radii]),
        np.concatenate([end_radii + line, end_radii, 0.45 * end_radii]),
    )
    return outlines.reshape(3, _N_LIMBS, *outlines.shape[1:])


def _depths(z: Points) -> Points:
    """How far away each part is (n_parts,), from the depths of the joints (21,)."""
    fingers = z[1:].reshape(_N_FINGERS, 4)
    halves = np.stack([fingers[:, :2].mean(axis=1), fingers[:, 1:].mean(axis=1)], axis=1)
    return np.concatenate([[z[_PALM_HULL].mean()], halves.ravel()])


def _colours(points: Points, depths: Points, palm_length: float, skin: Colour, is_left: bool) -> list[Colour]:
    """Nearer parts are brighter; the palm of the hand is lighter than its back."""
    up, across = points[9] - points[0], points[5] - points[17]
    faces_viewer = (up[0] * across[1] - up[1] * across[0]) * (1 if is_left else -1) < 0
    base = blended(skin, _PALM_TINT, 0.22) if faces_viewer else shaded(skin, 0.93)
    nearness = np.clip((depths[0] - depths) / (1.6 * palm_length) + 0.5, 0, 1)
    return [shaded(base, brightness) for brightness in (_FAR + (_NEAR - _FAR) * nearness).tolist()]


def _shows_back(points: Points, is_left: bool) -> list[bool]:
    """For each finger whether the back of its tip, where the nail is, faces the viewer."""
    tips = points[4::4] - points[3::4]
    across = points[5] - points[17]
    outward = (tips[:, 0] * across[1] - tips[:, 1] * across[0]) * (-1 if is_left else 1)
    return [bool(z < 0) for z in outward]


def _nail(tip: Points, radius: float) -> Points:
    along = tip[1] - tip[0]
    length = float(np.hypot(*along))
    direction = along / length if length > 1e-6 else np.array([0.0, -1.0])
    across = np.array([-direction[1], direction[0]])
    return ellipse(tip[1] + 0.15 * radius * direction, 0.62 * radius * across, 0.7 * radius * direction)
