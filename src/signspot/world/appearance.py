"""How a drawn signer looks: colours and cut, drawn so that hands stand out as interpreters dress for it."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

Colour = tuple[int, int, int]  # red, green, blue in 0..255

_SKINS: tuple[Colour, ...] = (
    (246, 215, 190),
    (236, 196, 165),
    (222, 176, 140),
    (198, 146, 110),
    (166, 116, 82),
    (134, 90, 62),
    (104, 70, 50),
)
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


def random_appearance(rng: np.random.Generator) -> Appearance:
    """A signer whose hands stand out against the clothes, and the clothes against the wall."""
    skin = _varied(_SKINS[int(rng.integers(len(_SKINS)))], rng)
    hair = _varied(_HAIRS[int(rng.integers(len(_HAIRS)))], rng)
    top = _contrasting((skin,), rng, saturation=0.55)
    background = _contrasting((top,), rng, saturation=0.35)
    long_hair, long_sleeves = bool(rng.random() < 0.4), bool(rng.random() < 0.7)
    return Appearance(
        skin=skin, hair=hair, top=top, background=background, long_hair=long_hair, long_sleeves=long_sleeves
    )


def luma(colour: Colour) -> float:
    """How bright a colour looks, 0..255 (ITU-R BT.601).

    >>> round(luma((255, 255, 255))), round(luma((0, 0, 255)))
    (255, 29)
    """
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue


@lru_cache(maxsize=4096)  # a person is painted with the same few colours in every frame
def shaded(colour: Colour, factor: float) -> Colour:
    """The same colour in more light (`factor` > 1) or less.

    >>> shaded((100, 200, 50), 1.5)
    (150, 255, 75)
    """
    red, green, blue = (min(255, max(0, round(part * factor))) for part in colour)
    return red, green, blue


def blended(colour: Colour, other: Colour, share: float) -> Colour:
    """`colour` with a `share` in 0..1 of `other`."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue


def _varied(colour: Colour, rng: np.random.Generator) -> Colour:
    return shaded(colour, float(rng.uniform(0.95, 1.05)))


def _contrasting(others: tuple[Colour, ...], rng: np.random.Generator, *, saturation: float) -> Colour:
    """The first drawn colour far enough from the others in brightness; the farthest drawn if none is."""
    best, farthest = others[0], -1.0
    for _ in range(_MOST_DRAWS):
        hue, strength, value = rng.random(3).tolist()
        red, green, blue = colorsys.hsv_to_rgb(hue, strength * saturation, 0.12 + 0.85 * value)
        drawn = (round(255 * red), round(255 * green), round(255 * blue))
        distance = min(abs(luma(drawn) - luma(other)) for other in others)
        if distance >= _LEAST_CONTRAST:
            return drawn
        if distance > farthest:
            best, farthest = drawn, distance
    return best
