from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.results import VideoAnswer
from signspot.domain.time import MillisSpan
from signspot.figures import drawing
from tests.media.answers import track, video_answer, word_answer

cosines = st.lists(st.one_of(st.floats(-1, 1), st.just(float("nan"))), min_size=1, max_size=200)


@given(cosines, st.integers(1, 20))
def test_thinning_keeps_the_highest_value_of_every_stretch_where_it_is(values: list[float], n_columns: int) -> None:
    curve = np.array(values)
    times = np.arange(len(curve)) * 0.04
    when, kept = drawing.pooled(times, curve, n_columns)
    assert len(kept) <= max(2 * n_columns, n_columns + 1)
    assert (np.diff(when) > 0).all()
    original = dict(zip(times.tolist(), values, strict=True))
    assert all(
        np.array_equal(original[t], v, equal_nan=True) for t, v in zip(when.tolist(), kept.tolist(), strict=True)
    )
    if np.isfinite(curve).any():
        assert np.nanmax(kept) == np.nanmax(curve)
    if len(values) > 2 * n_columns:  # by hand: the maximum of each column
        columns: dict[int, list[float]] = {}
        for time, value in original.items():
            columns.setdefault(int(time / times[-1] * n_columns), []).append(value)
        expected = [max((v for v in c if v == v), default=float("nan")) for c in columns.values()]
        assert np.array_equal(kept, expected, equal_nan=True)


def test_thinning_copes_with_times_that_all_repeat() -> None:
    _, kept = drawing.pooled(np.zeros(100), np.linspace(0, 1, 100), 10)
    assert kept.tolist() == [1.0]


def test_every_entry_has_a_curve_of_its_own_colour() -> None:
    lines = drawing.curves(word_answer("apple", [100], n_entries=5))
    assert [line.label for line in lines] == ["#1", "#2", "#3", "#4", "#5"]
    assert len({(line.colour, line.dashes) for line in lines}) == 5
    assert drawing.FOUND not in {line.colour for line in lines}


def test_of_many_entries_the_highest_are_drawn_and_the_rest_share_a_line() -> None:
    answer = word_answer("apple", [], n_entries=40)
    best = [7, 39, 11, 3, 20, 21, 30]
    for entry in best:
        answer.similarity.cosine[50, entry] = 0.9
    answer.similarity.cosine[60, 12] = 0.5
    lines = drawing.curves(answer)
    assert [line.label for line in lines] == [*(f"#{entry + 1}" for entry in sorted(best)), "+33"]
    assert len({(line.colour, line.dashes) for line in lines}) == 8
    assert np.nanmax(lines[-1].cosine) == pytest.approx(0.5)


def test_what_could_not_be_compared_is_a_gap() -> None:
    answer = word_answer("apple", [100], n_entries=12)
    answer.similarity.cosine[20:30] = -np.inf
    for line in drawing.curves(answer):
        assert np.isnan(line.cosine[20:30]).all()
        assert np.isfinite(line.cosine[30:]).all()


def test_a_word_without_entries_has_no_curves() -> None:
    assert drawing.curves(dataclasses.replace(word_answer("apple", []), similarity=track("apple", 100, 0))) == []


def test_the_range_holds_all_curves_and_the_threshold() -> None:
    answer = video_answer({"apple": [100], "tree": []})
    answer.words[1].similarity.cosine[5, 0] = -0.8
    answer.words[1].similarity.cosine[6, 0] = -np.inf
    shown = drawing.CosineRange.of(dataclasses.replace(answer, threshold=0.95))
    assert -1 < shown.low < -0.8 and 0.95 < shown.high < 1.2


def test_the_range_of_nothing_is_still_a_range() -> None:
    shown = drawing.CosineRange.of(VideoAnswer(video_id="x", words=(), duration_ms=0, threshold=0.0))
    assert shown.low < 0 < shown.high


@given(st.floats(0.01, 1e6), st.integers(2, 20))
def test_an_axis_has_some_ticks_but_not_too_many(seconds: float, at_most: int) -> None:
    assert seconds / drawing.tick_step(seconds, at_most) <= at_most * 1.001


def test_spans_outside_the_picture_are_left_out() -> None:
    answer = word_answer("apple", [100, 300])
    assert list(drawing.found_spans(answer, 0, 8)) == [(3.68, 4.32)]
    assert list(drawing.found_spans(answer, 4, 12)) == [(3.68, 4.32), (11.68, 12.32)]
    assert list(drawing.found_spans(answer, 13, 20)) == []


@pytest.mark.parametrize(
    ("searched", "gaps"),
    [
        (None, []),
        ((), [(0, 20)]),
        (((0, 20),), []),
        (((5, 10),), [(0, 5), (10, 20)]),
        (((8, 12), (2, 9), (10, 11)), [(0, 2), (12, 20)]),
        (((15, 40),), [(0, 15)]),
        (((30, 40),), [(0, 20)]),
    ],
)
def test_what_was_not_searched_is_the_rest(
    searched: tuple[tuple[int, int], ...] | None, gaps: list[tuple[int, int]]
) -> None:
    spans = None if searched is None else tuple(MillisSpan.of(a * 1000, b * 1000) for a, b in searched)
    answer = dataclasses.replace(word_answer("apple", []), searched_ms=spans)
    assert list(drawing._unsearched(answer, 0, 20)) == gaps


def test_a_letter_no_font_has_becomes_a_box_and_control_characters_too() -> None:
    figure = drawing.blank_figure(1, 1, 100)
    text = drawing.write_text(figure, 0, 0, "a\u0007\u202e\U0001d800$b_1$")
    assert text.get_text() == "a□□□$b_1$"
    assert not text.get_parse_math()


def test_icons_in_the_private_use_area_are_not_mistaken_for_signs() -> None:
    text = drawing.write_text(drawing.blank_figure(1, 1, 100), 0, 0, "\ue000\ue0e2\uf8ff")
    assert set(text.get_family()) <= {"DejaVu Sans"} or any("hamnosys" in f.lower() for f in text.get_family())
