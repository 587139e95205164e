"""The frames of videos, decoded once: raw bytes on the disk, opened as memory maps.

A file holds the wanted frames of one video, each `side` x `side` x 3 bytes, and lies under a name made of the content
of the video, the size of the frames and which of them are wanted; a .json file beside it, written last, says that it is
whole and what its checksum is. A file that is not whole is made again. Memory does not grow with the video.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import overload

import numpy as np

from signspot.atomic import atomic_output
from signspot.domain.boxes import SignerBox
from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import FrameShape, Pixels
from signspot.errors import InputError, VideoError
from signspot.features.store_disk import make_folder
from signspot.media.reader import VideoReader, media_sha256

_VERSION = 1  # counts up when the same name would mean other bytes
_TOO_LONG = "is longer than {} seconds: it should show one sign"


@dataclass(frozen=True, slots=True)
class StoredFrames:
    """Some frames of one video on the disk, in order."""

    path: Path
    side: int  # pixels
    kept: tuple[FrameSpan, ...]  # which frames of the video; apart, ascending

    def __len__(self) -> int:
        return sum(map(len, self.kept))

    def open(self) -> Pixels:
        """A read-only memory map (n, side, side, 3)."""
        try:
            return np.memmap(self.path, np.uint8, "r", shape=(len(self), self.side, self.side, 3))
        except (OSError, ValueError) as error:  # ValueError: the file has become too short
            what = f"the decoded frames cannot be read any more ({error})"
            raise InputError(self.path, what, "run the same command again: they are decoded again") from error

    def rows(self, span: FrameSpan) -> FrameSpan | None:
        """The rows that hold the frames of `span`, as far as the video goes; None if it ends before."""
        at = bisect_right(self.kept, span.start, key=lambda kept: kept.start) - 1
        if at < 0 or span.start not in self.kept[at]:
            return None
        offset = sum(map(len, self.kept[:at])) - self.kept[at].start
        return FrameSpan(span.start + offset, min(span.stop, self.kept[at].stop) + offset)


class StoredRecordings(Sequence[Pixels]):
    """Recordings that are opened when they are asked for: thousands of open files are more than a system allows."""

    def __init__(self, stored: Iterable[StoredFrames]) -> None:
        self._stored = tuple(stored)

    def __len__(self) -> int:
        return len(self._stored)

    @overload
    def __getitem__(self, i: int) -> Pixels: ...
    @overload
    def __getitem__(self, i: slice) -> StoredRecordings: ...
    def __getitem__(self, i: int | slice) -> Pixels | StoredRecordings:
        return StoredRecordings(self._stored[i]) if isinstance(i, slice) else self._stored[i].open()


@dataclass(frozen=True, slots=True)
class FrameCache:
    """A folder of decoded frames."""

    folder: Path
    shape: FrameShape  # of the model; frames are kept at its full side, so that training can move the crop
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing

    def frames_in(self, video: Path, spans: Iterable[FrameSpan], box: SignerBox | None = None) -> StoredFrames:
        """The frames of these spans, as far as the video goes; decoded unless they are there."""
        return self._frames(video, merged(spans), box)

    def all_frames(self, video: Path, at_most: int, box: SignerBox | None = None) -> StoredFrames:
        """The whole of a short video; one of more than `at_most` frames is refused."""
        stored = self._frames(video, (FrameSpan(0, at_most + 1),), box)
        if len(stored) > at_most:
            raise VideoError(video, _TOO_LONG.format(at_most // 25), "cut the sign out")
        return stored

    def _frames(self, video: Path, wanted: tuple[FrameSpan, ...], box: SignerBox | None) -> StoredFrames:
        make_folder(self.folder)
        box = box if self.shape.signer_box else None
        seen = (self.shape.side, self.shape.keep_aspect, *([str(box)] if box else []))
        made_of = (_VERSION, media_sha256(video), *seen, *map(asdict, wanted))
        name = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]
        path = self.folder / f"{name}.frames"
        return self._whole(path, wanted) or self._decoded(video, path, wanted, box)

    def _whole(self, path: Path, wanted: tuple[FrameSpan, ...]) -> StoredFrames | None:
        try:
            card = json.loads(path.with_suffix(".json").read_text())
            stored = StoredFrames(path, self.shape.side, _cut(wanted, int(card["n_frames"])))
            is_whole = path.stat().st_size == self._n_bytes(stored) and _sha256_of(path) == card["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return stored if is_whole else None

    def _decoded(self, video: Path, path: Path, wanted: tuple[FrameSpan, ...], box: SignerBox | None) -> StoredFrames:
        digest, n_frames = hashlib.sha256(), 0
        with atomic_output(path, overwrite=True) as temporary, temporary.open("wb") as file:
            for number, pixels in self._decode(video, wanted, box):
                n_frames = number + 1
                if _is_in(number, wanted):
                    content = np.ascontiguousarray(pixels).data
                    digest.update(content)
                    file.write(content)
        with atomic_output(path.with_suffix(".json"), overwrite=True) as temporary:
            temporary.write_text(json.dumps({"n_frames": n_frames, "sha256": digest.hexdigest()}))
        return StoredFrames(path, self.shape.side, _cut(wanted, n_frames))

    def _decode(
        self, video: Path, wanted: tuple[FrameSpan, ...], box: SignerBox | None
    ) -> Iterator[tuple[int, Pixels]]:
        """The frames of a video with their numbers, up to the last one wanted."""
        shape = FrameShape(self.shape.side, self.shape.side, self.shape.keep_aspect)
        last = max((span.stop for span in wanted), default=0)
        with VideoReader(video, shape=shape, box=box, isolated=self.isolated) as reader:
            for number, frame in enumerate(reader):
                if number >= last:
                    return
                yield number, frame.pixels

    def _n_bytes(self, stored: StoredFrames) -> int:
        return len(stored) * stored.side**2 * 3


def merged(spans: Iterable[FrameSpan]) -> tuple[FrameSpan, ...]:
    """The same frames in as few spans as possible, ascending.

    >>> merged([FrameSpan(5, 9), FrameSpan(0, 2), FrameSpan(8, 12), FrameSpan(2, 3)])
    (FrameSpan(start=0, stop=3), FrameSpan(start=5, stop=12))
    """
    joined: list[FrameSpan] = []
    for span in sorted(span for span in spans if len(span)):
        if joined and span.start <= joined[-1].stop:
            joined[-1] = FrameSpan(joined[-1].start, max(joined[-1].stop, span.stop))
        else:
            joined.append(span)
    return tuple(joined)


def _is_in(number: int, spans: Sequence[FrameSpan]) -> bool:
    at = bisect_right(spans, number, key=lambda span: span.start) - 1
    return at >= 0 and number in spans[at]


def _cut(spans: Iterable[FrameSpan], n_frames: int) -> tuple[FrameSpan, ...]:
    """What of the spans lies in a video of `n_frames`."""
    return tuple(FrameSpan(span.start, min(span.stop, n_frames)) for span in spans if span.start < n_frames)


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
