from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import Annotation, Entry, Episode, Rights, SignerBox, Vocabulary, Word
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FrameShape
from signspot.embedding.landmarks import LandmarkModel
from signspot.embedding.model import Reading
from signspot.learning.clips import (
    ClipOptions,
    ClipWindow,
    FrameCache,
    LandmarkFrames,
    annotated_clips,
    dictionary_clips,
)
from signspot.media.reader import VideoReader
from signspot.models.embedders import LandmarkEmbedder
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig
from tests.media.stand_in_detector import coloured_video, install
from tests.media.videos import Recipe, make_video, number_of
from tests.workflows.signed import passage, resting, sign, write

APPLE, TREE, HOUSE = Word("apple"), Word("tree"), Word("house")
WORDS = Vocabulary((APPLE, TREE))


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_video(tmp_path_factory.mktemp("video") / "numbered.mp4", Recipe(count=60))


@pytest.fixture
def cache(tmp_path: Path) -> FrameCache:
    return FrameCache(tmp_path / "frames", FrameShape(96, 96), Reading(isolated=False))


def episode_of(video: Path, *signs: tuple[Word, int, float], rights: Rights = Rights()) -> Episode:
    annotations = tuple(Annotation("news", word, frame, confidence) for word, frame, confidence in signs)
    return Episode(video_id="news", video=video, annotations=annotations, rights=rights)


def numbers(clip: np.ndarray) -> list[int]:
    return [number_of(frame) for frame in clip]


def test_annotated_clips_are_drawn_from_the_frames_before_the_annotation(video: Path, cache: FrameCache) -> None:
    found = annotated_clips([episode_of(video, (TREE, 50, 0.7), (APPLE, 30, 0.9))], WORDS, cache)
    source, rng = found.source, np.random.default_rng(0)
    assert [place.label for place in source.places] == [1, 0]
    assert [place.confidence for place in source.places] == [0.7, 0.9]
    assert source.places[0].name == "news: tree at frame 50"
    for i, frame in enumerate((50, 30)):
        drawn = [numbers(source.clip(i, rng)) for _ in range(30)]
        assert {clip[0] for clip in drawn} == set(range(frame - 20, frame - 15))
        assert all(clip == list(range(clip[0], clip[0] + 16)) for clip in drawn)


def test_clips_show_the_box_of_their_recording(video: Path, cache: FrameCache) -> None:
    shape, box = FrameShape(96, 96, keep_aspect=True, signer_box=True), SignerBox(0.25, 0, 0.75, 0.5)
    boxed, rng = FrameCache(cache.folder, shape, Reading(isolated=False)), np.random.default_rng(0)
    episode = replace(episode_of(video, (TREE, 30, 1.0)), box=box)
    entry = Entry(entry_id="e", word=TREE, video=video, box=box)
    with VideoReader(video, shape=shape, box=box, isolated=False) as reader:
        seen = {frame.pixels.tobytes() for frame in reader}
    for found in (annotated_clips([episode], WORDS, boxed), dictionary_clips([entry], WORDS, boxed)):
        assert all(frame.tobytes() in seen for frame in found.source.clip(0, rng))


def test_annotations_near_the_ends_give_clips_inside_the_video(video: Path, cache: FrameCache) -> None:
    options = ClipOptions(window=ClipWindow(before=20, after=5))
    found = annotated_clips([episode_of(video, (TREE, 2, 1), (TREE, 59, 1))], WORDS, cache, options)
    rng = np.random.default_rng(0)
    assert numbers(found.source.clip(0, rng)) == list(range(16))
    assert max(numbers(found.source.clip(1, rng))[-1] for _ in range(30)) == 59


def test_what_is_left_out_is_told(video: Path, cache: FrameCache, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"nothing" * 99)
    episodes = [
        episode_of(video, (TREE, 30, 1), (TREE, 60, 1), (HOUSE, 30, 1), (APPLE, 30, 0.4)),
        Episode(video_id="lost", video=broken, annotations=(Annotation("lost", TREE, 3),)),
        Episode(
            video_id="private",
            video=video,
            annotations=(Annotation("private", TREE, 30),),
            rights=Rights(may_train=False),
        ),
        Episode(video_id="without annotations", video=tmp_path / "not opened.mp4"),
    ]
    found = annotated_clips(episodes, WORDS, cache)
    assert len(found.source) == 1
    assert found.outside_vocabulary == 1
    assert found.below_confidence == 1
    assert [(name, why.split(": ")[-1]) for name, why in found.skipped[::2]] == [
        ("news: tree at frame 60", "the video ends before"),
        ("private", "it may not be used for training"),
    ]
    assert found.skipped[1][0] == "lost" and "broken.mp4" in found.skipped[1][1]


