from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Entry
from signspot.domain.time import TimeAxis
from signspot.domain.tracks import SimilarityTrack, StagedEmbedder, WindowGrid
from signspot.domain.words import Word
from signspot.embedding.entries import View, best_view, frames_at_rate, views_of
from signspot.models.embedders import ColourEmbedder


@given(st.floats(0.25, 4))
def test_a_rate_keeps_the_middle_and_the_order(rate: float) -> None:
    frames = frames_at_rate(rate)
    assert len(frames) == 16
    assert (np.diff(frames) >= 0).all()
    assert frames.min() >= 0
    assert frames.max() <= 15
    assert abs(float(frames[7:9].mean()) - 7.5) <= 1


def test_rate_one_is_the_clip_itself_and_other_speeds_are_refused() -> None:
    assert frames_at_rate(1.0).tolist() == list(range(16))
    with pytest.raises(ValueError, match="no longer that sign"):
        frames_at_rate(5)


def test_a_mirrored_view_sees_left_and_right_exchanged() -> None:
    clips = np.arange(2 * 16 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 16, 4, 4, 3)
    seen = View(ColourEmbedder(), is_mirrored=True, rate=1.0).seen(clips)
    assert (seen == clips[:, :, :, ::-1]).all()
    again = View(ColourEmbedder(), is_mirrored=True, rate=1.0).seen(seen)
    assert (again == clips).all()


def test_there_is_one_view_for_every_pair_of_speed_and_side() -> None:
    model = ColourEmbedder()
    assert views_of(model, mirror=False, rates=()) == (model,)
    views = views_of(model, mirror=True, rates=(0.7, 1.4, 1.0))
    assert len(views) == 6
    assert views[0] is model
    assert {view.fingerprint for view in views} == {model.fingerprint}
    assert not any(isinstance(view, StagedEmbedder) for view in views)


def test_of_several_views_the_most_similar_counts() -> None:
    entries = tuple(Entry(entry_id=name, word=Word("a")) for name in ("a1", "a1", "a2", "a2"))
    cosine = np.array([[0.1, 0.9, 0.3, 0.2], [0.5, 0.4, -0.1, 0.0]], np.float32)
    axis = TimeAxis(np.arange(17) * 40.0)
    track = SimilarityTrack(Word("a"), "v", WindowGrid(17), axis, entries, cosine)
    best = best_view(track, 2)
    assert best.entry_ids == ("a1", "a2")
    assert best.cosine.tolist() == np.array([[0.9, 0.3], [0.5, 0.0]], np.float32).tolist()
