"""One track as one file that never changes: a safetensors shard, named by its content.

Vectors are kept as float16 (n_windows, d), the time axis as float64 (n_frames,) in ms, everything else as one JSON
text in the header. The format does not notice flipped bits, so the name carries the sha256 of the whole file.
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
from safetensors.numpy import save

from signspot.domain.spans import TimeAxis
from signspot.domain.tracks import EmbeddingTrack, FloatArray, WindowGrid
from signspot.errors import EnvironmentProblem, InputError

SUFFIX = ".safetensors"
_METADATA_KEY = "signspot"  # a single one: the order of several would differ from run to run
_ROWS_AT_ONCE = 4096  # halves become floats in blocks, so that a long track is never held twice
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


@dataclass(frozen=True, slots=True)
class Shard:
    """A track as the bytes of its file."""

    stored: StoredTrack
    content: bytes


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
    }
    # safetensors copies memory as it lies: views with gaps or other byte orders would be stored wrongly.
    arrays: dict[str, npt.NDArray[Any]] = {
        "vectors": np.ascontiguousarray(track.vectors, np.float16),
        "times_ms": np.ascontiguousarray(track.axis.times_ms, np.float64),
    }
    content = save(arrays, {_METADATA_KEY: json.dumps(card, sort_keys=True)})
    return Shard(_stored(card, track.vectors.shape, hashlib.sha256(content).hexdigest(), len(content)), content)


def read_shard(path: Path, stored: StoredTrack) -> EmbeddingTrack:
    """The track of a shard, after its checksum and its key are verified."""
    with _readable(path):
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != stored.shard_sha256:
                raise DamagedShard("does not have the checksum it was written with")
        with safe_open(path, framework="numpy") as shard:
            card = _card(shard)
            # A flipped bit in the catalogue may lead to the sound shard of another video.
            if TrackKey(**card["key"]) != stored.key:
                raise DamagedShard("belongs to another video or model")
            axis = TimeAxis(shard.get_tensor("times_ms"), card["origin_ms"])
            grid = WindowGrid(card["n_frames"], card["length"], stored.key.stride)
            halves = shard.get_slice("vectors")
            vectors = _unit_rows(halves, tuple(halves.get_shape()))
        return EmbeddingTrack(card["video_id"], grid, axis, vectors, stored.key.fingerprint)


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


def _refuse_unusable(track: EmbeddingTrack) -> None:
    if not np.isfinite(track.axis.origin_ms):
        raise InputError(track.video_id, f"an origin of {track.axis.origin_ms} ms", "check the video's timestamps")
    squares = np.einsum("ij,ij->i", track.vectors, track.vectors, dtype=np.float64)
    # A zero row is a window that could not be embedded; what is not a number would win every comparison.
    unusable = ~((squares == 0) | (np.abs(squares - 1) <= _SQUARE_TOLERANCE))
    if unusable.any():
        what = f"{unusable.sum()} of {len(squares)} embeddings are neither of length 1 nor zero"
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
    """The track as it comes back from a shard: a question has the same answer the first time and later."""
    return replace(track, vectors=_unit_rows(track.vectors.astype(np.float16), track.vectors.shape))


def _unit_rows(halves: Any, shape: tuple[int, ...]) -> FloatArray:
    """(n, d) float16, of length 1 but for rounding, or zero -> (n, d) float32, of length 1 or zero."""
    rows: FloatArray = np.empty(shape, np.float32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(rows))
        block = halves[start:stop].astype(np.float32)
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        rows[start:stop] = block / np.where(lengths > 0, lengths, 1)
    return rows
