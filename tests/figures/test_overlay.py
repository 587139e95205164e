from __future__ import annotations

import dataclasses
import gc
import time
import tracemalloc

import numpy as np
import pytest

from signspot.domain.results import VideoAnswer, WordAnswer
from signspot.domain.tracks import Pixels
from signspot.figures import overlay
from signspot.figures.overlay import _NAME_WIDTH, _PICTURE_HEIGHT, _PLOT_WIDTH, _WIDTH, _Overlay, _shown_words
from tests.media.answers import track, video_answer, word_answer

PLAYHEAD = (213, 94, 0)
FOUND = np.array((0, 158, 115))
SHADED = np.rint(255 - 0.28 * (255 - FOUND))  # the green of a found span on white
FRAME = np.zeros((36, 64, 3), dtype=np.uint8)


def lane(picture: Pixels, layout: overlay._Layout, number: int = 0) -> Pixels:
    top = layout.lane_top(number)
    return picture[top : top + layout.lane_height, _NAME_WIDTH : _NAME_WIDTH + _PLOT_WIDTH]


def timeline(picture: Pixels, layout: overlay._Layout) -> Pixels:
    return picture[layout.timeline_top : layout.height, _NAME_WIDTH : _NAME_WIDTH + _PLOT_WIDTH]


def name_box(picture: Pixels, layout: overlay._Layout, number: int = 0) -> Pixels:
    """A corner of the box: no letter is there."""
    top = layout.lane_top(number)
    return picture[top + 6 : top + 10, 6:12]


def columns_of(area: Pixels, colour: object) -> np.ndarray:
    return np.flatnonzero((np.abs(area.astype(int) - np.asarray(colour)).max(axis=2) <= 2).any(axis=0))


def playhead(area: Pixels) -> int:
    return int(columns_of(area, PLAYHEAD).max())


def test_the_playhead_moves_with_time_in_the_lane_and_in_the_timeline() -> None:
    drawn = _Overlay(video_answer({"apple": [100]}))  # 20 s: the lane shows 10
    for seconds, share in ((0, 0), (2.5, 0.25), (5, 0.5), (10, 0.5), (15, 0.5), (17.5, 0.75), (20, 1), (25, 1)):
        picture = drawn.draw(FRAME, seconds * 1000)
        assert playhead(lane(picture, drawn.layout)) == pytest.approx(share * _PLOT_WIDTH, abs=1)
        assert playhead(timeline(picture, drawn.layout)) == pytest.approx(min(1, seconds / 20) * _PLOT_WIDTH, abs=1)


@pytest.mark.parametrize("seconds", [0.0, 4.5, 6.0, 9.0, 12.0, 13.3])
def test_the_found_span_is_shaded_where_it_is(seconds: float) -> None:
    answer = video_answer({"apple": [250]})  # found from 9.68 to 10.32 s
    drawn = _Overlay(answer)
    picture = lane(drawn.draw(FRAME, seconds * 1000), drawn.layout)
    start = min(max(seconds - 5, 0), 10)
    first, last = ((moment - start) / 10 * _PLOT_WIDTH for moment in (9.68, 10.32))
    faint = np.rint(255 - 0.35 * (255 - SHADED))
    shaded = columns_of(picture[:4], SHADED if seconds > 10.32 else faint)
    if seconds == 0:
        assert shaded.min() == pytest.approx(first, abs=2) and shaded.max() == _PLOT_WIDTH - 1
    elif seconds < 4.5:
        assert len(shaded) == 0
    else:
        assert shaded.min() == pytest.approx(first, abs=2)
        assert shaded.max() == pytest.approx(min(last, _PLOT_WIDTH - 1), abs=2)


