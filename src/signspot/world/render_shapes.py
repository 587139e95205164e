"""Flat shapes of a drawing: tapered capsules and ellipses as polygons, painted far to near.

The shapes of many frames are computed together, because a person is two hundred small polygons: one by one, most of
the time would go into small arrays. Coordinates are pixels of the enlarged canvas, x right and y down. Light falls from
the upper left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from signspot.world.appearance import Colour, shaded

Points = npt.NDArray[np.float64]  # (..., 2) or (..., 3), pixels of the canvas
Frames = npt.NDArray[np.bool_]  # (n_frames,) which of them are meant

_ROUND = np.linspace(np.pi / 2, 3 * np.pi / 2, 7)[:, None]  # half a circle
_ROUND_COS, _ROUND_SIN = np.cos(_ROUND), np.sin(_ROUND)
_CIRCLE = np.linspace(0, 2 * np.pi, 24, endpoint=False)[:, None]
_CIRCLE_COS, _CIRCLE_SIN = np.cos(_CIRCLE), np.sin(_CIRCLE)
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
    """Outlines (..., n, 14, 2) of n tapered limbs (..., n, 2) with round ends; a limb without length is a disc."""
    axis = ends - starts
    length = np.hypot(axis[..., 0], axis[..., 1])[..., None]
    along = np.where(length > 1e-6, axis / np.maximum(length, 1e-6), (1.0, 0.0))
    across = np.stack([-along[..., 1], along[..., 0]], axis=-1)
    arc = _ROUND_COS * along[..., None, :] + _ROUND_SIN * across[..., None, :]  # (..., n, 7, 2)
    behind = starts[..., None, :] + start_radii[:, None, None] * arc
    ahead = ends[..., None, :] - end_radii[:, None, None] * arc
    return np.concatenate([behind, ahead], axis=-2)


def ellipse(centre: Points, right: Points, down: Points) -> Points:
    """The outline (..., 24, 2) of an ellipse around (..., 2) with the half axes `right` and `down`."""
    return centre[..., None, :] + _CIRCLE_COS * right[..., None, :] + _CIRCLE_SIN * down[..., None, :]


Stroke = tuple[list[float], Colour]  # a polygon x, y, x, y, ... to fill


class Canvas:
    """The pictures of some frames, drawn together: what is filled first is covered by what is filled later."""

    def __init__(self, strokes: list[list[Stroke]]) -> None:
        self.strokes = strokes  # of every frame

    def only(self, frames: Frames) -> Canvas:
        """The pictures of some of the frames."""
        return Canvas([strokes for strokes, is_meant in zip(self.strokes, frames.tolist(), strict=True) if is_meant])

    def paint(self, frame: int, image: Image.Image) -> None:
        """Fill everything of one frame into its picture, which is enlarged: reducing it makes smooth edges."""
        draw = ImageDraw.Draw(image)
        for outline, colour in self.strokes[frame]:
            draw.polygon(outline, fill=colour)

    def fill(self, outlines: Points, colour: Colour) -> None:
        """Fill one polygon in every frame: (n_frames, k, 2)."""
        for strokes, outline in zip(self.strokes, flat(outlines), strict=True):
            strokes.append((outline, colour))

    def limb(self, joints: Points, radii: Points, colour: Colour, outline: float, *, root_gap: float = 0.0) -> None:
        """Draw a chain of round, shaded limbs through `joints` (n_frames, n, 2), with `radii` (n,) at the joints.

        `root_gap` is the share of the first limb without a dark edge, where it grows out of something.
        """
        coats = joints[:, None] + _SHIFTS[:, None, None] * radii[:, None] * LIGHT  # (n_frames, n_coats, n, 2)
        coats[:, :2, 0] += root_gap * (joints[:, 1] - joints[:, 0])[:, None]
        widths = _WIDTHS[:, None] * radii
        widths[0] += outline
        for number, layer in enumerate(LIMB_LAYERS):
            coat, width, coat_colour = coats[:, number], widths[number], shaded(colour, layer.brightness)
            shapes = capsules(coat[:, :-1], coat[:, 1:], width[:-1], width[1:])
            for strokes, shape in zip(self.strokes, flat(shapes), strict=True):
                strokes += [(one, coat_colour) for one in shape]


def flat(outlines: Points) -> Any:
    """Polygons (..., k, 2) as nested lists whose innermost are x, y, x, y, ..."""
    return outlines.reshape(*outlines.shape[:-2], 2 * outlines.shape[-2]).tolist()
