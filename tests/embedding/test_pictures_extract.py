from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Entry, Episode, SignerBox, Word
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import CLIP_LENGTH, FrameShape, WindowGrid
from signspot.embedding.model import Reading
from signspot.embedding.pictures import (
    ClipNetwork,
    ColourModel,
    PictureModel,
    _entry_clips,
    embed_video,
    window_batches,
)
from signspot.errors import VideoError
from signspot.media.frames import random_clips
from signspot.media.reader import VideoReader
from signspot.media.video import media_sha256
from signspot.media.writer import VideoWriter
from signspot.models.embedders import EmbedderSettings, VideoEmbedder
from signspot.world.people import Appearance
from signspot.world.render import Studio, _Placement, render_frames
from tests.embedding.boxed import BLUE, LEFT, RED, RIGHT, BoxedColours, write_halves
from tests.models.networks import embedder_of, moving_frames, tiny_head, tiny_i3d, tiny_s3d
from tests.world.figures import signed_clip


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small networks are fastest on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


HERE, COLOUR = Reading(isolated=False), ColourModel()


def numbered(n_frames: int) -> list[np.ndarray]:
    return [np.full((2, 2, 3), number % 256, np.uint8) for number in range(n_frames)]


@given(st.integers(0, 120), st.integers(1, 20), st.integers(1, 9))
@settings(max_examples=200)
def test_windows_are_those_of_the_grid_whatever_the_batch(n_frames: int, stride: int, per_batch: int) -> None:
    batches = list(window_batches(numbered(n_frames), stride, per_batch))
    windows = [clip[:, 0, 0, 0].tolist() for batch in batches for clip in batch]
    grid = WindowGrid(n_frames, stride=stride)
    by_hand = [
        [min(frame, n_frames - 1) for frame in range(start, start + CLIP_LENGTH)] for start in grid.starts().tolist()
    ]
    assert windows == by_hand
    assert all(len(batch) <= per_batch + 1 for batch in batches)


