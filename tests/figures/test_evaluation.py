from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from signspot.domain.tracks import Pixels
from signspot.figures.evaluation import CaseFigure, ranking_png, search_png

CENTRES = np.arange(100, 300)
CASE = CaseFigure(
    centres=CENTRES,
    own=np.stack([np.exp(-((CENTRES - 200) ** 2) / 50), 0 * CENTRES], axis=1).astype(np.float32),
    other=np.full(200, 0.5, np.float32),
    label_frame=205,
)


def pixels(png: bytes) -> Pixels:
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))


def green_columns(picture: Pixels) -> set[int]:
    """Where a picture has the pale green of the annotated time."""
    red, green, blue = (picture[..., channel].astype(int) for channel in range(3))
    pale = (green > red + 30) & (green > 200) & (blue > red)
    return set(np.flatnonzero(pale.mean(axis=0) > 0.3).tolist())


def test_the_annotated_time_moves_with_the_label() -> None:
    early, late = (green_columns(pixels(replace(CASE, label_frame=frame).png())) for frame in (150, 250))
    assert early and late and max(early) < min(late)


@pytest.mark.parametrize(
    "case",
    [
        replace(CASE, own=np.full((200, 9), -np.inf, np.float32)),
        replace(CASE, centres=CENTRES[:1], own=CASE.own[:1], other=None),
    ],
)
def test_any_case_is_a_picture(case: CaseFigure) -> None:
    assert pixels(case.png()).shape == (297, 990, 3)


def test_the_same_case_has_the_same_bytes() -> None:
    assert CASE.png() == CASE.png()


def test_rankings_and_searches_are_pictures_also_when_nothing_was_found() -> None:
    nothing = np.empty(0)
    shapes = {
        pixels(png).shape
        for png in (
            ranking_png(np.array([1, 3]), np.array([-4, 900]), 30),
            ranking_png(np.array([1]), np.empty(0, np.int64), 1),
            search_png(np.array([1.0, 0.5]), np.array([0.5, 1.0]), np.array([0.0, 20.0])),
            search_png(nothing, nothing, nothing),
        )
    }
    assert shapes == {(352, 990, 3)}
