"""Pairs of clips side by side on one picture: a row for each pair, a title above it, both clips as strips."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from signspot.domain.tracks import Pixels
from signspot.media.drawing import blank_figure, shortened, write_text
from signspot.media.thumbnails import spread

_DPI = 100
_TITLE_HEIGHT, _GAP, _BETWEEN = 22, 6, 28  # pixels
_LONGEST_TITLE = 110  # characters
_QUALITY = 82  # of JPEG
_MOST_PIXELS = 60_000_000  # what an image viewer still opens


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two clips to compare."""

    title: str
    left: Sequence[Pixels]  # (height, W, 3) uint8, one height for all; none: the clip may not be shown
    right: Sequence[Pixels]


def paired_sheet(pairs: Sequence[Pair], *, tiles: int = 5) -> Pixels:
    """The pairs below each other: (height, width, 3) uint8."""
    heights = {picture.shape[0] for pair in pairs for clip in (pair.left, pair.right) for picture in clip}
    if not pairs or tiles < 1 or len(heights) > 1:
        raise ValueError(f"no sheet of {len(pairs)} pairs, {tiles} tiles, heights {sorted(heights)}")
    tile_height = heights.pop() if heights else 96
    strips = [(_strip(pair.left, tiles), _strip(pair.right, tiles)) for pair in pairs]
    half = max((strip.shape[1] for both in strips for strip in both if strip is not None), default=tile_height)
    row_height = _TITLE_HEIGHT + tile_height + _GAP
    width, height = 2 * half + _BETWEEN + 2 * _GAP, len(pairs) * row_height + _GAP
    if width * height > _MOST_PIXELS:
        raise ValueError(f"a sheet of {width} x {height} pixels is too large: give fewer pairs")
    sheet = _titles(pairs, width, height, row_height)
    for number, both in enumerate(strips):
        top = _GAP + number * row_height + _TITLE_HEIGHT
        for strip, left in zip(both, (_GAP, _GAP + half + _BETWEEN), strict=True):
            if strip is not None:
                sheet[top : top + tile_height, left : left + strip.shape[1]] = strip
    return sheet


def jpeg_strip(clip: Sequence[Pixels], tiles: int = 5) -> bytes:
    """A clip as a strip of pictures, for a page; b"" where there is nothing to show."""
    strip = _strip(clip, tiles)
    if strip is None:
        return b""
    file = io.BytesIO()
    Image.fromarray(strip).save(file, format="JPEG", quality=_QUALITY)
    return file.getvalue()


def _strip(clip: Sequence[Pixels], tiles: int) -> Pixels | None:
    return np.concatenate([clip[frame] for frame in spread(len(clip), tiles)], axis=1) if len(clip) else None


def _titles(pairs: Sequence[Pair], width: int, height: int, row_height: int) -> Pixels:
    """A white sheet with the title of every pair, in whatever fonts their letters need."""
    figure = blank_figure(width / _DPI, height / _DPI, _DPI)
    for number, pair in enumerate(pairs):
        y = 1 - (_GAP + number * row_height + _TITLE_HEIGHT / 2) / height
        write_text(figure, _GAP / width, y, shortened(pair.title, _LONGEST_TITLE), fontsize=9, va="center")
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]  # type: ignore[attr-defined]
    sheet = np.full((height, width, 3), 255, dtype=np.uint8)
    tall, wide = min(height, drawn.shape[0]), min(width, drawn.shape[1])
    sheet[:tall, :wide] = drawn[:tall, :wide]
    return sheet