def test_the_word_is_green_exactly_while_it_is_found() -> None:
    drawn = _Overlay(video_answer({"apple": [100], "tree": [250]}))
    green = {}
    for moment in (3679, 3680, 4319, 4320, 9680):
        picture = drawn.draw(FRAME, moment)
        green[moment] = [bool((name_box(picture, drawn.layout, n) == FOUND).all()) for n in (0, 1)]
    assert green == {
        3679: [False, False],
        3680: [True, False],
        4319: [True, False],
        4320: [False, False],
        9680: [False, True],
    }


def test_what_is_to_come_is_faint() -> None:
    drawn = _Overlay(video_answer({"apple": []}))
    picture = lane(drawn.draw(FRAME, 8000), drawn.layout).min(axis=2)
    past, future = picture[:, 20:225].min(), picture[:, 260:470].min()
    assert past < 110
    assert future > 160


def test_curves_scroll_without_a_seam() -> None:
    answer = video_answer({"apple": [240, 260]})
    noise = np.random.default_rng(0).normal(0, 0.1, answer.words[0].similarity.cosine.shape)
    answer.words[0].similarity.cosine[:] += noise.astype(np.float32)
    drawn = _Overlay(answer)
    before = lane(drawn.draw(FRAME, 15_000), drawn.layout).copy()  # 10 to 20 s: one tile
    across = lane(drawn.draw(FRAME, 12_000), drawn.layout)  # 7 to 17 s: two tiles
    shift = round(3 / 10 * _PLOT_WIDTH)
    seam = slice(shift, shift + 90)  # seven to ten seconds lie before it, all of this is past
    assert np.abs(across[:, seam].astype(int) - before[:, : seam.stop - seam.start]).max() <= 2


@pytest.mark.parametrize("size", [(36, 64), (64, 36), (720, 1280), (11, 2000), (2000, 11), (360, 640), (1, 1)])
def test_frames_of_any_size_fit_and_keep_their_aspect(size: tuple[int, int]) -> None:
    drawn = _Overlay(video_answer({"apple": [100]}))
    frame = np.full((*size, 3), (250, 40, 40), dtype=np.uint8)
    picture = drawn.draw(frame, 0)[:_PICTURE_HEIGHT]
    is_frame = (np.abs(picture.astype(int) - (250, 40, 40)).max(axis=2) <= 1).nonzero()
    tall, wide = (int(np.ptp(axis)) + 1 for axis in is_frame)
    scale = min(_PICTURE_HEIGHT / size[0], _WIDTH / size[1])
    assert (tall, wide) == (max(1, round(size[0] * scale)), max(1, round(size[1] * scale)))
    assert [int(axis.min() + axis.max()) for axis in is_frame] == pytest.approx([359, 639], abs=1)


def test_a_smaller_frame_leaves_nothing_of_a_larger_one() -> None:
    drawn = _Overlay(video_answer({"apple": [100]}))
    drawn.draw(np.full((36, 64, 3), 255, dtype=np.uint8), 0)
    picture = drawn.draw(np.full((64, 36, 3), 255, dtype=np.uint8), 40)
    assert (picture[:_PICTURE_HEIGHT, :200] == 24).all()


def test_frames_are_not_changed() -> None:
    frame = np.random.default_rng(0).integers(0, 256, (36, 64, 3), dtype=np.uint8)
    before = frame.copy()
    frame.setflags(write=False)
    _Overlay(video_answer({"apple": [100]})).draw(frame, 0)
    assert (frame == before).all()


def test_each_word_has_a_lane_and_too_many_words_are_said_to_be_more() -> None:
    for n_words in (0, 1, 2, 3, 6, 9):
        drawn = _Overlay(video_answer({f"word{n}": [100] for n in range(n_words)}))
        picture = drawn.draw(FRAME, 4000)
        assert drawn.layout.n_lanes == min(n_words, 6)
        assert picture.shape == (drawn.layout.height, _WIDTH, 3)
        assert picture.shape[0] % 2 == 0
        for number in range(drawn.layout.n_lanes):
            assert (name_box(picture, drawn.layout, number) == FOUND).all()
        note = picture[-16:, :_NAME_WIDTH]
        assert (note.min() < 160) == (n_words > 6)


