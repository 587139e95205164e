from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import numpy.typing as npt
from PIL import Image

from signspot.domain.recordings import Entry, Word
from signspot.domain.results import WordAnswer
from signspot.domain.time import FRAME_MS, MillisSpan, TimeAxis
from signspot.domain.tracks import SimilarityTrack, WindowGrid
from signspot.figures.evaluation import Example, Panel

RED = np.full((48, 288, 3), (250, 0, 0), np.uint8)


def panel(name: str, n_entries: int = 2) -> Panel:
    grid, axis = WindowGrid(250), TimeAxis(np.arange(250) * float(FRAME_MS))
    wave = np.sin(np.arange(len(grid)) / 20)[:, None] * np.linspace(0.3, 0.9, n_entries)
    entries = tuple(Entry(entry_id=f"e{number}", word=Word("apple")) for number in range(n_entries))
    return Panel(
        name, WordAnswer(SimilarityTrack(Word("apple"), "v", grid, axis, entries, wave.astype(np.float32)), ())
    )


def example(n_panels: int = 2, truth: tuple[tuple[int, int], ...] = ((4000, 4400),)) -> Example:
    spans = tuple(MillisSpan.of(*span) for span in truth)
    panels = tuple(panel(f"method {number}") for number in range(n_panels))
    return Example(MillisSpan.of(2000, 8000), spans, panels, (("as signed", RED),))


def drawn(shown: Example) -> npt.NDArray[np.int64]:
    return np.asarray(Image.open(BytesIO(shown.png())).convert("RGB")).astype(np.int64)


def green(pixels: npt.NDArray[np.int64]) -> int:
    """How many pixels are shaded as truth."""
    return int((np.abs(pixels - (183, 228, 215)).max(axis=2) < 12).sum())


def test_the_truth_is_marked_in_proportion_to_its_length() -> None:
    none, short, long = (drawn(example(truth=truth)) for truth in ((), ((4000, 4400),), ((4000, 4800),)))
    assert green(none) == 0 < 1.6 * green(short) < green(long) < 2.4 * green(short)


def test_every_method_has_a_panel_and_every_strip_its_pixels() -> None:
    one, three = drawn(example(1)), drawn(example(3))
    assert three.shape[0] > one.shape[0] and three.shape[1] == one.shape[1]
    for pixels in (one, three):
        assert ((pixels - (250, 0, 0) == 0).all(axis=2)).sum() > 0.9 * 93 * 560


def test_the_same_example_gives_the_same_bytes() -> None:
    assert example().png() == example().png()


def test_curves_without_any_number_are_drawn_as_gaps() -> None:
    similarity = panel("gaps").word.similarity
    cosine = np.full_like(similarity.cosine, -np.inf)
    gaps = Panel("gaps", WordAnswer(replace(similarity, cosine=cosine), ()))
    assert green(drawn(replace(example(), panels=(gaps,)))) > 0
