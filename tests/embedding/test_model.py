from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import Entry, Episode, Word
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import CLIP_LENGTH, Pixels
from signspot.embedding.model import Embeds, Model, Reading, Views, trunk_of
from signspot.embedding.pictures import Clips, ColourModel, PictureModel, _MeanColour, embed_video
from signspot.embedding.zoo import load_model
from signspot.errors import InputError, Notice
from signspot.media.writer import VideoWriter
from tests.embedding.test_pictures_extract import one_thread, pixels_of, write_noise
from tests.models.networks import embedder_of, tiny_head, tiny_i3d, tiny_s3d

__all__ = ["one_thread"]

HERE = Reading(isolated=False)


def test_what_is_noticed_is_collected_and_passed_on_but_not_to_other_processes() -> None:
    heard: list[Notice] = []
    notice = Notice("clip.mp4", "is dark", severity="note")
    reading, said = replace(HERE, notify=heard.append, progress=lambda step, done, total: None).collecting()
    reading.notify(notice)
    assert heard == said == [notice]
    elsewhere = pickle.loads(pickle.dumps(reading.quiet()))
    elsewhere.notify(notice)
    assert elsewhere == HERE and len(said) == 1


@pytest.mark.parametrize("trunk", [tiny_i3d, tiny_s3d])
@pytest.mark.parametrize("stride", [1, 3])
def test_the_trunk_alone_gives_its_own_vectors(tmp_path: Path, trunk: type, stride: int) -> None:
    episode = Episode(video_id="noise", video=write_noise(tmp_path / "noise.mp4", 30))
    model = embedder_of(trunk(), tiny_head())
    track = embed_video(episode, model, Reading(stride=stride, isolated=False), stage="trunk").track
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
    trunk = embed_video(episode, model, HERE, stage="trunk").track
    whole = embed_video(episode, model, HERE).track
    made = PictureModel(model)._after_head(trunk)
    np.testing.assert_allclose(made.vectors, whole.vectors, atol=1e-6)
    assert (made.unit_rows, made.fingerprint) == (True, model.fingerprint)


def test_heads_of_one_trunk_share_its_fingerprint() -> None:
    first, second = PictureModel(embedder_of(tiny_i3d(), tiny_head())), PictureModel(embedder_of(tiny_i3d()))
    trunks = [trunk_of(model) for model in (first, second)]
    assert len({(trunk.fingerprint, trunk.dim, trunk.entries_name(HERE)) for trunk in trunks}) == 1
    assert (first.fingerprint, first.dim) != (second.fingerprint, second.dim)
    assert first.entries_name(HERE) != second.entries_name(HERE)


def test_a_model_without_a_trunk_says_so() -> None:
    assert ColourModel().trunk() is None
    with pytest.raises(InputError, match="colour: has no trunk whose vectors could be used: name a model that is"):
        trunk_of(ColourModel())


def test_the_head_of_an_entry_s_trunk_vector_is_its_embedding(tmp_path: Path) -> None:
    entry = Entry(entry_id="a", word=Word("apple"), video=write_noise(tmp_path / "apple.mp4", 56))
    model = PictureModel(embedder_of(tiny_i3d(), tiny_head()))
    means, whole = model._entry_means(entry, HERE), model.entry(entry, HERE)
    assert means.shape == (1, model.network.trunk_dim)
    np.testing.assert_array_equal(model.network.head_vectors(means), whole)
    rounded = trunk_of(model).entry(entry, HERE)
    np.testing.assert_array_equal(rounded, means.astype(np.float16).astype(np.float32))


def red_clip(folder: Path) -> Entry:
    with VideoWriter(folder / "red.mp4", width=64, height=64) as writer:
        for number in range(20):
            writer.write(np.full((64, 64, 3), (255, 0, 0), np.uint8), number * FRAME_MS)
    return Entry(entry_id="red", word=Word("red"), video=folder / "red.mp4")


class Twin(_MeanColour):
    def of_dictionary(self) -> _MeanColour:
        return Inverted()


