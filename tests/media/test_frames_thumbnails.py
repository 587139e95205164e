from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.errors import FormatError, OutputExists
from signspot.media.frames import TILE_HEIGHT, read_strip, spread, strip, thumbnail, write_strip


@pytest.mark.parametrize(("shape", "width"), [((720, 1280, 3), 171), ((96, 96, 3), 96), ((500, 100, 3), 19)])
def test_a_thumbnail_keeps_the_aspect(shape: tuple[int, int, int], width: int) -> None:
    assert thumbnail(np.zeros(shape, np.uint8)).shape == (TILE_HEIGHT, width, 3)


def test_a_very_wide_picture_is_cut_at_both_sides() -> None:
    wide = np.zeros((10, 400, 3), np.uint8)
    wide[:, 190:210] = 255
    small = thumbnail(wide)
    assert small.shape[1] <= 4 * TILE_HEIGHT + 1
    assert small[:, small.shape[1] // 2].min() == 255


@given(st.integers(1, 500), st.integers(1, 12))
def test_shown_frames_are_the_middles_of_equal_parts(n_frames: int, tiles: int) -> None:
    shown = spread(n_frames, tiles)
    assert len(shown) == min(n_frames, tiles)
    assert shown == sorted(set(shown))
    part = n_frames / len(shown)
    assert all(abs(frame + 0.5 - (number + 0.5) * part) <= 0.5 for number, frame in enumerate(shown))


@pytest.mark.parametrize("n_frames", [1, 3, 6, 50])
def test_a_stored_strip_gives_its_tiles_back(tmp_path: Path, n_frames: int) -> None:
    frames = [thumbnail(np.full((90, 120, 3), 5 * number, np.uint8)) for number in range(n_frames)]
    write_strip(strip(frames), tmp_path / "a.jpg")
    tiles = read_strip(tmp_path / "a.jpg", min(6, n_frames))
    assert [tile.shape for tile in tiles] == [(96, 128, 3)] * min(6, n_frames)
    assert [round(float(tile.mean()) / 5) for tile in tiles] == spread(n_frames)


def test_the_same_pixels_are_the_same_bytes_and_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (96, 200, 3), np.uint8)
    for name in ("a.jpg", "b.jpg"):
        write_strip(pixels, tmp_path / name)
    assert (tmp_path / "a.jpg").read_bytes() == (tmp_path / "b.jpg").read_bytes()
    with pytest.raises(OutputExists, match="exists already"):
        write_strip(pixels, tmp_path / "a.jpg")


@pytest.mark.parametrize("content", [b"", b"no picture", b"\xff\xd8\xff\xe0 torn"])
def test_a_damaged_thumbnail_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(FormatError, match=r"a\.jpg: is damaged"):
        read_strip(tmp_path / "a.jpg", 6)
