"""Torso, arms, neck and head with hair, eyes, brows, nose and mouth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from signspot.world.appearance import Appearance, Colour, blended, luma, shaded
from signspot.world.render_figure import (
    LEFT_EAR,
    LEFT_ELBOW,
    LEFT_EYE,
    LEFT_HIP,
    LEFT_MOUTH,
    LEFT_SHOULDER,
    LEFT_WRIST,
    NOSE,
    RIGHT_EAR,
    RIGHT_EYE,
    RIGHT_HIP,
    RIGHT_MOUTH,
    RIGHT_SHOULDER,
    Figure,
)
from signspot.world.render_hands import paint_hand
from signspot.world.render_shapes import LIGHT, Canvas, Points, ellipse

_LINE = 0.014  # outlines of the body, in shoulder widths
_LIP: Colour = (168, 74, 74)
_INSIDE_MOUTH: Colour = (70, 22, 26)
_TEETH: Colour = (240, 236, 228)


def paint_person(canvas: Canvas, figure: Figure, appearance: Appearance) -> None:
    """Paint everything, far to near: long hair, body, head, then the arms with their hands by depth."""
    head = _Head.of(figure)
    if appearance.long_hair:
        canvas.fill(head.oval(0, 0.2, 0.72, 1.02), shaded(appearance.hair, 0.8))
    _paint_torso(canvas, figure, head, appearance)
    _paint_head(canvas, head, appearance)
    _paint_face(canvas, figure, head, appearance)
    depths = [float(figure.pose[LEFT_WRIST + side, 2]) for side in (0, 1)]
    for side in (0, 1) if depths[0] >= depths[1] else (1, 0):  # 0 left, 1 right
        _paint_arm(canvas, figure, appearance, side)


@dataclass(frozen=True, slots=True, eq=False)
class _Head:
    """A frame of its own for the head: `right` and `down` are half its width long."""

    centre: Points
    right: Points
    down: Points

    @classmethod
    def of(cls, figure: Figure) -> _Head:
        ears = figure.pose[[RIGHT_EAR, LEFT_EAR], :2]
        half = figure.proportions.head / 2
        across = ears[1] - ears[0]
        length = float(np.hypot(*across))
        right = across / length * half if length > 1e-6 else np.array([half, 0.0])
        down = np.array([-right[1], right[0]])
        return cls(ears.mean(axis=0), right, down)

    def at(self, x: float, y: float) -> Points:
        """A place in half widths from the middle between the ears."""
        place: Points = self.centre + x * self.right + y * self.down
        return place

    def oval(self, x: float, y: float, half_width: float, half_height: float) -> Points:
        """An upright ellipse around (x, y); sizes in widths of the head."""
        return ellipse(self.at(x, y), 2 * half_width * self.right, 2 * half_height * self.down)

    def around(self, place: Points, half_width: float, half_height: float) -> Points:
        """An upright ellipse around a place of the canvas."""
        return ellipse(place, 2 * half_width * self.right, 2 * half_height * self.down)


def _paint_torso(canvas: Canvas, figure: Figure, head: _Head, appearance: Appearance) -> None:
    width = figure.proportions.shoulders
    line, top = _LINE * width, appearance.top
    shoulders, hips = figure.pose[[RIGHT_SHOULDER, LEFT_SHOULDER], :2], figure.pose[[RIGHT_HIP, LEFT_HIP], :2]
    middle, below = shoulders.mean(axis=0), hips.mean(axis=0)
    if np.hypot(*(below - middle)) < 0.3 * width:  # hips that were not found
        below = middle + np.array([0.0, 1.6 * width])
    neck = middle + np.array([0.0, -0.2 * width])
    for grown, colour in ((line, shaded(top, 0.4)), (0.0, shaded(top, 0.7)), (-0.03 * width, shaded(top, 0.82))):
        canvas.fill(_torso_outline(shoulders, neck, below, width, grown), colour)
    lit = LIGHT * 0.03 * width
    canvas.fill(_torso_outline(shoulders + lit, neck + lit, below + lit, width, -0.07 * width), shaded(top, 0.93))
    collar = middle + np.array([0.0, -0.1 * width])
    canvas.fill(ellipse(collar, np.array([0.2 * width, 0]), np.array([0, 0.13 * width])), shaded(top, 0.6))
    canvas.fill(ellipse(collar, np.array([0.175 * width, 0]), np.array([0, 0.105 * width])), appearance.skin)
    throat = np.array([collar, head.at(0, 0.6)])
    canvas.limb(throat, np.array([0.15, 0.135]) * width, shaded(appearance.skin, 0.88), line / 2)


def _torso_outline(shoulders: Points, neck: Points, below: Points, width: float, grown: float) -> Points:
    """A trunk from the neck over sloping shoulders to below the hips; `grown` pixels wider all around."""
    right, left = shoulders  # of the person: the right shoulder is on the left of the picture
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
    return np.array(outline)


def _paint_head(canvas: Canvas, head: _Head, appearance: Appearance) -> None:
    skin, hair = appearance.skin, appearance.hair
    canvas.fill(head.oval(0, -0.22, 0.565, 0.72), shaded(hair, 0.55))
    canvas.fill(head.oval(0, -0.24, 0.55, 0.7), hair)
    for x in (-1.02, 1.02):
        canvas.fill(head.oval(x, 0.08, 0.085, 0.15), shaded(skin, 0.5))
        canvas.fill(head.oval(x, 0.08, 0.068, 0.13), shaded(skin, 0.88))
    canvas.fill(head.oval(0, 0.12, 0.505, 0.655), shaded(skin, 0.5))
    for size, brightness, shift in ((0.49, 0.84, 0.0), (0.45, 0.94, 0.06), (0.37, 1.02, 0.12)):
        canvas.fill(head.oval(shift * LIGHT[0], 0.12 + shift * LIGHT[1], size, size * 1.3), shaded(skin, brightness))
    _paint_fringe(canvas, head, hair)


def _paint_fringe(canvas: Canvas, head: _Head, hair: Colour) -> None:
    turns = np.linspace(np.pi * 1.03, np.pi * 1.97, 14)
    crown = [head.at(1.1 * np.cos(a), -0.2 + 1.42 * np.sin(a)) for a in turns]
    brow = [head.at(0.93 * np.cos(a), -0.28 + 0.72 * np.sin(a)) for a in turns[::-1]]
    canvas.fill(np.array(crown + brow), hair)
    shine = [head.at(0.2 * np.cos(a) - 0.35, -1.2 + 0.16 * np.sin(a)) for a in np.linspace(0, 2 * np.pi, 12)]
    canvas.fill(np.array(shine), blended(hair, (255, 255, 255), 0.14))


def _paint_face(canvas: Canvas, figure: Figure, head: _Head, appearance: Appearance) -> None:
    pose, skin = figure.pose, appearance.skin
    for eye in (RIGHT_EYE, LEFT_EYE):
        _paint_eye(canvas, head, pose[eye, :2], figure.eyes_closed, appearance)
    nose = pose[NOSE, :2]
    canvas.fill(head.around(nose, 0.085, 0.065), shaded(skin, 0.78))
    canvas.fill(head.around(nose + LIGHT * 0.03 * figure.proportions.head, 0.065, 0.06), shaded(skin, 1.04))
    mouth, opening = pose[[RIGHT_MOUTH, LEFT_MOUTH], :2].mean(axis=0), figure.mouth
    half_width = 0.2 - 0.05 * opening
    lip = blended(shaded(skin, 0.75), _LIP, 0.6)
    canvas.fill(head.around(mouth, half_width, 0.04 + 0.13 * opening), lip)
    if opening > 0.08:
        canvas.fill(head.around(mouth, half_width * 0.8, 0.005 + 0.115 * opening), _INSIDE_MOUTH)
        if opening > 0.3:
            upper = mouth - 2 * head.down * 0.07 * opening
            canvas.fill(head.around(upper, half_width * 0.55, 0.035 * opening + 0.004), _TEETH)
    else:
        canvas.fill(head.around(mouth, half_width * 0.85, 0.009), shaded(lip, 0.55))


def _paint_eye(canvas: Canvas, head: _Head, eye: Points, is_closed: bool, appearance: Appearance) -> None:
    skin = appearance.skin
    dark = appearance.hair if luma(appearance.hair) < luma(skin) - 25 else shaded(skin, 0.45)
    brow = eye - 2 * head.down * 0.15
    canvas.fill(head.around(brow, 0.125, 0.028), dark)
    if is_closed:
        canvas.fill(head.around(eye, 0.1, 0.018), shaded(skin, 0.45))
        return
    canvas.fill(head.around(eye, 0.115, 0.075), shaded(skin, 0.55))
    canvas.fill(head.around(eye, 0.098, 0.058), (246, 244, 240))
    canvas.fill(head.around(eye, 0.052, 0.055), (46, 34, 30))


def _paint_arm(canvas: Canvas, figure: Figure, appearance: Appearance, side: int) -> None:
    """Arm and hand of one side: 0 left, 1 right."""
    width, skin = figure.proportions.shoulders, appearance.skin
    shoulder, elbow, wrist = (figure.pose[joint + side, :2] for joint in (LEFT_SHOULDER, LEFT_ELBOW, LEFT_WRIST))
    radii = np.array([0.155, 0.115, 0.075]) * width
    line, hand = _LINE * width, figure.hands[side]
    joints = np.array([shoulder, elbow, wrist])
    if appearance.long_sleeves:
        cuff = elbow + 0.9 * (wrist - elbow)
        canvas.limb(np.array([cuff, wrist]), radii[2] * np.array([0.85, 0.8]), skin, line)
        canvas.limb(np.array([shoulder, elbow, cuff]), radii * (1, 1, 1.08), appearance.top, line, root_gap=0.4)
    else:
        canvas.limb(joints, radii * (0.85, 0.85, 0.9), skin, line)
        hem = shoulder + 0.6 * (elbow - shoulder)
        canvas.limb(np.array([shoulder, hem]), radii[:2] * (1, 1.1), appearance.top, line, root_gap=0.4)
    palm = figure.proportions.palms[side]
    if hand is not None:
        paint_hand(canvas, hand, palm, skin, is_left=side == 0)
        return
    # A hand that was not found: a mitten along the pose's own three finger points.
    knuckles = figure.pose[[LEFT_WRIST + 2 + side, LEFT_WRIST + 4 + side], :2].mean(axis=0)
    canvas.limb(np.array([wrist, knuckles]), np.array([0.25, 0.33]) * palm, skin, line)
