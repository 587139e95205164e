"""Decoding one video in this process, as 25 fps frames by true timestamps.

Damaged files are the rule, not the exception: whatever a packet or a picture raises is counted and the next one is
tried, so that every readable picture is delivered. What was met on the way is said at the end.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import BinaryIO, Generic, TypeVar, cast

import av
import av.error
import av.filter
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.sidedata.sidedata import SideData
from av.sidedata.sidedata import Type as SideDataType
from av.stream import Discard, Disposition, Stream
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream

from signspot.domain.time import FRAME_MS, clock
from signspot.domain.tracks import CLIP_LENGTH, Pixels
from signspot.errors import EnvironmentProblem, VideoError, readable_size
from signspot.media.frames import cut_square, shape_frame
from signspot.media.video import STILL_IMAGE, Frame, Outcome, ReadRequest, VideoInfo, open_media, unreadable

# What a video claims about its length, what was found, and how to say that a part is missing.

# Their timestamps count from an arbitrary start, and the length is only estimated from what is there.
RUNNING_CLOCKS = {"mpegts", "mpeg"}


_TOLERANCE_MS, _TOLERANCE_SHARE = 500.0, 0.02  # claims are rounded, and sound may outlast the pictures a little
_EBML, _SEGMENT = 0x1A45DFA3, 0x18538067
_ESTIMATED = RUNNING_CLOCKS | {"gif", "h264", "hevc", "m4v", "mpegvideo"}


_DURATION_TAG = re.compile(r"(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)")


@dataclass(frozen=True, slots=True)
class _Claim:
    """When the pictures, or the whole recording with its sound, should end, in ms of media time; None: not said."""

    pictures_end_ms: float | None
    recording_end_ms: float | None


@dataclass(slots=True)
class _Findings:
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


def _claim_of(container: InputContainer, stream: VideoStream, *, is_fragmented: bool) -> _Claim:
    name = container.format.name
    if name in _ESTIMATED or is_fragmented:  # the decoder then adds up what is there
        return _Claim(None, None)
    whole_ms = (container.duration or 0) / 1000
    if whole_ms and name != "matroska,webm":  # Matroska counts from zero, the others from the first timestamp
        whole_ms += (container.start_time or 0) / 1000
    return _Claim(_pictures_end_ms(name, stream), whole_ms or None)


def _partial_of(findings: _Findings, claim: _Claim) -> str:
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


def _measure(file: BinaryIO | io.FileIO) -> _Extent:
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


class _Clipped(io.RawIOBase):
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


_CONTAINERS = "mov,mp4,matroska,webm,mpegts,mpeg,mpegvideo,avi,flv,asf,ogg,mxf,dv,gif,h264,hevc,m4v"
_SHORT_NAMES = {"mov,mp4,m4a,3gp,3g2,mj2": "mp4", "matroska,webm": "matroska"}
_MOST_BAD_READS = 50  # in a row
_FASTEST_CREDIBLE_RATE = 240.0
_THREADS = 2
_BUFFER_BYTES = 1 << 18
_MILLISECOND = Fraction(1, 1000)
_CONVERT = "convert it to MP4 (H.264) and give that"


class Decoder:
    """One video: what it is, then its frames, then how it went."""

    def __init__(self, request: ReadRequest) -> None:
        self._path, self._limits = request.path, request.limits
        self._shape, self._box = request.shape, request.box
        self._findings = _Findings()
        self._clock = ClockFaults()
        self._notes: list[str] = []
        self._size_changes = 0
        self._first_ms: float | None = None  # of the first picture, before it is moved to zero
        self._container: InputContainer | None = None
        self._file = open_media(request.path)
        try:
            try:
                self._extent = _measure(self._file)
            except OSError as error:
                raise unreadable(self._path, error) from error
            self._findings.is_cut = self._extent.is_cut
            self._container = self._opened()
            self._stream = self._video_stream(self._container)
            self._claim = _claim_of(self._container, self._stream, is_fragmented=self._extent.is_fragmented)
            self._clock_is_arbitrary = self._container.format.name in RUNNING_CLOCKS
            self._origin_ms = (self._container.start_time or 0) / 1000 if self._clock_is_arbitrary else 0.0
            self._skip_other_streams(self._container)
            self._avi_delay: int | None = None
            self._pictures = self._decoded(self._container)
            first = self._first_picture()
            self._size = (first.width, first.height)
            self._viewer = _Viewer(first, self._stream.sample_aspect_ratio)
            self.info = self._describe(first)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
        self._file.close()

    def frames(self) -> Iterator[Frame]:
        straight = _straightened(self._stamped(), self._clock, clock_is_arbitrary=self._clock_is_arbitrary)
        shown: Timed[VideoFrame] | None = None
        pixels: Pixels | None = None
        count = 0
        placed = _from_zero(self._watched(straight), hides_earlier=self._hides_earlier)
        for picture in at_ticks(placed, self._clock):
            if count == self._limits.max_frames:
                self._findings.stopped = f"reading stopped after {count} frames, the most that are allowed"
                break
            if pixels is None or picture is not shown:
                shown, pixels = picture, self._pixels(picture.content, pixels)
            yield Frame(pixels, picture.time_ms)
            count += 1
        if not count and self._first_ms is not None:
            raise VideoError(self._path, "all its pictures lie before its beginning (a wrong edit list)", _CONVERT)
        if count < CLIP_LENGTH:
            self._notes.append(f"shorter than one window ({CLIP_LENGTH} frames): the last picture is repeated")

    def outcome(self) -> Outcome:
        warnings = (*self._notes, *self._findings.warnings(), *self._clock.warnings())
        # The container's own clock where the media time is zero.
        zero_ms = self._origin_ms + (0.0 if self._hides_earlier else min(0.0, self._first_ms or 0.0))
        return Outcome(zero_ms, _partial_of(self._findings, self._claim), warnings)

    @property
    def _hides_earlier(self) -> bool:
        """Whether what lies before zero is not to be seen: an edit list of MP4 and QuickTime says so."""
        return self.info.container == "mp4"

    def _opened(self) -> InputContainer:
        try:
            return av.open(
                _Clipped(self._file, self._extent.usable_bytes),
                "r",
                options={"protocol_whitelist": "file", "format_whitelist": _CONTAINERS},
                metadata_errors="replace",
                buffer_size=_BUFFER_BYTES,
            )
        except _FAULTS as error:
            self._findings.out_of_memory |= isinstance(error, MemoryError)
            raise self._failure("is not a video that can be read, or it is damaged") from error

    def _video_stream(self, container: InputContainer) -> VideoStream:
        videos = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
        if not videos:
            if container.streams.audio:
                raise VideoError(self._path, "has sound but no pictures (audio-only)", "give the video recording")
            raise VideoError(self._path, "has no video in it", _CONVERT)
        best = container.streams.best("video")
        stream = best if isinstance(best, VideoStream) and best in videos else videos[0]
        if len(videos) > 1:
            self._notes.append(f"holds {len(videos)} videos; number {videos.index(stream) + 1} is read")
        context = stream.codec_context
        if context is None:
            raise VideoError(self._path, "its video codec is unknown, or it is encrypted", _CONVERT)
        context.thread_type, context.thread_count = "AUTO", _THREADS
        context.options = {"max_pixels": str(self._limits.max_side**2)}
        return stream

    def _skip_other_streams(self, container: InputContainer) -> None:
        if self._claim.pictures_end_ms is None and self._claim.recording_end_ms is not None:
            return  # the sound then tells whether the recording is whole although its pictures end early
        for stream in container.streams:
            if stream.index != self._stream.index:
                stream.discard = Discard.all

    def _first_picture(self) -> VideoFrame:
        first = next(self._pictures, None)
        if first is None:
            raise self._failure("has no readable picture: it is damaged or encrypted")
        if self._container and self._container.format.name == "gif":
            second = next(self._pictures, None)
            if second is None:
                raise VideoError(self._path, *STILL_IMAGE)
            self._pictures = itertools.chain((second,), self._pictures)
            self._notes.append("is an animated GIF: a video file of the same sign has better colours and times")
        self._pictures = itertools.chain((first,), self._pictures)
        return first

    def _describe(self, first: VideoFrame) -> VideoInfo:
        stream, viewer = self._stream, self._viewer
        if max(viewer.width, viewer.height) > self._limits.max_side:
            what = f"its pictures of {viewer.width} x {viewer.height} pixels are larger than {self._limits.max_side}"
            raise VideoError(self._path, what, "scale the video down first")
        rate = float(stream.average_rate or stream.guessed_rate or 0)
        if rate > _FASTEST_CREDIBLE_RATE:
            self._notes.append(f"the header claims {rate:.0f} pictures a second: the true time of each is used instead")
        name = stream.container.format.name
        return VideoInfo(
            path=self._path,
            container=_SHORT_NAMES.get(name, name),
            codec=stream.codec_context.codec.canonical_name,
            width=viewer.width,
            height=viewer.height,
            rotation=viewer.orientation.rotation,
            mirrored=viewer.orientation.mirrored,
            interlaced=first.interlaced_frame,
            frame_rate=rate,
            duration_ms=self._claimed_duration_ms(),
        )

    def _claimed_duration_ms(self) -> float | None:
        stream = self._stream
        if stream.duration and stream.duration > 0 and stream.time_base:
            return float(stream.duration * stream.time_base * 1000)
        whole = self._container.duration if self._container else None
        return whole / 1000 if whole and whole > 0 else None

    def _packets(self, container: InputContainer) -> Iterator[Packet[Stream]]:
        """The packets of all streams; after a fault, reading goes on behind it."""
        faults_in_a_row = 0
        while faults_in_a_row < _MOST_BAD_READS:
            try:
                for packet in container.demux():
                    faults_in_a_row = 0
                    yield packet
                return
            except _FAULTS as error:
                self._findings.out_of_memory |= isinstance(error, MemoryError)
                self._findings.bad_reads += 1
                faults_in_a_row += 1

    def _decoded(self, container: InputContainer) -> Iterator[VideoFrame]:
        has_begun = False
        for packet in itertools.chain(self._packets(container), (None,)):
            if packet is not None:
                if packet.pts is not None and packet.time_base:
                    end_ms = float((packet.pts + (packet.duration or 0)) * packet.time_base * 1000) - self._origin_ms
                    self._findings.recording_end_ms = max(self._findings.recording_end_ms, end_ms)
                # An empty packet (a dropped frame of an AVI) would tell the decoder that the video is over.
                if packet.stream_index != self._stream.index or not packet.size:
                    continue
            try:
                pictures = self._stream.codec_context.decode(packet)
            except _FAULTS as error:
                self._findings.out_of_memory |= isinstance(error, MemoryError)
                # A broadcast recording begins in mid-stream: what comes before its first whole picture is no damage.
                self._findings.bad_packets += has_begun
                continue
            for picture in pictures:
                has_begun = True
                # The last pictures come without a unit of time.
                picture.time_base = picture.time_base or self._stream.time_base or _MILLISECOND
                picture.pts = self._stamp(picture)
                self._findings.bad_pictures += picture.is_corrupt
                if max(picture.width, picture.height) <= self._limits.max_side:
                    yield picture

    def _stamped(self) -> Iterator[_Stamped[VideoFrame]]:
        deinterlacer = _Deinterlacer()
        steps = itertools.chain((deinterlacer.push(p) for p in self._pictures), (deinterlacer.flush() for _ in (0,)))
        for picture in itertools.chain.from_iterable(steps):
            unit = picture.time_base or _MILLISECOND
            time_ms = None if picture.pts is None else float(picture.pts * unit * 1000) - self._origin_ms
            if (picture.width, picture.height) != self._size:
                self._size_changes += 1
                if self._size_changes == 1:
                    when = f" at {clock(time_ms)}" if time_ms is not None else ""
                    size = f"{self._size[0]} x {self._size[1]}"
                    self._notes.append(f"the pictures change size{when}: all are scaled to {size}")
            yield _Stamped(picture, time_ms, float(max(0, picture.duration) * unit * 1000))

    def _stamp(self, picture: VideoFrame) -> int | None:
        if self._stream.container.format.name != "avi":
            return picture.pts if picture.pts is not None else picture.dts
        # AVI stores no display times. Pictures come out of the decoder in order, but as many late as it reorders.
        if picture.dts is None:
            return None
        if self._avi_delay is None:
            self._avi_delay = min(picture.dts, self._stream.codec_context.reorder_depth)
        return picture.dts - self._avi_delay

    def _watched(self, pictures: Iterable[Timed[VideoFrame]]) -> Iterator[Timed[VideoFrame]]:
        for picture in pictures:
            if self._first_ms is None:
                self._first_ms = picture.time_ms
            self._findings.pictures_end_ms = picture.end_ms
            self._findings.recording_end_ms = max(self._findings.recording_end_ms, picture.end_ms)
            self._findings.picture_ms = picture.duration_ms
            yield picture

    def _pixels(self, picture: VideoFrame, before: Pixels | None) -> Pixels:
        try:
            pixels = self._viewer.pixels(picture)
        except MemoryError as error:
            raise self._needs_memory() from error
        except _FAULTS as error:
            if before is None:
                raise VideoError(self._path, "its pictures cannot be converted to RGB", _CONVERT) from error
            self._findings.bad_pictures += 1
            return before
        if self._box is not None:
            pixels = cut_square(pixels, self._box)
        if self._shape is not None:
            pixels = shape_frame(pixels, self._shape)
        pixels.setflags(write=False)
        return pixels

    def _failure(self, what: str) -> VideoError | EnvironmentProblem:
        """Why nothing could be read; `what` if no better reason is known."""
        if self._extent.lacks_index:
            what = "is an incomplete recording: its index (moov) is missing"
            return VideoError(self._path, what, "copy it again, or repair it with a recovery tool")
        if self._findings.out_of_memory:
            return self._needs_memory()
        if self._extent.is_cut:
            return VideoError(self._path, "is cut off before its first whole picture", "copy it again")
        return VideoError(self._path, what, _CONVERT)

    def _needs_memory(self) -> EnvironmentProblem:
        what = f"decoding needs more memory than the {readable_size(self._limits.memory_bytes)} it may use"
        return EnvironmentProblem(self._path, what, "scale the video down first")


# Which picture is shown at which 25 fps tick: pure arithmetic on timestamps, no video. All times are milliseconds.
# Pictures arrive in the order in which the decoder shows them, with the timestamps the file claims; `_straightened`
# turns these into times that never decrease, and `at_ticks` picks one picture for every tick. Both look one picture
# ahead and no further, so that a video of any length needs the same memory.

Content = TypeVar("Content")

_AHEAD_MS = FRAME_MS / 2  # how early a picture may be shown: a long-held picture is held, not replaced early
_SUSPICIOUS_JUMP_MS = 1_000.0  # a jump this far needs a second picture to confirm it
_LONGEST_GAP_MS = 600_000.0  # a gap in the recording longer than this is left out, not filled with one picture
_LONGEST_LAST_MS = 10_000.0  # a picture that none follows ends by then
_ROUNDING_MS = 1.5  # containers round times to whole milliseconds; the end of a video is no more exact than this


@dataclass(frozen=True, slots=True)
class _Stamped(Generic[Content]):
    """A picture with the time the file claims for it (None: it claims none) and how long it lasts (0: unknown)."""

    content: Content
    time_ms: float | None
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Timed(Generic[Content]):
    """A picture with its media time and how long it lasts."""

    content: Content
    time_ms: float
    duration_ms: float

    @property
    def end_ms(self) -> float:
        return self.time_ms + self.duration_ms

    def shifted(self, by_ms: float) -> Timed[Content]:
        return Timed(self.content, self.time_ms + by_ms, self.duration_ms) if by_ms else self


@dataclass(slots=True)
class ClockFaults:
    """What was wrong with the timestamps of one video, counted while it is read."""

    late: int = 0  # pictures that came after a later one
    strays: int = 0  # single timestamps far from their neighbours
    restarts: int = 0  # the clock jumped and went on from there
    gaps: int = 0  # stretches without pictures too long to fill

    def warnings(self) -> tuple[str, ...]:
        said = (
            (self.late, "{} pictures out of order were left out"),
            (self.strays, "{} pictures with an impossible time were left out"),
            (self.restarts, "the clock of the recording jumps {} times: later times count on from there"),
            (self.gaps, "{} gaps of over 10 minutes between pictures are not filled"),
        )
        return tuple(sentence.format(count) for count, sentence in said if count)


def _straightened(
    pictures: Iterable[_Stamped[Content]], faults: ClockFaults, *, clock_is_arbitrary: bool = False
) -> Iterator[Timed[Content]]:
    """Give every picture a time that never decreases; what cannot be believed is left out and counted.

    A picture slightly too early is dropped. A far jump is believed only if the next picture agrees: forward, it is a
    gap; back, it is a spliced recording whose clock restarts, and time counts on. Where the clock is arbitrary (a
    transport stream), a jump forward over more than the longest gap is a restart too.
    """
    last: Timed[Content] | None = None
    suspect: Timed[Content] | None = None  # the first picture, or one after a far jump, until the next confirms it
    shift = 0.0  # what restarts have added to the clock of the file
    for picture in _filled(pictures):
        if suspect is not None:
            if _is_stray(suspect, picture, last, shift):
                faults.strays += 1
            else:
                jump_ms = suspect.time_ms + shift - last.time_ms if last is not None else 0.0
                if last is not None and (jump_ms < 0 or (clock_is_arbitrary and jump_ms > _LONGEST_GAP_MS)):
                    faults.restarts += 1
                    shift = last.end_ms - suspect.time_ms
                last = suspect.shifted(shift)
                yield last
            suspect = None
        step_ms = picture.time_ms + shift - last.time_ms if last is not None else math.inf
        if abs(step_ms) > _SUSPICIOUS_JUMP_MS:
            suspect = picture
        elif step_ms < 0:
            faults.late += 1
        else:
            last = picture.shifted(shift)
            yield last
    if suspect is not None:
        if last is None or 0 <= suspect.time_ms + shift - last.time_ms <= _LONGEST_GAP_MS:
            yield suspect.shifted(shift)
        else:
            faults.strays += 1


def _from_zero(pictures: Iterable[Timed[Content]], *, hides_earlier: bool) -> Iterator[Timed[Content]]:
    """Let the pictures begin at zero or later, as in a player.

    Where something hides what lies before zero (the edit list of an MP4: it begins between two key pictures), a picture
    that ends by then is left out, and one that goes on is shown from zero. Elsewhere zero is where the pictures begin.
    """
    shift = 0.0
    for number, picture in enumerate(pictures):
        if number == 0 and not hides_earlier:
            shift = max(0.0, -picture.time_ms)
        moved = picture.shifted(shift)
        if moved.time_ms >= 0:
            yield moved
        elif moved.end_ms > _ROUNDING_MS:
            yield Timed(moved.content, 0.0, moved.end_ms)


def at_ticks(pictures: Iterable[Timed[Content]], faults: ClockFaults) -> Iterator[Timed[Content]]:
    """Pick the picture of every tick: one each 40 ms, from the time of the first picture to the end of the last.

    It is the nearest picture, but one that is yet to come only within 20 ms. Times of `pictures` never decrease.
    """
    remaining = iter(pictures)
    current = next(remaining, None)
    if current is None:
        return
    origin_ms, ticks = current.time_ms, 0
    for following in remaining:
        is_gap = following.time_ms - current.time_ms > _LONGEST_GAP_MS
        end_ms = _end_ms(current) if is_gap else math.inf
        while not _replaces(following, current, tick_ms := origin_ms + FRAME_MS * ticks) and tick_ms < end_ms:
            yield current
            ticks += 1
        if is_gap:
            faults.gaps += 1
            origin_ms, ticks = following.time_ms, 0
        current = following
    while ticks == 0 or origin_ms + FRAME_MS * ticks < _end_ms(current):
        yield current
        ticks += 1


def _end_ms(picture: Timed[Content]) -> float:
    return picture.time_ms + min(picture.duration_ms, _LONGEST_LAST_MS) - _ROUNDING_MS


def _filled(pictures: Iterable[_Stamped[Content]]) -> Iterator[Timed[Content]]:
    """Complete missing times and durations from the picture before."""
    before: Timed[Content] | None = None
    for picture in pictures:
        time_ms = picture.time_ms
        if time_ms is None:
            time_ms = before.end_ms if before else 0.0
        duration_ms = picture.duration_ms
        if duration_ms <= 0:
            step_ms = time_ms - before.time_ms if before else 0.0
            usual_ms = before.duration_ms if before else float(FRAME_MS)
            duration_ms = step_ms if 0 < step_ms <= _SUSPICIOUS_JUMP_MS else usual_ms
        before = Timed(picture.content, time_ms, duration_ms)
        yield before


def _is_stray(suspect: Timed[Content], following: Timed[Content], last: Timed[Content] | None, shift: float) -> bool:
    if last is not None and 0 <= following.time_ms + shift - last.time_ms <= _SUSPICIOUS_JUMP_MS:
        return True
    return not 0 <= following.time_ms - suspect.time_ms <= _LONGEST_GAP_MS


def _replaces(following: Timed[Content], current: Timed[Content], tick_ms: float) -> bool:
    ahead_ms = following.time_ms - tick_ms
    return ahead_ms <= 0 or (ahead_ms <= _AHEAD_MS and ahead_ms < tick_ms - current.time_ms)


# From decoded pictures to what a viewer sees: deinterlaced, square pixels, turned upright, RGB.

# PyAV raises FFmpeg's errors, and on damaged files also Python's own of many kinds (IndexError, UnicodeDecodeError...).
_FAULTS = (av.FFmpegError, ArithmeticError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError)
_WIDEST_PIXEL = 4  # pixels wider or narrower than this are a damaged header
_DEINTERLACE = "mode=send_frame:deint=interlaced"  # one picture per frame; progressive pictures pass


@dataclass(frozen=True, slots=True)
class _Orientation:
    """How stored pixels become upright ones: exchange rows and columns, then flip."""

    exchange: bool = False
    flip_columns: bool = False
    flip_rows: bool = False

    @classmethod
    def of(cls, picture: VideoFrame) -> _Orientation:
        """Read a picture's display matrix; angles between the quarter turns go to the nearest."""
        try:
            side_data = cast(Mapping[SideDataType, SideData], picture.side_data)
        except ValueError:  # PyAV gives none if it has no name for one of them, such as the views of MV-HEVC, or Exif
            quarters = round(-picture.rotation / 90) % 4
            return cls(quarters % 2 == 1, flip_columns=quarters in (1, 2), flip_rows=quarters in (2, 3))
        matrix = side_data.get(SideDataType.DISPLAYMATRIX)
        if matrix is None:
            return cls()
        # A stored pixel (x, y) is displayed at (a x + c y, b x + d y), up to a shift.
        a, b, _, c, d = (int(v) for v in np.frombuffer(bytes(matrix), np.int32)[:5])
        if abs(a) + abs(d) >= abs(b) + abs(c):
            return cls(False, flip_columns=a < 0, flip_rows=d < 0)
        return cls(True, flip_columns=c < 0, flip_rows=b < 0)

    @property
    def mirrored(self) -> bool:
        """Whether left and right are exchanged, which no rotation does."""
        return self.exchange ^ self.flip_columns ^ self.flip_rows

    @property
    def rotation(self) -> int:
        """Degrees clockwise, after the mirroring if there is one."""
        if self.exchange:
            return 90 if self.flip_columns else 270
        return 180 if self.flip_rows else 0

    def apply(self, pixels: Pixels) -> Pixels:
        upright = pixels.transpose(1, 0, 2) if self.exchange else pixels
        upright = upright[:: -1 if self.flip_rows else 1, :: -1 if self.flip_columns else 1]
        return np.ascontiguousarray(upright)


