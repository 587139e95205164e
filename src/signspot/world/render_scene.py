"""What is behind the signer: a plain studio wall, or a moving broadcast beside whom the signer stands.

A scene gives one enlarged backdrop a frame and says where in the picture the signer's own square lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PIL import Image, ImageDraw

from signspot.domain.tracks import FloatArray
from signspot.world.appearance import Colour, blended, shaded
from signspot.world.render_figure import split

_SHORTEST_SHOT, _LONGEST_SHOT = 40, 140  # frames
_PANORAMA = 1.7  # picture widths a camera can pan over
_BLUR = 18  # pixels of the enlarged picture
_DIM = 0.78  # a programme behind a signer is kept darker and paler
_GREY: Colour = (128, 128, 128)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the signer's square lies in the picture: its upper left corner and its side, in picture sides."""

    left: float = 0.0
    top: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 4 or not np.isfinite((self.left, self.top)).all():
            raise ValueError(f"a signer cannot be placed at {self}")

    def apply(self, points: FloatArray) -> FloatArray:
        """Landmarks (n, 258) of the signer's square -> landmarks of the picture; what was not found stays zero."""
        pose, *hands = split(points)
        moved = [pose[:, :, :3], *hands]
        for part in moved:
            found = part.any(axis=(1, 2))
            part[found] = part[found] * self.scale + (self.left, self.top, 0.0)
        flat = (part.reshape(len(points), part.shape[1] * part.shape[2]) for part in (pose, *hands))
        return np.concatenate(list(flat), axis=1).astype(np.float32)


class Scene(Protocol):
    """A place to sign in."""

    @property
    def placement(self) -> Placement:
        """Where the signer stands."""

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        """Without end, one RGB picture of side x side pixels a frame, to paint on: the next frame takes its place."""


@dataclass(frozen=True, slots=True)
class Studio:
    """A plain wall, a little brighter in the middle."""

    colour: Colour
    placement: Placement = Placement()

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        """The same wall in every frame."""
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
    placement: Placement = Placement(0.24, 0.12, 0.9)

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        """The programme, the same for the same seed."""
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
    movers = [_mover(rng) for _ in range(int(rng.integers(2, 5)))]
    for frame in range(length):
        left = round(start + (end - start) * frame / length)
        picture.paste(panorama, (-left, 0))
        draw = ImageDraw.Draw(picture)
        for mover in movers:
            mover.paint(draw, frame, side)
        yield picture


def _mover(rng: np.random.Generator) -> _Mover:
    x, y, width, height, speed = (rng.random(5) * (1.6, 0.6, 0.08, 0.12, 0.03)).tolist()
    return _Mover(x, 0.3 + y, 0.03 + width, 0.04 + height, speed - 0.015, _some_colour(rng))


def _panorama(rng: np.random.Generator, side: int) -> Image.Image:
    """Sky, ground and blocks in random colours, out of focus."""
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
