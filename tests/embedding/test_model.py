from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.recordings import Entry, Episode
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, EmbeddingTrack, LandmarkTrack, WindowGrid
from signspot.domain.words import Word
from signspot.embedding.model import for_dictionary, stage_vectors, with_head
from signspot.embedding.pictures import EntryOptions, ExtractOptions, embed_entry, embed_landmarks, embed_video
from signspot.errors import InputError
from signspot.media.writer import VideoWriter
from signspot.models.embedders import ColourEmbedder, LandmarkEmbedder
from signspot.models.landmarks import LandmarkEncoder
from tests.embedding.test_pictures_extract import one_thread, pixels_of, write_noise
from tests.models.networks import embedder_of, tiny_head, tiny_i3d, tiny_s3d

__all__ = ["one_thread"]


@pytest.mark.parametrize("trunk", [tiny_i3d, tiny_s3d])
@pytest.mark.parametrize("stride", [1, 3])
def test_the_trunk_alone_gives_its_own_vectors(tmp_path: Path, trunk: type, stride: int) -> None:
    episode = Episode(video_id="noise", video=write_noise(tmp_path / "noise.mp4", 30))
    model = embedder_of(trunk(), tiny_head())
    options = ExtractOptions(stride=stride, isolated=False, stage="trunk")
    track = embed_video(episode, model, options=options).track
    frames = pixels_of(episode.video)
    expected = model.trunk_vectors(frames[track.grid.starts()[:, None] + np.arange(CLIP_LENGTH)])
    # Against the length of a vector: both are sums in float32, in another order, and single numbers near zero differ.
    error = np.linalg.norm(track.vectors - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert error.max() < 2e-5
    assert not track.unit_rows
    assert track.fingerprint == model.trunk_fingerprint != model.fingerprint


def test_the_head_over_a_track_of_the_trunk_gives_the_embeddings(tmp_path: Path) -> None:
    episode = Episode(video_id="noise", video=write_noise(tmp_path / "noise.mp4", 40))
    model = embedder_of(tiny_i3d(), tiny_head())
    trunk, whole = (
        embed_video(episode, model, options=ExtractOptions(isolated=False, stage=stage)).track
        for stage in ("trunk", "embedding")
    )
    made = with_head(trunk, model)
    np.testing.assert_allclose(made.vectors, whole.vectors, atol=1e-6)
    assert (made.unit_rows, made.fingerprint) == (True, model.fingerprint)


def test_a_head_takes_only_what_its_trunk_made() -> None:
    model = embedder_of(tiny_i3d(), tiny_head())
    axis = TimeAxis(np.arange(20) * 40.0)
    foreign = EmbeddingTrack("v", WindowGrid(20), axis, np.ones((5, 128), np.float32), "other", unit_rows=False)
    embedded = dataclasses.replace(foreign, fingerprint=model.trunk_fingerprint, unit_rows=True)
    for track in (foreign, embedded):
        with pytest.raises(ValueError, match="are not of the trunk of 'tiny'"):
            with_head(track, model)


def test_heads_of_one_trunk_share_its_fingerprint() -> None:
    torch.manual_seed(5)
    first, second = embedder_of(tiny_i3d(), tiny_head()), embedder_of(tiny_i3d())
    assert stage_vectors(first, "trunk") == stage_vectors(second, "trunk")
    assert stage_vectors(first, "embedding") != stage_vectors(second, "embedding")


def test_a_model_without_a_trunk_says_so(tmp_path: Path) -> None:
    episode = Episode(video_id="x", video=tmp_path / "not looked at.mp4")
    entry = Entry(entry_id="x", word=Word("x"), video=episode.video)
    with pytest.raises(InputError, match="colour: has no trunk whose vectors could be used: name a model that is"):
        embed_video(episode, ColourEmbedder(), options=ExtractOptions(stage="trunk"))
    with pytest.raises(InputError, match="colour: has no trunk"):
        embed_entry(entry, ColourEmbedder(), EntryOptions(stage="trunk"))


def test_the_head_of_an_entry_s_trunk_vector_is_its_embedding(tmp_path: Path) -> None:
    entry = Entry(entry_id="a", word=Word("apple"), video=write_noise(tmp_path / "apple.mp4", 56))
    model = embedder_of(tiny_i3d(), tiny_head())
    trunk, whole = (embed_entry(entry, model, EntryOptions(isolated=False, stage=s)) for s in ("trunk", "embedding"))
    assert trunk.shape == (model.trunk_dim,)
    np.testing.assert_array_equal(model.head_vectors(trunk[None])[0], whole)


class Twin(ColourEmbedder):
    def of_dictionary(self) -> ColourEmbedder:
        return Inverted()


class Inverted(ColourEmbedder):
    def embed(self, clips: np.ndarray) -> np.ndarray:
        return super().embed(255 - clips)


def test_dictionary_clips_are_seen_by_the_twin_for_dictionaries(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "red.mp4", width=64, height=64) as writer:
        for number in range(20):
            writer.write(np.full((64, 64, 3), (255, 0, 0), np.uint8), number * FRAME_MS)
    entry = Entry(entry_id="red", word=Word("red"), video=tmp_path / "red.mp4")
    here = EntryOptions(isolated=False)
    assert embed_entry(entry, ColourEmbedder(), here) == pytest.approx([1, 0, 0], abs=0.05)
    assert embed_entry(entry, Twin(), here) == pytest.approx([0, 2**-0.5, 2**-0.5], abs=0.05)
    plain = ColourEmbedder()
    assert for_dictionary(plain) is plain


@pytest.mark.parametrize("n_frames", [1, 15, 16, 40])
@pytest.mark.parametrize("stride", [1, 3])
def test_landmarks_have_the_windows_of_the_grid(n_frames: int, stride: int) -> None:
    torch.manual_seed(0)
    encoder = LandmarkEncoder()
    model = LandmarkEmbedder(encoder, tiny_head(encoder.embedding_dim), name="landmarks")
    points = np.random.default_rng(0).random((n_frames, LANDMARK_DIM), np.float32)
    track = LandmarkTrack("v", TimeAxis(np.arange(n_frames) * 40.0), points)
    grid = WindowGrid(n_frames, stride=stride)
    clips = points[np.minimum(grid.starts()[:, None] + np.arange(CLIP_LENGTH), n_frames - 1)]
    for stage, expected in (("trunk", model.trunk_vectors(clips)), ("embedding", model.embed(clips))):
        made = embed_landmarks(track, model, stride=stride, stage=stage)
        np.testing.assert_allclose(made.vectors, expected, rtol=1e-4, atol=1e-5)
        assert (made.grid, made.axis) == (grid, track.axis)
        assert made.unit_rows == (stage == "embedding")
        assert made.fingerprint == stage_vectors(model, stage).fingerprint
