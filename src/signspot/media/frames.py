"""Frames to the size and range a model takes, and the random changes of training clips.

Squashing interpolates between the four nearest pixels with half-pixel centres and no smoothing, as OpenCV's
INTER_LINEAR does: the released models were trained on frames made that way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import SignerBox
from signspot.domain.tracks import CLIP_LENGTH, FloatArray, FrameShape, Ints, Pixels
from signspot.errors import FormatError
from signspot.files.atomic import atomic_output


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Turns bytes into the numbers a network takes: (x / 255 - mean) / std, per colour channel."""

    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)  # of the released models
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, self.mean)) or not all(math.isfinite(s) and s > 0 for s in self.std):
            raise ValueError(f"cannot normalise with mean {self.mean} and std {self.std}")


RELEASED = Normalisation()


@dataclass(frozen=True, slots=True)
class _ClipAugmentation:
    """One drawn change, the same for all frames of a clip: a sign's colours and place do not flicker."""

    flip: bool
    colour: tuple[float, float, float]  # factor per channel
    scale: float
    down: float  # where the crop lies in what can be cut: 0 top, 1 bottom
    right: float  # 0 left, 1 right
    crop: int

    def apply(self, clip: Pixels) -> Pixels:
        """(n, H, W, 3) uint8 -> (n, crop, crop, 3) uint8; `clip` stays as it is."""
        if clip.ndim != 4 or not len(clip):
            raise ValueError(f"a clip is (n, H, W, 3) with n >= 1, not {clip.shape}")
        height, width = clip.shape[1:3]
        # A picture that would become smaller than the crop is shrunk only as far as the crop allows.
        scale = max(self.scale, self.crop / min(height, width))
        tall, wide = round(height * scale), round(width * scale)
        rows = _Cut(tall, round(self.down * (tall - self.crop)), self.crop)
        columns = _Cut(wide, round(self.right * (wide - self.crop)), self.crop)
        lattice = _Lattice.over(height, width, rows, columns)
        cut = np.stack([_interpolated(frame, lattice) for frame in clip])
        if self.flip:
            cut = cut[:, :, ::-1]
        coloured = cut * np.asarray(self.colour, dtype=np.float32)
        return np.clip(np.rint(coloured), 0, 255).astype(np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """The random changes of training clips; defaults are those of the released trainer (Paper 3.2)."""

    crop: int = 224
    flip_probability: float = 0.5
    colour_jitter: float = 0.2  # each channel is multiplied by U(1 - jitter, 1 + jitter)
    scale_jitter: float = 0.1

    def __post_init__(self) -> None:
        shares = (self.flip_probability, self.colour_jitter, self.scale_jitter)
        if self.crop < 1 or not all(0 <= share <= 1 for share in shares) or self.scale_jitter == 1:
            raise ValueError(f"no augmentation can be drawn from {self}")

    def draw(self, rng: np.random.Generator) -> _ClipAugmentation:
        """Draw the change of one clip; always seven numbers of `rng`, whatever the settings."""
        flip, red, green, blue, scale, down, right = rng.random(7).tolist()
        red, green, blue = (1 + self.colour_jitter * (2 * share - 1) for share in (red, green, blue))
        scale = 1 + self.scale_jitter * (2 * scale - 1)
        return _ClipAugmentation(flip < self.flip_probability, (red, green, blue), scale, down, right, self.crop)


def cut_square(pixels: Pixels, box: SignerBox) -> Pixels:
    """(H, W, 3) -> (side, side, 3), contiguous: the smallest square around a box, so that no signer is distorted.

    The square lies in the picture where it can; where it is larger than the picture, the outermost pixels are repeated.
    """
    height, width = pixels.shape[:2]
    side = max(1, round(max((box.right - box.left) * width, (box.bottom - box.top) * height)))
    top, left = _start((box.top + box.bottom) / 2, side, height), _start((box.left + box.right) / 2, side, width)
    inside = pixels[max(0, top) : top + side, max(0, left) : left + side]
    if side <= min(height, width):
        return np.ascontiguousarray(inside)
    around = [(max(0, -start), max(0, start + side - length)) for start, length in ((top, height), (left, width))]
    return np.pad(inside, [*around, (0, 0)], mode="edge")


def _start(centre: float, side: int, length: int) -> int:
    """Where `side` pixels around a centre, in 0..1, begin; as few of them as possible lie beyond the picture."""
    most = length - side
    return min(max(round(centre * length - side / 2), min(0, most)), max(0, most))


def shape_frame(pixels: Pixels, shape: FrameShape) -> Pixels:
    """(H, W, 3) uint8 -> (crop, crop, 3) uint8; a frame that has the size already is returned as it is."""
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size or pixels.dtype != np.uint8:
        raise ValueError(f"a frame is (H, W, 3) uint8, not {pixels.shape} {pixels.dtype}")
    height, width = pixels.shape[:2]
    if (height, width) == (shape.crop, shape.crop) == (shape.side, shape.side):
        return pixels
    if shape.keep_aspect:
        return _smoothly_scaled(pixels, shape)
    offset = (shape.side - shape.crop) // 2
    return _interpolated(pixels, _squash_lattice(height, width, _Cut(shape.side, offset, shape.crop)))


def normalised(clip: Pixels, normalisation: Normalisation = RELEASED) -> FloatArray:
    """(..., 3) uint8 -> (..., 3) float32, by default x / 255 - 0.5 as the released models take it."""
    numbers = clip.astype(np.float32)
    numbers /= 255
    numbers -= np.asarray(normalisation.mean, dtype=np.float32)
    numbers /= np.asarray(normalisation.std, dtype=np.float32)
    return numbers


@dataclass(frozen=True, slots=True)
class _Cut:
    """The pixels start, start + 1, ... of an axis scaled to `scaled` pixels."""

    scaled: int
    start: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class _Lattice:
    """For every byte of a result: its four neighbours in the source and how far it lies from the first."""

    neighbours: tuple[npt.NDArray[np.int64], ...]  # 4 x (rows, columns * 3) into the flat source
    down: FloatArray  # (rows, 1) in [0, 1]
    right: FloatArray  # (columns * 3,) in [0, 1]

    @classmethod
    def over(cls, height: int, width: int, rows: _Cut, columns: _Cut) -> _Lattice:
        top, bottom, down = _nearest_two(height, rows)
        left, right, across = _nearest_two(width, columns)
        # Colours side by side, not on an axis of their own: numpy is slow on an innermost axis of three.
        left, right = ((3 * column[:, None] + np.arange(3)).ravel() for column in (left, right))
        corners = ((top, left), (top, right), (bottom, left), (bottom, right))
        neighbours = tuple(row[:, None] * (3 * width) + column for row, column in corners)
        return cls(neighbours, down[:, None], across.repeat(3))


def _nearest_two(source: int, cut: _Cut) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], FloatArray]:
    centres = (np.arange(cut.start, cut.start + cut.count) + 0.5) * (source / cut.scaled) - 0.5
    centres = np.clip(centres, 0, source - 1)
    low = np.floor(centres).astype(np.int64)
    return low, np.minimum(low + 1, source - 1), (centres - low).astype(np.float32)


