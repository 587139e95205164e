"""Joints as video: landmarks in the MediaPipe layout become frames of a person who signs.

Frames are painted with Pillow at three times their size and then reduced, which smooths every edge. The same landmarks,
appearance and scene give the same bytes. Nothing but the shapes of some frames and one picture is held.

>>> frames = render_frames(points, mouth, appearance)                                           # doctest: +SKIP
>>> next(frames).shape                                                                          # doctest: +SKIP
(256, 256, 3)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from signspot.domain.tracks import LANDMARK_DIM, FloatArray, Pixels
from signspot.world.appearance import Appearance
from signspot.world.render_body import paint_person
from signspot.world.render_figure import Figures, Proportions, split
from signspot.world.render_scene import Placement, Scene, Studio
from signspot.world.render_shapes import Canvas

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
        canvas = Canvas([[] for _ in figures.pose])
        paint_person(canvas, figures, appearance)
        for frame, image in zip(range(len(figures.pose)), backdrops, strict=False):
            canvas.paint(frame, image)
            yield np.array(image.reduce(_ENLARGED))


def _figures(points: FloatArray, mouth: FloatArray, placement: Placement, side: int) -> Iterator[Figures]:
    measured = points[:: len(points) // _MEASURED_FRAMES + 1]
    proportions = Proportions.of(placement.apply(measured), side)
    for first in range(0, len(points), _TOGETHER):
        pose, left, right = split(placement.apply(points[first : first + _TOGETHER]))
        openings = mouth[first : first + _TOGETHER].astype(np.float64)
        in_blink = (np.arange(first, first + len(pose)) % _BLINK_EVERY - _BLINK_FROM) % _BLINK_EVERY
        yield Figures(
            pose[..., :3] * side, (left * side, right * side), openings, in_blink < _BLINK_FRAMES, proportions
        )
