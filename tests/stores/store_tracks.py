"""Tracks for the tests of the store, and a program that writes them: python -m tests.stores.store_tracks."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path

import numpy as np

from signspot.domain.time import TimeAxis
from signspot.domain.tracks import EmbeddingTrack, FloatArray, WindowGrid
from signspot.errors import SignspotError
from signspot.stores.features import EntryKey, FeatureStore, _StoreOptions, open_store

MODEL = "colour-1"


def media(number: int) -> str:
    return hashlib.sha256(f"media {number}".encode()).hexdigest()


def make_track(
    number: int = 0, *, video_id: str = "", n_frames: int = 40, stride: int = 1, dim: int = 8
) -> EmbeddingTrack:
    """Random unit rows that depend on `number` only."""
    rng = np.random.default_rng(number)
    grid = WindowGrid(n_frames, stride=stride)
    vectors = rng.normal(size=(len(grid), dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    axis = TimeAxis(np.cumsum(rng.uniform(0, 80, n_frames)), float(rng.uniform(0, 1e8)))
    return EmbeddingTrack(video_id or f"video-{number}", grid, axis, vectors.astype(np.float32), MODEL)


def entry_key(number: int) -> EntryKey:
    return EntryKey(media(number), part=f"frames 0-{number + 1}", name=f"clip-{number}.mp4")


def entry_vector(number: int) -> FloatArray:
    return np.random.default_rng(number).normal(size=8).astype(np.float32)


def same(found: EmbeddingTrack | None, expected: EmbeddingTrack) -> bool:
    """Whether a track came back whole: the axis exactly, the vectors but for the rounding of float16."""
    return (
        found is not None
        and found.video_id == expected.video_id
        and (found.grid, found.fingerprint) == (expected.grid, expected.fingerprint)
        and found.axis.origin_ms == expected.axis.origin_ms
        and np.array_equal(found.axis.times_ms, expected.axis.times_ms)
        and np.allclose(found.vectors, expected.vectors, rtol=0, atol=1e-3)
    )


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def write(store: FeatureStore, numbers: range, video_id: str) -> None:
    for number in numbers:
        store.put(media(number), make_track(number, video_id=video_id))
        say(number)


def main(task: str, folder: str, *rest: str) -> None:
    """Write tracks and say each number once it is stored, or hold the catalogue."""
    try:
        with open_store(Path(folder), _StoreOptions(patience_seconds=60)) as store:
            say("ready")
            if task == "write":
                write(store, range(*map(int, rest[:3])), rest[3] if len(rest) > 3 else "")
            elif task == "write-entries":
                for number in range(*map(int, rest)):
                    store.put_entry_vectors({entry_key(number): entry_vector(number)}, MODEL, model="colour")
                    say(number)
            else:
                with store._catalogue.writing():
                    say("held")
                    time.sleep(60)
    except SignspotError as error:
        say(f"refused {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
