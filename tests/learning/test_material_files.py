from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Synonyms, Word
from signspot.errors import FormatError, InputError, OutputExists, SignspotError
from signspot.learning.material import Material, _write_synonyms, read_synonyms
from tests.learning.problems import Sizes, random_material


@pytest.fixture(scope="module")
def material() -> Material:
    return random_material(Sizes(n_passages=9, n_tracks=3, track_windows=200))


@pytest.fixture
def folder(material: Material, tmp_path: Path) -> Path:
    material.write(tmp_path / "material")
    return tmp_path / "material"


def test_material_comes_back_as_it_was_written(material: Material, folder: Path) -> None:
    read = Material.read(folder)
    assert read.vocabulary == material.vocabulary
    assert (read.entry_ids, read.fingerprint) == (material.entry_ids, material.fingerprint)
    for name in ("entry_vectors", "entry_word"):
        assert np.array_equal(getattr(read, name), getattr(material, name))
    for field in dataclasses.fields(material.passages):
        assert np.array_equal(getattr(read.passages, field.name), getattr(material.passages, field.name))
    for mine, written in zip(read.tracks, material.tracks, strict=True):
        assert mine.dtype == np.float16
        assert np.array_equal(mine, written)


def test_rows_are_mapped_and_cannot_be_changed(folder: Path) -> None:
    tracks = Material.read(folder).tracks
    assert isinstance(tracks[0], np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        tracks[0][0] = 0


def test_tracks_of_both_precisions_and_of_no_length_are_kept_exactly(material: Material, tmp_path: Path) -> None:
    wide = np.full((20, 6), 1 / 3, np.float32)
    tracks = (material.tracks[0], np.empty((0, 6), np.float16), wide, *material.tracks[1:])
    dataclasses.replace(material, tracks=tracks).write(tmp_path / "mixed")
    for mine, written in zip(Material.read(tmp_path / "mixed").tracks, tracks, strict=True):
        assert np.array_equal(mine, written)


def test_the_same_material_gives_the_same_bytes(material: Material, folder: Path, tmp_path: Path) -> None:
    material.write(tmp_path / "again")
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    assert all((folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)


def test_a_flipped_bit_in_any_array_is_found(folder: Path) -> None:
    for path in sorted(folder.glob("*.npy")):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(FormatError, match=f"{path.name}: does not have the checksum it was written with"):
            Material.read(folder)
        content[-1] ^= 1
        path.write_bytes(content)
    Material.read(folder)


@pytest.mark.parametrize("name", ["rows.npy", "passage_words.npy", "entry_vectors.npy", "material.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(FormatError, match=f"{name}: no such file"):
        Material.read(folder)


def test_rows_that_are_no_numbers_are_not_written(material: Material, tmp_path: Path) -> None:
    rows = material.tracks[1].copy()
    rows[17, 2] = np.nan
    broken = dataclasses.replace(material, tracks=(material.tracks[0], rows, material.tracks[2]))
    with pytest.raises(InputError, match="row 17 of track 1 holds what is no number"):
        broken.write(tmp_path / "broken")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_replaced_only_on_request(material: Material, folder: Path) -> None:
    with pytest.raises(OutputExists, match="exists already"):
        material.write(folder)
    material.write(folder, overwrite=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(OutputExists, match=r"holds other files, such as 'notes\.txt'"):
        material.write(folder, overwrite=True)


def edited(folder: Path, **changes: object) -> None:
    manifest = folder / "material.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "this program reads version 1"),
        ({"format": "x"}, "is not a manifest"),
        ({"files": {}}, 'does not name its files under "files"'),
        ({"vocabulary": [1]}, "'vocabulary' is not a list of texts"),
        ({"vocabulary": ["a", "a"]}, "a vocabulary names each word once"),
        ({"vocabulary": []}, "has an empty vocabulary"),
        ({"vocabulary": ["a"]}, "words of entries: are not whole numbers from 0 to 0"),
        ({"entries": []}, "0 dictionary entries, 24 words"),
        ({"passages": []}, "columns of passages of different lengths"),
        ({"fingerprint": ""}, "does not say which trunk"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    edited(folder, **changes)
    with pytest.raises(InputError, match=message):
        Material.read(folder)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["rows.npy", "passage_start.npy", "track_lengths.npy"]), st.data())
def test_damaged_arrays_are_typed_errors_or_sound(
    material: Material, tmp_path: Path, name: str, data: st.DataObject
) -> None:
    folder = tmp_path / "material"
    material.write(folder, overwrite=folder.exists())
    content = bytearray((folder / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content) - 1, 200)))] = data.draw(st.integers(0, 255))
    kept = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    (folder / name).write_bytes(content[:kept])
    try:
        Material.read(folder, verify=False)
    except SignspotError as error:
        assert "\n" not in str(error)


def test_an_unreadable_file_is_a_typed_error(folder: Path) -> None:
    (folder / "rows.npy").unlink()
    os.mkfifo(folder / "rows.npy")
    with pytest.raises(FormatError, match=r"rows\.npy: is not a file"):
        Material.read(folder)


def test_synonyms_are_kept_with_the_material(folder: Path, material: Material) -> None:
    words = material.vocabulary.words
    pairs = Synonyms.of([(words[0], words[3]), (words[5], words[2])])
    material.write(folder, synonyms={"sign": pairs}, overwrite=True)
    assert read_synonyms(folder, "sign") == pairs
    with pytest.raises(FormatError, match="was made without english synonyms: make it again with WordNet's files"):
        read_synonyms(folder, "english")
    _write_synonyms(pairs, folder, "english")
    assert read_synonyms(folder, "english") == pairs
    Material.read(folder)
    material.write(folder, overwrite=True)
    assert not list(folder.glob("synonyms*"))


@pytest.mark.parametrize("pairs", [3, [["a"]], [["a", "b", "c"]], [["a", 1]], [["a", ""]], ["ab"]])
def test_damaged_synonyms_are_refused(tmp_path: Path, pairs: object) -> None:
    _write_synonyms(Synonyms.of([(Word("a"), Word("b"))]), tmp_path, "sign")
    path = tmp_path / "synonyms-sign.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pairs": pairs}))
    with pytest.raises(FormatError, match=r"is not a pair of words|is not a list"):
        read_synonyms(tmp_path, "sign")


def test_a_folder_that_is_not_there_is_named_and_not_its_manifest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trian: no such folder: name a folder that"):
        Material.read(tmp_path / "trian")
