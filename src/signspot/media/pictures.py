"""From decoded pictures to what a viewer sees: deinterlaced, square pixels, turned upright, RGB."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import av
import av.error
import av.filter
import numpy as np
from av.sidedata.sidedata import SideData
from av.sidedata.sidedata import Type as SideDataType
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

from signspot.domain.tracks import Pixels

# PyAV raises FFmpeg's errors, and on damaged files also Python's own of many kinds (IndexError, UnicodeDecodeError...).
FAULTS = (
    av.error.FFmpegError,
    ArithmeticError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
_WIDEST_PIXEL = 4  # pixels wider or narrower than this are a damaged header
_DEINTERLACE = "mode=send_frame:deint=interlaced"  # one picture per frame; progressive pictures pass


@dataclass(frozen=True, slots=True)
class Orientation:
    """How stored pixels become upright ones: exchange rows and columns, then flip."""

    exchange: bool = False
    flip_columns: bool = False
    flip_rows: bool = False

    @classmethod
    def of(cls, picture: VideoFrame) -> Orientation:
        """Read a picture's display matrix; angles between the quarter turns go to the nearest."""
        try:
            side_data = cast(Mapping[SideDataType, SideData], picture.side_data)
        except ValueError:  # PyAV gives none if it has no name for one of them, such as the views of MV-HEVC, or Exif
            return cls.turned(-picture.rotation)
        matrix = side_data.get(SideDataType.DISPLAYMATRIX)
        if matrix is None:
            return cls()
        # A stored pixel (x, y) is displayed at (a x + c y, b x + d y), up to a shift.
        a, b, _, c, d = (int(v) for v in np.frombuffer(bytes(matrix), np.int32)[:5])
        if abs(a) + abs(d) >= abs(b) + abs(c):
            return cls(False, flip_columns=a < 0, flip_rows=d < 0)
        return cls(True, flip_columns=c < 0, flip_rows=b < 0)

    @classmethod
    def turned(cls, clockwise: float) -> Orientation:
        """That of a picture which is turned by these degrees, or the nearest quarter turn, and not mirrored."""
        quarters = round(clockwise / 90) % 4
        return cls(quarters % 2 == 1, flip_columns=quarters in (1, 2), flip_rows=quarters in (2, 3))

    @property
    def mirrored(self) -> bool:
        """Whether left and right are exchanged, which no rotation does."""
        return self.exchange ^ self.flip_columns ^ self.flip_rows

    @property
    def rotation(self) -> int:
        """Degrees clockwise, after the mirroring if there is one."""
        if self.exchange:
            return 90 if self.flip_columns else 270
        return 180 if self.flip_rows else 0

    def apply(self, pixels: Pixels) -> Pixels:
        """(H, W, 3) as stored -> upright, contiguous."""
        upright = pixels.transpose(1, 0, 2) if self.exchange else pixels
        upright = upright[:: -1 if self.flip_rows else 1, :: -1 if self.flip_columns else 1]
        return np.ascontiguousarray(upright)


class Viewer:
    """Turns pictures into upright RGB arrays, all of the size of the first."""

    def __init__(self, first: VideoFrame, pixel_aspect: Fraction | None) -> None:
        self.orientation = Orientation.of(first)
        aspect = float(pixel_aspect) if pixel_aspect else 1.0
        if not 1 / _WIDEST_PIXEL <= aspect <= _WIDEST_PIXEL:
            aspect = 1.0
        # Pixels are only ever stretched, so no detail is lost.
        self._width = math.ceil(first.width * max(1.0, aspect))
        self._height = math.ceil(first.height / min(1.0, aspect))
        self._reformatter = VideoReformatter()

    @property
    def width(self) -> int:
        """Of the upright picture, in pixels."""
        return self._height if self.orientation.exchange else self._width

    @property
    def height(self) -> int:
        """Of the upright picture, in pixels."""
        return self._width if self.orientation.exchange else self._height

    def pixels(self, picture: VideoFrame) -> Pixels:
        """(height, width, 3) uint8 RGB."""
        plain = self._reformatter.reformat(picture, self._width, self._height, "rgb24")
        return self.orientation.apply(plain.to_ndarray().astype(np.uint8, copy=False))


class Deinterlacer:
    """Passes pictures on, and joins the two half-pictures of interlaced ones; runs up to two pictures behind."""

    def __init__(self) -> None:
        self._graph: av.filter.Graph | None = None
        self._layout: tuple[object, ...] = ()

    def push(self, picture: VideoFrame) -> Iterator[VideoFrame]:
        """Take one picture; give those that are ready."""
        layout = (picture.width, picture.height, picture.format.name, picture.time_base)
        if self._graph is not None and layout != self._layout:
            yield from self.flush()
        try:
            if self._graph is None and picture.interlaced_frame:
                self._graph, self._layout = _graph_for(picture), layout
            if self._graph is not None:
                self._graph.vpush(picture)
        except FAULTS:  # better two half-pictures than none
            yield from self.flush()
        if self._graph is None:
            yield picture
        else:
            yield from self._ready()

    def flush(self) -> Iterator[VideoFrame]:
        """Give the pictures still held back."""
        if self._graph is not None:
            with contextlib.suppress(*FAULTS):
                self._graph.vpush(None)
            yield from self._ready()
            self._graph = None

    def _ready(self) -> Iterator[VideoFrame]:
        while self._graph is not None:
            try:
                picture = self._graph.vpull()
            except FAULTS:  # among them: no more for now
                return
            yield picture


def _graph_for(picture: VideoFrame) -> av.filter.Graph:
    graph = av.filter.Graph()
    graph.threads = 2
    source = graph.add_buffer(
        width=picture.width, height=picture.height, format=picture.format, time_base=picture.time_base
    )
    graph.link_nodes(source, graph.add("bwdif", _DEINTERLACE), graph.add("buffersink")).configure()
    return graph
