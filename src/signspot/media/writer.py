"""Video out: H.264 in MP4 that browsers play, each picture at its true time, and the overlay video of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter

from signspot.domain.time import FRAME_MS, FRAME_RATE, MediaProgress, MillisSpan
from signspot.domain.tracks import Pixels
from signspot.errors import EnvironmentProblem, InputError, VideoError
from signspot.files.atomic import atomic_output, refuse_existing
from signspot.media.frames import TILE_HEIGHT, thumbnail
from signspot.media.reader import VideoReader
from signspot.media.video import Frame

_TICKS_PER_SECOND = 90_000  # of the MPEG clock: exact for 25, 29.97 and 60 pictures a second
_TICK = Fraction(1, _TICKS_PER_SECOND)
_MAX_SIDE = 8192
_BT709 = 1  # the code of the ITU-T H.273 tables for colour primaries and transfer
# Key pictures every two seconds: jumping is quick. The encoder's shortcuts for one kind of processor give other bytes
# on others and, with AVX-512, from one time to the next: they are left out.
_ENCODER_OPTIONS = {"preset": "veryfast", "crf": "21", "g": "50", "x264-params": "cpu-independent=1"}
# The index comes first, so that browsers start at once; no date or version, so that equal input gives equal bytes.
# A late start is stored in ticks of the movie's own clock, which by default has only whole milliseconds.
_CONTAINER_OPTIONS = {"movflags": "+faststart", "fflags": "+bitexact", "movie_timescale": str(_TICKS_PER_SECOND)}


class VideoWriter:
    """Writes pictures of one size, each at its own time; the file appears when the `with` block ends well.

    A side of odd length grows by one pixel, as H.264 in its common form needs even sides. The bytes depend on
    `threads`, which is therefore never taken from the number of processors, and not on the kind of processor.
    """

    def __init__(self, path: Path, *, width: int, height: int, overwrite: bool = False, threads: int = 1) -> None:
        if path.suffix.lower() != ".mp4":
            raise InputError(path, "is not the name of an MP4 video", "use a name that ends in .mp4")
        if not (1 <= width <= _MAX_SIDE and 1 <= height <= _MAX_SIDE):
            raise InputError(path, f"a video of {width} x {height} pixels cannot be written", f"up to {_MAX_SIDE} can")
        refuse_existing(path, overwrite=overwrite)
        self._path, self._overwrite = path, overwrite
        self._encoder_options = {**_ENCODER_OPTIONS, "threads": str(threads)}
        self._shape = (height, width, 3)
        self._last_tick = -1
        self._reformatter = VideoReformatter()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_output(self._path, overwrite=self._overwrite))
            with _explained(self._path):
                # Absolute, because FFmpeg takes what stands before a colon for a protocol.
                self._container = av.open(str(temporary.absolute()), "w", format="mp4", options=_CONTAINER_OPTIONS)
                stack.callback(self._close)
                self._stream = self._container.add_stream("libx264", options=self._encoder_options)
            self._describe_pictures()
            stack.push(self._flush)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def write(self, pixels: Pixels, time_ms: float) -> None:
        """Add a picture (H, W, 3) uint8 RGB shown from `time_ms` on.

        Times may repeat, as they do where a picture is held: the first picture of a time stays.
        """
        if pixels.shape != self._shape or pixels.dtype != np.uint8:
            expected = f"(H, W, 3) = {self._shape} uint8"
            raise VideoError(self._path, f"a picture of {pixels.shape} {pixels.dtype}, not {expected}")
        tick = round(time_ms * _TICKS_PER_SECOND / 1000) if np.isfinite(time_ms) else -1
        if tick < max(0, self._last_tick):
            last = self._last_tick * 1000 / _TICKS_PER_SECOND
            raise VideoError(self._path, f"a picture at {time_ms:.0f} ms after one at {max(0, last):.0f} ms")
        if tick == self._last_tick:
            return
        self._last_tick = tick
        self._encode(self._frame(pixels, tick))

    def _describe_pictures(self) -> None:
        height, width = self._shape[:2]
        self._stream.width, self._stream.height = width + width % 2, height + height % 2
        self._stream.pix_fmt = "yuv420p"
        codec = self._stream.codec_context
        codec.time_base = _TICK
        codec.framerate = Fraction(FRAME_RATE)  # what a player must keep up with; the times are those of the pictures
        # Said in the file, because players guess the colours of a small video differently from those of a large one.
        codec.colorspace, codec.color_range = Colorspace.ITU709, ColorRange.MPEG
        codec.color_primaries = codec.color_trc = _BT709

    def _frame(self, pixels: Pixels, tick: int) -> av.VideoFrame:
        height, width = pixels.shape[:2]
        if height % 2 or width % 2:
            pixels = np.pad(pixels, [(0, height % 2), (0, width % 2), (0, 0)], mode="edge")
        colours = {"dst_colorspace": Colorspace.ITU709, "dst_color_range": ColorRange.MPEG}
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
        frame = self._reformatter.reformat(frame, format="yuv420p", **colours)
        frame.pts, frame.time_base, frame.duration = tick, _TICK, FRAME_MS * _TICKS_PER_SECOND // 1000
        return frame

    def _encode(self, frame: av.VideoFrame | None) -> None:
        with _explained(self._path):
            self._container.mux(self._stream.encode(frame))

    def _flush(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        if self._last_tick < 0:
            raise VideoError(self._path, "there is no picture to write", "check that the video can be read")
        self._encode(None)

    def _close(self) -> None:
        with _explained(self._path):
            self._container.close()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what FFmpeg says about an output into our words; failures of the disk go on to `atomic_output`."""
    try:
        yield
    except av.FFmpegError as error:
        if isinstance(error, OSError):
            raise
        what = f"the video could not be encoded ({error.strerror})"
        raise EnvironmentProblem(path, what, "check that the disk has space and try again") from error


