"""What reading a video is asked and what it gives.

What travels between a decoding process and its reader: JSON for words, raw bytes for pixels.

A message is one byte of kind, four bytes of length, and that many bytes. Nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from signspot.domain.recordings import SignerBox
from signspot.domain.time import FRAME_RATE, TimeAxis
from signspot.domain.tracks import FrameShape, Pixels
from signspot.errors import EnvironmentProblem, InputError, SignspotError, VideoError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What decoding one video may use; the first two hold for an isolated reader only."""

    stall_seconds: float = 60.0  # without any new picture
    memory_bytes: int = 4 << 30  # of address space
    max_side: int = 8192  # pixels
    max_frames: int = 10 * 24 * 3600 * FRAME_RATE  # ten days

    def __post_init__(self) -> None:
        if min(self.stall_seconds, self.memory_bytes, self.max_side, self.max_frames) <= 0:
            raise ValueError(f"limits must be positive: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """Everything a decoding process is told."""

    path: Path
    shape: FrameShape | None
    limits: Limits
    box: SignerBox | None = None  # only this part of every picture

    def pack(self) -> bytes:
        words = {
            "path": str(self.path.absolute()),
            "shape": asdict(self.shape) if self.shape else None,
            "limits": asdict(self.limits),
            "box": asdict(self.box) if self.box else None,
        }
        return json.dumps(words).encode("ascii") + b"\n"

    @classmethod
    def unpack(cls, line: bytes) -> Self:
        words = json.loads(line)
        shape = FrameShape(**words["shape"]) if words["shape"] else None
        box = SignerBox(**words["box"]) if words["box"] else None
        return cls(path=Path(words["path"]), shape=shape, limits=Limits(**words["limits"]), box=box)


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoInfo:
    """What a video file says about itself."""

    path: Path
    container: str  # such as mp4, matroska, mpegts
    codec: str  # such as h264
    width: int  # pixels, as displayed: after rotation and with square pixels
    height: int
    rotation: int  # degrees clockwise by which the stored picture is turned for display
    mirrored: bool  # the stored picture is flipped left to right, then turned
    interlaced: bool
    frame_rate: float  # average, pictures a second; 0 where the file does not say
    duration_ms: float | None  # as claimed

    def pack(self) -> bytes:
        """All but the path: the reader knows that."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "path"}).encode("ascii")

    @classmethod
    def unpack(cls, text: bytes, path: Path) -> Self:
        return cls(path=path, **json.loads(text))


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One frame at 25 fps."""

    pixels: Pixels  # (H, W, 3) uint8 RGB, read-only: a picture held over several frames is one array
    time_ms: float  # media time of the picture shown


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the decoding of a whole video went."""

    origin_ms: float  # the container's own clock at media time zero
    partial: str  # "" or such as "partial, 3:52 of 42:00"
    warnings: tuple[str, ...]

    def pack(self) -> bytes:
        return json.dumps(asdict(self)).encode("ascii")

    @classmethod
    def unpack(cls, text: bytes) -> Self:
        words = json.loads(text)
        return cls(float(words["origin_ms"]), str(words["partial"]), tuple(map(str, words["warnings"])))


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What is known about a video once it is read to its end."""

    axis: TimeAxis
    partial: str  # "" or such as "partial, 3:52 of 42:00"
    warnings: tuple[str, ...]


# Opening a file that should be a video: read-only, never blocking, and saying what else it is. The decoder gets an open
# file, not a name: no name can be taken for an address, an option or a list of other files.

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # pathlib has already folded "//" to "/"
_CHUNK = 1 << 20

STILL_IMAGE = ("is a still image, not a video", "give a video of the sign")
_SOUND = ("has sound but no pictures (audio-only)", "give the video recording")
_PLAYLIST = ("is a playlist, not a video", "give the video file it points to")
_PAGE = ("is a web page, not a video: perhaps a download that failed", "download the video again")
_ARCHIVE = ("is an archive, not a video", "unpack it and give the video inside")

_SIGNATURES = {
    STILL_IMAGE: (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"BM", b"II*\0", b"MM\0*", b"8BPS"),
    _SOUND: (b"ID3", b"fLaC"),
    _ARCHIVE: (b"PK\x03\x04", b"\x1f\x8b", b"7z\xbc\xaf", b"Rar!"),
    ("is a PDF document, not a video", "give the video file"): (b"%PDF",),
}
_RIFF_KINDS = {b"WEBP": STILL_IMAGE, b"WAVE": _SOUND}
_STILL_BRANDS = {b"heic", b"heix", b"mif1", b"avif"}
_TEXTS = {
    _PLAYLIST: (b"#extm3u", b"ffconcat", b"[playlist]", b"<smil", b"<mpd", b"<?xml"),
    _PAGE: (b"<!doctype html", b"<html"),
    ("is a Git LFS pointer, not the video itself", "fetch the video with `git lfs pull`"): (
        b"version https://git-lfs",
    ),
}


def open_media(path: Path) -> io.FileIO:
    """Open `path` for reading if it is an ordinary file that may be a video, else say what is wrong with it."""
    file = _open_ordinary(path)
    try:
        head = file.read(4096) or b""
        file.seek(0)
    except OSError as error:
        file.close()
        raise unreadable(path, error) from error
    other = ("is an empty file (0 bytes)", "copy or record it again") if not head else _other_kind(head)
    if other:
        file.close()
        raise VideoError(path, *other)
    return file


def media_sha256(path: Path) -> str:
    with _open_ordinary(path) as file:
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise unreadable(path, error) from error


def _open_ordinary(path: Path) -> io.FileIO:
    if _ADDRESS.match(str(path)):
        raise VideoError(path, "is an address, not a file", "download the video first and give its file name")
    try:
        # Without O_NONBLOCK, opening a named pipe waits for a writer that may never come.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
        raise unreadable(path, error) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise VideoError(path, "is a folder", "name one video file")
        if not stat.S_ISREG(mode):
            raise VideoError(path, "is a pipe or a device, not a file", "save the video to a file first")
        return io.FileIO(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def unreadable(path: Path, error: OSError | ValueError) -> VideoError:
    if isinstance(error, FileNotFoundError | NotADirectoryError | ValueError):
        return VideoError(path, "no such file", "check the name")
    if isinstance(error, PermissionError):
        return VideoError(path, "permission denied", "change its permissions, or ask its owner")
    return VideoError(path, f"could not be read ({error.strerror or error})", "check the disk or the connection to it")


def _other_kind(head: bytes) -> tuple[str, str] | None:
    if kind := next((kind for kind, starts in _SIGNATURES.items() if head.startswith(starts)), None):
        return kind
    if head.startswith(b"RIFF"):
        return _RIFF_KINDS.get(head[8:12])
    if head[4:8] == b"ftyp" and head[8:12] in _STILL_BRANDS:
        return STILL_IMAGE
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return next((kind for kind, starts in _TEXTS.items() if text.startswith(starts)), None)


INFO, FRAME, HELD, OUTCOME, ERROR = b"I", b"F", b"H", b"O", b"E"  # HELD: the picture before, shown again
HEADER = struct.Struct("<cI")
PICTURE = struct.Struct("<dII")  # media time in ms, height, width; RGB bytes follow
LONGEST_TEXT = 1 << 20

_ERRORS: dict[str, type[SignspotError]] = {kind.__name__: kind for kind in (VideoError, InputError, EnvironmentProblem)}


def pack_error(error: SignspotError) -> bytes:
    kind = type(error).__name__
    words = {"kind": kind if kind in _ERRORS else "VideoError", "what": error.what, "fix": error.fix}
    return json.dumps(words).encode("ascii")


def unpack_error(text: bytes, path: Path) -> SignspotError:
    words = json.loads(text)
    return _ERRORS[words["kind"]](path, str(words["what"]), str(words["fix"]))
