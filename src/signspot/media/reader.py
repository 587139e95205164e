"""Reading a video: PTS-true frames at 25 per second, read-only, in constant memory, from files of any quality.

Frame k belongs to the tick 40 k ms after the first picture. It is the picture nearest in time, but one yet to come only
within 20 ms. Its time is the media time of that picture: what a player shows. Decoding happens in a process of its own
unless the reader is told otherwise, so that no file can crash or hang the program.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Self

import numpy as np

from signspot.domain.recordings import SignerBox
from signspot.domain.time import TimeAxis, clock
from signspot.domain.tracks import FrameShape
from signspot.errors import EnvironmentProblem, SignspotError, VideoError
from signspot.media import video as messages
from signspot.media.decoder import Decoder
from signspot.media.video import Frame, Limits, Outcome, ReadReport, ReadRequest, VideoInfo, open_media

_DEFAULT_LIMITS = Limits()


class VideoReader:
    """The frames of one video, once, in order; then a report on the whole.

    With a `box` the frames are the square around it (see frames.cut_square), and `shape` is what is made of that.
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
        self._decoder: Decoder | _IsolatedDecoder | None = None
        self._decoder = _IsolatedDecoder(request) if isolated else Decoder(request)
        self.info = self._decoder.info

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
        decoder, self._decoder = getattr(self, "_decoder", None), None
        if decoder is not None:
            decoder.close()

    def _frames(self, decoder: Decoder | _IsolatedDecoder) -> Iterator[Frame]:
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


# The reader's side of a decoding process: start it, listen to it, and survive whatever happens to it.

_COMMAND = ("-P", "-m", "signspot.media.child")  # -P: a json.py in the working folder is not imported
_PIPE_BYTES = 1 << 20
_FAREWELL_SECONDS = 5.0
_LONGEST_POLL_MS = 2**31 - 1
_DAMAGED = "the file is probably damaged: convert it to MP4 (H.264) and give that"


class _Process:
    """A decoding process, at work or idle."""

    def __init__(self, request: ReadRequest) -> None:
        self.limits = request.limits  # it cannot be given more later
        self.is_used = False  # it has decoded another video before
        self.has_ended = False
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 (end() closes it)
        try:
            self.popen = self._started(request.path)
        except BaseException:
            self.log.close()
            raise
        self.output = self.popen.stdout.fileno() if self.popen.stdout else -1
        self.poll = select.poll()
        self.poll.register(self.output, select.POLLIN)

    def ask(self, request: ReadRequest) -> None:
        if self.popen.stdin:
            with contextlib.suppress(BrokenPipeError):  # it died at once; listening tells why
                self.popen.stdin.write(request.pack())

    def rest(self) -> None:
        """Forget what it said about the video that it has decoded."""
        self.is_used = True
        self.log.seek(0)  # the process writes at the same place
        self.log.truncate()

    def end(self) -> None:
        self.popen.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(_FAREWELL_SECONDS)
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                pipe.close()
        self.log.close()

    def _started(self, path: Path) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                [sys.executable, *_COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                bufsize=0,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # each thread would take address space
                start_new_session=True,  # Ctrl-C reaches the reader, which ends this process in order
            )
        except OSError as error:
            what = f"the decoding process could not start ({error.strerror or error})"
            raise EnvironmentProblem(path, what, "close other programs and try again") from error
        if process.stdout is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):  # a system with a lower limit keeps its usual size
                fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        return process


class _Keeper:
    """Holds one idle process between two videos."""

    def __init__(self) -> None:
        self._idle: _Process | None = None
        self._is_open = True

    def take(self, limits: Limits) -> _Process | None:
        process, self._idle = self._idle, None
        if process is not None and process.limits != limits:
            process.end()
            return None
        return process

    def put(self, process: _Process) -> None:
        """Hold a process that has decoded a video to its end; one is enough."""
        if self._is_open and self._idle is None:
            process.rest()
            self._idle = process
        else:
            process.end()

    def close(self) -> None:
        self._is_open = False
        if self._idle is not None:
            self._idle.end()


_KEEPER: ContextVar[_Keeper | None] = ContextVar("keeper", default=None)


@contextlib.contextmanager
def shared_decoding() -> Iterator[None]:
    """Let one process decode the videos that are read one after another in the block: clips take less than its start.

    A process that fails, hangs or has grown large is ended and replaced, so that a bad video costs only itself.
    """
    keeper = _Keeper()
    token = _KEEPER.set(keeper)
    try:
        yield
    finally:
        _KEEPER.reset(token)
        keeper.close()