# Stretches cut out of a video, as clips of their own and as small pictures, in one pass over the video. A clip begins
# at 0:00 and keeps the distances in time between its pictures. The video itself is only read.

_ROUNDING_MS = 0.5  # times of spans are whole milliseconds
LONGEST_MS = 120_000  # of one stretch: a sign is shorter, and its pictures are held in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """What to cut out, and where to."""

    span_ms: MillisSpan
    path: Path | None = None  # of the MP4; None: only pictures are wanted
    overwrite: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.span_ms.duration <= LONGEST_MS:
            raise ValueError(f"cannot cut {self.span_ms} out of a video")


@dataclass(slots=True)
class _Open:
    """A cutting whose stretch has been reached."""

    cutting: Cutting
    first_ms: float
    publish: ExitStack  # ends the file, once the stretch has been passed
    writer: VideoWriter | None = None
    pictures: list[Pixels] = field(default_factory=list)

    def add(self, frame: Frame) -> None:
        if self.writer is not None:
            self.writer.write(frame.pixels, frame.time_ms - self.first_ms)
        self.pictures.append(thumbnail(frame.pixels, TILE_HEIGHT))


def cut_out(
    video: Path, cuttings: Sequence[Cutting], *, isolated: bool = True, progress: MediaProgress | None = None
) -> tuple[tuple[Pixels, ...], ...]:
    """Write the clips and give the thumbnails (96, W, 3) uint8 of every frame of each, in the order given.

    Reading ends with the last stretch. A stretch that the video does not reach is an error.
    """
    waiting = sorted(range(len(cuttings)), key=lambda number: cuttings[number].span_ms.start)
    pictures: dict[int, tuple[Pixels, ...]] = {}
    end_ms = max((cutting.span_ms.stop for cutting in cuttings), default=0)
    with VideoReader(video, isolated=isolated) as reader, ExitStack() as unfinished:
        opened: dict[int, _Open] = {}
        for frame in _until(reader, end_ms, progress):
            for number in [n for n, one in opened.items() if frame.time_ms >= one.cutting.span_ms.stop]:
                pictures[number] = _closed(opened.pop(number))
            while waiting and cuttings[waiting[0]].span_ms.start <= frame.time_ms + _ROUNDING_MS:
                number = waiting.pop(0)
                opened[number] = _begun(cuttings[number], frame, unfinished)
            for one in opened.values():
                one.add(frame)
        pictures |= {number: _closed(one) for number, one in opened.items()}
    if waiting:
        at = cuttings[waiting[0]].span_ms.start / 1000
        raise VideoError(video, f"ends before {at:.1f} s, where a sign was found", "is it another cut of the video?")
    return tuple(pictures[number] for number in range(len(cuttings)))


def _until(reader: VideoReader, end_ms: int, progress: MediaProgress | None) -> Iterator[Frame]:
    for frame in reader:
        if frame.time_ms >= end_ms:
            return
        if progress is not None:
            progress(frame.time_ms, end_ms)
        yield frame


def _begun(cutting: Cutting, frame: Frame, unfinished: ExitStack) -> _Open:
    one = _Open(cutting, frame.time_ms, unfinished.enter_context(ExitStack()))
    if cutting.path is not None:
        height, width = frame.pixels.shape[:2]
        writer = VideoWriter(cutting.path, width=width, height=height, overwrite=cutting.overwrite)
        one.writer = one.publish.enter_context(writer)
    return one


def _closed(one: _Open) -> tuple[Pixels, ...]:
    one.publish.close()
    return tuple(one.pictures)
