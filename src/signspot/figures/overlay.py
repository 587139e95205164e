"""The pictures of the overlay video: the frame, below it one lane of curves per word, below them the whole timeline.

The lanes show ten seconds around the playhead and move with it; what is still to come is faint. Curves are painted by
matplotlib once per ten seconds of video and cut from there, so a picture costs little and memory stays the same however
long the video is. All sizes are pixels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from signspot.domain.results import VideoAnswer, WordAnswer
from signspot.domain.time import clock
from signspot.domain.tracks import Pixels
from signspot.figures import drawing
from signspot.figures.drawing import FAINT_INK, FOUND, INK, OTHERS, UNSEARCHED, write_text
from signspot.media.writer import VideoWriter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OVERLAY_THREADS = 2  # the encoder takes most of the time


def write_overlay(
    frames: Iterable[tuple[Pixels, float]], answer: VideoAnswer, path: Path, *, overwrite: bool = False
) -> None:
    """Write the video that shows an answer: each frame (H, W, 3) with its time in ms, and the curves moving along.

    Up to six words get a lane; of more, those that were found come first, and the picture says so. Frames are taken one
    at a time and may be of any size.
    """
    overlay = _Overlay(answer)
    size = {"width": _WIDTH, "height": overlay.layout.height}
    with VideoWriter(path, **size, overwrite=overwrite, threads=_OVERLAY_THREADS) as writer:
        for pixels, time_ms in frames:
            writer.write(overlay.draw(pixels, time_ms), time_ms)


_WIDTH = 640
_PICTURE_HEIGHT = 360
_MAX_LANES = 6
_WINDOW_MS = 10_000  # how much time a lane shows
_NAME_WIDTH, _SCALE_WIDTH = 116, 34
_PLOT_WIDTH = _WIDTH - _NAME_WIDTH - _SCALE_WIDTH

_AXIS_HEIGHT = 18
_FUTURE = 0.35  # how strongly the part to come is drawn
_PLAYHEAD = (213, 94, 0)
_NIGHT = 24  # the grey around the frame


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the lanes and the timeline lie, by the number of lanes."""

    n_lanes: int

    @property
    def lane_height(self) -> int:
        return {1: 110, 2: 84}.get(self.n_lanes, 60)

    @property
    def row_height(self) -> int:
        return 30 if self.n_lanes <= 1 else 12

    @property
    def timeline_top(self) -> int:
        return _PICTURE_HEIGHT + self.n_lanes * self.lane_height + 4

    @property
    def height(self) -> int:
        """Of the whole picture; even, as video likes it."""
        height = self.timeline_top + max(1, self.n_lanes) * self.row_height + _AXIS_HEIGHT
        return height + height % 2

    def lane_top(self, lane: int) -> int:
        return _PICTURE_HEIGHT + lane * self.lane_height


class _Overlay:
    """Draws the pictures of one answer."""

    def __init__(self, answer: VideoAnswer) -> None:
        words = _shown_words(answer)
        cosines = drawing.CosineRange.of(answer)
        self.layout = _Layout(len(words))
        self._duration_ms = max(answer.duration_ms, 40)
        self._window_ms = min(_WINDOW_MS, self._duration_ms)
        height = self.layout.lane_height
        self._lanes = [_Lane(word, cosines, answer.threshold, self._window_ms, height) for word in words]
        # One canvas for all pictures: each draws over everything that moves.
        self._canvas = np.full((self.layout.height, _WIDTH, 3), 255, dtype=np.uint8)
        self._timeline = _timeline(words, self._duration_ms, self.layout.row_height)
        self._paint_what_stays(len(answer.words))

    def draw(self, pixels: Pixels, time_ms: float) -> Pixels:
        """The picture around one frame (H, W, 3): (layout.height, WIDTH, 3) uint8, valid until the next call."""
        now = min(max(time_ms, 0.0), float(self._duration_ms))
        start = min(max(now - self._window_ms / 2, 0.0), float(self._duration_ms - self._window_ms))
        self._canvas[:_PICTURE_HEIGHT] = _NIGHT
        _paste_fitting(self._canvas[:_PICTURE_HEIGHT], pixels)
        for number, lane in enumerate(self._lanes):
            top = self.layout.lane_top(number)
            strip = self._canvas[top : top + self.layout.lane_height]
            strip[:, :_NAME_WIDTH] = lane.names[_is_found(lane.word, time_ms)]
            lane.draw(strip[:, _NAME_WIDTH : _NAME_WIDTH + _PLOT_WIDTH], start, now)
        self._draw_timeline(start, now)
        return self._canvas

    def _paint_what_stays(self, n_words: int) -> None:
        for number, lane in enumerate(self._lanes):
            top = self.layout.lane_top(number)
            self._canvas[top : top + self.layout.lane_height, -_SCALE_WIDTH:] = lane.scale()
        if n_words > len(self._lanes):
            note = _note(f"{len(self._lanes)} of {n_words} words shown")
            self._canvas[self.layout.height - len(note) :, :_NAME_WIDTH] = note

    def _draw_timeline(self, start: float, now: float) -> None:
        top, rows = self.layout.timeline_top, self._timeline.shape[0]
        area = self._canvas[top : top + rows, _NAME_WIDTH : _NAME_WIDTH + _PLOT_WIDTH]
        area[:] = self._timeline
        curves = area[: rows - _AXIS_HEIGHT]
        seen = slice(*(round(t / self._duration_ms * (_PLOT_WIDTH - 1)) for t in (start, start + self._window_ms)))
        curves[[0, -1], seen] = 90  # a frame around what the lanes show
        curves[:, [seen.start, seen.stop]] = 90
        _draw_playhead(curves, now / self._duration_ms)
        face = _clock_face(clock(now, 1))
        self._canvas[top + 2 : top + 2 + len(face), 6 : 6 + face.shape[1]] = face


