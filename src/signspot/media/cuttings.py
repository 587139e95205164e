"""Stretches cut out of a video, as clips of their own and as small pictures, in one pass over the video.

A clip begins at 0:00 and keeps the distances in time between its pictures. The video itself is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from signspot.domain.spans import MillisSpan
from signspot.domain.tracks import Pixels
from signspot.errors import VideoError
from signspot.media.reader import VideoReader
from signspot.media.thumbnails import TILE_HEIGHT, thumbnail
from signspot.media.video import Frame
from signspot.media.writer import VideoWriter

_ROUNDING_MS = 0.5  # times of spans are whole milliseconds
LONGEST_MS = 120_000  # of one stretch: a sign is shorter, and its pictures are held in memory

Progress = Callable[[float, float | None], None]  # called with media time done and expected, both in ms


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
    video: Path, cuttings: Sequence[Cutting], *, isolated: bool = True, progress: Progress | None = None
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


def _until(reader: VideoReader, end_ms: int, progress: Progress | None) -> Iterator[Frame]:
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
