from __future__ import annotations

from pathlib import Path

from signspot.media.reader import VideoReader
from signspot.text.subtitles import read_subtitles
from tests.toy_world import SIGNS, ToyWorld, make_toy_world


def test_the_toy_world_is_what_it_says(toy_world: ToyWorld) -> None:
    clips = sorted(toy_world.dictionary.rglob("*.mp4"))
    assert [clip.stem for clip in clips] == sorted(f"{sign.word}_{sign.variant}" for sign in SIGNS)
    with VideoReader(toy_world.broadcast, isolated=False) as reader:
        last = max(frame.time_ms for frame in reader)
    assert all(0 < signed.span_ms.start < signed.span_ms.stop < last for signed in toy_world.truth)
    assert "house" not in {signed.sign.word for signed in toy_world.truth}
    subtitles = read_subtitles(toy_world.subtitles)
    assert len(subtitles.subtitles) == len(toy_world.truth) + 1
    assert subtitles.warnings == ()


def test_the_same_seed_makes_the_same_bytes(toy_world: ToyWorld, tmp_path: Path) -> None:
    again = make_toy_world(tmp_path)
    assert again.truth == toy_world.truth
    assert again.broadcast.read_bytes() == toy_world.broadcast.read_bytes()
    assert again.subtitles.read_bytes() == toy_world.subtitles.read_bytes()
