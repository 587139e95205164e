from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from signspot.stores.entries import read_vectors, write_vectors


def test_what_is_kept_comes_back_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "kept.safetensors"
    for number in range(2):
        vectors = {"a": np.full(3, number, np.float32), "ü": np.arange(3, dtype=np.float32)}
        write_vectors(vectors, path)
        found = read_vectors(path, 3)
        assert list(found) == ["a", "ü"]
        assert all(np.array_equal(found[key], vectors[key]) for key in vectors)


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 damaged", b"\x93NUMPY" + bytes(90)])
def test_a_file_that_is_missing_or_damaged_counts_as_empty(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "kept.safetensors"
    if content is not None:
        path.write_bytes(content)
    assert read_vectors(path, 3) == {}


def test_vectors_of_another_length_and_other_formats_count_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "kept.safetensors"
    write_vectors({"a": np.zeros(4, np.float32)}, path)
    assert read_vectors(path, 3) == {}
    for keys in (np.array([{}], object), np.array(["a"])):  # a pickle, and what 0.1.0 wrote
        with path.open("wb") as file:
            np.savez(file, keys=keys, vectors=np.zeros((1, 3), np.float32))
        assert read_vectors(path, 3) == {}


def test_a_flipped_bit_empties_the_file_and_never_reads_as_another_vector(tmp_path: Path) -> None:
    path = tmp_path / "kept.safetensors"
    write_vectors({"a": np.ones(3, np.float32)}, path)
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), 5):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        found = read_vectors(path, 3)
        assert not found or np.array_equal(found["a"], np.ones(3))  # a blank of the padding
