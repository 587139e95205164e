from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from signspot.files.pickles.scan import ARRAYS, STRUCTURE, Encoder, Opaque, Refused, read_plain, read_tree

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
)
KEYS = st.text() | st.integers(-99, 99) | st.tuples(st.text(), st.integers(0, 5))
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=30)
        | st.dictionaries(KEYS, inner, max_size=8)
        | st.tuples(inner, inner)
        | st.sets(st.text(), max_size=1)
        | st.lists(st.floats(allow_nan=False), min_size=16, max_size=40)
    ),
)


@given(TREES, st.integers(0, 5))
def test_plain_data_survives_the_way_through_the_door(
    tmp_path_factory: pytest.TempPathFactory, tree: object, protocol: int
) -> None:
    content = pickle.dumps(tree, protocol)
    folder = Path(tmp_path_factory.getbasetemp())
    encoder = Encoder(len(content))
    encoder.write(encoder.encode(read_plain(io.BytesIO(content), is_python2=False)), folder)
    back = read_tree(folder, 10**7)
    assert back == tree and repr(back) == repr(tree)


@pytest.mark.parametrize(
    "structure",
    [
        b"",
        b"{",
        b'{"array": 5}',
        b'{"array": "../x"}',
        b'{"unknown": 1}',
        b'{"dict": [], "tuple": []}',
        b'{"dict": [[[1], 2]]}',
        b'{"dict": 5}',
        b'{"bytes": 5}',
        b'{"bytes": "\\u4e00"}',
        b"[" * 100_000,
        b"\xff",
        b"9" * 5000,
    ],
)
def test_a_result_that_no_honest_child_writes_is_refused(tmp_path: Path, structure: bytes) -> None:
    (tmp_path / STRUCTURE).write_bytes(structure)
    save_file({"0": np.zeros(1)}, tmp_path / ARRAYS)
    with pytest.raises(Refused, match="no usable result"):
        read_tree(tmp_path, 10**6)


def test_damaged_or_missing_or_oversized_arrays_are_refused(tmp_path: Path) -> None:
    (tmp_path / STRUCTURE).write_text(json.dumps({"array": 0}))
    for content in (None, b"", b"\xff" * 100, bytes(2000)):
        if content is not None:
            (tmp_path / ARRAYS).write_bytes(content)
        with pytest.raises(Refused, match="no usable result"):
            read_tree(tmp_path, 1000)


def test_a_number_of_a_thousand_digits_is_refused() -> None:
    with pytest.raises(Refused, match="more than 64 bits"):
        Encoder(10**6).encode([10**1000])


def test_what_is_not_read_is_named_by_its_type(tmp_path: Path) -> None:
    encoder = Encoder(100, leaf=lambda value: Opaque(type(value).__name__))
    encoder.write(encoder.encode([1j]), tmp_path)
    assert read_tree(tmp_path, 1000) == [Opaque("complex")]
