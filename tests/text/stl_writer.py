"""Writes EBU STL files for tests, from the tables of EBU Tech 3264."""

from __future__ import annotations

import struct
from dataclasses import dataclass

Code = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True)
class Block:
    start: Code
    stop: Code
    text: bytes
    cumulative: int = 0
    extension: int = 0xFF
    is_comment: bool = False


def stl(*blocks: Block, rate: bytes = b"STL25.01", alphabet: bytes = b"00", first: bytes = b"00000000") -> bytes:
    head = b"850" + rate + b"1" + alphabet + b"09"
    header = head.ljust(236) + b"00" + b"%05d" % len(blocks) + b"%05d" % len(blocks) + b"001" + b"40" + b"23" + b"1"
    assert len(header) == 256
    return (header + first).ljust(1024) + b"".join(_block(number, block) for number, block in enumerate(blocks))


def _block(number: int, block: Block) -> bytes:
    return struct.pack(
        "<BHBB4B4BBBB112s",
        0,
        number,
        block.extension,
        block.cumulative,
        *block.start,
        *block.stop,
        20,
        2,
        int(block.is_comment),
        block.text.ljust(112, b"\x8f"),
    )
