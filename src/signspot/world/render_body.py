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
    Figures,
)
from signspot.world.render_hands import paint_hand
from signspot.world.render_shapes import LIGHT, Canvas, Frames, Points, ellipse

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


def paint_person(canvas: Canvas, figures: Figures, appearance: Appearance) -> None:
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
    def of(cls, figures: Figures) -> _Head:
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
        place: Points = self.centre + x * self.right + y * self.down
        return place

    def outline(self, places: Points) -> Points:
        """A polygon (k, 2) of such places: (n_frames, k, 2)."""
        x, y = places[:, :1], places[:, 1:]
        return self.centre[:, None] + x * self.right[:, None] + y * self.down[:, None]

    def oval(self, x: float, y: float, half_width: float, half_height: float) -> Points:
        """An upright ellipse around (x, y); sizes in widths of the head."""
        return self.around(self.at(x, y), half_width, half_height)

    def around(self, places: Points, half_width: float | Points, half_height: float | Points) -> Points:
        """An upright ellipse around places (n_frames, 2) of the canvas; sizes may differ by frame: (n_frames, 1)."""
        return ellipse(places, 2 * half_width * self.right, 2 * half_height * self.down)


def _paint_torso(canvas: Canvas, figures: Figures, head: _Head, appearance: Appearance) -> None:
    width = figures.proportions.shoulders
    line, top = _LINE * width, appearance.top
    shoulders, hips = figures.pose[:, [RIGHT_SHOULDER, LEFT_SHOULDER], :2], figures.pose[:, [RIGHT_HIP, LEFT_HIP], :2]
    middle, below = shoulders.mean(axis=1), hips.mean(axis=1)
    are_hips_found = np.hypot(*(below - middle).T) >= 0.3 * width
    below = np.where(are_hips_found[:, None], below, middle + np.array([0.0, 1.6 * width]))
    neck = middle + np.array([0.0, -0.2 * width])
    for grown, colour in ((line, shaded(top, 0.4)), (0.0, shaded(top, 0.7)), (-0.03 * width, shaded(top, 0.82))):
        canvas.fill(_torso_outline(shoulders, neck, below, width, grown), colour)
    lit = LIGHT * 0.03 * width
    canvas.fill(_torso_outline(shoulders + lit, neck + lit, below + lit, width, -0.07 * width), shaded(top, 0.93))
    collar = middle + np.array([0.0, -0.1 * width])
    canvas.fill(ellipse(collar, np.array([0.2 * width, 0]), np.array([0, 0.13 * width])), shaded(top, 0.6))
    canvas.fill(ellipse(collar, np.array([0.175 * width, 0]), np.array([0, 0.105 * width])), appearance.skin)
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
    canvas.fill(head.outline(_FRINGE), hair)
    canvas.fill(head.outline(_SHINE), blended(hair, (255, 255, 255), 0.14))


def _paint_face(canvas: Canvas, figures: Figures, head: _Head, appearance: Appearance) -> None:
    pose, skin = figures.pose, appearance.skin
    for eye in (RIGHT_EYE, LEFT_EYE):
        _paint_eye(canvas, head, pose[:, eye, :2], figures.eyes_closed, appearance)
    nose = pose[:, NOSE, :2]
    canvas.fill(head.around(nose, 0.085, 0.065), shaded(skin, 0.78))
    canvas.fill(head.around(nose + LIGHT * 0.03 * figures.proportions.head, 0.065, 0.06), shaded(skin, 1.04))
    _paint_mouth(canvas, figures, head, blended(shaded(skin, 0.75), _LIP, 0.6))


def _paint_mouth(canvas: Canvas, figures: Figures, head: _Head, lip: Colour) -> None:
    mouth, opening = figures.pose[:, [RIGHT_MOUTH, LEFT_MOUTH], :2].mean(axis=1), figures.mouth[:, None]
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


def _paint_eye(canvas: Canvas, head: _Head, eyes: Points, are_closed: Frames, appearance: Appearance) -> None:
    skin = appearance.skin
    dark = appearance.hair if luma(appearance.hair) < luma(skin) - 25 else shaded(skin, 0.45)
    canvas.fill(head.around(eyes - 2 * head.down * 0.15, 0.125, 0.028), dark)
    closed, shut_head = canvas.only(are_closed), head.only(are_closed)
    closed.fill(shut_head.around(eyes[are_closed], 0.1, 0.018), shaded(skin, 0.45))
    opened, head, eyes = canvas.only(~are_closed), head.only(~are_closed), eyes[~are_closed]
    opened.fill(head.around(eyes, 0.115, 0.075), shaded(skin, 0.55))
    opened.fill(head.around(eyes, 0.098, 0.058), (246, 244, 240))
    opened.fill(head.around(eyes, 0.052, 0.055), (46, 34, 30))


def _paint_arm(canvas: Canvas, figures: Figures, appearance: Appearance, side: int) -> None:
    """Arm and hand of one side: 0 left, 1 right."""
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
    paint_hand(canvas.only(is_found), hand[is_found], palm, skin, is_left=side == 0)
    # A hand that was not found: a mitten along the pose's own three finger points.
    knuckles = pose[:, [LEFT_WRIST + 2 + side, LEFT_WRIST + 4 + side]].mean(axis=1)
    mitten = np.stack([wrist, knuckles], axis=1)[~is_found]
    canvas.only(~is_found).limb(mitten, np.array([0.25, 0.33]) * palm, skin, line)
