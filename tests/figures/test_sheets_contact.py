from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.tracks import Pixels
from signspot.figures.sheets import SheetRow, contact_sheet


def frames(count: int, colour: int, height: int = 40, width: int = 60) -> list[Pixels]:
    return [np.full((height, width, 3), colour + i, dtype=np.uint8) for i in range(count)]


def test_a_sheet_shows_the_middle_of_each_part_of_every_clip_in_order() -> None:
    sheet = contact_sheet(
        [SheetRow("apple", frames(12, 10)), SheetRow("tree", frames(3, 100))], columns=4, tile_height=20
    )
    middles = [sheet[14 + 24 * row, 165 + 34 * column, 0] for row in (0, 1) for column in range(4)]
    assert middles == [11, 14, 17, 20, 100, 101, 102, 255]


def test_titles_are_written_beside_their_rows_in_any_script() -> None:
    plain = contact_sheet([SheetRow("", frames(2, 10))] * 2, tile_height=40)
    titled = contact_sheet([SheetRow("", frames(2, 10)), SheetRow("дерево $x$", frames(2, 10))], tile_height=40)
    changed = (plain != titled).any(axis=(1, 2))
    assert not changed[:44].any() and changed[44:].any()


def test_wide_and_tall_frames_keep_their_shape() -> None:
    sheet = contact_sheet(
        [SheetRow("wide", frames(1, 0, 20, 80)), SheetRow("tall", frames(1, 0, 80, 20))], columns=1, tile_height=16
    )
    dark = (sheet[:, 150:] == 0).all(axis=2)
    assert dark[4:20].sum() == 16 * 64
    assert dark[24:40].sum() == 16 * 4


@pytest.mark.parametrize(
    ("rows", "columns"), [([], 6), ([SheetRow("apple", [])], 6), ([SheetRow("a", frames(1, 0))], 0)]
)
def test_a_sheet_of_nothing_is_refused(rows: list[SheetRow], columns: int) -> None:
    with pytest.raises(ValueError, match="no contact sheet"):
        contact_sheet(rows, columns=columns)


def test_a_sheet_nobody_could_open_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        contact_sheet([SheetRow("a", frames(1, 0))] * 5000, tile_height=200)
