"""What reading a video is asked and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from signspot.domain.boxes import SignerBox
from signspot.domain.spans import FRAME_RATE, TimeAxis
from signspot.domain.tracks import FrameShape, Pixels


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
