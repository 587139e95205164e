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
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from av.container import InputContainer
from av.video.stream import VideoStream

from signspot.domain.recordings import SignerBox
from signspot.domain.time import FRAME_RATE, TimeAxis, clock
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


# What a video claims about its length, what was found, and how to say that a part is missing.

# Their timestamps count from an arbitrary start, and the length is only estimated from what is there.
RUNNING_CLOCKS = {"mpegts", "mpeg"}
_ESTIMATED = RUNNING_CLOCKS | {"gif", "h264", "hevc", "m4v", "mpegvideo"}
_TOLERANCE_MS, _TOLERANCE_SHARE = 500.0, 0.02  # claims are rounded, and sound may outlast the pictures a little
_DURATION_TAG = re.compile(r"(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)")


@dataclass(frozen=True, slots=True)
class _Claim:
    """When the pictures, or the whole recording with its sound, should end, in ms of media time; None: not said."""

    pictures_end_ms: float | None
    recording_end_ms: float | None


@dataclass(slots=True)
class Findings:
    """What was met while decoding one video."""

    is_cut: bool = False  # the file is shorter than its container says
    stopped: str = ""  # why reading ended early
    pictures_end_ms: float = 0.0
    recording_end_ms: float = 0.0  # of any stream
    picture_ms: float = 40.0  # how long one picture lasts
    bad_packets: int = 0
    bad_pictures: int = 0  # decoded, but with faults
    bad_reads: int = 0
    out_of_memory: bool = False

    def warnings(self) -> tuple[str, ...]:
        said = (
            (self.is_cut, "the file ends early: its container says it should be longer"),
            (self.bad_packets, f"damaged pieces of video that could not be decoded: {self.bad_packets}"),
            (self.bad_pictures, f"damaged pictures: {self.bad_pictures}"),
            (self.bad_reads, f"places in the file that could not be read: {self.bad_reads}"),
            (self.stopped, self.stopped),
        )
        return tuple(sentence for occurred, sentence in said if occurred)


def claim_of(container: InputContainer, stream: VideoStream, *, is_fragmented: bool) -> _Claim:
    name = container.format.name
    if name in _ESTIMATED or is_fragmented:  # the decoder then adds up what is there
        return _Claim(None, None)
    whole_ms = (container.duration or 0) / 1000
    if whole_ms and name != "matroska,webm":  # Matroska counts from zero, the others from the first timestamp
        whole_ms += (container.start_time or 0) / 1000
    return _Claim(_pictures_end_ms(name, stream), whole_ms or None)


def partial_of(findings: Findings, claim: _Claim) -> str:
    """ "" for a whole video, else such as "partial, 3:52 of 42:00"."""
    total_ms = claim.pictures_end_ms or claim.recording_end_ms
    reached_ms = findings.pictures_end_ms if claim.pictures_end_ms else findings.recording_end_ms
    missing_ms = total_ms - reached_ms if total_ms else 0.0
    is_short = missing_ms > _TOLERANCE_MS and missing_ms > _TOLERANCE_SHARE * (total_ms or 0.0)
    lost_ms = findings.bad_packets * findings.picture_ms
    unsure = findings.bad_reads > 0 and not total_ms
    if not (findings.is_cut or findings.stopped or is_short or lost_ms or unsure):
        return ""
    got_ms = max(0.0, findings.pictures_end_ms - lost_ms)
    if not total_ms and (findings.is_cut or findings.stopped or unsure):
        return f"partial, {clock(got_ms)} of an unknown length"
    whole_ms = max(total_ms or 0.0, findings.pictures_end_ms)
    digits = int(clock(got_ms) == clock(whole_ms))
    return f"partial, {clock(got_ms, digits)} of {clock(whole_ms, digits)}"


def _pictures_end_ms(name: str, stream: VideoStream) -> float | None:
    if name == "avi":  # the duration is cut to what is there, the number of pictures is as the header claims
        rate = stream.average_rate
        return 1000 * stream.frames / float(rate) if stream.frames and rate else None
    if name == "matroska,webm":
        said = _DURATION_TAG.fullmatch(stream.metadata.get("DURATION", "").rstrip("\0"))
        return 1000 * (int(said[1]) * 3600 + int(said[2]) * 60 + float(said[3])) if said else None
    if stream.duration and stream.time_base:
        return float(((stream.start_time or 0) + stream.duration) * stream.time_base * 1000)
    return None


# How much of a file is there: containers say how many bytes they hold, and a cut file holds fewer. Decoders are silent
# about most cuts: a transport stream, a Matroska file or a fragmented MP4 simply ends earlier.

_MOST_BOXES = 2_000_000
_FIRST_BOXES = {b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"sidx"}
_EBML, _SEGMENT = 0x1A45DFA3, 0x18538067
_TS_SYNC = 0x47
_TS_LAYOUTS = ((188, 0), (192, 4), (204, 0))  # packet length and where in the packet the sync byte is


