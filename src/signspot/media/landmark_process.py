"""A detector of landmarks in a process of its own: start it, show it pictures, and survive whatever happens to it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from signspot.domain.tracks import LANDMARK_DIM, FloatArray, Pixels
from signspot.errors import EnvironmentProblem, MissingExtra, VideoError
from signspot.media.drawing import matplotlib_folder
from signspot.media.landmark_child import ANSWER_BYTES, PICTURE_SIZE

_COMMAND = ("-P", "-m", "signspot.media.landmark_child")  # -P: a json.py in the working folder is not imported
_PACKAGE = "mediapipe"
_SETTINGS = "holistic tracked complexity 1"  # changes with everything that changes the landmarks
_PATIENCE_MS = 120_000  # the first picture loads the networks
_FAREWELL_SECONDS = 5.0


def detector_name() -> str:
    """What landmarks are filed under: the detector, its version and its settings; raises where there is none."""
    try:
        return f"{_PACKAGE} {importlib.metadata.version(_PACKAGE)} {_SETTINGS}"
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtra.named("finding landmarks in video", "pose") from error


class LandmarkDetector:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def show(self, pixels: Pixels) -> None:
        """Give the next picture (H, W, 3) uint8 RGB."""
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
        """End the process and wait for it, whatever it is doing."""
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
        """Why the process ended without an answer."""
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
