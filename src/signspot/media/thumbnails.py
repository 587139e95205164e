"""Small pictures of a clip: a strip of frames spread evenly over its length, stored as one JPEG file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from signspot.atomic import atomic_output
from signspot.domain.tracks import Pixels
from signspot.errors import FormatError

TILE_HEIGHT = 96  # pixels
TILES = 6
_WIDEST = 4  # times its height: wider pictures are cut at both sides
_QUALITY = 82  # of JPEG


def thumbnail(pixels: Pixels, height: int = TILE_HEIGHT) -> Pixels:
    """A picture (H, W, 3) uint8 brought to `height` pixels, its aspect kept."""
    width = max(1, round(pixels.shape[1] * height / pixels.shape[0]))
    small = Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX, reducing_gap=2.0)
    spare = max(0, width - _WIDEST * height) // 2
    return np.asarray(small)[:, spare : width - spare]


def spread(n_frames: int, tiles: int = TILES) -> list[int]:
    """The middle frame of each of `tiles` equal parts of a clip; a short clip shows each frame once.

    >>> spread(60), spread(2)
    ([5, 15, 25, 35, 45, 55], [0, 1])
    """
    shown = min(n_frames, tiles)
    return [(2 * tile + 1) * n_frames // (2 * shown) for tile in range(shown)]


def strip(frames: Sequence[Pixels]) -> Pixels:
    """The thumbnails of a clip, all of one size, side by side: (height, n * width, 3) uint8."""
    return np.concatenate([frames[frame] for frame in spread(len(frames))], axis=1)


def write_strip(pixels: Pixels, path: Path, *, overwrite: bool = False) -> None:
    """Store a strip as JPEG: the same bytes for the same pixels."""
    with atomic_output(path, overwrite=overwrite) as temporary:
        Image.fromarray(pixels).save(temporary, format="JPEG", quality=_QUALITY)


def read_strip(path: Path, n_tiles: int) -> list[Pixels]:
    """The tiles (height, width, 3) uint8 of a stored strip."""
    try:
        with Image.open(path, formats=("JPEG",)) as image:
            pixels = np.asarray(image.convert("RGB"))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise FormatError(path, "is no thumbnail any more", "remove it and run the same command again") from error
    return np.split(pixels[:, : pixels.shape[1] // n_tiles * n_tiles], n_tiles, axis=1)


def write_picture(pixels: Pixels, path: Path, *, overwrite: bool = False) -> None:
    """Store a picture (H, W, 3) uint8 as PNG."""
    with atomic_output(path, overwrite=overwrite) as temporary:
        Image.fromarray(pixels).save(temporary, format="PNG")
