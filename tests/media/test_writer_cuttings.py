from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from signspot.domain.time import MillisSpan
from signspot.errors import OutputExists, VideoError
from signspot.media.reader import VideoReader
from signspot.media.writer import Cutting, cut_out
from tests.media.videos import Recipe, make_video, number_of


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty pictures that carry their numbers."""
    return make_video(tmp_path_factory.mktemp("cuttings") / "long.mp4", Recipe(count=50))


def numbers(path: Path) -> list[int]:
    with VideoReader(path, isolated=False) as reader:
        return [number_of(frame.pixels) for frame in reader]


def test_a_clip_holds_exactly_the_pictures_of_its_stretch_and_starts_at_zero(video: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "clip.mp4"
    before = video.read_bytes()
    cut_out(video, [Cutting(span_ms=MillisSpan.of(400, 1000), path=wanted)], isolated=False)
    assert numbers(wanted) == list(range(10, 25))
    with VideoReader(wanted, isolated=False) as reader:
        times = [frame.time_ms for frame in reader]
    np.testing.assert_allclose(times, np.arange(15) * 40.0, atol=0.1)
    assert video.read_bytes() == before


def test_overlapping_stretches_are_cut_in_one_pass_and_pictures_come_in_the_order_asked(
    video: Path, tmp_path: Path
) -> None:
    spans = [MillisSpan.of(800, 1200), MillisSpan.of(0, 1000), MillisSpan.of(1960, 2100)]
    paths = [tmp_path / "b.mp4", None, tmp_path / "c.mp4"]
    pictures = cut_out(video, [Cutting(span_ms=s, path=p) for s, p in zip(spans, paths, strict=True)], isolated=False)
    assert [len(shown) for shown in pictures] == [10, 25, 1]
    assert {picture.shape for shown in pictures for picture in shown} == {(96, 128, 3)}
    assert numbers(tmp_path / "b.mp4") == list(range(20, 30))
    assert numbers(tmp_path / "c.mp4") == [49]


def test_a_stretch_beyond_the_end_is_an_error_and_leaves_nothing(video: Path, tmp_path: Path) -> None:
    cuttings = [
        Cutting(span_ms=MillisSpan.of(1900, 2000), path=tmp_path / "a.mp4"),
        Cutting(span_ms=MillisSpan.of(9000, 9500), path=tmp_path / "b.mp4"),
    ]
    with pytest.raises(VideoError, match=r"ends before 9.0 s, where a sign was found"):
        cut_out(video, cuttings, isolated=False)
    assert not (tmp_path / "b.mp4").exists() and not list(tmp_path.glob(".signspot*"))


def test_an_existing_clip_is_not_replaced(video: Path, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_text("mine")
    with pytest.raises(OutputExists, match="exists already"):
        cut_out(video, [Cutting(span_ms=MillisSpan.of(0, 400), path=tmp_path / "a.mp4")], isolated=False)
    assert (tmp_path / "a.mp4").read_text() == "mine"


def test_nothing_and_far_too_much_cannot_be_cut() -> None:
    for span in (MillisSpan.of(5, 5), MillisSpan.of(0, 600_000)):
        with pytest.raises(ValueError, match="cannot cut"):
            Cutting(span_ms=span)
