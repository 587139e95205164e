"""What signs are made of: handshapes, locations, orientations and paths, and the forms they combine to.

Everything is told for the dominant hand of a right-hander; the other hand is its mirror image. Body coordinates: the
unit is the signer's shoulder width, the origin lies between the shoulders, x grows to the signer's left (the right of
the picture), y grows downward, z grows away from the camera. Angles are in radians unless a name says degrees.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import TypeVar

import numpy as np
import numpy.typing as npt

_T = TypeVar("_T")
Floats = npt.NDArray[np.float64]

FINGER_ANGLES = 20  # thumb, index, middle, ring, little: three flexions and a spread each

# Flexion of the three joints of a finger in degrees: extended, fist, curved, bent, hooked, round, slightly bent.
_FINGER = {
    "E": (2, 4, 2),
    "F": (88, 100, 62),
    "C": (32, 48, 30),
    "B": (82, 6, 4),
    "H": (8, 88, 58),
    "O": (58, 52, 34),
    "S": (38, 8, 4),
}
# Thumb: opposition, flexion of two joints, and abduction from the index finger, in degrees.
_THUMB = {"o": (8, 0, 0, 62), "a": (5, 8, 5, 12), "x": (62, 48, 40, 18), "p": (72, 22, 18, 34)}
_SPREAD = (1.0, 0.25, -0.5, -1.35)  # of index to little finger, times the spread of the shape

# Thumb, four fingers, and how far the fingers spread (degrees).
_SHAPES = {
    "fist": ("xFFFF", 0), "side-thumb": ("aFFFF", 0), "thumb-up": ("oFFFF", 0), "flat": ("aEEEE", 0),
    "flat-tucked": ("xEEEE", 0), "five": ("oEEEE", 13), "four": ("xEEEE", 12), "claw": ("oHHHH", 11),
    "c": ("pCCCC", 2), "o": ("pOOOO", 0), "index": ("xEFFF", 0), "l": ("oEFFF", 0), "v": ("xEEFF", 15),
    "u": ("xEEFF", 0), "three": ("oEEFF", 14), "w": ("xEEEF", 13), "little": ("xFFFE", 0), "y": ("oFFFE", 6),
    "horns": ("xEFFE", 4), "l-y": ("oEFFE", 5), "bent-v": ("xHHFF", 13), "hook": ("xHFFF", 0),
    "hook-l": ("oHFFF", 0), "ring": ("pOEEE", 11), "eight": ("pEOEE", 10), "bent": ("aBBBB", 0),
    "beak": ("pBBBB", 0), "small-c": ("pCFFF", 0), "pinch": ("pBFFF", 0), "k": ("pESFF", 8),
    "double-ring": ("pOOEE", 9), "bent-three": ("oHHFF", 12),
}  # fmt: skip
SHAPES = tuple(_SHAPES)

# Where the middle of the palm goes.
_LOCATIONS = {
    "forehead": (-0.06, -1.00, -0.42), "temple": (-0.32, -0.90, -0.26), "eye": (-0.14, -0.80, -0.44),
    "nose": (0.00, -0.68, -0.48), "cheek": (-0.26, -0.62, -0.34), "ear": (-0.42, -0.74, -0.10),
    "mouth": (-0.03, -0.52, -0.48), "chin": (-0.02, -0.36, -0.44), "neck": (-0.06, -0.14, -0.36),
    "shoulder": (-0.44, 0.04, -0.28), "far-shoulder": (0.36, 0.06, -0.36), "chest": (-0.08, 0.34, -0.38),
    "far-chest": (0.22, 0.40, -0.42), "belly": (-0.04, 0.86, -0.44), "upper-arm": (0.46, 0.42, -0.34),
    "before-face": (-0.16, -0.50, -0.86), "high-space": (-0.52, -0.34, -0.74), "middle-space": (-0.22, 0.42, -0.86),
    "side-space": (-0.72, 0.26, -0.60), "low-space": (-0.26, 0.90, -0.66), "far-space": (0.26, 0.36, -0.80),
}  # fmt: skip
LOCATIONS = tuple(_LOCATIONS)

# Degrees (swing, tilt, roll): fingers up and palm to the camera, then rolled about the fingers (90: palm to the other
# side, 180: to the signer), swung in the picture (90: fingers to the other side), tilted about x (90: up is forward).
_ORIENTATIONS = {
    "up-out": (8, 10, 5), "up-in": (10, 5, 172), "up-side": (5, 12, 90), "forward-down": (12, 76, 0),
    "forward-side": (10, 72, 88), "forward-up": (10, 78, 176), "side-in": (72, 5, 170), "side-down": (72, 72, 0),
    "side-up": (66, 76, 172), "down-in": (8, 142, 4),
}  # fmt: skip
ORIENTATIONS = tuple(_ORIENTATIONS)

# Where a path goes and to which side it bows. Those in depth also rise or fall: a camera in front must see them.
_DIRECTIONS = {
    "up": ((0, -1, 0), (0, 0, -1)), "down": ((0, 1, 0), (0, 0, -1)), "across": ((1, 0, 0), (0, -1, 0)),
    "outward": ((-1, 0, 0), (0, -1, 0)),
    "forward": ((0, 0.7, -1), (0, -1, -0.7)), "back": ((0.2, -0.7, 1), (-1, 0, 0.2)),
    "diagonal": ((0.7, 0.7, 0), (0.7, -0.7, 0)),
}  # fmt: skip
DIRECTIONS = tuple(_DIRECTIONS)

PATHS = ("straight", "arc", "circle", "zigzag", "tap", "hold")
_PLACE = 0.36  # every form has its own place around the middle of its location
_PLACE_AT_BASE = 0.1  # a hand stays with its base
SIZES = (0.2, 0.36, 0.56)  # shoulder widths


class Hands(StrEnum):
    """What the other hand does."""

    ONE = "one"
    SYMMETRIC = "symmetric"
    ALTERNATING = "alternating"
    BASE = "base"  # it holds still under or behind the dominant hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """One posture and its movement."""

    shape: str
    final_shape: str
    location: str
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)  # from the middle of the location, shoulder widths
    orientation: str
    final_orientation: str
    path: str
    direction: str
    size: int  # of SIZES
    repetitions: int


@dataclass(frozen=True, slots=True)
class Form:
    """How a sign is performed: one stroke, or two of a compound."""

    strokes: tuple[Stroke, ...]
    hands: Hands = Hands.ONE
    base_shape: str = "flat"  # of the other hand where it is a base


_SHAPE_CHANGES = (("fist", "five"), ("o", "five"), ("flat", "bent"), ("beak", "five"), ("claw", "fist"),
                  ("v", "bent-v"), ("index", "hook"), ("five", "beak"), ("l", "pinch"),
                  ("three", "bent-three"))  # fmt: skip
_HANDS = tuple(Hands)
_BASES = ("flat", "fist", "index", "five", "c")


def random_form(rng: np.random.Generator) -> Form:
    """Draw a form of one stroke."""
    hands = _pick(rng, _HANDS, (0.50, 0.24, 0.09, 0.17))
    shape = final_shape = _pick(rng, SHAPES)
    if rng.random() < 0.22:
        shape, final_shape = _SHAPE_CHANGES[rng.integers(len(_SHAPE_CHANGES))]
    orientation = final_orientation = _pick(rng, ORIENTATIONS)
    if rng.random() < 0.18:
        final_orientation = _pick(rng, ORIENTATIONS)
    path = _pick(rng, PATHS, (0.32, 0.2, 0.15, 0.1, 0.15, 0.08))
    if path == "hold" and shape == final_shape and orientation == final_orientation:
        path = "tap"  # a sign moves
    stroke = Stroke(
        shape=shape,
        final_shape=final_shape,
        location="middle-space" if hands is Hands.BASE else _pick(rng, LOCATIONS),
        place=_drawn_place(rng, _PLACE_AT_BASE if hands is Hands.BASE else _PLACE),
        orientation=orientation,
        final_orientation=final_orientation,
        path=path,
        direction=_pick(rng, DIRECTIONS),
        size=int(rng.integers(len(SIZES))),
        repetitions=_pick(rng, (1, 2, 3), (0.6, 0.3, 0.1)),
    )
    return Form((stroke,), hands, _pick(rng, _BASES) if hands is Hands.BASE else "flat")


def minimal_partner(form: Form, rng: np.random.Generator) -> Form:
    """A form that differs in one parameter of one stroke: handshape, location, orientation, or path."""
    which = int(rng.integers(len(form.strokes)))
    stroke = form.strokes[which]
    kinds = ["shape", "orientation", "path"] + ["location"] * (form.hands is not Hands.BASE)
    kind = _pick(rng, tuple(kinds))
    if kind == "shape":
        shape = _other(rng, SHAPES, stroke.shape)
        changed = replace(stroke, shape=shape, final_shape=shape)
    elif kind == "orientation":
        orientation = _other(rng, ORIENTATIONS, stroke.orientation)
        changed = replace(stroke, orientation=orientation, final_orientation=orientation)
    elif kind == "location":
        changed = replace(stroke, location=_other(rng, LOCATIONS, stroke.location))
    else:
        changed = replace(stroke, path=_other(rng, PATHS[:-1], stroke.path))
    return replace(form, strokes=(*form.strokes[:which], changed, *form.strokes[which + 1 :]))


def compound(first: Form, second: Form) -> Form:
    """Both forms after each other, with the hands of the second."""
    return Form((first.strokes[0], second.strokes[-1]), second.hands, second.base_shape)


def shape_angles(shape: str) -> Floats:
    """(20,) the joint angles of a handshape."""
    codes, spread = _SHAPES[shape]
    rows = [(*_FINGER[code], spread * share) for code, share in zip(codes[1:], _SPREAD, strict=True)]
    return np.radians(np.array([_THUMB[codes[0]], *rows], dtype=np.float64)).ravel()


def location_point(location: str) -> Floats:
    """(3,) where the palm goes."""
    return np.array(_LOCATIONS[location], dtype=np.float64)


def orientation_angles(orientation: str) -> Floats:
    """(3,) swing, tilt, roll."""
    return np.radians(np.array(_ORIENTATIONS[orientation], dtype=np.float64))


def path_axes(direction: str) -> tuple[Floats, Floats]:
    """Two unit vectors (3,): where a path goes, and the side to which it bows."""
    along, aside = (np.array(axis, dtype=np.float64) for axis in _DIRECTIONS[direction])
    return along / np.linalg.norm(along), aside / np.linalg.norm(aside)


def _drawn_place(rng: np.random.Generator, reach: float) -> tuple[float, float, float]:
    x, y, z = np.round(rng.uniform(-reach, reach, 3), 3).tolist()
    return x, y, 0.5 * z


def _pick(rng: np.random.Generator, options: tuple[_T, ...], odds: tuple[float, ...] | None = None) -> _T:
    if odds is None:
        return options[int(rng.integers(len(options)))]
    upto = tuple(accumulate(odds))
    return options[bisect(upto, float(rng.random()) * upto[-1])]


def _other(rng: np.random.Generator, options: tuple[str, ...], than: str) -> str:
    return _pick(rng, tuple(option for option in options if option != than))