@dataclass(frozen=True, slots=True)
class _Extent:
    """The part of a file that can be decoded."""

    usable_bytes: int
    is_cut: bool = False  # the container says it holds more than is there
    is_fragmented: bool = False  # an MP4 in pieces, which nowhere says how long it is
    lacks_index: bool = False  # an MP4 whose index of pictures (moov) was never written or is gone


@dataclass(frozen=True, slots=True)
class _Box:
    kind: bytes
    start: int
    stop: int  # as claimed: may lie beyond the end of the file


def measure(file: BinaryIO | io.FileIO) -> _Extent:
    """Compare what the container claims to hold with the length of the file; the position is left at the start."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(1024) or b""
    extent = _Extent(size)
    if head[4:8] in _FIRST_BOXES:
        extent = _mp4_extent(list(_boxes(file, size)), size)
    elif head.startswith(_EBML.to_bytes(4, "big")):
        extent = _Extent(size, _matroska_end(head) > size)
    elif head.startswith(b"RIFF"):
        extent = _Extent(size, _riff_end(file, size) > size)
    else:
        for length, sync in _TS_LAYOUTS:
            if len(head) > sync + 2 * length and all(head[sync + i * length] == _TS_SYNC for i in range(3)):
                extent = _Extent(size, size % length != 0)
                break
    file.seek(0)
    return extent


class Clipped(io.RawIOBase):
    """The first `size` bytes of a file, as a file: a decoder that trips over a half box at the end never sees it."""

    def __init__(self, file: io.FileIO, size: int) -> None:
        self._file, self._size = file, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        left = max(0, self._size - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left)) or b""

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_END:
            offset, whence = max(0, self._size + offset), os.SEEK_SET
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _boxes(file: BinaryIO | io.FileIO, size: int) -> Iterator[_Box]:
    """The top-level boxes of an MP4, as far as they make sense."""
    position = 0
    for _ in range(_MOST_BOXES):
        file.seek(position)
        header = file.read(16) or b""
        if len(header) < 8:
            break
        length, kind = int.from_bytes(header[:4], "big"), header[4:8]
        if length == 1:
            length = int.from_bytes(header[8:16], "big")
        elif length == 0:
            length = size - position
        if length < 8 or not kind.isalnum():
            break
        yield _Box(kind, position, position + length)
        position += length
        if position >= size:
            break


def _mp4_extent(boxes: list[_Box], size: int) -> _Extent:
    kinds = [box.kind for box in boxes]
    lacks_index = b"moov" not in kinds or (boxes[-1].kind == b"moov" and boxes[-1].stop > size)
    if lacks_index:
        return _Extent(size, lacks_index=True)
    last, is_fragmented = boxes[-1], b"moof" in kinds
    if last.kind == b"moof":  # half a list of pictures, or a list without its pictures, cannot be used
        return _Extent(last.start, True, is_fragmented)
    if last.stop > size:  # half a block of pictures can be used, and a cut in any other box loses none
        return _Extent(size, last.kind == b"mdat", is_fragmented)
    has_half_header = 0 < size - last.stop < 8
    return _Extent(last.stop if has_half_header else size, has_half_header or b"mdat" not in kinds, is_fragmented)


def _matroska_end(head: bytes) -> int:
    """Where the one segment of a Matroska file ends; 0 where it does not say (a live recording)."""
    position = 0
    while position < len(head) - 12:
        identifier = _Number.at(head, position)
        length = _Number.at(head, identifier.stop)
        if length.is_unknown:
            return 0
        position = length.stop + length.value
        if identifier.value == _SEGMENT & ~(1 << 28):
            return position
    return 0


@dataclass(frozen=True, slots=True)
class _Number:
    """An EBML integer: its first set bit marks how many bytes it has; all further bits set means "unknown"."""

    value: int  # without the marker
    stop: int
    is_unknown: bool

    @classmethod
    def at(cls, data: bytes, position: int) -> _Number:
        width = 9 - data[position].bit_length() if position < len(data) else 9
        if width > 8 or position + width > len(data):
            return cls(0, len(data), True)
        most = (1 << (7 * width)) - 1
        value = int.from_bytes(data[position : position + width], "big") & most
        return cls(value, position + width, value == most)


def _riff_end(file: BinaryIO | io.FileIO, size: int) -> int:
    """Where the last RIFF chunk of an AVI ends: large files hold several."""
    position = 0
    for _ in range(_MOST_BOXES):
        file.seek(position)
        header = file.read(8) or b""
        if len(header) < 8 or header[:4] != b"RIFF":
            break
        length = int.from_bytes(header[4:8], "little")
        position += 8 + length + length % 2
        if position >= size:
            break
    return position - 1 if position == size + 1 else position


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
