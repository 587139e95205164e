"""What a video claims about its length, what was found, and how to say that a part is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from av.container import InputContainer
from av.video.stream import VideoStream

# Their timestamps count from an arbitrary start, and the length is only estimated from what is there.
RUNNING_CLOCKS = {"mpegts", "mpeg"}
_ESTIMATED = RUNNING_CLOCKS | {"gif", "h264", "hevc", "m4v", "mpegvideo"}
_TOLERANCE_MS, _TOLERANCE_SHARE = 500.0, 0.02  # claims are rounded, and sound may outlast the pictures a little
_DURATION_TAG = re.compile(r"(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)")


@dataclass(frozen=True, slots=True)
class Claim:
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
        """One sentence for each kind of damage."""
        said = (
            (self.is_cut, "the file ends early: its container says it should be longer"),
            (self.bad_packets, f"damaged pieces of video that could not be decoded: {self.bad_packets}"),
            (self.bad_pictures, f"damaged pictures: {self.bad_pictures}"),
            (self.bad_reads, f"places in the file that could not be read: {self.bad_reads}"),
            (self.stopped, self.stopped),
        )
        return tuple(sentence for occurred, sentence in said if occurred)


def claim_of(container: InputContainer, stream: VideoStream, *, is_fragmented: bool) -> Claim:
    """What the headers say about the end of the video."""
    name = container.format.name
    if name in _ESTIMATED or is_fragmented:  # the decoder then adds up what is there
        return Claim(None, None)
    whole_ms = (container.duration or 0) / 1000
    if whole_ms and name != "matroska,webm":  # Matroska counts from zero, the others from the first timestamp
        whole_ms += (container.start_time or 0) / 1000
    return Claim(_pictures_end_ms(name, stream), whole_ms or None)


def partial_of(findings: Findings, claim: Claim) -> str:
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
    tenths = clock(got_ms) == clock(whole_ms)
    return f"partial, {clock(got_ms, tenths=tenths)} of {clock(whole_ms, tenths=tenths)}"


def clock(time_ms: float, *, tenths: bool = False) -> str:
    """Media time as a player shows it, rounded down.

    >>> clock(232_900), clock(3_600_000), clock(3_960, tenths=True)
    ('3:52', '1:00:00', '0:03.9')
    """
    seconds, rest_ms = divmod(int(max(0.0, time_ms) + 1e-6), 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    text = f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
    return f"{text}.{rest_ms // 100}" if tenths else text


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
