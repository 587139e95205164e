from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from signspot.errors import FormatError, OutputExists
from signspot.files.arrays import Arrays, ArraysKind, load_arrays, read_arrays, write_arrays

KIND = ArraysKind("box", "make it again", format="signspot-box", checked="names")
ARRAYS: Arrays = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "a": np.array([True, False]),
    "none": np.zeros((0, 4), np.float16),
}


def written(folder: Path, arrays: Arrays = ARRAYS) -> Path:
    path = folder / "box.safetensors"
    write_arrays(arrays, {"y": ["ü"], "x": 1.5}, path, KIND, unchecked={"made_by": "me"})
    return path


def test_arrays_and_their_header_come_back(tmp_path: Path) -> None:
    header, arrays = read_arrays(written(tmp_path), KIND)
    assert header.member("names").value == {"y": ["ü"], "x": 1.5} and header.member("made_by").value == "me"
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)


def test_the_same_content_gives_the_same_bytes_as_it_always_did(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    again = written(tmp_path / "again", dict(reversed(ARRAYS.items())))
    path = written(tmp_path)
    assert path.read_bytes() == again.read_bytes()
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {
            "signspot": '{"format": "signspot-box", "version": 1, "made_by": "me", '
            '"sha256": "56503d8d8799a9a24f9b2c1aa808665e4fd84aa814f93a86e15d8dc4b5ed0e88", '
            '"names": {"y": ["\\u00fc"], "x": 1.5}}'
        }


def test_every_kind_of_damage_is_told_in_the_same_words(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    place = whole.index(np.float32(5).tobytes())
    for content in (b"", whole[:-1], whole[:place] + b"\1" + whole[place + 1 :], b"\x80\x04.", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"is damaged or no box \(.+\).*make it again"):
            read_arrays(path, KIND)


def test_what_is_too_large_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"no box \(it is larger than 100 bytes\)"):
        load_arrays(written(tmp_path), replace(KIND, max_bytes=100))


def test_other_files_and_missing_ones_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(FormatError, match="holds 'signspot-box' of a version that is not read"):
        read_arrays(path, replace(KIND, format="signspot-bag"))
    save_file({"a": np.ones(3)}, path)
    with pytest.raises(FormatError, match="is not valid JSON"):
        read_arrays(path, KIND)
    with pytest.raises(FormatError, match="no such file"):
        read_arrays(tmp_path / "gone", KIND)


def test_a_file_is_replaced_only_when_told(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(OutputExists, match="exists already"):
        written(tmp_path)
