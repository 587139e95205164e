"""Many clips on one picture: a row for each, its title and pictures spread evenly over its length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from signspot.domain.tracks import Pixels
from signspot.media.drawing import blank_figure, shortened, write_text

_DPI = 100
_TITLE_WIDTH, _GAP = 150, 4  # pixels
_LONGEST_TITLE = 20  # characters
_MOST_PIXELS = 60_000_000  # what an image viewer still opens


@dataclass(frozen=True, slots=True, eq=False)
class SheetRow:
    """One clip of a contact sheet."""

    title: str
    frames: Sequence[Pixels]  # (H, W, 3) uint8 RGB; at least one


def contact_sheet(rows: Sequence[SheetRow], *, columns: int = 6, tile_height: int = 96) -> Pixels:
    """The rows below each other, `columns` pictures of `tile_height` pixels each; (height, width, 3) uint8."""
    if not rows or columns < 1 or tile_height < 8 or not all(len(row.frames) for row in rows):
        raise ValueError(f"no contact sheet of {len(rows)} rows and {columns} columns, {tile_height} pixels high")
    shown = [[row.frames[i] for i in _spread(len(row.frames), columns)] for row in rows]
    tile_width = max(_tile_width(pixels, tile_height) for row in shown for pixels in row)
    width = _TITLE_WIDTH + columns * (tile_width + _GAP)
    height = len(rows) * (tile_height + _GAP) + _GAP
    if width * height > _MOST_PIXELS:
        raise ValueError(f"a contact sheet of {width} x {height} pixels is too large: give fewer rows or smaller tiles")
    sheet = _titles(rows, width, height, tile_height)
    for number, pictures in enumerate(shown):
        top = _GAP + number * (tile_height + _GAP)
        for place, pixels in enumerate(pictures):
            tile = _tile(pixels, tile_height)
            left = _TITLE_WIDTH + place * (tile_width + _GAP)
            sheet[top : top + tile_height, left : left + tile.shape[1]] = tile
    return sheet


def _spread(n_frames: int, columns: int) -> list[int]:
    """The middle frame of each of `columns` equal parts of a clip; a short clip shows each frame once."""
    n_tiles = min(n_frames, columns)
    return [(2 * tile + 1) * n_frames // (2 * n_tiles) for tile in range(n_tiles)]


def _tile_width(pixels: Pixels, height: int) -> int:
    return max(1, round(int(pixels.shape[1]) * height / int(pixels.shape[0])))


def _tile(pixels: Pixels, height: int) -> Pixels:
    size = (_tile_width(pixels, height), height)
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0))


def _titles(rows: Sequence[SheetRow], width: int, height: int, tile_height: int) -> Pixels:
    """A white sheet with the titles on its left, in whatever fonts their letters need."""
    figure = blank_figure(width / _DPI, height / _DPI, _DPI)
    for number, row in enumerate(rows):
        y = 1 - (_GAP + (number + 0.5) * (tile_height + _GAP)) / height
        write_text(figure, 6 / width, y, shortened(row.title, _LONGEST_TITLE), fontsize=9, va="center")
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]  # type: ignore[attr-defined]
    sheet = np.full((height, width, 3), 255, dtype=np.uint8)
    tall, wide = min(height, drawn.shape[0]), min(width, drawn.shape[1])
    sheet[:tall, :wide] = drawn[:tall, :wide]
    return sheet
