from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import SignerBox
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FrameShape
from signspot.embedding.model import Reading
from signspot.errors import InputError, VideoError
from signspot.learning.clips import FrameCache, _merged, _StoredRecordings
from signspot.media.reader import VideoReader
from tests.media.videos import Recipe, make_video, number_of

SIDE = 96

ALONE = Reading(isolated=False)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_video(tmp_path_factory.mktemp("video") / "numbered.mp4", Recipe(count=60))


@pytest.fixture
def cache(tmp_path: Path) -> FrameCache:
    return FrameCache(tmp_path / "frames", FrameShape(SIDE, 80), ALONE)


def test_the_wanted_frames_are_kept_and_found_again(video: Path, cache: FrameCache) -> None:
    stored = cache.frames_in(video, [FrameSpan(40, 50), FrameSpan(3, 9), FrameSpan(45, 52)])
    frames = stored.open()
    assert frames.shape == (18, SIDE, SIDE, 3)  # the full side: training moves the crop
    assert [number_of(frame) for frame in frames] == [*range(3, 9), *range(40, 52)]
    for span in (FrameSpan(40, 50), FrameSpan(4, 8), FrameSpan(51, 52)):
        rows = stored.rows(span)
        assert rows is not None
        assert [number_of(frame) for frame in frames[rows.start : rows.stop]] == list(range(span.start, span.stop))


def test_spans_are_cut_where_the_video_ends(video: Path, cache: FrameCache) -> None:
    stored = cache.frames_in(video, [FrameSpan(50, 80), FrameSpan(90, 100)])
    assert len(stored) == 10
    assert stored.rows(FrameSpan(50, 80)) == FrameSpan(0, 10)
    assert stored.rows(FrameSpan(90, 100)) is None
    assert stored.rows(FrameSpan(10, 20)) is None


def test_a_decoded_video_is_not_decoded_again_even_under_another_name(
    video: Path, cache: FrameCache, tmp_path: Path
) -> None:
    first = cache.frames_in(video, [FrameSpan(0, 5)])
    made = first.path.stat().st_mtime_ns
    copy = tmp_path / "another name.mp4"
    copy.write_bytes(video.read_bytes())
    assert cache.frames_in(copy, [FrameSpan(0, 5)]) == first
    assert first.path.stat().st_mtime_ns == made


def test_other_spans_and_other_sizes_are_other_files(video: Path, cache: FrameCache) -> None:
    paths = {
        cache.frames_in(video, [FrameSpan(0, 5)]).path,
        cache.frames_in(video, [FrameSpan(0, 6)]).path,
        FrameCache(cache.folder, FrameShape(48, 48), ALONE).frames_in(video, [FrameSpan(0, 5)]).path,
        FrameCache(cache.folder, FrameShape(SIDE, 80, True), ALONE).frames_in(video, [FrameSpan(0, 5)]).path,
    }
    assert len(paths) == 4


@pytest.mark.parametrize("damage", ["flipped", "short", "no card", "bad card", "empty card"])
def test_damaged_frames_are_made_again(video: Path, cache: FrameCache, damage: str) -> None:
    stored = cache.frames_in(video, [FrameSpan(0, 5)])
    content, card = stored.path.read_bytes(), stored.path.with_suffix(".json")
    match damage:
        case "flipped":
            stored.path.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
        case "short":
            stored.path.write_bytes(content[:-1])
        case "no card":
            card.unlink()
        case "bad card":
            card.write_text(json.dumps(["n_frames"]))
        case "empty card":
            card.write_text("")
    again = cache.frames_in(video, [FrameSpan(0, 5)])
    assert again == stored
    assert again.path.read_bytes() == content


def test_an_unreadable_video_leaves_nothing_behind(cache: FrameCache, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video at all" * 100)
    with pytest.raises(VideoError):
        cache.all_frames(broken, 100)
    assert not list(cache.folder.iterdir())


def test_a_video_too_long_for_one_sign_is_refused(video: Path, cache: FrameCache) -> None:
    assert len(cache.all_frames(video, 60)) == 60
    with pytest.raises(VideoError, match="longer than 2 seconds"):
        cache.all_frames(video, 59)


def test_recordings_are_opened_when_asked_for(video: Path, cache: FrameCache) -> None:
    stored = cache.frames_in(video, [FrameSpan(7, 9)])
    recordings = _StoredRecordings([stored] * 5000)  # more than a process may hold open
    for recording in recordings:
        assert recording.shape == (2, SIDE, SIDE, 3)
    with pytest.raises(ValueError, match="read-only"):
        recordings[0][0] = 0


def test_frames_that_vanish_during_training_are_told(video: Path, cache: FrameCache) -> None:
    stored = cache.frames_in(video, [FrameSpan(7, 9)])
    stored.path.write_bytes(b"short")
    with pytest.raises(InputError, match="cannot be read any more"):
        stored.open()
    stored.path.unlink()
    with pytest.raises(InputError, match="cannot be read any more"):
        stored.open()


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=8))
def test_merged_spans_hold_the_same_frames_and_stand_apart(ends: list[tuple[int, int]]) -> None:
    spans = [FrameSpan(start, start + length) for start, length in ends]
    joined = _merged(spans)
    assert {f for s in joined for f in range(s.start, s.stop)} == {f for s in spans for f in range(s.start, s.stop)}
    assert all(a.stop < b.start for a, b in pairwise(joined))
    assert all(len(span) for span in joined)


def test_frames_are_squashed_as_a_model_squashes_them(video: Path, cache: FrameCache) -> None:
    with VideoReader(video, shape=cache.shape, isolated=False) as reader:
        expected = np.stack([frame.pixels for frame in reader])[:4]
    edge = (SIDE - 80) // 2
    kept = cache.frames_in(video, [FrameSpan(0, 4)]).open()[:, edge : edge + 80, edge : edge + 80]
    assert (kept == expected).all()


def test_frames_are_cut_to_the_signer_as_a_model_cuts_them(video: Path, cache: FrameCache) -> None:
    shape, box = FrameShape(SIDE, SIDE, keep_aspect=True, signer_box=True), SignerBox(0.5, 0.25, 1, 1)
    with VideoReader(video, shape=shape, box=box, isolated=False) as reader:
        expected = np.stack([frame.pixels for frame in reader])[:4]
    boxed = FrameCache(cache.folder, shape, ALONE)
    assert (boxed.frames_in(video, [FrameSpan(0, 4)], box).open() == expected).all()
    assert (boxed.all_frames(video, 60, box).open()[:4] == expected).all()


def test_frames_of_different_boxes_are_different_files(video: Path, cache: FrameCache) -> None:
    shape = FrameShape(SIDE, SIDE, keep_aspect=True, signer_box=True)
    boxed, spans, box = (
        FrameCache(cache.folder, shape, ALONE),
        [FrameSpan(0, 4)],
        SignerBox(0, 0, 1, 0.5),
    )
    parts = (None, box, SignerBox(0, 0.5, 1, 1))
    assert len({boxed.frames_in(video, spans, part).path for part in parts}) == 3
    # A model without boxes does not look at them.
    assert cache.frames_in(video, spans, box) == cache.frames_in(video, spans)