@lru_cache(maxsize=16)  # a video has one size
def _squash_lattice(height: int, width: int, cut: _Cut) -> _Lattice:
    return _Lattice.over(height, width, cut, cut)


def _interpolated(pixels: Pixels, lattice: _Lattice) -> Pixels:
    flat = pixels.reshape(-1)
    upper, upper_right, lower, lower_right = (flat.take(n).astype(np.float32) for n in lattice.neighbours)
    for left, right in ((upper, upper_right), (lower, lower_right)):
        right -= left
        right *= lattice.right
        left += right
    lower -= upper
    lower *= lattice.down
    upper += lower
    upper += np.float32(0.5)  # the conversion cuts off: with this it rounds
    return upper.astype(np.uint8).reshape(len(upper), -1, 3)


def _smoothly_scaled(pixels: Pixels, shape: FrameShape) -> Pixels:
    from PIL import Image  # a decoding process that squashes never needs it

    height, width = pixels.shape[:2]
    short = min(height, width)
    tall, wide = (max(shape.side, round(length * shape.side / short)) for length in (height, width))
    # Only the part that survives the crop is scaled.
    top, left = ((length - shape.crop) // 2 for length in (tall, wide))
    x, y = width / wide, height / tall
    box = (left * x, top * y, (left + shape.crop) * x, (top + shape.crop) * y)
    image = Image.fromarray(pixels)
    scaled = image.resize((shape.crop, shape.crop), Image.Resampling.BILINEAR, box=box, reducing_gap=2.0)
    return np.array(scaled)  # writable, unlike a view of the image


# Which frames of a dictionary video make a clip: 16 of them, at a random speed and a random shift (Paper 3.2). The
# paper gives neither the number of clips nor the ranges; ours are those of docs/deviations.md. A video shorter than a
# clip is filled up with its last frame.

MAX_SPEED = 4.0  # a sign shown faster than this is no longer that sign


def random_clips(n_frames: int, rng: np.random.Generator, *, max_speed: float = MAX_SPEED) -> Ints:
    """Frame numbers of clips of a video, one for every 16 frames, each at its own speed and shift: (n_clips, 16)."""
    if not max_speed >= 1:
        raise ValueError(f"a clip cannot be sampled at a speed of {max_speed}: use 1 or more")
    if n_frames < 1:
        raise ValueError(f"no clip can be taken from {n_frames} frames")
    n_clips = max(1, round(n_frames / CLIP_LENGTH))
    speed = rng.uniform(1, max(1.0, min(max_speed, n_frames / CLIP_LENGTH)), size=(n_clips, 1))
    # Up to a whole frame beyond the last start, because the fraction is cut off: so every start is equally likely.
    room = np.maximum(0, n_frames - speed * (CLIP_LENGTH - 1))
    shift = rng.random((n_clips, 1)) * room
    return np.minimum((shift + speed * np.arange(CLIP_LENGTH)).astype(np.int64), n_frames - 1)


# Small pictures of a clip: a strip of frames spread evenly over its length, stored as one JPEG file. Pillow is loaded
# when one is made: a decoding process never needs it.

TILE_HEIGHT = 96  # pixels
TILES = 6
_WIDEST = 4  # times its height: wider pictures are cut at both sides
_QUALITY = 82  # of JPEG


def thumbnail(pixels: Pixels, height: int = TILE_HEIGHT) -> Pixels:
    """A picture (H, W, 3) uint8 brought to `height` pixels, its aspect kept."""
    from PIL import Image

    width = max(1, round(pixels.shape[1] * height / pixels.shape[0]))
    small = Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX, reducing_gap=2.0)
    spare = max(0, width - _WIDEST * height) // 2
    return np.asarray(small)[:, spare : width - spare]


