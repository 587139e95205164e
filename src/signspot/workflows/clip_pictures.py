"""Small pictures of dictionary clips, for those that may be shown."""

from __future__ import annotations

from datetime import date
from itertools import islice
from pathlib import Path

from signspot.domain.dictionary import Entry
from signspot.domain.tracks import Pixels
from signspot.errors import FormatError, VideoError
from signspot.features.extract import LONGEST_ENTRY_FRAMES
from signspot.formats.pose_files import SUFFIX, read_pose
from signspot.media.reader import VideoReader
from signspot.media.skeleton import skeletons
from signspot.media.thumbnails import thumbnail
from signspot.workflows.evidence import may


def entry_pictures(entry: Entry, today: date, *, isolated: bool = True) -> tuple[Pixels, ...]:
    """The frames (96, W, 3) uint8 of a clip that show the sign, or its landmarks drawn; none if it may not be shown."""
    if entry.video is None or not may(entry.rights, "display", today, rights_cleared=True):
        return ()
    try:
        if entry.video.suffix.lower() == SUFFIX:
            return tuple(skeletons(read_pose(entry.video), entry.kept))
        frames = _thumbnails(entry.video, isolated=isolated)
    except (VideoError, FormatError):  # its vector may come from somewhere else, and a picture is not worth a failure
        return ()
    kept = entry.kept
    return tuple(frames if kept is None else frames[kept.start : kept.stop])


def _thumbnails(video: Path, *, isolated: bool) -> list[Pixels]:
    with VideoReader(video, isolated=isolated) as reader:
        return [thumbnail(frame.pixels) for frame in islice(reader, LONGEST_ENTRY_FRAMES)]
