from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from signspot.errors import EnvironmentProblem, FormatError, InputError, OutputExists, SignspotError
from signspot.stores.dictionary import (
    FEATURES_FILE,
    EntryFeatures,
    FeatureSet,
    read_dictionary,
    write_dictionary_manifest,
)
from tests.formats.spottings import mutants


def some_features(n_entries: int = 3, length: int = 4, seed: int = 0) -> EntryFeatures:
    rng = np.random.default_rng(seed)
    present = rng.random(n_entries) < 0.7
    vectors = (rng.normal(size=(n_entries, length)) * present[:, None]).astype(np.float32)
    ids = tuple(f"entry {i} é" for i in range(n_entries))
    return EntryFeatures(ids, {"i3d": FeatureSet("maker", vectors, present)})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(st.integers(0, 6), st.integers(1, 5), st.integers(0, 99))
def test_what_is_written_is_read_back(tmp_path: Path, n_entries: int, length: int, seed: int) -> None:
    features = some_features(n_entries, length, seed)
    features.write(tmp_path, overwrite=True)
    read = EntryFeatures.read(tmp_path)
    assert read.entry_ids == features.entry_ids and read.kinds["i3d"].made_by == "maker"
    np.testing.assert_array_equal(read.kinds["i3d"].vectors, features.kinds["i3d"].vectors)
    np.testing.assert_array_equal(read.kinds["i3d"].present, features.kinds["i3d"].present)


def test_a_vector_is_found_by_the_id_of_its_entry() -> None:
    vectors = np.array([[3, 4], [0, 0], [0, 2]], np.float32)
    features = EntryFeatures(("a", "b", "c"), {"mlp": FeatureSet("m", vectors, np.array([True, False, True]))})
    np.testing.assert_array_equal(features.vector("mlp", "a"), [3, 4])  # type: ignore[arg-type]
    assert features.vector("mlp", "b") is None and features.vector("mlp", "unknown") is None


def test_features_that_disagree_with_their_entries_cannot_be_made() -> None:
    one = FeatureSet("m", np.ones((1, 2), np.float32), np.ones(1, bool))
    with pytest.raises(ValueError, match="1 rows of mlp for 2 entries"):
        EntryFeatures(("a", "b"), {"mlp": one})
    with pytest.raises(ValueError, match="same id"):
        EntryFeatures(("a", "a"), {})
    with pytest.raises(ValueError, match="not numbers"):
        FeatureSet("m", np.full((1, 2), np.nan, np.float32), np.ones(1, bool))
    with pytest.raises(ValueError, match="of type float64"):
        FeatureSet("m", np.ones((1, 2)), np.ones(1, bool))  # type: ignore[arg-type]


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    some_features().write(tmp_path)
    path = tmp_path / FEATURES_FILE
    whole = path.read_bytes()
    header_end = 8 + int.from_bytes(whole[:8], "little")
    for at in range(header_end, len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(FormatError, match="is damaged"):
                EntryFeatures.read(tmp_path)


def test_a_damaged_file_gives_a_typed_error_or_the_same_features(tmp_path: Path) -> None:
    features = some_features(5)
    features.write(tmp_path)
    path = tmp_path / FEATURES_FILE
    for content in mutants(path.read_bytes(), 1000, seed=4):
        path.write_bytes(content)
        with contextlib.suppress(SignspotError):
            read = EntryFeatures.read(tmp_path)
            np.testing.assert_array_equal(read.kinds["i3d"].vectors, features.kinds["i3d"].vectors)
            assert read.entry_ids == features.entry_ids


def test_other_files_are_refused_with_their_reason(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        EntryFeatures.read(tmp_path)
    path = tmp_path / FEATURES_FILE
    path.write_text("hello")
    with pytest.raises(FormatError, match=r"is damaged or no file of vectors.*import the dictionary again"):
        EntryFeatures.read(tmp_path)
    save_file({"x": np.ones(3)}, path)
    with pytest.raises(FormatError, match="is not valid JSON"):
        EntryFeatures.read(tmp_path)
    save_file({"x": np.ones(3)}, path, metadata={"signspot": '{"format": "other", "version": 1}'})
    with pytest.raises(FormatError, match="'other' of a version that is not read"):
        EntryFeatures.read(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(FormatError, match="is not a file"):
        EntryFeatures.read(tmp_path)


def test_existing_features_are_replaced_only_when_asked(tmp_path: Path) -> None:
    some_features().write(tmp_path)
    with pytest.raises(OutputExists, match="exists already"):
        some_features().write(tmp_path)
    with pytest.raises((InputError, EnvironmentProblem), match="does not exist"):
        some_features().write(tmp_path / "nowhere")


def test_entries_need_no_file_where_features_stand_for_their_clips(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").touch()
    content = {
        "format": "signspot-dictionary",
        "version": 1,
        "entries": [
            {"word": "apple", "entry_id": "1"},
            {"word": "apple", "entry_id": "2", "file": "a.mp4"},
            {"word": "apple", "entry_id": "1"},
            {"word": "apple"},
            {"word": "apple", "entry_id": "3", "file": "missing.mp4"},
        ],
    }
    (tmp_path / "dictionary.json").write_text(json.dumps(content))
    without = read_dictionary(tmp_path)
    assert [entry.entry_id for entry in without.dictionary] == ["2"] and len(without.problems) == 4
    some_features().write(tmp_path)
    source = read_dictionary(tmp_path)
    assert [(entry.entry_id, entry.video) for entry in source.dictionary] == [("1", None), ("2", tmp_path / "a.mp4")]
    told = "\n".join(map(str, source.problems))
    assert "1: the id 1 comes twice" in told and "is empty" in told and "no such file" in told
    write_dictionary_manifest(source.dictionary, tmp_path / "dictionary.json", overwrite=True)
    again = read_dictionary(tmp_path)
    assert again.problems == () and list(again.dictionary) == list(source.dictionary)
