from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.time import FrameSpan
from signspot.learning.clips import ClipPlace, ClipWindow, RecordedClips
from tests.learning.signs import whole_clips

seeds = st.integers(0, 2**32 - 1)


def numbered(n_frames: int) -> np.ndarray:
    """(n, 258): every number of a frame is the number of the frame."""
    return np.repeat(np.arange(n_frames, dtype=np.float32)[:, None], 258, axis=1)


def frames_of(clip: np.ndarray) -> np.ndarray:
    assert (clip == clip[..., :1]).all()
    return clip[..., 0].astype(int)


@st.composite
def places(draw: st.DrawFn) -> tuple[int, FrameSpan]:
    n_frames = draw(st.integers(1, 120))
    start = draw(st.integers(0, n_frames - 1))
    return n_frames, FrameSpan(start, draw(st.integers(start + 1, n_frames)))


@given(places(), seeds, st.sampled_from([1.0, 4.0]))
def test_clips_never_leave_their_span_nor_run_backwards(where: tuple[int, FrameSpan], seed: int, speed: float) -> None:
    n_frames, span = where
    source = RecordedClips([numbered(n_frames)], (ClipPlace("a", 0, 0, span),), speed)
    drawn = frames_of(source.clip(0, np.random.default_rng(seed)))[None]
    tested = frames_of(source.test_clips(0))
    for clips in (drawn, tested):
        assert clips.shape[1:] == (16,)
        assert clips.min() >= span.start and clips.max() < span.stop
        assert (np.diff(clips, axis=1) >= 0).all()


@given(st.integers(0, 300), st.integers(0, 30), st.integers(0, 30))
def test_a_window_has_room_for_a_clip_and_holds_what_was_asked_for(frame: int, before: int, after: int) -> None:
    if before + after < 16:
        with pytest.raises(ValueError, match="no clip of 16 frames fits"):
            ClipWindow(before=before, after=after)
        return
    span = ClipWindow(before=before, after=after).around(frame)
    assert span.start == max(0, frame - before)
    assert len(span) >= 16
    if frame >= before:
        assert span == FrameSpan(frame - before, frame + after)


def test_by_default_clips_end_before_the_annotation_as_in_the_released_trainer() -> None:
    source = RecordedClips([numbered(200)], (ClipPlace("a", 0, 0, ClipWindow().around(100)),))
    rng = np.random.default_rng(0)
    drawn = np.stack([frames_of(source.clip(0, rng)) for _ in range(300)])
    assert set(drawn[:, 0]) == {80, 81, 82, 83, 84}
    assert (np.diff(drawn, axis=1) == 1).all()


def test_the_wide_window_reaches_five_frames_behind() -> None:
    span = ClipWindow(before=20, after=5).around(100)
    source = RecordedClips([numbered(200)], (ClipPlace("a", 0, 0, span),))
    rng = np.random.default_rng(0)
    starts = {int(frames_of(source.clip(0, rng))[0]) for _ in range(400)}
    assert starts == set(range(80, 90))


def test_an_annotated_clip_is_tested_by_windows_at_half_their_length() -> None:
    source = RecordedClips([numbered(200)], (ClipPlace("a", 0, 0, FrameSpan(80, 100)),))
    assert frames_of(source.test_clips(0))[:, 0].tolist() == [80, 84]


def test_test_clips_are_the_same_every_time() -> None:
    source = whole_clips([numbered(56), numbered(70)], [0, 1], max_speed=4)
    assert len(source.test_clips(0)) == round(56 / 16)
    assert (source.test_clips(1) == source.test_clips(1)).all()


def test_dictionary_clips_differ_each_time_in_speed_and_shift() -> None:
    source = whole_clips([numbered(56)], [0], max_speed=4)
    rng = np.random.default_rng(0)
    drawn = np.stack([frames_of(source.clip(0, rng)) for _ in range(200)])
    lengths = drawn[:, -1] - drawn[:, 0]
    assert lengths.min() <= 17 and lengths.max() >= 50
    assert len(np.unique(drawn[:, 0])) > 10


def test_a_place_outside_its_recording_is_refused() -> None:
    with pytest.raises(ValueError, match="no clip can be taken"):
        RecordedClips([numbered(5)], (ClipPlace("a", 0, 1, FrameSpan(0, 5)),))
    beyond = RecordedClips([numbered(5)], (ClipPlace("a", 0, 0, FrameSpan(0, 6)),))
    with pytest.raises(ValueError, match="of a recording of 5 frames"):
        beyond.clip(0, np.random.default_rng(0))
