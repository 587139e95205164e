"""What travels between a decoding process and its reader: JSON for words, raw bytes for pixels.

A message is one byte of kind, four bytes of length, and that many bytes. Nothing in it is ever executed.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from pathlib import Path

from signspot.domain.recordings import SignerBox
from signspot.domain.tracks import FrameShape
from signspot.errors import EnvironmentProblem, InputError, SignspotError, VideoError
from signspot.media.video import Limits, Outcome, ReadRequest, VideoInfo

INFO, FRAME, HELD, OUTCOME, ERROR = b"I", b"F", b"H", b"O", b"E"  # HELD: the picture before, shown again
HEADER = struct.Struct("<cI")
PICTURE = struct.Struct("<dII")  # media time in ms, height, width; RGB bytes follow
LONGEST_TEXT = 1 << 20

_ERRORS: dict[str, type[SignspotError]] = {kind.__name__: kind for kind in (VideoError, InputError, EnvironmentProblem)}


def pack_request(request: ReadRequest) -> bytes:
    words = {
        "path": str(request.path.absolute()),
        "shape": asdict(request.shape) if request.shape else None,
        "limits": asdict(request.limits),
        "box": asdict(request.box) if request.box else None,
    }
    return json.dumps(words).encode("ascii") + b"\n"


def unpack_request(line: bytes) -> ReadRequest:
    words = json.loads(line)
    shape = FrameShape(**words["shape"]) if words["shape"] else None
    box = SignerBox(**words["box"]) if words["box"] else None
    return ReadRequest(path=Path(words["path"]), shape=shape, limits=Limits(**words["limits"]), box=box)


def pack_report(report: VideoInfo | Outcome) -> bytes:
    """What a process says about a video, without its path: the reader knows that."""
    return json.dumps({name: value for name, value in asdict(report).items() if name != "path"}).encode("ascii")


def unpack_info(text: bytes, path: Path) -> VideoInfo:
    return VideoInfo(path=path, **json.loads(text))


def unpack_outcome(text: bytes) -> Outcome:
    words = json.loads(text)
    return Outcome(float(words["origin_ms"]), str(words["partial"]), tuple(map(str, words["warnings"])))


def pack_error(error: SignspotError) -> bytes:
    kind = type(error).__name__
    words = {"kind": kind if kind in _ERRORS else "VideoError", "what": error.what, "fix": error.fix}
    return json.dumps(words).encode("ascii")


def unpack_error(text: bytes, path: Path) -> SignspotError:
    words = json.loads(text)
    return _ERRORS[words["kind"]](path, str(words["what"]), str(words["fix"]))
