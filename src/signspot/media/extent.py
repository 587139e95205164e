"""How much of a file is there: containers say how many bytes they hold, and a cut file holds fewer.

Decoders are silent about most cuts: a transport stream, a Matroska file or a fragmented MP4 simply ends earlier.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_MOST_BOXES = 2_000_000
_FIRST_BOXES = {b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"sidx"}
_EBML, _SEGMENT = 0x1A45DFA3, 0x18538067
_TS_SYNC = 0x47
_TS_LAYOUTS = ((188, 0), (192, 4), (204, 0))  # packet length and where in the packet the sync byte is


@dataclass(frozen=True, slots=True)
class Extent:
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


def measure(file: BinaryIO | io.FileIO) -> Extent:
    """Compare what the container claims to hold with the length of the file; the position is left at the start."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(1024) or b""
    extent = Extent(size)
    if head[4:8] in _FIRST_BOXES:
        extent = _mp4_extent(list(_boxes(file, size)), size)
    elif head.startswith(_EBML.to_bytes(4, "big")):
        extent = Extent(size, _matroska_end(head) > size)
    elif head.startswith(b"RIFF"):
        extent = Extent(size, _riff_end(file, size) > size)
    else:
        for length, sync in _TS_LAYOUTS:
            if len(head) > sync + 2 * length and all(head[sync + i * length] == _TS_SYNC for i in range(3)):
                extent = Extent(size, size % length != 0)
                break
    file.seek(0)
    return extent


class Clipped(io.RawIOBase):
    """The first `size` bytes of a file, as a file: a decoder that trips over a half box at the end never sees it."""

    def __init__(self, file: io.FileIO, size: int) -> None:
        self._file, self._size = file, size

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be moved in."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes."""
        left = max(0, self._size - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left)) or b""

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move; the end is the end of the clipped part."""
        if whence == os.SEEK_END:
            offset, whence = max(0, self._size + offset), os.SEEK_SET
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The position."""
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


def _mp4_extent(boxes: list[_Box], size: int) -> Extent:
    kinds = [box.kind for box in boxes]
    lacks_index = b"moov" not in kinds or (boxes[-1].kind == b"moov" and boxes[-1].stop > size)
    if lacks_index:
        return Extent(size, lacks_index=True)
    last, is_fragmented = boxes[-1], b"moof" in kinds
    if last.kind == b"moof":  # half a list of pictures, or a list without its pictures, cannot be used
        return Extent(last.start, True, is_fragmented)
    if last.stop > size:  # half a block of pictures can be used, and a cut in any other box loses none
        return Extent(size, last.kind == b"mdat", is_fragmented)
    has_half_header = 0 < size - last.stop < 8
    return Extent(last.stop if has_half_header else size, has_half_header or b"mdat" not in kinds, is_fragmented)


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
