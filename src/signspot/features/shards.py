"""One track as one file that never changes: a safetensors shard, named by its content.

Vectors are kept as float16 (n_windows, d), the time axis as float64 (n_frames,) in ms, everything else as one JSON
text in the header. The format does not notice flipped bits, so the name carries the sha256 of the whole file. A shard
is written piece by piece and read as a memory map, so that long videos need no more memory than short ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from signspot.domain.spans import TimeAxis
from signspot.domain.tracks import EmbeddingTrack, FloatArray, Vectors, WindowGrid
from signspot.errors import EnvironmentProblem, InputError
from signspot.features.rows import RowFile, mapped_rows, row_blocks

SUFFIX = ".safetensors"
_METADATA_KEY = "signspot"
_LARGEST_HALF = float(np.finfo(np.float16).max)
_SQUARE_TOLERANCE = 0.02  # of the squared length of a row that should be of length 1
_SHA256 = re.compile("[0-9a-f]{64}")


class DamagedShard(Exception):
    """A shard is not what the catalogue says; it has to be computed again."""


@dataclass(frozen=True, slots=True)
class TrackKey:
    """What a stored track belongs to: tracks that differ in any of these never mix."""

    media_sha256: str
    fingerprint: str  # of the embedder
    stride: int = 1

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.media_sha256):
            raise InputError(self.media_sha256, "is not the sha256 of a file", "give 64 digits from 0-9 and a-f")
        if not self.fingerprint or not self.fingerprint.isprintable():
            raise InputError(repr(self.fingerprint), "is not the fingerprint of a model", "give the embedder's own")
        if not 1 <= self.stride < 2**31:
            raise InputError(f"stride {self.stride}", "windows cannot lie that far apart", "give a small whole number")


@dataclass(frozen=True, slots=True)
class Remarks:
    """What was noticed while the video was read; an answer from the store repeats it."""

    partial: str = ""  # such as "partial, 3:52 of 42:00"
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrack:
    """What the catalogue knows about one shard."""

    key: TrackKey
    video_id: str
    n_windows: int
    dim: int
    remarks: Remarks
    shard_sha256: str
    n_bytes: int

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.shard_sha256):
            raise ValueError(f"{self.shard_sha256!r} is not a sha256")

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return shard_name(self.key.media_sha256, self.shard_sha256)


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A track as the bytes of its file."""

    stored: StoredTrack
    header: bytes
    track: EmbeddingTrack

    def pieces(self) -> Iterator[bytes]:
        """The file from its beginning to its end."""
        return _pieces(self.header, self.track)


def rows_name(key: TrackKey) -> str:
    """What the rows of a track are called while it is not finished."""
    model = hashlib.sha256(f"{key.fingerprint} {key.stride}".encode()).hexdigest()
    return f"{key.media_sha256}.{model[:16]}.rows"


def shard_name(media_sha256: str, shard_sha256: str) -> str:
    """Unique to the media and the content, so a name never changes its meaning."""
    return f"{media_sha256}.{shard_sha256}{SUFFIX}"


def encode_shard(media_sha256: str, track: EmbeddingTrack, remarks: Remarks) -> Shard:
    """The file of a track; the same track always gives the same bytes."""
    key = TrackKey(media_sha256, track.fingerprint, track.grid.stride)
    _refuse_unusable(track)
    card = {
        "key": asdict(key),
        "video_id": track.video_id,
        "n_frames": track.grid.n_frames,
        "length": track.grid.length,
        "origin_ms": track.axis.origin_ms,
        "remarks": asdict(remarks),
        **({} if track.unit_rows else {"unit_rows": False}),
    }
    header = _header(card, track)
    digest, n_bytes = hashlib.sha256(), 0
    for piece in _pieces(header, track):
        digest.update(piece)
        n_bytes += len(piece)
    return Shard(_stored(card, track.vectors.shape, digest.hexdigest(), n_bytes), header, track)


def verify_shard(path: Path, stored: StoredTrack) -> None:
    """Raise unless the file is, bit for bit, the one that was written."""
    with _readable(path), path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != stored.shard_sha256:
            raise DamagedShard("does not have the checksum it was written with")


def open_shard(path: Path, stored: StoredTrack) -> EmbeddingTrack:
    """The track of a shard that has been verified; its rows are a read-only map of float16, rounded as they lie there.

    Rows that should have length 1 have it but for that rounding: see `as_stored`.
    """
    with _readable(path):
        with safe_open(path, framework="numpy") as shard:
            card = _card(shard)
            # A flipped bit in the catalogue may lead to the sound shard of another video.
            if TrackKey(**card["key"]) != stored.key:
                raise DamagedShard("belongs to another video or model")
            axis = TimeAxis(shard.get_tensor("times_ms"), card["origin_ms"])
        grid = WindowGrid(card["n_frames"], card["length"], stored.key.stride)
        unit_rows = card.get("unit_rows", True)
        return EmbeddingTrack(card["video_id"], grid, axis, _mapped(path), stored.key.fingerprint, unit_rows)