def test_dictionary_clips_show_the_whole_video_at_random_speed(video: Path, cache: FrameCache) -> None:
    entries = [
        Entry(entry_id="t1", word=TREE, video=video),
        Entry(entry_id="h1", word=HOUSE, video=video),
        Entry(entry_id="a1", word=APPLE),
    ]
    found = dictionary_clips(entries, WORDS, cache)
    assert found.outside_vocabulary == 1
    assert [name for name, _ in found.skipped] == ["a1"]
    assert [(place.label, place.name) for place in found.source.places] == [(1, "t1")]
    rng = np.random.default_rng(0)
    drawn = [numbers(found.source.clip(0, rng)) for _ in range(40)]
    assert max(clip[-1] - clip[0] for clip in drawn) > 40
    assert min(clip[0] for clip in drawn) < 5 and max(clip[-1] for clip in drawn) > 54


def test_consecutive_sampling_takes_neighbouring_frames(video: Path, cache: FrameCache) -> None:
    entries = [Entry(entry_id="t1", word=TREE, video=video)]
    found = dictionary_clips(entries, WORDS, cache, ClipOptions(sampling="consecutive"))
    rng = np.random.default_rng(0)
    for _ in range(10):
        assert set(np.diff(numbers(found.source.clip(0, rng)))) == {1}


def test_progress_names_every_video(video: Path, cache: FrameCache) -> None:
    told: list[tuple[str, int, int]] = []
    entries = [Entry(entry_id=name, word=TREE, video=video) for name in ("t1", "t2")]
    dictionary_clips(entries, WORDS, cache, progress=lambda *moment: told.append(moment))
    assert told == [("t1", 0, 2), ("t2", 1, 2)]


def test_annotated_clips_of_landmarks_are_those_of_the_pose_file(tmp_path: Path) -> None:
    points = passage()
    episode = episode_of(write(points, tmp_path / "news.pose"), (TREE, 40, 0.7), (APPLE, 63, 0.9), (TREE, 64, 1))
    found = annotated_clips([episode], WORDS, LandmarkFrames(Reading(store=tmp_path / "found")))
    assert [name for name, _ in found.skipped] == ["news: tree at frame 64"]
    drawn = [found.source.clip(0, np.random.default_rng(seed)) for seed in range(30)]
    starts = {next(first for first in range(20, 25) if np.allclose(clip, points[first : first + 16])) for clip in drawn}
    assert starts == set(range(20, 25))
    assert np.allclose(found.source.test_clips(1)[-1], points[47:63], atol=1e-5)


@pytest.mark.parametrize("kept", [None, FrameSpan(10, 25)])
def test_a_dictionary_clip_of_landmarks_is_the_window_that_a_model_compares(
    tmp_path: Path, kept: FrameSpan | None
) -> None:
    path = write(np.concatenate([resting(9), sign(0), resting(9)]), tmp_path / "tree.pose")
    entry = Entry(entry_id="t1", word=TREE, video=path, kept=kept)
    found = dictionary_clips(
        [entry], WORDS, LandmarkFrames(Reading(store=tmp_path / "found")), ClipOptions(sampling="consecutive")
    )
    clip = found.source.clip(0, np.random.default_rng(0))
    assert np.array_equal(found.source.test_clips(0), clip[None])
    config = LandmarkEncoderConfig(classes=2, width=16, heads=2, convolutions=1, transformer_layers=1, embedding_dim=16)
    model = LandmarkEmbedder(LandmarkEncoder(config), None, name="random")
    assert np.allclose(model.embed(clip[None])[0], LandmarkModel(model).entry(entry, Reading())[0], atol=1e-6)


def test_pose_files_that_show_no_sign_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "broken.pose").write_bytes(b"nothing")
    files = {
        "broken": tmp_path / "broken.pose",
        "nobody": write(np.zeros_like(sign(0)), tmp_path / "nobody.pose"),
        "short": write(sign(0, 5), tmp_path / "short.pose"),
        "cut": write(sign(0), tmp_path / "cut.pose"),
    }
    entries = [Entry(entry_id=name, word=TREE, video=path) for name, path in files.items()]
    entries[-1] = replace(entries[-1], kept=FrameSpan(10, 99))
    found = dictionary_clips(entries, WORDS, LandmarkFrames(Reading(store=tmp_path / "found")))
    assert len(found.source) == 0
    assert [name for name, _ in found.skipped] == list(files)
    assert "nobody was found" in found.skipped[1][1] and "ends before" in found.skipped[3][1]


def test_landmarks_of_videos_are_detected_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = install(tmp_path / "packages", monkeypatch)
    video = coloured_video(tmp_path / "tree.mp4", [(120, 100 + 5 * number, 200) for number in range(20)])
    frames, entry = (
        LandmarkFrames(Reading(store=tmp_path / "found", isolated=False)),
        Entry(entry_id="t1", word=TREE, video=video),
    )
    clips = [dictionary_clips([entry], WORDS, frames).source.test_clips(0) for _ in range(2)]
    assert np.array_equal(*clips) and len(frames.axis(video)) == 20
    assert log.read_text().count("start") == 1
