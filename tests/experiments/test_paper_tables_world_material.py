from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from experiments.lib.paper_tables import (
    episode_passages,
    make_world_material,
    world_split,
    world_synonyms,
    world_trunk_data,
)

from signspot.domain.recordings import Vocabulary
from signspot.domain.tracks import CLIP_LENGTH
from signspot.errors import InputError
from signspot.learning.config import TrunkRunConfig
from signspot.learning.material import Material, read_synonyms
from signspot.models.embedders import LandmarkEmbedder
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig
from signspot.world.settings import preset_named
from signspot.world.simulation import World

TINY = replace(
    preset_named("demo"),
    name="tiny",
    n_words=24,
    n_annotated=20,
    n_test_words=4,
    train_episodes=2,
    test_episodes=1,
    subtitles_per_episode=4,
)


def untold(step: str, done: float, total: float) -> None:
    pass


def tiny_trunk(embedding_dim: int = 8) -> LandmarkEmbedder:
    shape = LandmarkEncoderConfig(classes=2, width=8, heads=1, transformer_layers=0, embedding_dim=embedding_dim)
    return LandmarkEmbedder(LandmarkEncoder(shape), None, name="tiny")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other over tiny networks take minutes on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(TINY, 0)


@pytest.fixture(scope="module")
def trunk() -> LandmarkEmbedder:
    return tiny_trunk()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("material") / "train"


@pytest.fixture(scope="module")
def material(world: World, trunk: LandmarkEmbedder, folder: Path) -> Material:
    return make_world_material(world, "train", trunk, folder, untold)


def test_a_row_is_the_vector_of_the_window_that_starts_there(
    world: World, trunk: LandmarkEmbedder, material: Material
) -> None:
    name = world.episodes("train")[1]
    points = world.detected(world.perform_episode(name).performance, name)
    assert len(material.tracks[1]) == len(points) - CLIP_LENGTH + 1
    for start in (0, 33, len(points) - CLIP_LENGTH):
        expected = trunk.trunk_vectors(points[None, start : start + CLIP_LENGTH])[0]
        np.testing.assert_allclose(material.tracks[1][start], expected, rtol=2e-3, atol=1e-3)


def test_the_passages_are_those_of_the_episodes_with_their_labels(world: World, material: Material) -> None:
    episodes = [world.perform_episode(name) for name in world.episodes("train")]
    expected = [p for episode in episodes for p in episode_passages(episode, world.vocabulary)]
    columns = material.passages
    assert len(columns) == len(expected) > 4
    for place, passage in enumerate(expected):
        assert material.vocabulary.words[columns.label[place]] == passage.annotation.word
        assert columns.label_frame[place] == passage.annotation.frame
        assert columns.start[place] <= passage.annotation.frame < columns.stop[place]


def test_subtitles_are_read_as_the_words_they_were_written_with(world: World) -> None:
    episode = world.perform_episode("train-0000")
    told = {
        subtitle.text: set(words) for subtitle, words in zip(episode.subtitles, episode.subtitle_words, strict=True)
    }
    shown = {(p.span.start, frozenset(p.words)) for p in episode_passages(episode, world.vocabulary)}
    read = [words for _, words in shown]
    assert read and all(any(words >= mentioned for mentioned in told.values()) for words in read)


def test_every_entry_of_the_dictionary_has_a_vector_under_its_word(world: World, material: Material) -> None:
    entries = {entry.entry_id: entry.word for entry in world.dictionary_entries()}
    words = material.vocabulary.words
    assert {name: words[word] for name, word in zip(material.entry_ids, material.entry_word, strict=True)} == entries
    assert material.entry_vectors.shape == (len(entries), 8)


def test_the_material_is_read_the_second_time(
    world: World, trunk: LandmarkEmbedder, material: Material, folder: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = make_world_material(world, "train", trunk, folder, untold)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    np.testing.assert_array_equal(again.entry_vectors, material.entry_vectors)
    assert not folder.with_name("train-parts").exists()


def test_a_killed_extraction_goes_on_and_ends_with_the_same_bytes(
    world: World, trunk: LandmarkEmbedder, material: Material, folder: Path, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    def killed(step: str, done: float, total: float) -> None:
        if done == 1:
            raise Killed

    with pytest.raises(Killed):
        make_world_material(world, "train", trunk, tmp_path / "train", killed)
    first = tmp_path / "train-parts" / "train-0000.npy"
    made = first.stat().st_mtime_ns
    kept: list[int] = []
    make_world_material(world, "train", trunk, tmp_path / "train", lambda *_: kept.append(first.stat().st_mtime_ns))
    assert set(kept) == {made}
    assert (tmp_path / "train" / "rows.npy").read_bytes() == (folder / "rows.npy").read_bytes()


def test_vectors_of_two_trunks_are_never_mixed(world: World, tmp_path: Path) -> None:
    def killed(step: str, done: float, total: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_world_material(world, "test", tiny_trunk(), tmp_path / "test", killed)
    with pytest.raises(InputError, match="holds vectors of another trunk"):
        make_world_material(world, "test", tiny_trunk(4), tmp_path / "test", untold)


def test_training_and_test_words_have_none_in_common_and_are_all_annotated(world: World) -> None:
    split = world_split(world)
    assert not set(split.train) & set(split.test)
    assert split.words == frozenset(world.annotated_words)


def test_sign_synonyms_are_the_words_that_share_a_form(world: World, material: Material, folder: Path) -> None:
    forms: dict[str, set[str]] = {}
    for entry in world.dictionary_entries():
        forms.setdefault(entry.type_id, set()).add(entry.word)
    expected = {(a, b) for words in forms.values() for a in words for b in words if a != b}
    assert world_synonyms(world).pairs == expected == read_synonyms(folder, "sign").pairs


def test_clips_for_a_trunk_are_of_its_words_alone(world: World) -> None:
    words = Vocabulary.of(world_split(world).train)
    config = TrunkRunConfig(architecture="landmark", reinitialise_batch_norm=False)
    data = world_trunk_data(world, words, config, untold)
    annotated = [a for name in world.episodes("train") for a in world.perform_episode(name).annotations]
    assert data.continuous is not None and data.dictionary is not None
    labels = [words.words[place.label] for place in data.continuous.places]
    assert labels == [a.word for a in annotated if a.word in words]
    entries = [entry for entry in world.dictionary_entries() if entry.word in words]
    assert [place.name for place in data.dictionary.places] == [entry.entry_id for entry in entries]


def test_a_clip_lies_in_the_frames_before_its_annotation(world: World) -> None:
    words = world.annotated_words
    config = TrunkRunConfig(architecture="landmark", reinitialise_batch_norm=False)
    source = world_trunk_data(world, words, config, untold).continuous
    assert source is not None
    episode = world.perform_episode("train-0000")
    points, annotation = world.detected(episode.performance, "train-0000"), episode.annotations[0]
    clip = source.clip(0, np.random.default_rng(0))
    starts = [s for s in range(len(points) - 15) if np.array_equal(points[s : s + CLIP_LENGTH], clip)]
    assert len(starts) == 1 and annotation.frame - 20 <= starts[0] <= annotation.frame - CLIP_LENGTH


def test_material_written_is_material_read(material: Material, folder: Path) -> None:
    assert Material.read(folder).fingerprint == material.fingerprint
