"""One clip on its way into a built dictionary: read once, trimmed, looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.dictionary import Entry
from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import Pixels
from signspot.errors import VideoError
from signspot.features.extract import LONGEST_ENTRY_FRAMES
from signspot.formats.clip_facts import ClipFacts
from signspot.media.frame_signature import frame_signature
from signspot.media.reader import VideoReader
from signspot.media.thumbnails import spread, strip, thumbnail
from signspot.media.trim import Trim, TrimOptions, trim_by_motion

_METHOD = "1"  # changes whenever the same clip would get other facts


@dataclass(frozen=True, slots=True, eq=False)
class ReadClip:
    """What one reading of a clip gives."""

    facts: ClipFacts
    strip: Pixels  # (height, n_tiles * tile_width, 3) uint8


def facts_key(sha256: str, kept: FrameSpan | None, options: TrimOptions | None) -> str:
    """The name of the facts about a clip: the same for the same content looked at in the same way."""
    method = hashlib.sha256(f"{_METHOD} {kept} {options}".encode()).hexdigest()
    return f"{sha256[:32]}-{method[:8]}"


def read_clip(video: Path, kept: FrameSpan | None, options: TrimOptions | None, *, isolated: bool = True) -> ReadClip:
    """Decode a clip once and find out all about it; a part that somebody chose to keep is kept as it is."""
    small: list[Pixels] = []
    with VideoReader(video, isolated=isolated) as reader:
        frames = _noted(reader, small)
        if kept is None and options is not None:
            trim = trim_by_motion(frames, options)
        else:
            n_frames = sum(1 for _ in frames)
            trim = Trim(kept or FrameSpan(0, n_frames), n_frames)
        report = reader.report
    if not 0 < trim.kept.stop <= len(small):
        what = f"has {len(small)} frames, but frames {trim.kept.start} to {trim.kept.stop} are to be kept"
        raise VideoError(video, what, "correct kept_start and kept_stop, or remove them")
    shown = small[trim.kept.start : trim.kept.stop]
    facts = ClipFacts(
        n_frames=len(small),
        kept=trim.kept,
        kept_ms=report.axis.millis_of(trim.kept),
        remarks=tuple(remark for remark in (report.partial, *report.warnings, trim.remark) if remark),
        n_tiles=len(spread(len(shown))),
        tile_width=small[0].shape[1],
        signature=frame_signature(small, trim.kept),
    )
    return ReadClip(facts, np.ascontiguousarray(strip(shown)))


def as_kept(entry: Entry, facts: ClipFacts) -> FrameSpan | None:
    """What the manifest says about the part to keep: nothing where all of the clip is."""
    return entry.kept or (facts.kept if len(facts.kept) < facts.n_frames else None)


def _noted(reader: VideoReader, small: list[Pixels]) -> Iterator[Pixels]:
    """The frames of a clip; a thumbnail of each is added to `small`."""
    for frame in reader:
        if len(small) == LONGEST_ENTRY_FRAMES:
            what = "is longer than two minutes: a dictionary clip shows one sign"
            raise VideoError(reader.info.path, what, "cut the sign out")
        small.append(thumbnail(frame.pixels))
        yield frame.pixels
