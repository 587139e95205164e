from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from signspot.domain.tracks import Pixels
from signspot.figures.sheets import Pair, jpeg_strip, paired_sheet


def frames(count: int, colour: int) -> list[Pixels]:
    return [np.full((96, 60, 3), colour + i, np.uint8) for i in range(count)]


def test_both_clips_of_a_pair_stand_side_by_side_under_their_title() -> None:
    sheet = paired_sheet([Pair("dog and lamp", frames(5, 10), frames(5, 100)), Pair("", frames(2, 30), [])])
    assert sheet[28 + 48, [6 + 30, 6 + 90], 0].tolist() == [10, 11]
    assert sheet[28 + 48, [6 + 300 + 28 + 30, 6 + 300 + 28 + 270], 0].tolist() == [100, 104]
    assert (sheet[6:28] != 255).any(), "the title of the first pair"
    second = 6 + 22 + 96 + 6 + 22 + 48
    assert sheet[second, 36, 0] == 30 and (sheet[second, 6 + 300 + 28 :] == 255).all(), "a clip that may not be shown"


def test_a_strip_for_a_page_is_a_jpeg_of_evenly_spread_pictures_or_nothing() -> None:
    image = Image.open(io.BytesIO(jpeg_strip(frames(50, 0))))
    assert image.size == (5 * 60, 96)
    assert [int(np.asarray(image)[48, 30 + 60 * i, 0]) for i in range(5)] == pytest.approx([5, 15, 25, 35, 45], abs=3)
    assert jpeg_strip([]) == b""


def test_nothing_and_mixed_heights_are_refused() -> None:
    with pytest.raises(ValueError, match="no sheet of 0 pairs"):
        paired_sheet([])
    with pytest.raises(ValueError, match="heights"):
        paired_sheet([Pair("a", frames(1, 0), [np.zeros((20, 20, 3), np.uint8)])])
    with pytest.raises(ValueError, match="too large"):
        paired_sheet([Pair("a", frames(1, 0), frames(1, 0))] * 9000)
