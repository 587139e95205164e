from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.recordings import Entry, Word
from signspot.domain.results import VideoAnswer, WordAnswer
from signspot.domain.time import FRAME_MS, FrameSpan, MillisSpan, TimeAxis
from signspot.domain.tracks import SimilarityTrack, WindowGrid
from signspot.stores.corpus import SignedSign
from signspot.workflows.demo import _signed_mentions

N_FRAMES = 200
APPLE = Word("apple")


def answer(peak: int, *searched: tuple[int, int]) -> VideoAnswer:
    """A curve that is highest at one window, over stretches given in frames."""
    grid, axis = WindowGrid(N_FRAMES), TimeAxis(np.arange(N_FRAMES) * float(FRAME_MS))
    cosine = np.full((len(grid), 2), 0.1, np.float32)
    cosine[peak, 1] = 0.9
    entries = tuple(Entry(entry_id=f"apple_{number}", word=APPLE) for number in (1, 2))
    similarity = SimilarityTrack(APPLE, "v", grid, axis, entries, cosine)
    spans = tuple(MillisSpan.of(start * FRAME_MS, stop * FRAME_MS) for start, stop in searched)
    return VideoAnswer(video_id="v", words=(WordAnswer(similarity, (), spans),), duration_ms=8000, threshold=0.4)


def signed(start: int, word: str = "apple") -> SignedSign:
    return SignedSign(
        video_id="v", start_frame=start, stop_frame=start + 10, word=word, variant="1", form="f", signer="s"
    )


@pytest.mark.parametrize(("peak", "is_found"), [(50, True), (44, True), (34, False), (65, False), (75, False)], ids=str)
def test_a_mention_is_found_if_the_best_window_shows_a_part_of_the_sign(peak: int, is_found: bool) -> None:
    """The sign takes frames 50 to 59; a window the 16 from its start. A window without any of them shows none."""
    (mention,) = _signed_mentions(answer(peak, (20, 120)), [signed(50)])
    assert mention.is_found is (set(range(peak, peak + 16)) & set(range(50, 60)) != set())
    assert mention.is_found is is_found
    assert (mention.taken, mention.entry.entry_id) == (FrameSpan(peak, peak + 16), "apple_2")
    assert mention.cosine == pytest.approx(0.9)


def test_only_words_that_are_signed_where_they_are_mentioned_count() -> None:
    found = answer(50, (20, 80), (100, 180))
    assert _signed_mentions(found, []) == ()
    assert _signed_mentions(found, [signed(50, "tree"), signed(85)]) == ()
    assert [mention.span_ms.start for mention in _signed_mentions(found, [signed(30), signed(120)])] == [800, 4000]
    assert _signed_mentions(answer(50, (0, 30)), [signed(25)]) == (), "a sign that lasts beyond the stretch"
