"""Hands of five fingers, painted far to near with outlines, so that the handshape can be read.

Tips that bend toward the viewer cover the palm; nails show the back of a finger; the palm is lighter than the back of
the hand. Points are (21, 3): x and y in pixels of the canvas, z on the same scale, negative toward the viewer.
"""

from __future__ import annotations

import numpy as np

from signspot.world.appearance import Colour, blended, shaded
from signspot.world.render_shapes import LIGHT, Canvas, Points, capsules, ellipse, flat

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
    """Draw one hand of joints `points` (n_frames, 21, 3); `palm_length` in pixels of the canvas."""
    depths = _depths(points[..., 2])
    shapes, hulls = flat(_outlines(points[..., :2], palm_length)), flat(points[:, _PALM_HULL, :2])
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
    line, lit = _LINE * palm_length, 0.3 * LIGHT
    outlines = capsules(
        np.concatenate([starts + _LINE_GAPS * (ends - starts), starts, starts + start_radii[:, None] * lit], axis=1),
        np.concatenate([ends, ends, ends + end_radii[:, None] * lit], axis=1),
        np.concatenate([start_radii + line, start_radii, 0.45 * start_radii]),
        np.concatenate([end_radii + line, end_radii, 0.45 * end_radii]),
    )
    return outlines.reshape(len(places), 3, _N_LIMBS, *outlines.shape[-2:])


def _depths(z: Points) -> Points:
    """How far away each part is (n_frames, n_parts), from the depths of the joints (n_frames, 21)."""
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
    outlines = flat(ellipse(points[:, 4::4, :2] + 0.15 * radius * along, 0.62 * radius * aside, 0.7 * radius * along))
    return [
        {2 * finger + 2: nails[finger] for finger in range(_THUMB + 1, _N_FINGERS) if depths[finger] < 0}
        for nails, depths in zip(outlines, outward.tolist(), strict=True)
    ]
