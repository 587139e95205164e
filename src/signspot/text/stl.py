"""EBU STL (EBU Tech 3264): the binary subtitles of broadcasters, 1,024 bytes of header and blocks of 128 bytes.

Time codes and the ISO 6937 alphabet are ttconv's; the blocks are read here, one by one, so that a damaged block costs
one cue with a warning and not the file, comments stay out, and a set of cumulative lines becomes one cue.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction

from ttconv.stl import iso6937
from ttconv.time_code import SmpteTimeCode

from signspot.text.cues import Cue, CueSource, Exact, Unreadable

HEADER_BYTES = 1024
_BLOCK = struct.Struct("<BHBB4B4BBBB112s")
_RATES = {
    b"STL23.01": Fraction(24000, 1001),
    b"STL24.01": Fraction(24),
    b"STL25.01": Fraction(25),
    b"STL30.01": Fraction(30000, 1001),
    b"STL50.01": Fraction(50),
}
_ALPHABETS = {b"01": "iso8859_5", b"02": "iso8859_6", b"03": "iso8859_7", b"04": "iso8859_8"}
_LAST_EXTENSION, _FIRST_RESERVED = 0xFF, 0xF0
_CONTINUES_A_SET = (2, 3)  # cumulative status: intermediate, last
_IS_COMMENT = 1
# Teletext colours occupy a cell and part words, 8A breaks the line; italics and underlining (80 to 85) take no room.
_CONTROLS = bytes.maketrans(bytes(range(0x20)) + b"\x8a", b" " * 0x20 + b"\n")
_WITHOUT_ROOM = bytes(set(range(0x7F, 0xA0)) - {0x8A})


def is_stl(data: bytes) -> bool:
    """Whether the header is one of EBU STL."""
    return data[3:6] == b"STL" and len(data) >= HEADER_BYTES


def read_stl(data: bytes) -> CueSource:
    """Read an EBU STL file; its header gives frame rate, alphabet and the time code of the programme's start."""
    name = data[3:11]
    remarks = []
    if name not in _RATES:
        remarks.append(f"its frame rate {name.decode('latin-1')} is unknown: read as 25 frames a second")
    if (len(data) - HEADER_BYTES) % _BLOCK.size:
        remarks.append("the last block is cut off")
    rate = _RATES.get(name, Fraction(25))
    code = data[256:264]
    first = tuple(int(code[i : i + 2]) for i in range(0, 8, 2)) if code.isdigit() else ()
    start = _milliseconds(first, rate)
    return CueSource(_cues(data, rate), start or 0, tuple(remarks))


def _cues(data: bytes, rate: Fraction) -> Iterator[Cue | Unreadable]:
    pending: Cue | Unreadable | None = None
    number, fields = 0, list[bytes]()
    usable = (len(data) - HEADER_BYTES) // _BLOCK.size * _BLOCK.size
    for block in _BLOCK.iter_unpack(data[HEADER_BYTES : HEADER_BYTES + usable]):
        extension, status, is_comment = block[2], block[3], block[14] == _IS_COMMENT
        if _FIRST_RESERVED <= extension < _LAST_EXTENSION or is_comment:
            continue
        fields.append(block[15].partition(b"\x8f")[0])
        if extension != _LAST_EXTENSION:
            continue
        text, fields = _text(b"".join(fields), data[12:14]), []
        start, stop = _milliseconds(block[4:8], rate), _milliseconds(block[8:12], rate)
        if status in _CONTINUES_A_SET and isinstance(pending, Cue) and stop is not None:
            pending = Cue(pending.number, pending.start_ms, max(pending.stop_ms, stop), f"{pending.text}\n{text}")
            continue
        if pending:
            yield pending
        number += 1
        if start is None or stop is None:
            pending = Unreadable(number, "its time code is impossible", text)
        else:
            pending = Cue(number, start, stop, text)
    if pending:
        yield pending
    if fields:
        yield Unreadable(number + 1, "its last block is missing", _text(b"".join(fields), data[12:14]))


def _text(field: bytes, alphabet: bytes) -> str:
    plain = field.translate(_CONTROLS, _WITHOUT_ROOM)
    if alphabet in _ALPHABETS:
        return plain.decode(_ALPHABETS[alphabet], "replace")
    # The decoder of ttconv knows letters only, not line breaks.
    return "\n".join(str(iso6937.decode(line, errors="replace")[0]) for line in plain.split(b"\n"))


def _milliseconds(code: tuple[int, ...], rate: Fraction) -> Exact | None:
    """Hours, minutes, seconds, frames -> ms; None if there is no such time code."""
    if len(code) != 4 or code[0] > 23 or code[1] > 59 or code[2] > 59 or code[3] >= rate:
        return None
    drops_frames = rate == Fraction(30000, 1001)
    return Fraction(SmpteTimeCode(*code, rate, drops_frames).to_temporal_offset()) * 1000
