"""Sets of real signing as landmarks: read as they are, completed where they say nothing, refused where damaged."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.lib.data_sets import read_asl30, read_aslearn, read_wlasl300

from signspot.errors import FormatError

DATA = Path(__file__).parents[3] / "shared" / "data"


def table(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def body(n_frames: int, width: float = 0.2, height: float = 0.2) -> np.ndarray:
    """Frames with shoulders `width` apart and a nose `height` above them."""
    frames = np.full((n_frames, 258), 0.5, np.float16)
    frames[:, [0, 44, 48]] = (0.5, 0.5 + width / 2, 0.5 - width / 2)
    frames[:, [1, 45, 49]] = (0.5 - height, 0.5, 0.5)
    return frames


def wlasl(folder: Path, points: np.ndarray | None = None, **changed: str) -> Path:
    points = np.stack([body(30), body(30)]) if points is None else points
    np.savez(folder / "landmarks.npz", X=points)
    first = {"row": "0", "word": "Book", "video_id": "7", "signer": "3", "variation": "0", "split": "train"}
    rows = [
        first | {"near_duplicate_of": ""} | changed,
        first | {"row": "1", "video_id": "8", "near_duplicate_of": "0"},
    ]
    table(folder / "clips.csv", rows)
    return folder


def recordings(folder: Path, names: list[str], **changed: Any) -> Path:
    n = len(names)
    arrays: dict[str, Any] = {
        "X": np.concatenate([body(4) for _ in names]),
        "time": np.tile(np.arange(4) / 15 + 3, n).astype(np.float32),
        "offsets": np.arange(n + 1) * 4,
        "name": np.array(names),
        "aspect": np.full(n, 2.0, np.float32),
    }
    np.savez(folder / "landmarks.npz", **(arrays | changed))
    return folder


def asl30(folder: Path, **changed: Any) -> Path:
    recordings(folder, ["a", "b", "c"], **changed)
    row = {"row": "0", "word": "eat", "clip": "a", "source": "WLASL", "signer_or_source_video": "W3"}
    rows = [
        row | {"in_wlasl300": "", "duplicate_of": ""},
        row | {"clip": "b", "in_wlasl300": "1", "duplicate_of": ""},
        row | {"clip": "c", "in_wlasl300": "", "duplicate_of": "eat/a"},
    ]
    table(folder / "clips.csv", rows)
    return folder


def aslearn(folder: Path, glosses: str = "eat book") -> Path:
    recordings(folder, ["words/eat.mp4", "words/book.mp4", "sentences/eatbook.mp4"])
    table(folder / "glosses.csv", [{"file": "eatbook.mp4", "glosses_with_isolated_clip_same_signer": glosses}])
    return folder


def test_clips_of_wlasl_carry_what_the_table_says(tmp_path: Path) -> None:
    first, second = read_wlasl300(wlasl(tmp_path))
    assert (first.clip_id, first.word, first.signer, first.split, first.is_repeat) == (
        "7",
        "book",
        "W3",
        "train",
        False,
    )
    assert second.is_repeat
    assert first.points.shape == (30, 258) and first.points.dtype == np.float32
    np.testing.assert_allclose(np.diff(first.seconds), 0.04)


def test_frames_that_fill_up_a_short_clip_are_dropped(tmp_path: Path) -> None:
    points = np.stack([body(30), body(30)])
    points[0, 20:] = np.nan
    first, second = read_wlasl300(wlasl(tmp_path, points))
    assert len(first.points) == len(first.seconds) == 20 and len(second.points) == 30
    assert np.isfinite(first.points).all()


@pytest.mark.parametrize(("width", "aspect"), [(0.2, 1.7), (0.24, 1.7 / 1.2), (0.05, 1.8), (0.4, 1.3)])
def test_the_aspect_of_wlasl_gives_bodies_the_usual_proportions(tmp_path: Path, width: float, aspect: float) -> None:
    clip = read_wlasl300(wlasl(tmp_path, np.stack([body(30, width), body(30, width)])))[0]
    np.testing.assert_allclose(clip.points[0, 44] - clip.points[0, 48], width * aspect, rtol=5e-3)
    np.testing.assert_allclose(clip.points[0, 2], 0.5 * aspect, rtol=5e-3)  # z has the unit of x
    np.testing.assert_allclose(clip.points[0, [1, 3]], [0.3, 0.5], rtol=1e-3)  # y and visibility stay


def test_clips_of_asl30_are_in_picture_heights_and_begin_at_zero(tmp_path: Path) -> None:
    clips = read_asl30(asl30(tmp_path))
    assert [clip.is_repeat for clip in clips] == [False, True, True]
    np.testing.assert_allclose(clips[0].seconds, np.arange(4) / 15, atol=1e-6)
    np.testing.assert_allclose(clips[0].points[:, 0], 1.0)
    assert clips[0].signer == "W3" and clips[0].split == ""


def test_aslearn_has_words_and_sentences(tmp_path: Path) -> None:
    found = read_aslearn(aslearn(tmp_path))
    assert [clip.word for clip in found.clips] == ["book", "eat"]
    assert [(sentence.name, sentence.words) for sentence in found.sentences] == [("eatbook.mp4", ("eat", "book"))]
    assert found.sentences[0].points.shape == (4, 258)


def test_a_sentence_with_an_unknown_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"names a recording that landmarks\.npz does not hold"):
        read_aslearn(aslearn(tmp_path, "eat chair"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"offsets": np.array([0, 4, 4, 12])}, "do not fit their offsets"),
        ({"offsets": np.array([0, 4, 8])}, "do not fit their offsets"),
        ({"time": np.zeros(12, np.float32)}, "do not ascend"),
        ({"time": np.full(12, np.nan)}, "not numbers"),
        ({"aspect": np.array([1.0, 0.0, 1.0])}, "not numbers"),
        ({"X": np.zeros((12, 225), np.float16)}, "is float16 of shape"),
        ({"X": np.array([["a"] * 258] * 12)}, "of shape"),
        ({"name": np.array(["a", "c", "b"])}, "does not list the clips"),
    ],
)
def test_recordings_that_do_not_fit_are_refused(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        read_asl30(asl30(tmp_path, **changed))


def test_a_table_in_another_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="does not list the 2 clips in their order"):
        read_wlasl300(wlasl(tmp_path, row="1"))


def test_a_row_without_a_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no word"):
        read_wlasl300(wlasl(tmp_path, word="..."))


def test_objects_in_the_arrays_are_never_unpickled(tmp_path: Path) -> None:
    asl30(tmp_path, name=np.array(["a", "b", print], dtype=object))
    with pytest.raises(FormatError, match="no array 'name' that can be read"):
        read_asl30(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY"])
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    wlasl(tmp_path)
    (tmp_path / "landmarks.npz").write_bytes(content)
    with pytest.raises(FormatError, match="can be read"):
        read_wlasl300(tmp_path)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"landmarks\.npz"):
        read_aslearn(tmp_path)


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data is not on this computer")
def test_the_real_aslearn_is_read() -> None:
    found = read_aslearn(DATA / "aslearn")
    assert (len(found.clips), len(found.sentences)) == (125, 35)
    assert sum(len(sentence.words) for sentence in found.sentences) == 98