def spread(n_frames: int, tiles: int = TILES) -> list[int]:
    """The middle frame of each of `tiles` equal parts of a clip; a short clip shows each frame once."""
    shown = min(n_frames, tiles)
    return [(2 * tile + 1) * n_frames // (2 * shown) for tile in range(shown)]


def strip(frames: Sequence[Pixels]) -> Pixels:
    """The thumbnails of a clip, all of one size, side by side: (height, n * width, 3) uint8."""
    return np.concatenate([frames[frame] for frame in spread(len(frames))], axis=1)


def write_strip(pixels: Pixels, path: Path, *, overwrite: bool = False) -> None:
    from PIL import Image

    with atomic_output(path, overwrite=overwrite) as temporary:
        Image.fromarray(pixels).save(temporary, format="JPEG", quality=_QUALITY)


def read_strip(path: Path, n_tiles: int) -> list[Pixels]:
    """The tiles (height, width, 3) uint8 of a stored strip."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=("JPEG",)) as image:
            pixels = np.asarray(image.convert("RGB"))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise FormatError(path, "is damaged", "remove it and run the same command again") from error
    return np.split(pixels[:, : pixels.shape[1] // n_tiles * n_tiles], n_tiles, axis=1)


def write_picture(pixels: Pixels, path: Path, *, overwrite: bool = False) -> None:
    from PIL import Image

    with atomic_output(path, overwrite=overwrite) as temporary:
        Image.fromarray(pixels).save(temporary, format="PNG")
