"""Flat shapes of a drawing: tapered capsules and ellipses as polygons, painted far to near.

Coordinates are pixels of the enlarged canvas, x right and y down. Light falls from the upper left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from signspot.world.appearance import Colour, shaded

Points = npt.NDArray[np.float64]  # (..., 2) or (..., 3), pixels of the canvas

_ROUND = np.linspace(np.pi / 2, 3 * np.pi / 2, 7)  # half a circle
_CIRCLE = np.linspace(0, 2 * np.pi, 24, endpoint=False)
LIGHT = np.array([-0.55, -0.83])  # where it comes from, in the picture


@dataclass(frozen=True, slots=True)
class Layer:
    """One coat of a rounded limb: a narrower strip nearer to the light is brighter."""

    width: float  # of the limb's
    shift: float  # toward the light, in limb radii
    brightness: float


LIMB_LAYERS = (
    Layer(1.0, 0.0, 0.4),  # the line around it
    Layer(1.0, 0.0, 0.7),
    Layer(0.86, 0.07, 0.84),
    Layer(0.68, 0.14, 0.95),
    Layer(0.4, 0.26, 1.05),
)
_WIDTHS, _SHIFTS = (np.array([getattr(layer, name) for layer in LIMB_LAYERS]) for name in ("width", "shift"))


def capsules(starts: Points, ends: Points, start_radii: Points, end_radii: Points) -> Points:
    """Outlines (n, 14, 2) of n tapered limbs with round ends; a limb without length is a disc."""
    axis = ends - starts
    length = np.hypot(axis[:, 0], axis[:, 1])[:, None]
    along = np.where(length > 1e-6, axis / np.maximum(length, 1e-6), (1.0, 0.0))
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    arc = np.cos(_ROUND)[:, None] * along[:, None] + np.sin(_ROUND)[:, None] * across[:, None]  # (n, 7, 2)
    behind = starts[:, None] + start_radii[:, None, None] * arc
    ahead = ends[:, None] - end_radii[:, None, None] * arc
    return np.concatenate([behind, ahead], axis=1)


def ellipse(centre: Points, right: Points, down: Points) -> Points:
    """The outline (24, 2) of an ellipse with the half axes `right` and `down`."""
    return centre + np.cos(_CIRCLE)[:, None] * right + np.sin(_CIRCLE)[:, None] * down


class Canvas:
    """A picture that is painted enlarged, so that reducing it makes smooth edges."""

    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self._draw = ImageDraw.Draw(image)

    def fill(self, outline: Points, colour: Colour) -> None:
        """Paint a polygon (n, 2)."""
        self._draw.polygon(outline.ravel().tolist(), fill=colour)

    def fill_all(self, outlines: Points, colour: Colour) -> None:
        """Paint polygons (n, k, 2) in one colour."""
        for outline in outlines.reshape(len(outlines), -1).tolist():
            self._draw.polygon(outline, fill=colour)

    def limb(self, joints: Points, radii: Points, colour: Colour, outline: float, *, root_gap: float = 0.0) -> None:
        """Paint a chain of round, shaded limbs through `joints` (n, 2), with `radii` (n,) at the joints.

        `root_gap` is the share of the first limb without a dark edge, where it grows out of something.
        """
        coats = joints + _SHIFTS[:, None, None] * radii[:, None] * LIGHT  # (n_coats, n, 2)
        coats[:2, 0] += root_gap * (joints[1] - joints[0])
        widths = _WIDTHS[:, None] * radii
        widths[0] += outline
        starts, ends = coats[:, :-1].reshape(-1, 2), coats[:, 1:].reshape(-1, 2)
        shapes = capsules(starts, ends, widths[:, :-1].ravel(), widths[:, 1:].ravel())
        for layer, coat in zip(LIMB_LAYERS, shapes.reshape(len(coats), len(joints) - 1, -1, 2), strict=True):
            self.fill_all(coat, shaded(colour, layer.brightness))