def stored_in(path: Path) -> StoredTrack:
    """What a shard says about itself; its checksum is taken from its name and not verified here."""
    with _readable(path):
        media_sha256, _, shard_sha256 = path.name.removesuffix(SUFFIX).partition(".")
        with safe_open(path, framework="numpy") as shard:
            card, shape = _card(shard), shard.get_slice("vectors").get_shape()
        stored = _stored(card, tuple(shape), shard_sha256, path.stat().st_size)
        if stored.key.media_sha256 != media_sha256:
            raise DamagedShard("does not belong to the video it is named after")
        return stored


def _header(card: dict[str, Any], track: EmbeddingTrack) -> bytes:
    """The first bytes of a safetensors file, up to the arrays."""
    n_times, (n_rows, dim) = 8 * len(track.axis), track.vectors.shape
    parts = {
        "__metadata__": {_METADATA_KEY: json.dumps(card, sort_keys=True)},
        "times_ms": {"dtype": "F64", "shape": [len(track.axis)], "data_offsets": [0, n_times]},
        "vectors": {"dtype": "F16", "shape": [n_rows, dim], "data_offsets": [n_times, n_times + 2 * n_rows * dim]},
    }
    text = json.dumps(parts, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # what follows is read fastest where its place is a multiple of its size
    return len(text).to_bytes(8, "little") + text


def _pieces(header: bytes, track: EmbeddingTrack) -> Iterator[bytes]:
    yield header
    yield np.ascontiguousarray(track.axis.times_ms, "<f8").tobytes()
    for block in row_blocks(track.vectors):
        yield np.ascontiguousarray(block, "<f2").tobytes()


def _mapped(path: Path) -> Vectors:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        described = json.loads(file.read(length))["vectors"]
        if described["dtype"] != "F16":
            raise DamagedShard(f"holds vectors of {described['dtype']}")
        n_rows, dim = described["shape"]
        return mapped_rows(file, (n_rows, dim), "<f2", 8 + length + described["data_offsets"][0])


def _unusable(unit_rows: bool, rows: Vectors) -> npt.NDArray[np.bool_]:
    """Which rows must not be stored: what is not a number would win every comparison."""
    if not unit_rows:
        return np.asarray(~(np.abs(rows) <= _LARGEST_HALF).all(axis=1))
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    # A zero row is a window that could not be embedded.
    return np.asarray(~((squares == 0) | (np.abs(squares - 1) <= _SQUARE_TOLERANCE)))


def _refuse_unusable(track: EmbeddingTrack) -> None:
    if not np.isfinite(track.axis.origin_ms):
        raise InputError(track.video_id, f"an origin of {track.axis.origin_ms} ms", "check the video's timestamps")
    blocks = (_unusable(track.unit_rows, block) for block in row_blocks(track.vectors))
    unusable = np.concatenate([np.zeros(0, bool), *blocks])
    if unusable.any():
        kind = (
            "embeddings are neither of length 1 nor zero" if track.unit_rows else "vectors are no numbers or too large"
        )
        what = f"{unusable.sum()} of {len(unusable)} {kind}"
        fix = "nothing was stored; check the model"
        raise InputError(track.video_id, f"{what}, first that of window {unusable.argmax()}", fix)


def _stored(card: dict[str, Any], shape: tuple[int, ...], shard_sha256: str, n_bytes: int) -> StoredTrack:
    return StoredTrack(
        key=TrackKey(**card["key"]),
        video_id=card["video_id"],
        n_windows=shape[0],
        dim=shape[1],
        remarks=Remarks(card["remarks"]["partial"], tuple(card["remarks"]["warnings"])),
        shard_sha256=shard_sha256,
        n_bytes=n_bytes,
    )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Tell a shard that must be computed again from a disk that cannot be read."""
    try:
        yield
    except FileNotFoundError as error:
        raise DamagedShard("is missing") from error
    except OSError as error:
        what = f"cannot be read ({error.strerror or error})"
        raise EnvironmentProblem(path, what, "check the disk and the permissions") from error
    except (SafetensorError, InputError, ValueError, KeyError, TypeError, IndexError) as error:
        raise DamagedShard(f"is not a shard of signspot ({error})") from error


def _card(shard: Any) -> dict[str, Any]:
    card: dict[str, Any] = json.loads(shard.metadata()[_METADATA_KEY])
    return card


def as_stored(track: EmbeddingTrack) -> EmbeddingTrack:
    """The track as it comes back from a shard: rounded to halves, then float32 again, and of length 1 if it was.

    So a question has the same answer the first time and later.
    """
    with RowFile(track.vectors.shape[1]) as rows:
        for block in row_blocks(track.vectors):
            halves = block.astype(np.float16).astype(np.float32)
            rows.append(_of_length_1(halves) if track.unit_rows else halves)
        return replace(track, vectors=rows.mapped())


def _of_length_1(rows: FloatArray) -> FloatArray:
    """Rows that have length 1 but for rounding get it; zero stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