def write_strip(path: Path, colours: list[tuple[int, int, int]], frames_each: int = 30) -> Path:
    with VideoWriter(path, width=64, height=64) as writer:
        for number in range(len(colours) * frames_each):
            pixels = np.full((64, 64, 3), colours[number // frames_each], np.uint8)
            writer.write(pixels, number * FRAME_MS)
    return path


@pytest.mark.parametrize("isolated", [True, False])
def test_a_red_then_green_video_has_the_vectors_computed_by_hand(tmp_path: Path, isolated: bool) -> None:
    video = write_strip(tmp_path / "strip.mp4", [(255, 0, 0), (0, 255, 0)])
    episode = Episode(video_id="strip", video=video)
    extraction = embed_video(episode, COLOUR.network, Reading(isolated=isolated))
    vectors = extraction.track.vectors
    assert vectors.shape == (60 - 15, 3)
    assert extraction.track.axis.times_ms.tolist() == pytest.approx([n * 40 for n in range(60)])
    assert vectors[0] == pytest.approx([1, 0, 0], abs=0.05)
    assert vectors[-1] == pytest.approx([0, 1, 0], abs=0.05)
    # Eight red and eight green frames.
    assert vectors[22] == pytest.approx([2**-0.5, 2**-0.5, 0], abs=0.05)


def test_an_entry_has_the_same_vector_in_every_run(tmp_path: Path) -> None:
    video = write_strip(tmp_path / "apple.mp4", [(255, 0, 0), (0, 0, 255), (255, 255, 0)])
    entry = Entry(entry_id="apple", word=Word("apple"), video=video)
    first, second = (COLOUR.entry(entry, HERE) for _ in range(2))
    other_seed = COLOUR.entry(entry, Reading(seed=1, isolated=False))
    assert first.tolist() == second.tolist()
    assert first.tolist() != other_seed.tolist()


def test_a_clip_has_the_same_vector_under_any_name(tmp_path: Path) -> None:
    first = write_strip(tmp_path / "apple.mp4", [(255, 0, 0), (0, 0, 255), (255, 255, 0)])
    second = tmp_path / "elsewhere.mp4"
    second.write_bytes(first.read_bytes())
    made = [COLOUR.entry(Entry(entry_id=path.name, word=Word("apple"), video=path), HERE) for path in (first, second)]
    assert made[0].tolist() == made[1].tolist()


def test_an_entry_without_a_video_says_so() -> None:
    entry = Entry(entry_id="a", word=Word("apple"))
    with pytest.raises(VideoError, match="the dictionary has no video for this entry"):
        _entry_clips(entry, COLOUR.network.frame_shape)
    for file in (None, Path("no such folder/features.safetensors")):
        with pytest.raises(VideoError, match="a: has neither a clip nor a stored vector"):
            COLOUR.entry(replace(entry, features=file), HERE)


def test_a_file_of_landmarks_is_refused_in_the_model_s_name(tmp_path: Path) -> None:
    for refused in (
        lambda path: COLOUR.entry(Entry(entry_id="a", word=Word("apple"), video=path), HERE),
        lambda path: COLOUR.track(Episode(video_id="a", video=path), HERE),
        lambda path: COLOUR.recording(path, HERE),
    ):
        with pytest.raises(
            VideoError, match=r"a\.pose: holds landmarks and no pictures, which the model 'colour' needs"
        ):
            refused(tmp_path / "a.pose")


def test_a_dictionary_clip_of_minutes_is_refused(tmp_path: Path) -> None:
    video = write_strip(tmp_path / "long.mp4", [(9, 9, 9)], frames_each=25 * 121)
    with pytest.raises(VideoError, match="longer than two minutes"):
        COLOUR.entry(Entry(entry_id="a", word=Word("apple"), video=video), HERE)


def write_noise(path: Path, n_frames: int) -> Path:
    with VideoWriter(path, width=64, height=64) as writer:
        for number, pixels in enumerate(moving_frames(n_frames)):
            writer.write(pixels, number * FRAME_MS)
    return path


def pixels_of(path: Path) -> np.ndarray:
    with VideoReader(path, isolated=False) as reader:
        return np.stack([frame.pixels for frame in reader])


@pytest.mark.parametrize("n_frames", [1, 15, 16, 17, 30])
def test_a_network_sees_the_windows_of_the_grid_at_every_stride(tmp_path: Path, n_frames: int) -> None:
    episode = Episode(video_id="noise", video=write_noise(tmp_path / "noise.mp4", n_frames))
    frames = pixels_of(episode.video)
    model = embedder_of(tiny_i3d(), tiny_head())
    for stride in range(1, 6):
        track = embed_video(episode, model, Reading(stride=stride, isolated=False)).track
        numbers = track.grid.starts()[:, None] + np.arange(CLIP_LENGTH)
        expected = model.embed(frames[np.minimum(numbers, n_frames - 1)])
        assert track.vectors.shape == expected.shape
        assert np.abs(track.vectors - expected).max() < 1e-4
        assert track.fingerprint == model.fingerprint


def test_a_network_that_cannot_share_is_run_window_by_window(tmp_path: Path) -> None:
    episode = Episode(video_id="noise", video=write_noise(tmp_path / "noise.mp4", 20))
    frames = pixels_of(episode.video)
    model = embedder_of(tiny_s3d(gated=True))
    track = embed_video(episode, model, HERE).track
    expected = model.embed(np.stack([frames[s : s + CLIP_LENGTH] for s in range(5)]))
    assert np.abs(track.vectors - expected).max() < 1e-5


def test_the_clips_of_an_entry_are_averaged_before_the_head(tmp_path: Path) -> None:
    """Paper 3.2: one vector per dictionary video, the mean of the trunk's vectors; the head comes after."""
    entry = Entry(entry_id="apple", word=Word("apple"), video=write_noise(tmp_path / "apple.mp4", 56))
    model = embedder_of(tiny_i3d(), tiny_head())
    rng = np.random.default_rng([0, *bytes.fromhex(media_sha256(tmp_path / "apple.mp4"))])
    numbers = random_clips(56, rng)
    trunk = model.trunk_vectors(pixels_of(tmp_path / "apple.mp4")[numbers])
    (vector,) = PictureModel(model).entry(entry, HERE)
    assert len(numbers) > 1
    np.testing.assert_allclose(vector, model.head_vectors(trunk.mean(axis=0, keepdims=True))[0], atol=1e-5)
    after_the_head = model.head_vectors(trunk).mean(axis=0)
    assert np.abs(vector - after_the_head).max() > 1e-4


def test_progress_is_reported_while_a_network_shares(tmp_path: Path) -> None:
    episode = Episode(video_id="noise", video=write_noise(tmp_path / "noise.mp4", 30))
    seen: list[float] = []
    embed_video(
        episode,
        embedder_of(tiny_i3d()),
        HERE,
        progress=lambda done, expected: seen.append(done),
    )
    assert seen == pytest.approx([number * FRAME_MS for number in range(30)])


# Where the signer is


@pytest.mark.parametrize("isolated", [True, False])
def test_a_model_for_boxes_sees_the_box_of_the_recording(tmp_path: Path, isolated: bool) -> None:
    video = write_halves(tmp_path / "halves.mp4")
    for box, colour in ((LEFT, RED), (RIGHT, BLUE)):
        episode = Episode(video_id="halves", video=video, box=box)
        entry = Entry(entry_id="halves", word=Word("a"), video=video, box=box)
        rows = embed_video(episode, BoxedColours(), Reading(isolated=isolated)).track.vectors
        np.testing.assert_allclose(rows, [colour] * 5, atol=0.1)
        vectors = PictureModel(BoxedColours()).entry(entry, Reading(isolated=isolated))
        np.testing.assert_allclose(vectors, [colour], atol=0.1)


def test_a_model_without_boxes_sees_the_whole_picture_unless_a_box_is_asked_for(tmp_path: Path) -> None:
    video = write_halves(tmp_path / "halves.mp4")
    both = [2**-0.5, 0, 2**-0.5]
    episode = Episode(video_id="halves", video=video, box=LEFT)

    def first_row(network: ClipNetwork, box: SignerBox | None = None) -> np.ndarray:
        return embed_video(episode, network, replace(HERE, box=box)).track.vectors[0]

    np.testing.assert_allclose(first_row(COLOUR.network), both, atol=0.1)
    np.testing.assert_allclose(first_row(COLOUR.network, RIGHT), BLUE, atol=0.1)
    np.testing.assert_allclose(first_row(BoxedColours(), RIGHT), BLUE, atol=0.1)


def test_without_a_box_a_model_for_boxes_sees_the_middle_of_the_picture(tmp_path: Path) -> None:
    video = write_halves(tmp_path / "halves.mp4")
    rows = embed_video(Episode(video_id="h", video=video), BoxedColours(), HERE).track
    np.testing.assert_allclose(rows.vectors[0], [2**-0.5, 0, 2**-0.5], atol=0.1)


@pytest.mark.parametrize("placement", [_Placement(0.5, 0.4, 0.5), _Placement(0.0, 0.5, 0.5)])
def test_a_signer_in_a_corner_looks_like_one_who_fills_the_picture(tmp_path: Path, placement: _Placement) -> None:
    look = Appearance(skin=(230, 185, 150), hair=(50, 35, 25), top=(30, 40, 70), background=(150, 170, 190))
    points = signed_clip(np.random.default_rng(0)).points[10:30]

    def written(name: str, where: _Placement, side: int) -> Path:
        scene = Studio(look.background, where)
        with VideoWriter(tmp_path / name, width=side, height=side) as writer:
            frames = render_frames(points, np.zeros(len(points), np.float32), look, scene, side=side)
            for number, pixels in enumerate(frames):
                writer.write(pixels, number * FRAME_MS)
        return tmp_path / name

    shape = FrameShape(72, 64, keep_aspect=True, signer_box=True)
    model = VideoEmbedder(tiny_i3d(), None, EmbedderSettings(name="boxed", frame_shape=shape))
    full, corner = written("full.mp4", _Placement(), 96), written("corner.mp4", placement, 192)
    box = SignerBox(placement.left, placement.top, placement.left + 0.5, placement.top + 0.5)
    alone, boxed, whole = (
        embed_video(Episode(video_id="v", video=video, box=part), model, HERE).track
        for video, part in ((full, None), (corner, box), (corner, None))
    )
    assert (alone.vectors * boxed.vectors).sum(axis=1).min() > 0.93  # the wall behind is lit a little differently
    assert (alone.vectors * whole.vectors).sum(axis=1).max() < 0.85
