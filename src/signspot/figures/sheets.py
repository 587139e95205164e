"""Many clips on one picture: a row for each, its title and pictures spread evenly over its length."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import (
    HAND_LIMBS,
    HAND_POINTS,
    POSE_LIMBS,
    POSE_NUMBERS,
    FloatArray,
    Pixels,
    SignerLandmarks,
)
from signspot.figures.drawing import blank_figure, shortened, write_text
from signspot.media.frames import TILE_HEIGHT, spread

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
    shown = [[row.frames[i] for i in spread(len(row.frames), columns)] for row in rows]
    tile_width = max(_tile_width(pixels, tile_height) for row in shown for pixels in row)
    width = _TITLE_WIDTH + columns * (tile_width + _GAP)
    height = len(rows) * (tile_height + _GAP) + _GAP
    if width * height > _MOST_PIXELS:
        raise ValueError(f"a contact sheet of {width} x {height} pixels is too large: give fewer rows or smaller tiles")
    tops = [_GAP + number * (tile_height + _GAP) for number in range(len(rows))]
    titles = (shortened(row.title, _LONGEST_TITLE) for row in rows)
    sheet = _titled(width, height, 6, zip((top + (tile_height + _GAP) / 2 for top in tops), titles, strict=True))
    for top, pictures in zip(tops, shown, strict=True):
        for place, pixels in enumerate(pictures):
            tile = _tile(pixels, tile_height)
            left = _TITLE_WIDTH + place * (tile_width + _GAP)
            sheet[top : top + tile_height, left : left + tile.shape[1]] = tile
    return sheet


def _tile_width(pixels: Pixels, height: int) -> int:
    return max(1, round(int(pixels.shape[1]) * height / int(pixels.shape[0])))


def _tile(pixels: Pixels, height: int) -> Pixels:
    size = (_tile_width(pixels, height), height)
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0))


def _titled(width: int, height: int, left: int, titles: Iterable[tuple[float, str]]) -> Pixels:
    """A white sheet with a title at each of some heights, in pixels, in whatever fonts their letters need."""
    figure = blank_figure(width / _DPI, height / _DPI, _DPI)
    for down, title in titles:
        write_text(figure, left / width, 1 - down / height, title, fontsize=9, va="center")
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]  # type: ignore[attr-defined]
    sheet = np.full((height, width, 3), 255, dtype=np.uint8)
    tall, wide = min(height, drawn.shape[0]), min(width, drawn.shape[1])
    sheet[:tall, :wide] = drawn[:tall, :wide]
    return sheet


# Pairs of clips side by side on one picture: a row for each pair, a title above it, both clips as strips.

_TITLE_HEIGHT, _PAIR_GAP, _BETWEEN = 22, 6, 28  # pixels
_LONGEST_PAIR_TITLE = 110  # characters
_QUALITY = 82  # of JPEG
_TILES = 5  # pictures of a strip


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two clips to compare."""

    title: str
    left: Sequence[Pixels]  # (height, W, 3) uint8, one height for all; none: the clip may not be shown
    right: Sequence[Pixels]


def paired_sheet(pairs: Sequence[Pair]) -> Pixels:
    heights = {picture.shape[0] for pair in pairs for clip in (pair.left, pair.right) for picture in clip}
    if not pairs or len(heights) > 1:
        raise ValueError(f"no sheet of {len(pairs)} pairs, heights {sorted(heights)}")
    tile_height = heights.pop() if heights else 96
    strips = [(_strip(pair.left), _strip(pair.right)) for pair in pairs]
    half = max((strip.shape[1] for both in strips for strip in both if strip is not None), default=tile_height)
    row_height = _TITLE_HEIGHT + tile_height + _PAIR_GAP
    width, height = 2 * half + _BETWEEN + 2 * _PAIR_GAP, len(pairs) * row_height + _PAIR_GAP
    if width * height > _MOST_PIXELS:
        raise ValueError(f"a sheet of {width} x {height} pixels is too large: give fewer pairs")
    tops = [_PAIR_GAP + number * row_height for number in range(len(pairs))]
    titles = (shortened(pair.title, _LONGEST_PAIR_TITLE) for pair in pairs)
    sheet = _titled(width, height, _PAIR_GAP, zip((top + _TITLE_HEIGHT / 2 for top in tops), titles, strict=True))
    for top, both in zip((top + _TITLE_HEIGHT for top in tops), strips, strict=True):
        for strip, left in zip(both, (_PAIR_GAP, _PAIR_GAP + half + _BETWEEN), strict=True):
            if strip is not None:
                sheet[top : top + tile_height, left : left + strip.shape[1]] = strip
    return sheet


def jpeg_strip(clip: Sequence[Pixels]) -> bytes:
    """A clip as a strip of pictures, for a page; b"" where there is nothing to show."""
    strip = _strip(clip)
    if strip is None:
        return b""
    file = io.BytesIO()
    Image.fromarray(strip).save(file, format="JPEG", quality=_QUALITY)
    return file.getvalue()


def _strip(clip: Sequence[Pixels]) -> Pixels | None:
    return np.concatenate([clip[frame] for frame in spread(len(clip), _TILES)], axis=1) if len(clip) else None


# Landmarks as small pictures: a drawn skeleton shows how somebody signs without showing the face.

_PAPER, _BODY, _LEFT, _RIGHT = (250, 250, 248), (90, 90, 90), (0, 114, 178), (213, 94, 0)
_FINE = 4  # drawn so many times as large, then scaled down: smooth lines
_HIP = 23  # of the pose: what comes after it is legs
_LEAST_VISIBILITY = 0.3
_WIDEST_LINE = 4  # times its height


def skeletons(landmarks: SignerLandmarks, kept: FrameSpan | None = None, height: int = TILE_HEIGHT) -> list[Pixels]:
    """The pictures (height, W, 3) uint8 of a strip: at most six frames of a part, blank where nobody was found."""
    width = max(1, round(height * min(landmarks.aspect, _WIDEST_LINE)))
    part = landmarks.track.points if kept is None else landmarks.track.points[kept.start : kept.stop]
    return [_drawn(part[frame], width, height) for frame in spread(len(part))] if len(part) else []


def _drawn(points: FloatArray, width: int, height: int) -> Pixels:
    image = Image.new("RGB", (_FINE * width, _FINE * height), _PAPER)
    pen = ImageDraw.Draw(image)
    size = np.array((_FINE * width, _FINE * height), np.float32)
    pose = points[:POSE_NUMBERS].reshape(-1, 4)
    seen = (pose[:, 3] >= _LEAST_VISIBILITY) & (np.arange(len(pose)) <= _HIP + 1)
    _limbs(pen, pose[:, :2] * size, [ends for ends in POSE_LIMBS if seen[list(ends)].all()], _BODY)
    for hand, colour in zip(points[POSE_NUMBERS:].reshape(2, len(HAND_POINTS), 3), (_LEFT, _RIGHT), strict=True):
        if hand.any():
            _limbs(pen, hand[:, :2] * size, HAND_LIMBS, colour)
    return np.asarray(image.resize((width, height), Image.Resampling.BOX))


def _limbs(
    pen: ImageDraw.ImageDraw, places: FloatArray, limbs: Iterable[tuple[int, int]], colour: tuple[int, int, int]
) -> None:
    # A point far outside is a mistake of the detector, and too large a number for the pen.
    inside = np.clip(np.nan_to_num(places), -1e4, 1e4)
    for first, second in limbs:
        pen.line([tuple(inside[first].tolist()), tuple(inside[second].tolist())], fill=colour, width=_FINE)