class _Lane:
    """One word's strip: its name, ten seconds of its curves, and the threshold."""

    def __init__(
        self, word: WordAnswer, cosines: drawing.CosineRange, threshold: float, window_ms: int, height: int
    ) -> None:
        self.word = word
        self._lines = drawing.curves(word)
        self._cosines, self._threshold = cosines, threshold
        self._window_ms, self._height = window_ms, height
        # The word in a box, green while it is found, above the legend of its curves: (height, NAME_WIDTH, 3).
        self.names = {is_found: self._paint_name(is_found=is_found) for is_found in (True, False)}
        self._tiles: dict[int, Pixels] = {}

    def scale(self) -> Pixels:
        """The threshold as a number at its height: (height, SCALE_WIDTH, 3)."""
        axes = _pixel_axes(_SCALE_WIDTH, self._height, (0, _SCALE_WIDTH), (self._cosines.low, self._cosines.high))
        write_text(axes, 3, self._threshold, f"{self._threshold:.2f}", size=7, color=FAINT_INK, va="center")
        return _raster(axes)

    def draw(self, area: Pixels, start_ms: float, now_ms: float) -> None:
        """Fill `area` (height, PLOT_WIDTH, 3) with the curves from `start_ms` on and the playhead."""
        first = round(start_ms / self._window_ms * _PLOT_WIDTH)
        number, offset = divmod(first, _PLOT_WIDTH)
        seen = self._tile(number)[:, :, offset:]
        if offset:
            seen = np.concatenate([seen, self._tile(number + 1)[:, :, :offset]], axis=2)
        share = (now_ms - start_ms) / self._window_ms
        column = round(share * (_PLOT_WIDTH - 1)) + 1
        area[:, :column], area[:, column:] = seen[0, :, :column], seen[1, :, column:]
        _draw_playhead(area, share)

    def _tile(self, number: int) -> Pixels:
        """A stretch of the curves, strong and faint: (2, height, PLOT_WIDTH, 3)."""
        if number not in self._tiles:
            self._tiles = {n: tile for n, tile in self._tiles.items() if n == number - 1}  # at most two are in use
            seconds = (number * self._window_ms / 1000, (number + 1) * self._window_ms / 1000)
            axes = _pixel_axes(_PLOT_WIDTH, self._height, seconds, (self._cosines.low, self._cosines.high))
            drawing.paint_word(axes, self.word, self._lines, self._threshold, thickness=1.2)
            strong = _raster(axes)
            faint = (255 - (255.0 - strong) * _FUTURE).astype(np.uint8)
            self._tiles[number] = np.stack([strong, faint])
        return self._tiles[number]

    def _paint_name(self, *, is_found: bool) -> Pixels:
        axes = _pixel_axes(_NAME_WIDTH, self._height, (0, _NAME_WIDTH), (self._height, 0))
        legend_top = self._height - 28
        axes.fill_between([4, _NAME_WIDTH - 8], 4, legend_top, color=FOUND if is_found else UNSEARCHED, linewidth=0)
        style = {"color": "white" if is_found else INK, "weight": "bold", "ha": "center", "va": "center"}
        size, said = _fitting(self.word.word, _NAME_WIDTH - 20)
        write_text(axes, _NAME_WIDTH / 2 - 2, legend_top / 2 + 2, said, size=size, **style)
        for place, line in enumerate(self._lines):
            across, down = 6 + (_NAME_WIDTH - 10) / 4 * (place % 4), legend_top + 3 + 12 * (place // 4)
            write_text(axes, across, down, line.label, size=6.5, color=line.colour, weight="bold", va="top")
        return _raster(axes)


def _shown_words(answer: VideoAnswer) -> tuple[WordAnswer, ...]:
    """The words that get a lane, in the order of the answer; if there are too many, those that were found first."""
    by_success = sorted(range(len(answer.words)), key=lambda place: not answer.words[place].spottings)
    return tuple(answer.words[place] for place in sorted(by_success[:_MAX_LANES]))


def _fitting(word: str, width: int) -> tuple[float, str]:
    """The font size at which a word fits into `width` pixels, and what is shown of it."""
    axes = _pixel_axes(width, 10, (0, 1), (0, 1))
    share = width / max(1.0, write_text(axes, 0, 0, word, size=13, weight="bold").get_window_extent().width)
    if 13 * share >= 7:
        return min(13, 13 * share), word
    return 7, drawing.shortened(word, max(2, int(len(word) * share * 13 / 7)))


def _is_found(word: WordAnswer, time_ms: float) -> bool:
    return any(spotting.span_ms.start <= time_ms < spotting.span_ms.stop for spotting in word.spottings)


def _timeline(words: tuple[WordAnswer, ...], duration_ms: int, row_height: int) -> Pixels:
    """The whole video, one row per word above an axis: the best cosine and what was found."""
    height, seconds = row_height * max(1, len(words)) + _AXIS_HEIGHT, duration_ms / 1000
    axes = _pixel_axes(_PLOT_WIDTH, height, (0, seconds), (height, 0))
    for row, word in enumerate(words):
        bottom = row_height * (row + 1)
        best = np.clip(drawing.with_gaps(word.similarity.best), 0, 1)
        when, cosine = drawing.pooled(word.similarity.times_ms / 1000, best, _PLOT_WIDTH)
        axes.fill_between(when, bottom - cosine * (row_height - 2), bottom, color=OTHERS, linewidth=0)
        least = 3 * seconds / _PLOT_WIDTH
        bars = [(start, max(stop - start, least)) for start, stop in drawing.found_spans(word, 0, seconds)]
        axes.broken_barh(bars, (bottom - row_height + 1, row_height - 1), color=FOUND, alpha=0.6, linewidth=0)
        axes.axhline(bottom, color=FAINT_INK, linewidth=0.6)
    step = drawing.tick_step(seconds, 7)
    style: dict[str, Any] = {"size": 7, "color": FAINT_INK, "va": "bottom"}
    for tick in np.arange(0, 0.97 * seconds, step).tolist():
        side = "center" if tick else "left"
        write_text(axes, tick, height - 2, clock(1000 * tick, int(step < 1)), ha=side, **style)
    return _raster(axes)


def _draw_playhead(area: Pixels, share: float) -> None:
    column = round(share * (area.shape[1] - 1))
    area[:, max(0, column - 1) : column + 1] = _PLAYHEAD


def _paste_fitting(area: Pixels, pixels: Pixels) -> None:
    from PIL import Image

    height, width = pixels.shape[:2]
    scale = min(area.shape[0] / height, area.shape[1] / width)
    tall, wide = max(1, round(height * scale)), max(1, round(width * scale))
    if (tall, wide) != (height, width):
        image = Image.fromarray(pixels).resize((wide, tall), Image.Resampling.BILINEAR, reducing_gap=1.0)
        pixels = np.asarray(image)
    top, left = (area.shape[0] - tall) // 2, (area.shape[1] - wide) // 2
    area[top : top + tall, left : left + wide] = pixels


@lru_cache(maxsize=4)  # several frames may share a tenth of a second
def _clock_face(text: str) -> Pixels:
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (_NAME_WIDTH - 12, 24), "white")
    ImageDraw.Draw(image).text((0, 0), text, fill=INK, font=ImageFont.load_default(size=18))
    return np.asarray(image)


def _note(text: str) -> Pixels:
    axes = _pixel_axes(_NAME_WIDTH, 16, (0, _NAME_WIDTH), (0, 16))
    write_text(axes, 6, 8, text, size=6.5, color=FAINT_INK, va="center")
    return _raster(axes)


def _pixel_axes(width: int, height: int, x: tuple[float, float], y: tuple[float, float]) -> Axes:
    axes = drawing.blank_figure(width / 100, height / 100, 100).add_axes((0, 0, 1, 1), xlim=x, ylim=y)
    axes.set_axis_off()
    return axes


def _raster(axes: Axes) -> Pixels:
    canvas: Any = axes.figure.canvas
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]