class _IsolatedDecoder:
    """One video, decoded in a process of its own; used as `Decoder` is."""

    def __init__(self, request: ReadRequest) -> None:
        open_media(request.path).close()  # what is plainly wrong is said without starting a process
        self._path, self._limits = request.path, request.limits
        self._reached_ms: float | None = None
        self._outcome: Outcome | None = None
        self._keeper = _KEEPER.get()
        self._process: _Process | None = None
        try:
            kept = self._keeper.take(request.limits) if self._keeper else None
            self.info = self._asked(request, kept or _Process(request))
        except (KeyError, TypeError, ValueError) as error:
            self.close()
            raise self._nonsense() from error
        except BaseException:
            self.close()
            raise

    def frames(self) -> Iterator[Frame]:
        frame: Frame | None = None
        try:
            while (message := self._next())[0] in (messages.FRAME, messages.HELD):
                if message[0] == messages.FRAME:
                    frame = self._frame(message[1])
                if frame is None or frame.time_ms < (self._reached_ms or frame.time_ms):
                    raise self._nonsense()
                self._reached_ms = frame.time_ms
                yield frame
            self._outcome = Outcome.unpack(self._text(*message, messages.OUTCOME))
        except (KeyError, TypeError, ValueError) as error:
            raise self._nonsense() from error

    def outcome(self) -> Outcome:
        if self._outcome is None:
            raise RuntimeError(f"{self._path} has not been read to its end")
        return self._outcome

    def close(self) -> None:
        """Let go of the process: it is ended, whatever it is doing, unless it is done and may serve again."""
        process, self._process = self._process, None
        if process is not None and self._keeper is not None and self._outcome is not None:
            self._keeper.put(process)
        elif process is not None:
            process.end()

    def _asked(self, request: ReadRequest, process: _Process) -> VideoInfo:
        self._process = process
        process.ask(request)
        try:
            return VideoInfo.unpack(self._text(*self._next(), messages.INFO), self._path)
        except SignspotError:
            if not (process.is_used and process.has_ended):
                raise
        process.end()  # it had ended when it was asked: no fault of this video
        return self._asked(request, _Process(request))

    def _next(self) -> tuple[bytes, int]:
        """The kind of the next message, and the length of what follows."""
        kind, length = messages.HEADER.unpack(self._bytes(messages.HEADER.size))
        if kind == messages.ERROR:
            raise messages.unpack_error(self._text(kind, length, messages.ERROR), self._path)
        return kind, length

    def _text(self, kind: bytes, length: int, expected: bytes) -> bytes:
        if kind != expected or length > messages.LONGEST_TEXT:
            raise self._nonsense()
        return self._bytes(length)

    def _bytes(self, length: int) -> bytes:
        content = bytearray(length)
        self._read(memoryview(content))
        return bytes(content)

    def _frame(self, length: int) -> Frame:
        time_ms, height, width = messages.PICTURE.unpack(self._bytes(messages.PICTURE.size))
        if max(height, width) > self._limits.max_side or length != messages.PICTURE.size + height * width * 3:
            raise self._nonsense()
        pixels = np.empty((height, width, 3), dtype=np.uint8)
        self._read(pixels.data.cast("B"))
        pixels.setflags(write=False)
        return Frame(pixels, time_ms)

    def _read(self, into: memoryview) -> None:
        """Fill `into`; the process may be slow, but not silent."""
        process, patience_ms = self._process, min(self._limits.stall_seconds * 1000, _LONGEST_POLL_MS)
        if process is None:
            raise RuntimeError(f"{self._path} is closed")
        while into:
            if not process.poll.poll(patience_ms):
                what = f"decoding made no progress for {self._limits.stall_seconds:g} seconds{self._where()}"
                raise VideoError(self._path, what, _DAMAGED)
            count = os.readv(process.output, [into])
            if count == 0:
                process.has_ended = True
                raise self._death(process)
            into = into[count:]

    def _death(self, process: _Process) -> SignspotError:
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.popen.wait(_FAREWELL_SECONDS)
        if code == -signal.SIGKILL:
            what = f"decoding was stopped by the system{self._where()}, perhaps for lack of memory"
            return VideoError(self._path, what, "close other programs, or scale the video down first")
        if code is not None and code < 0:
            return VideoError(self._path, f"the decoder crashed{self._where()} ({_signal_name(-code)})", _DAMAGED)
        if self._reached_ms is None and code:
            what = f"the decoding process could not start ({_complaint(process) or f'exit code {code}'})"
            return EnvironmentProblem(self._path, what, "check the installation, or allow it more memory")
        return VideoError(self._path, f"the decoder stopped{self._where()} without a reason", _DAMAGED)

    def _nonsense(self) -> VideoError:
        return VideoError(self._path, f"the decoder gave a wrong answer{self._where()}", _DAMAGED)

    def _where(self) -> str:
        return "" if self._reached_ms is None else f" after {clock(self._reached_ms)}"


def _complaint(process: _Process) -> str:
    process.log.seek(0)
    lines = process.log.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
