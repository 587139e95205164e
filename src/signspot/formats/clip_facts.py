"""What was found out about one clip while a dictionary was built, kept so that the clip is read only once."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.spans import FrameSpan, MillisSpan
from signspot.domain.tracks import FloatArray
from signspot.errors import FormatError
from signspot.formats.plain_data import Node
from signspot.formats.records import read_manifest
from signspot.formats.safe_json import write_json
from signspot.media.frame_signature import SIGNATURE_SHAPE

_FORMAT = "signspot-clip-facts"
_STEPS = 127  # a number of a signature is stored in one byte


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClipFacts:
    """One clip: its frames, the part of it that shows the sign, and its looks."""

    n_frames: int
    kept: FrameSpan
    kept_ms: MillisSpan  # media time of `kept`
    remarks: tuple[str, ...]  # what should be known: damage, a clip in which nothing moves
    n_tiles: int  # of its strip of thumbnails
    tile_width: int  # pixels
    signature: FloatArray  # (2, 2048), rows of length 1 or zero: see media.frame_signature


def write_clip_facts(facts: ClipFacts, path: Path) -> None:
    """Store the facts about a clip; what was there before is replaced."""
    content = {
        "format": _FORMAT,
        "version": 1,
        "n_frames": facts.n_frames,
        "kept": [facts.kept.start, facts.kept.stop],
        "kept_ms": [facts.kept_ms.start, facts.kept_ms.stop],
        "remarks": list(facts.remarks),
        "n_tiles": facts.n_tiles,
        "tile_width": facts.tile_width,
        "signature": base64.b64encode(_rounded(facts.signature).tobytes()).decode("ascii"),
    }
    write_json(content, path, overwrite=True)


def read_clip_facts(path: Path) -> ClipFacts | None:
    """The facts stored at `path`; None where there are none or they are damaged: then the clip is read again."""
    if not path.is_file():
        return None
    try:
        node = Node(path, read_manifest(path, _FORMAT))
        kept, kept_ms = ([edge.integer() for edge in node.member(name).rows(2)] for name in ("kept", "kept_ms"))
        return ClipFacts(
            n_frames=node.member("n_frames").integer(),
            kept=FrameSpan(kept[0], kept[1]),
            kept_ms=MillisSpan.of(kept_ms[0], kept_ms[1]),
            remarks=tuple(remark.text() for remark in node.member("remarks").rows()),
            n_tiles=max(1, node.member("n_tiles").integer()),
            tile_width=max(1, node.member("tile_width").integer()),
            signature=_signature(node.member("signature").text()),
        )
    except (FormatError, ValueError, binascii.Error):
        return None


def _rounded(signature: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    largest = np.abs(signature).max(axis=1, keepdims=True)
    return np.rint(signature / np.where(largest > 0, largest, 1) * _STEPS).astype(np.int8)


def _signature(text: str) -> FloatArray:
    rows = np.frombuffer(base64.b64decode(text, validate=True), np.int8).reshape(SIGNATURE_SHAPE).astype(np.float32)
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    signature: FloatArray = rows / np.maximum(lengths, 1)  # bytes: a row that is not zero is far longer than 1
    return signature
