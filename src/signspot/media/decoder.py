"""Decoding one video in this process, as 25 fps frames by true timestamps.

Damaged files are the rule, not the exception: whatever a packet or a picture raises is counted and the next one is
tried, so that every readable picture is delivered. What was met on the way is said at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from fractions import Fraction

import av
from av.container import InputContainer
from av.packet import Packet
from av.stream import Discard, Disposition, Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from signspot.domain.tracks import CLIP_LENGTH, Pixels
from signspot.errors import EnvironmentProblem, VideoError, readable_size
from signspot.media.claims import RUNNING_CLOCKS, Findings, claim_of, clock, partial_of
from signspot.media.extent import Clipped, Extent, measure
from signspot.media.files import STILL_IMAGE, open_media, unreadable
from signspot.media.pictures import FAULTS, Deinterlacer, Viewer
from signspot.media.timeline import ClockFaults, Stamped, Timed, at_ticks, from_zero, straightened
from signspot.media.transforms import cut_square, shape_frame
from signspot.media.video import Frame, Outcome, ReadRequest, VideoInfo

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
        self._findings = Findings()
        self._clock = ClockFaults()
        self._notes: list[str] = []
        self._size_changes = 0
        self._first_ms: float | None = None  # of the first picture, before it is moved to zero
        self._container: InputContainer | None = None
        self._file = open_media(request.path)
        try:
            self._extent = self._measured()
            self._findings.is_cut = self._extent.is_cut
            self._container = self._opened()
            self._stream = self._video_stream(self._container)
            self._claim = claim_of(self._container, self._stream, is_fragmented=self._extent.is_fragmented)
            self._clock_is_arbitrary = self._container.format.name in RUNNING_CLOCKS
            self._origin_ms = (self._container.start_time or 0) / 1000 if self._clock_is_arbitrary else 0.0
            self._skip_other_streams(self._container)
            self._avi_delay: int | None = None
            self._pictures = self._decoded(self._container)
            first = self._first_picture()
            self._size = (first.width, first.height)
            self._viewer = Viewer(first, self._stream.sample_aspect_ratio)
            self.info = self._describe(first)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        if self._container is not None:
            self._container.close()
        self._file.close()

    def frames(self) -> Iterator[Frame]:
        """Every 25 fps frame in order."""
        straight = straightened(self._stamped(), self._clock, clock_is_arbitrary=self._clock_is_arbitrary)
        shown: Timed[VideoFrame] | None = None
        pixels: Pixels | None = None
        count = 0
        placed = from_zero(self._watched(straight), hides_earlier=self._hides_earlier)
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
        """How it went; complete once all frames have been taken."""
        warnings = (*self._notes, *self._findings.warnings(), *self._clock.warnings())
        return Outcome(self._zero_ms(), partial_of(self._findings, self._claim), warnings)

    @property
    def _hides_earlier(self) -> bool:
        """Whether what lies before zero is not to be seen: an edit list of MP4 and QuickTime says so."""
        return self.info.container == "mp4"

    def _zero_ms(self) -> float:
        """The container's own clock where the media time is zero."""
        return self._origin_ms + (0.0 if self._hides_earlier else min(0.0, self._first_ms or 0.0))

    def _measured(self) -> Extent:
        try:
            return measure(self._file)
        except OSError as error:
            raise unreadable(self._path, error) from error

    def _opened(self) -> InputContainer:
        try:
            return av.open(
                Clipped(self._file, self._extent.usable_bytes),
                "r",
                options={"protocol_whitelist": "file", "format_whitelist": _CONTAINERS},
                metadata_errors="replace",
                buffer_size=_BUFFER_BYTES,
            )
        except FAULTS as error:
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
            except FAULTS as error:
                self._findings.out_of_memory |= isinstance(error, MemoryError)
                self._findings.bad_reads += 1
                faults_in_a_row += 1

    def _decoded(self, container: InputContainer) -> Iterator[VideoFrame]:
        """Every picture the decoder gives, in the order of display."""
        has_begun = False
        for packet in itertools.chain(self._packets(container), (None,)):
            if packet is not None:
                self._note_end(packet)
                # An empty packet (a dropped frame of an AVI) would tell the decoder that the video is over.
                if packet.stream_index != self._stream.index or not packet.size:
                    continue
            try:
                pictures = self._stream.codec_context.decode(packet)
            except FAULTS as error:
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

    def _note_end(self, packet: Packet[Stream]) -> None:
        if packet.pts is not None and packet.time_base:
            end_ms = float((packet.pts + (packet.duration or 0)) * packet.time_base * 1000) - self._origin_ms
            self._findings.recording_end_ms = max(self._findings.recording_end_ms, end_ms)

    def _stamped(self) -> Iterator[Stamped[VideoFrame]]:
        deinterlacer = Deinterlacer()
        steps = itertools.chain((deinterlacer.push(p) for p in self._pictures), (deinterlacer.flush() for _ in (0,)))
        for picture in itertools.chain.from_iterable(steps):
            unit = picture.time_base or _MILLISECOND
            time_ms = None if picture.pts is None else float(picture.pts * unit * 1000) - self._origin_ms
            if (picture.width, picture.height) != self._size:
                self._note_change_of_size(time_ms)
            yield Stamped(picture, time_ms, float(max(0, picture.duration) * unit * 1000))

    def _stamp(self, picture: VideoFrame) -> int | None:
        if self._stream.container.format.name != "avi":
            return picture.pts if picture.pts is not None else picture.dts
        # AVI stores no display times. Pictures come out of the decoder in order, but as many late as it reorders.
        if picture.dts is None:
            return None
        if self._avi_delay is None:
            self._avi_delay = min(picture.dts, self._stream.codec_context.reorder_depth)
        return picture.dts - self._avi_delay

    def _note_change_of_size(self, time_ms: float | None) -> None:
        width, height = self._size
        self._size_changes += 1
        if self._size_changes == 1:
            when = f" at {clock(time_ms)}" if time_ms is not None else ""
            self._notes.append(f"the pictures change size{when}: all are scaled to {width} x {height}")

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
        except FAULTS as error:
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
