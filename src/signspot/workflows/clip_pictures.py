"""Small pictures of dictionary clips, for those that may be shown."""

from __future__ import annotations

from datetime import date
from itertools import islice

from signspot.domain.dictionary import Entry
from signspot.domain.tracks import Pixels
from signspot.errors import VideoError
from signspot.features.extract import LONGEST_ENTRY_FRAMES
from signspot.media.reader import VideoReader
from signspot.media.thumbnails import thumbnail
from signspot.workflows.evidence import may


def entry_pictures(entry: Entry, today: date, *, isolated: bool = True) -> tuple[Pixels, ...]:
    """The frames (96, W, 3) uint8 of a clip that show the sign; none where there is no clip or it may not be shown."""
    if entry.video is None or not may(entry.rights, "display", today, rights_cleared=True):
        return ()
    try:
        with VideoReader(entry.video, isolated=isolated) as reader:
            frames = [thumbnail(frame.pixels) for frame in islice(reader, LONGEST_ENTRY_FRAMES)]
    except VideoError:  # its vector may come from somewhere else, and a picture is not worth a failure
        return ()
    kept = entry.kept
    return tuple(frames if kept is None else frames[kept.start : kept.stop])
