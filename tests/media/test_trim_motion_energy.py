from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.tracks import Pixels
from signspot.media.trim import _MotionEnergy

WALL = np.random.default_rng(0).integers(0, 256, (9, 16, 3)).repeat(20, axis=0).repeat(20, axis=1)  # (180, 320, 3)


def faded(share: float, offset: float = 0.0) -> Pixels:
    return np.clip(WALL * share + offset, 0, 255).astype(np.uint8)


def test_a_fade_of_a_still_picture_is_no_motion() -> None:
    darker = _MotionEnergy.of([faded(1 - 0.07 * i) for i in range(10)])
    paler = _MotionEnergy.of([faded(0.5, 8.0 * i) for i in range(10)])
    assert darker.blocks.max() < 1
    assert paler.blocks.max() < 1


def test_a_bright_signer_who_fades_in_before_a_dark_wall_is_no_motion() -> None:
    scene = np.full((180, 320, 3), 20.0)
    scene[60:180, 130:190] = 240
    fading = _MotionEnergy.of([(scene * share).astype(np.uint8) for share in np.linspace(0.4, 1, 12)])
    assert fading.blocks.max() < 2


def test_the_noise_of_a_camera_is_little_motion() -> None:
    rng = np.random.default_rng(1)
    noisy = [np.clip(WALL + rng.normal(0, 8, WALL.shape), 0, 255).astype(np.uint8) for _ in range(8)]
    assert _MotionEnergy.of(noisy).blocks.max() < 2


def test_what_moves_is_found_where_and_when_it_moves() -> None:
    frames = [faded(1.0) for _ in range(9)]
    for number in (5, 6, 7, 8):
        frames[number][100:140, 240:280] = 255
    blocks = _MotionEnergy.of(frames).blocks
    frame, row, column = np.unravel_index(blocks.argmax(), blocks.shape)
    assert frame == 5
    assert 100 <= (row + 0.5) * 180 / blocks.shape[1] < 140
    assert 240 <= (column + 0.5) * 320 / blocks.shape[2] < 280
    assert blocks[[0, 1, 2, 3, 4, 6, 7, 8]].max() < 0.001


def test_frames_of_two_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="after frames of"):
        _MotionEnergy.of([np.zeros((40, 40, 3), np.uint8), np.zeros((40, 44, 3), np.uint8)])
    with pytest.raises(ValueError, match="a frame is"):
        _MotionEnergy.of([np.zeros((40, 40), np.uint8)])
