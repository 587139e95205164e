"""Reading a video: PTS-true frames at 25 per second, read-only, in constant memory, from files of any quality.

Frame k belongs to the tick 40 k ms after the first picture. It is the picture nearest in time, but one yet to come only
within 20 ms. Its time is the media time of that picture: what a player shows. Decoding happens in a process of its own
unless the reader is told otherwise, so that no file can crash or hang the program.

>>> with VideoReader(Path("news.mp4")) as reader:                                               # doctest: +SKIP
...     for frame in reader:
...         use(frame.pixels, frame.time_ms)
...     reader.report.partial
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from signspot.domain.boxes import SignerBox
from signspot.domain.spans import TimeAxis
from signspot.domain.tracks import FrameShape
from signspot.errors import VideoError
from signspot.media.decoder import Decoder
from signspot.media.files import media_sha256
from signspot.media.isolation import IsolatedDecoder, shared_decoding
from signspot.media.video import Frame, Limits, ReadReport, ReadRequest, VideoInfo

__all__ = ["Frame", "Limits", "ReadReport", "VideoInfo", "VideoReader", "claimed_ms", "media_sha256", "shared_decoding"]

_DEFAULT_LIMITS = Limits()


class VideoReader:
    """The frames of one video, once, in order; then a report on the whole.

    With a `box` the frames are the square around it (see transforms.cut_square), and `shape` is what is made of that.
    """

    info: VideoInfo

    def __init__(
        self,
        path: Path,
        *,
        shape: FrameShape | None = None,
        box: SignerBox | None = None,
        isolated: bool = True,
        limits: Limits = _DEFAULT_LIMITS,
    ) -> None:
        request = ReadRequest(path=Path(path), shape=shape, limits=limits, box=box)
        self._times_ms = array("d")
        self._has_begun = False
        self._report: ReadReport | None = None
        self._decoder: Decoder | IsolatedDecoder | None = None
        self._decoder = IsolatedDecoder(request) if isolated else Decoder(request)
        self.info = self._decoder.info

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __iter__(self) -> Iterator[Frame]:
        if self._has_begun or self._decoder is None:
            raise RuntimeError(f"{self.info.path}: a VideoReader gives its frames once; open another")
        self._has_begun = True
        return self._frames(self._decoder)

    @property
    def report(self) -> ReadReport:
        """What is known about the video now that all frames have been taken."""
        if self._report is None:
            raise RuntimeError(f"{self.info.path}: the report is known after the last frame")
        return self._report

    def close(self) -> None:
        """End the decoding; safe to call at any time and more than once."""
        decoder, self._decoder = getattr(self, "_decoder", None), None
        if decoder is not None:
            decoder.close()

    def _frames(self, decoder: Decoder | IsolatedDecoder) -> Iterator[Frame]:
        try:
            for frame in decoder.frames():
                self._times_ms.append(frame.time_ms)
                yield frame
            outcome = decoder.outcome()
            axis = TimeAxis(np.array(self._times_ms, dtype=np.float64), outcome.origin_ms)
            self._report = ReadReport(axis, outcome.partial, outcome.warnings)
        finally:
            self.close()


def claimed_ms(path: Path, *, isolated: bool = True) -> float | None:
    """How long a video says that it lasts; None where it does not say, or cannot be read."""
    try:
        with VideoReader(path, isolated=isolated) as reader:
            return reader.info.duration_ms
    except VideoError:
        return None
