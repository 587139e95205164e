"""The reader's side of a decoding process: start it, listen to it, and survive whatever happens to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from signspot.errors import EnvironmentProblem, SignspotError, VideoError
from signspot.media import messages
from signspot.media.claims import clock
from signspot.media.files import open_media
from signspot.media.video import Frame, Outcome, ReadRequest

_COMMAND = ("-P", "-m", "signspot.media.child")  # -P: a json.py in the working folder is not imported
_PIPE_BYTES = 1 << 20
_FAREWELL_SECONDS = 5.0
_LONGEST_POLL_MS = 2**31 - 1
_DAMAGED = "the file is probably damaged: convert it to MP4 (H.264) and give that"


@dataclass(frozen=True, slots=True)
class _Message:
    kind: bytes
    length: int  # of what follows


class IsolatedDecoder:
    """One video, decoded in a process of its own; used as `Decoder` is."""

    def __init__(self, request: ReadRequest) -> None:
        open_media(request.path).close()  # what is plainly wrong is said without starting a process
        self._path, self._limits = request.path, request.limits
        self._reached_ms: float | None = None
        self._outcome: Outcome | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (close() closes it)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = self._started()
            self._output = self._process.stdout.fileno() if self._process.stdout else -1
            self._poll = select.poll()
            self._poll.register(self._output, select.POLLIN)
            self._ask(messages.pack_request(request))
            self.info = messages.unpack_info(self._text(self._next(), messages.INFO), self._path)
        except (KeyError, TypeError, ValueError) as error:
            self.close()
            raise self._nonsense() from error
        except BaseException:
            self.close()
            raise

    def frames(self) -> Iterator[Frame]:
        """Every 25 fps frame in order."""
        frame: Frame | None = None
        try:
            while (message := self._next()).kind in (messages.FRAME, messages.HELD):
                if message.kind == messages.FRAME:
                    frame = self._frame(message)
                if frame is None or frame.time_ms < (self._reached_ms or frame.time_ms):
                    raise self._nonsense()
                self._reached_ms = frame.time_ms
                yield frame
            self._outcome = messages.unpack_outcome(self._text(message, messages.OUTCOME))
        except (KeyError, TypeError, ValueError) as error:
            raise self._nonsense() from error

    def outcome(self) -> Outcome:
        """How it went; known once all frames have been taken."""
        if self._outcome is None:
            raise RuntimeError(f"{self._path} has not been read to its end")
        return self._outcome

    def close(self) -> None:
        """End the process and wait for it, whatever it is doing."""
        process = self._process
        if process is not None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_FAREWELL_SECONDS)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._log.close()

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                [sys.executable, *_COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                bufsize=0,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # each thread would take address space
                start_new_session=True,  # Ctrl-C reaches the reader, which ends this process in order
            )
        except OSError as error:
            what = f"the decoding process could not start ({error.strerror or error})"
            raise EnvironmentProblem(self._path, what, "close other programs and try again") from error
        if process.stdout is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):  # a system with a lower limit keeps its usual size
                fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        return process

    def _ask(self, request: bytes) -> None:
        if self._process and self._process.stdin:
            with contextlib.suppress(BrokenPipeError):  # it died at once; listening tells why
                self._process.stdin.write(request)

    def _next(self) -> _Message:
        """The head of the next message; an error sent by the process is raised."""
        header = bytearray(messages.HEADER.size)
        self._read(memoryview(header))
        message = _Message(*messages.HEADER.unpack(header))
        if message.kind == messages.ERROR:
            raise messages.unpack_error(self._text(message, messages.ERROR), self._path)
        return message

    def _text(self, message: _Message, expected: bytes) -> bytes:
        if message.kind != expected or message.length > messages.LONGEST_TEXT:
            raise self._nonsense()
        text = bytearray(message.length)
        self._read(memoryview(text))
        return bytes(text)

    def _frame(self, message: _Message) -> Frame:
        place = bytearray(messages.PICTURE.size)
        self._read(memoryview(place))
        time_ms, height, width = messages.PICTURE.unpack(place)
        if max(height, width) > self._limits.max_side or message.length != len(place) + height * width * 3:
            raise self._nonsense()
        pixels = np.empty((height, width, 3), dtype=np.uint8)
        self._read(pixels.data.cast("B"))
        pixels.setflags(write=False)
        return Frame(pixels, time_ms)

    def _read(self, into: memoryview) -> None:
        """Fill `into`; the process may be slow, but not silent."""
        patience_ms = min(self._limits.stall_seconds * 1000, _LONGEST_POLL_MS)
        while into:
            if not self._poll.poll(patience_ms):
                what = f"decoding made no progress for {self._limits.stall_seconds:g} seconds{self._where()}"
                raise VideoError(self._path, what, _DAMAGED)
            count = os.readv(self._output, [into])
            if count == 0:
                raise self._death()
            into = into[count:]

    def _death(self) -> SignspotError:
        """Why the process ended without a last word."""
        code = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_FAREWELL_SECONDS)
        if code == -signal.SIGKILL:
            what = f"decoding was stopped by the system{self._where()}, perhaps for lack of memory"
            return VideoError(self._path, what, "close other programs, or scale the video down first")
        if code is not None and code < 0:
            return VideoError(self._path, f"the decoder crashed{self._where()} ({_signal_name(-code)})", _DAMAGED)
        if self._reached_ms is None and code:
            what = f"the decoding process could not start ({self._complaint() or f'exit code {code}'})"
            return EnvironmentProblem(self._path, what, "check the installation, or allow it more memory")
        return VideoError(self._path, f"the decoder stopped{self._where()} without a reason", _DAMAGED)

    def _nonsense(self) -> VideoError:
        return VideoError(self._path, f"the decoder gave a wrong answer{self._where()}", _DAMAGED)

    def _where(self) -> str:
        return "" if self._reached_ms is None else f" after {clock(self._reached_ms)}"

    def _complaint(self) -> str:
        """The last line the process wrote to its log."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