class _Viewer:
    """Turns pictures into upright RGB arrays, all of the size of the first."""

    def __init__(self, first: VideoFrame, pixel_aspect: Fraction | None) -> None:
        self.orientation = _Orientation.of(first)
        aspect = float(pixel_aspect) if pixel_aspect else 1.0
        if not 1 / _WIDEST_PIXEL <= aspect <= _WIDEST_PIXEL:
            aspect = 1.0
        # Pixels are only ever stretched, so no detail is lost.
        self._width = math.ceil(first.width * max(1.0, aspect))
        self._height = math.ceil(first.height / min(1.0, aspect))
        self._reformatter = VideoReformatter()
        upright = (self._width, self._height)
        self.width, self.height = upright[::-1] if self.orientation.exchange else upright

    def pixels(self, picture: VideoFrame) -> Pixels:
        """(height, width, 3) uint8 RGB."""
        plain = self._reformatter.reformat(picture, self._width, self._height, "rgb24")
        return self.orientation.apply(plain.to_ndarray().astype(np.uint8, copy=False))


class _Deinterlacer:
    """Passes pictures on, and joins the two half-pictures of interlaced ones; runs up to two pictures behind."""

    def __init__(self) -> None:
        self._graph: av.filter.Graph | None = None
        self._layout: tuple[object, ...] = ()

    def push(self, picture: VideoFrame) -> Iterator[VideoFrame]:
        layout = (picture.width, picture.height, picture.format.name, picture.time_base)
        if self._graph is not None and layout != self._layout:
            yield from self.flush()
        try:
            if self._graph is None and picture.interlaced_frame:
                self._graph, self._layout = _graph_for(picture), layout
            if self._graph is not None:
                self._graph.vpush(picture)
        except _FAULTS:  # better two half-pictures than none
            yield from self.flush()
        if self._graph is None:
            yield picture
        else:
            yield from self._ready()

    def flush(self) -> Iterator[VideoFrame]:
        if self._graph is not None:
            with contextlib.suppress(*_FAULTS):
                self._graph.vpush(None)
            yield from self._ready()
            self._graph = None

    def _ready(self) -> Iterator[VideoFrame]:
        while self._graph is not None:
            try:
                picture = self._graph.vpull()
            except _FAULTS:  # among them: no more for now
                return
            yield picture


def _graph_for(picture: VideoFrame) -> av.filter.Graph:
    graph = av.filter.Graph()
    graph.threads = 2
    source = graph.add_buffer(
        width=picture.width, height=picture.height, format=picture.format, time_base=picture.time_base
    )
    graph.link_nodes(source, graph.add("bwdif", _DEINTERLACE), graph.add("buffersink")).configure()
    return graph