def test_words_that_were_found_come_before_those_that_were_not() -> None:
    words: dict[str, list[int]] = {f"lost{n}": [] for n in range(5)}
    words |= {"apple": [100], "tree": [200], "garden": [300]}
    shown = [word.word for word in _shown_words(video_answer(words))]
    assert shown == ["lost0", "lost1", "lost2", "apple", "tree", "garden"]


def test_one_window_of_an_hour_is_seen_in_the_timeline() -> None:
    n_frames = 90_000
    answer = word_answer("apple", [], n_frames)
    answer.similarity.cosine[:] = 0
    answer.similarity.cosine[60_000 - 8, 1] = 0.9
    found = word_answer("apple", [30_000], n_frames).spottings
    both = dataclasses.replace(answer, spottings=found)
    drawn = _Overlay(VideoAnswer(video_id="x", words=(both,), duration_ms=n_frames * 40, threshold=0.4))
    rows = timeline(drawn.draw(FRAME, 0), drawn.layout)[6:20, 10:]
    dark = np.flatnonzero((rows.astype(int).max(axis=2) < 250).any(axis=0)) + 10
    assert dark == pytest.approx(np.where(dark < _PLOT_WIDTH / 2, _PLOT_WIDTH / 3, _PLOT_WIDTH * 2 / 3), abs=4)
    assert {bool(column < _PLOT_WIDTH / 2) for column in dark} == {True, False}


def nothing_comparable() -> WordAnswer:
    answer = word_answer("apple", [])
    answer.similarity.cosine[:] = -np.inf
    return answer


@pytest.mark.parametrize(
    "answer",
    [
        VideoAnswer(video_id="x", words=(nothing_comparable(),), duration_ms=20_000, threshold=0.4),
        VideoAnswer(video_id="x", words=(WordAnswer(track("apple", 0), ()),), duration_ms=0, threshold=0.4),
        VideoAnswer(video_id="x", words=(WordAnswer(track("apple", 500, 0), ()),), duration_ms=20_000, threshold=0.4),
        VideoAnswer(video_id="x", words=(word_answer("apple", [], 5),), duration_ms=200, threshold=0.4),
        video_answer({"\ue001\ue002\U0001d800\u202eabc$x_$": [100], "x" * 200: [], "手話": [], "🤟": []}),
        video_answer({"apple": [100]}, n_entries=60),
    ],
    ids=["unusable", "empty", "no-entries", "five-frames", "odd-glyphs", "sixty-entries"],
)
def test_odd_answers_are_drawn(answer: VideoAnswer) -> None:
    drawn = _Overlay(answer)
    for moment in (0, 100, answer.duration_ms, 10**7):
        assert drawn.draw(FRAME, moment).shape == (drawn.layout.height, _WIDTH, 3)


def test_memory_does_not_grow_with_the_length_of_the_video() -> None:
    drawn = _Overlay(video_answer({"apple": [100]}, n_frames=15_000))
    tracemalloc.start()
    held = []
    for minute in range(6):
        drawn.draw(FRAME, minute * 60_000)
        drawn.draw(FRAME, minute * 60_000 + 9000)
        gc.collect()  # matplotlib's figures hold on to themselves until then
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[-1] - held[2] < 300_000  # a tile of curves has over 300,000 bytes


def test_drawing_is_fast() -> None:
    drawn = _Overlay(video_answer({"apple": [100]}))
    frame = np.random.default_rng(0).integers(0, 256, (360, 640, 3), dtype=np.uint8)
    drawn.draw(frame, 0)
    start = time.process_time()
    for number in range(200):
        drawn.draw(frame, number * 40)
    assert (time.process_time() - start) / 200 < 0.010  # 0.7 ms when measured; the rest is for busy machines
