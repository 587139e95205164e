"""Finding body and hands in video with MediaPipe Holistic, offline: the optional extra `pose`.

The networks come inside the package of the extra. Landmarks are numbers about one person, the most prominent in the
picture or in a box, at 25 frames a second. They are no anonymisation: people can be told apart by how they move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from signspot.domain.boxes import SignerBox
from signspot.domain.tracks import FloatArray, LandmarkTrack, Pixels
from signspot.errors import VideoError
from signspot.media.landmark_layout import POSE_NUMBERS, SignerLandmarks
from signspot.media.landmark_process import LandmarkDetector
from signspot.media.reader import ReadReport, VideoReader
from signspot.media.video import Frame

_LONGEST_SIDE = 1920  # pixels: larger pictures cost time and show no more

Progress = Callable[[float, float | None], None]  # called with media time done and, if known, expected, both in ms


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkOptions:
    """Where and how to look."""

    box: SignerBox | None = None  # the part of the picture that shows the signer; None: all of it
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing


@dataclass(frozen=True, slots=True, eq=False)
class FoundLandmarks:
    """The landmarks of a video and what was noticed while reading it."""

    signer: SignerLandmarks
    report: ReadReport


def find_landmarks(
    path: Path, options: LandmarkOptions = LandmarkOptions(), progress: Progress | None = None
) -> FoundLandmarks:
    """Find the signer's body and hands in every frame of a video, in fractions of the whole picture."""
    with VideoReader(path, isolated=options.isolated) as reader, LandmarkDetector(path) as detector:
        area = _Area.of(options.box, reader.info.width, reader.info.height)
        points = [area.in_picture(row) for row in _answers(_reported(reader, progress), detector, area)]
        report, info = reader.report, reader.info
    if not points:
        raise VideoError(path, "holds no pictures", "give a video of somebody who signs")
    track = LandmarkTrack(path.stem, report.axis, np.stack(points))
    return FoundLandmarks(SignerLandmarks(track, info.width, info.height), report)


def _reported(reader: VideoReader, progress: Progress | None) -> Iterator[Frame]:
    for frame in reader:
        yield frame
        if progress is not None:
            progress(frame.time_ms, reader.info.duration_ms)


def _answers(frames: Iterable[Frame], detector: LandmarkDetector, area: _Area) -> Iterator[FloatArray]:
    """The landmarks (258,) of every frame; a picture that is held is looked at once."""
    shown: Pixels | None = None
    held = 0
    for frame in frames:  # the next picture is decoded while the detector looks at the one before
        if frame.pixels is shown:
            held += 1
            continue
        if shown is not None:
            yield from repeat(detector.answer(), held)
        detector.show(area.cut(frame.pixels))
        shown, held = frame.pixels, 1
    if shown is not None:
        yield from repeat(detector.answer(), held)


@dataclass(frozen=True, slots=True)
class _Area:
    """The pixels that are looked at, as a part of the picture."""

    width: int
    height: int
    left: int
    top: int
    right: int
    bottom: int

    @classmethod
    def of(cls, box: SignerBox | None, width: int, height: int) -> _Area:
        if box is None:
            return cls(width, height, 0, 0, width, height)
        left, top = min(int(box.left * width), width - 1), min(int(box.top * height), height - 1)
        right, bottom = max(left + 1, round(box.right * width)), max(top + 1, round(box.bottom * height))
        return cls(width, height, left, top, min(width, right), min(height, bottom))

    def cut(self, pixels: Pixels) -> Pixels:
        """(height, width, 3) -> the part, every second pixel of it or fewer where it is very large."""
        step = -(-max(self.right - self.left, self.bottom - self.top) // _LONGEST_SIDE)
        return pixels[self.top : self.bottom : step, self.left : self.right : step]

    def in_picture(self, points: FloatArray) -> FloatArray:
        """Landmarks (258,) in fractions of the part -> in fractions of the picture; what is missing stays so."""
        scale = np.array((self.right - self.left, self.bottom - self.top, self.right - self.left), np.float32)
        whole = np.array((self.width, self.height, self.width), np.float32)
        shift = np.array((self.left, self.top, 0), np.float32) / whole
        placed = points.copy()
        pose, hands = placed[:POSE_NUMBERS].reshape(-1, 4)[:, :3], placed[POSE_NUMBERS:].reshape(2, -1, 3)
        for part in (pose, *hands):
            if part.any():
                part[:] = part * (scale / whole) + shift
        return placed
