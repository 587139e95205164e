"""Videos made on the spot, each picture carrying its own number in black and white blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import av.container
import numpy as np

from signspot.domain.tracks import Pixels

_COLUMNS, _ROWS = 4, 3  # twelve blocks: a number of ten bits and two check bits
_NUMBER_BITS = 10
_FAST = {"libx264": {"preset": "veryfast"}, "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8"}}
_QUIET = {
    "libx265": {"preset": "ultrafast", "x265-params": "log-level=none"},
    "libsvtav1": {"preset": "9", "crf": "20"},
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to make one video."""

    suffix: str = ".mp4"
    codec: str = "libx264"
    rate: Fraction = Fraction(25)
    count: int = 40
    times: tuple[Fraction, ...] | None = None  # seconds; None: evenly at `rate`
    start: Fraction = Fraction(0)  # added to all times
    time_base: Fraction | None = None
    options: dict[str, str] = field(default_factory=dict)
    container_options: dict[str, str] = field(default_factory=dict)
    pixel_format: str = "yuv420p"
    width: int = 160
    height: int = 120
    counter_clockwise: int = 0  # degrees of the display matrix
    mirrored: bool = False
    pixel_aspect: Fraction | None = None
    sound_seconds: float = 0.0
    paint: Callable[[Pixels, int], Pixels] | None = None  # changes a picture, by its number, before it is stored

    @property
    def seconds(self) -> tuple[Fraction, ...]:
        """The true time of each picture."""
        times = self.times or tuple(Fraction(i) / self.rate for i in range(self.count))
        return tuple(time + self.start for time in times)


def numbered(number: int, width: int, height: int) -> Pixels:
    """A picture that carries `number` and its check bits; (height, width, 3)."""
    check = (number ^ number >> 2 ^ number >> 4 ^ number >> 6 ^ number >> 8) & 3
    bits = number | (check ^ 1) << _NUMBER_BITS
    blocks = np.array([bits >> i & 1 for i in range(_COLUMNS * _ROWS)], np.uint8).reshape(_ROWS, _COLUMNS)
    rows = np.arange(height) * _ROWS // height
    columns = np.arange(width) * _COLUMNS // width
    grey = 32 + 192 * blocks[rows[:, None], columns[None, :]]
    return np.repeat(grey[:, :, None], 3, axis=2).astype(np.uint8)


def number_of(pixels: Pixels) -> int:
    """The number a picture carries; fails if the picture is turned, mirrored or torn."""
    height, width = pixels.shape[:2]
    rows = [(2 * i + 1) * height // (2 * _ROWS) for i in range(_ROWS)]
    columns = [(2 * i + 1) * width // (2 * _COLUMNS) for i in range(_COLUMNS)]
    values = [float(pixels[r - 3 : r + 4, c - 3 : c + 4].mean()) for r in rows for c in columns]
    assert all(value < 90 or value > 165 for value in values), values
    bits = sum((value > 128) << i for i, value in enumerate(values))
    number = bits & (1 << _NUMBER_BITS) - 1
    check = (number ^ number >> 2 ^ number >> 4 ^ number >> 6 ^ number >> 8) & 3
    assert bits >> _NUMBER_BITS == check ^ 1, f"the check bits of picture {number} are wrong"
    return number


def make_video(path: Path, recipe: Recipe) -> Path:
    """Write the numbered pictures of a recipe to `path`."""
    with av.open(str(path), "w", options=recipe.container_options) as container:
        options = _FAST.get(recipe.codec, {}) | _QUIET.get(recipe.codec, {}) | recipe.options
        stream = container.add_stream(recipe.codec, rate=recipe.rate, options=options)
        stream.width, stream.height, stream.pix_fmt = recipe.width, recipe.height, recipe.pixel_format
        if recipe.counter_clockwise or recipe.mirrored:
            stream.set_display_rotation(recipe.counter_clockwise, hflip=recipe.mirrored)
        if recipe.pixel_aspect:
            stream.codec_context.sample_aspect_ratio = recipe.pixel_aspect
        time_base = recipe.time_base or 1 / recipe.rate
        stream.codec_context.time_base = time_base
        if recipe.sound_seconds:
            _add_sound(container, recipe.sound_seconds)
        for picture in _pictures(recipe, time_base):
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def cut(source: Path, target: Path, size: int) -> Path:
    """The first `size` bytes of a file as another file."""
    target.write_bytes(source.read_bytes()[:size])
    return target


def _pictures(recipe: Recipe, time_base: Fraction) -> Iterator[av.VideoFrame]:
    for number, time in enumerate(recipe.seconds):
        pixels = numbered(number, recipe.width, recipe.height)
        if recipe.paint is not None:
            pixels = recipe.paint(pixels, number)
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
        picture.pts, picture.time_base = round(time / time_base), time_base
        yield picture


def _add_sound(container: av.container.OutputContainer, seconds: float) -> None:
    rate = 48_000
    stream = container.add_stream("mp2" if container.format.name in ("mpegts", "mpeg") else "aac", rate=rate)
    size = 1152 if stream.codec_context.name == "mp2" else 1024
    for index in range(int(seconds * rate / size)):
        silence = np.zeros((2, size), np.float32) if stream.format.name == "fltp" else np.zeros((1, 2 * size), np.int16)
        block = av.AudioFrame.from_ndarray(silence, format=stream.format.name, layout="stereo")
        block.sample_rate, block.pts, block.time_base = rate, index * size, Fraction(1, rate)
        container.mux(stream.encode(block))
    container.mux(stream.encode())
