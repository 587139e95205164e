"""Vectors of dictionary entries, kept between runs: a file of numpy arrays that is only ever a cache.

A file that cannot be read, or holds something else, counts as empty: everything in it can be computed again.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from signspot.atomic import atomic_output
from signspot.domain.tracks import FloatArray

_LARGEST_BYTES = 2 << 30


def read_vectors(path: Path, dim: int) -> dict[str, FloatArray]:
    """The vectors (dim,) in a file by their keys; none if there is no such file, or it is damaged."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return {}
        # numpy leaves a damaged file open that it was given by name.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            keys, vectors = arrays["keys"], arrays["vectors"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return {}
    if keys.dtype.kind != "U" or vectors.dtype != np.float32 or vectors.shape != (len(keys), dim):
        return {}
    return dict(zip(keys.tolist(), vectors, strict=True))


def write_vectors(vectors: Mapping[str, FloatArray], path: Path) -> None:
    """Keep vectors, all of one length, in place of what was there; the folder exists."""
    with atomic_output(path, overwrite=True) as temporary, temporary.open("wb") as file:
        np.savez(file, keys=np.array(list(vectors), np.str_), vectors=np.stack(list(vectors.values())))
