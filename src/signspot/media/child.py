"""The decoding process: `python -m signspot.media.child`, started by an isolated reader.

Decoders are large programs that meet hostile files. Here one may crash, hang or eat memory, and only this process is
lost. It reads requests from its standard input, one after another, and writes messages to its standard output.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from contextlib import closing
from queue import SimpleQueue

from signspot.errors import EnvironmentProblem, SignspotError, VideoError, readable_size
from signspot.media import video as messages
from signspot.media.video import Frame, Limits, ReadRequest

_LARGEST_LOG = 1 << 20
_PART = 1 << 16
_SPENT_KIB = 512 << 10  # a process that has been larger is not used again: what is left of it may not suffice


def main() -> None:
    """Serve requests until one fails, much memory was used, or the reader has gone."""
    # Whatever a library prints must not land between the messages.
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = ReadRequest.unpack(sys.stdin.buffer.readline())
    _confine(request.limits)
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    most_kib = max(_SPENT_KIB, _largest_kib())  # which is that of the reader at first
    try:
        _serve(request, output)
        while _largest_kib() <= most_kib:
            request = ReadRequest.unpack(requests.get())
            _serve(request, output)
    except BrokenPipeError:
        return  # the reader has gone
    except Exception as error:  # the border of the process: the reader is told, whatever it was
        _send(output, messages.ERROR, messages.pack_error(_explained(error, request)))


def _explained(error: Exception, request: ReadRequest) -> SignspotError:
    if isinstance(error, SignspotError):
        return error
    if isinstance(error, MemoryError):
        what = f"decoding needs more memory than the {readable_size(request.limits.memory_bytes)} it may use"
        return EnvironmentProblem(request.path, what, "scale the video down first")
    if isinstance(error, ImportError):
        what = f"the decoding process could not start ({error})"
        return EnvironmentProblem(request.path, what, "check the installation, or allow it more memory")
    what = f"the decoder failed ({type(error).__name__}: {error})"
    return VideoError(request.path, what, "convert it to MP4 (H.264) and give that")


def _confine(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_LOG, _LARGEST_LOG))  # nothing is written but complaints
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    memory = limits.memory_bytes if most == resource.RLIM_INFINITY else min(limits.memory_bytes, most)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _largest_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _listen(requests: SimpleQueue[bytes]) -> None:
    """Pass requests on, and end as soon as the reader does, even killed: its end of the input is then closed."""
    begun = b""
    while part := os.read(sys.stdin.fileno(), _PART):
        *whole, begun = (begun + part).split(b"\n")
        for line in whole:
            requests.put(line)
    os._exit(0)


def _serve(request: ReadRequest, output: int) -> None:
    # Loaded only now, so that the limits hold for the libraries too.
    from signspot.media.decoder import Decoder

    before: Frame | None = None
    with closing(Decoder(request)) as decoder:
        _send(output, messages.INFO, decoder.info.pack())
        for frame in decoder.frames():
            if before is not None and frame.pixels is before.pixels and frame.time_ms == before.time_ms:
                _send(output, messages.HELD)
            else:
                place = messages.PICTURE.pack(frame.time_ms, *frame.pixels.shape[:2])
                _send(output, messages.FRAME, place, frame.pixels.data.cast("B"))
            before = frame
        _send(output, messages.OUTCOME, decoder.outcome().pack())


def _send(output: int, kind: bytes, *parts: bytes | memoryview) -> None:
    header = messages.HEADER.pack(kind, sum(len(part) for part in parts))
    waiting = [memoryview(part) for part in (header, *parts) if len(part)]
    while waiting:
        written = os.writev(output, waiting)
        while waiting and written >= len(waiting[0]):
            written -= len(waiting.pop(0))
        if waiting:
            waiting[0] = waiting[0][written:]


if __name__ == "__main__":
    main()