class Inverted(_MeanColour):
    def trunk_vectors(self, clips: Clips) -> np.ndarray:
        return super().trunk_vectors(255 - clips)


def test_dictionary_clips_are_seen_by_the_twin_for_dictionaries(tmp_path: Path) -> None:
    entry = red_clip(tmp_path)
    assert ColourModel().entry(entry, HERE)[0] == pytest.approx([1, 0, 0], abs=0.05)
    assert PictureModel(Twin()).entry(entry, HERE)[0] == pytest.approx([0, 2**-0.5, 2**-0.5], abs=0.05)
    plain = embedder_of(tiny_i3d())
    assert plain.of_dictionary() is plain


def test_every_model_keeps_to_the_protocol() -> None:
    """What mypy checks of the names, and what a search relies on."""
    models: list[Model] = [ColourModel(), load_model("landmark-v1"), PictureModel(embedder_of(tiny_i3d()))]
    for model in models:
        trunk: Embeds | None = model.trunk()
        assert model.name and model.fingerprint and model.dim and model.backend and 0 <= model.threshold < 1
        assert len(model.words) == len(model.word_vectors) and model.word_vectors.shape[1] == model.dim
        assert trunk is None or trunk.fingerprint != model.fingerprint or model.name == "tiny"
        assert model.entries_name(HERE) != model.entries_name(HERE, Views(mirror=True))


# Other views of a query: mirrored, for signers of the other hand, and at other speeds


class Watching(_MeanColour):
    """Remembers the clips that it is shown."""

    def __init__(self) -> None:
        self.seen: list[Pixels] = []

    def trunk_vectors(self, clips: Clips) -> np.ndarray:
        assert min(clips.strides) > 0, "a view backwards is not what every backend takes"
        self.seen.append(clips)
        return super().trunk_vectors(clips)


def test_a_mirrored_view_sees_left_and_right_exchanged(tmp_path: Path) -> None:
    entry, network = Entry(entry_id="a", word=Word("a"), video=write_noise(tmp_path / "a.mp4", 30)), Watching()
    vectors = PictureModel(network).entry(entry, HERE, Views(mirror=True))
    plain, mirrored = network.seen
    assert vectors.shape == (2, 3) and not np.array_equal(plain, mirrored)
    np.testing.assert_array_equal(mirrored, plain[:, :, :, ::-1])


def test_there_is_one_view_for_every_pair_of_speed_and_side(tmp_path: Path) -> None:
    entry, network = Entry(entry_id="a", word=Word("a"), video=write_noise(tmp_path / "a.mp4", 56)), Watching()
    model, views = PictureModel(network), Views(mirror=True, rates=(0.7, 1.4, 1.0))
    vectors = model.entry(entry, HERE, views)
    assert len(vectors) == len(network.seen) == len(views) == 6
    assert len({clips.tobytes() for clips in network.seen}) == 6
    np.testing.assert_array_equal(vectors[:1], model.entry(entry, HERE))  # the plain one comes first
    assert len(Views()) == 1 and len(model.entry(entry, HERE, Views())) == 1


def test_vectors_of_other_views_or_another_draw_are_kept_apart() -> None:
    choices = [Views(), Views(mirror=True), Views(rates=(0.7,)), Views(mirror=True, rates=(0.7,)), Views(rates=(1.4,))]
    model = PictureModel(embedder_of(tiny_i3d(), tiny_head()))
    for embeds in (model, trunk_of(model)):
        names = [embeds.entries_name(Reading(seed=seed), views) for seed in (0, 1) for views in choices]
        assert len(set(names)) == len(names)
        assert embeds.entries_name(HERE, Views(rates=(1.0,))) == embeds.entries_name(HERE)


@pytest.mark.parametrize("rates", [(5.0,), (1.0, 0.2), (float("nan"),)])
def test_speeds_at_which_a_sign_is_no_longer_that_sign_are_refused(rates: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match=r"give speeds from 0\.25 to 4"):
        Views(rates=rates)


def test_a_reading_needs_a_stride() -> None:
    with pytest.raises(InputError, match="stride: 0 is out of range: use 1 or more frames"):
        Reading(stride=0)
