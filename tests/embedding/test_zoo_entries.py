from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Dictionary, Entry, Episode, Word
from signspot.domain.tracks import FloatArray
from signspot.embedding.landmarks import LandmarkModel
from signspot.embedding.model import Embeds, Reading, VideoTrack, Views, trunk_of
from signspot.embedding.pictures import ColourModel, PictureModel, frames_at_rate
from signspot.embedding.zoo import embed_entries, embed_gallery, embed_query, load_model
from signspot.errors import DictionaryError, InputError
from signspot.stores.dictionary import EntryFeatures, FeatureSet
from tests.embedding.test_landmarks_signs import random_model
from tests.embedding.test_pictures_extract import one_thread, write_noise
from tests.models.networks import embedder_of, tiny_head, tiny_i3d
from tests.workflows.signed import WORDS, write_dictionary

__all__ = ["one_thread"]

HERE = Reading(isolated=False)


@given(st.floats(0.25, 4))
def test_a_rate_keeps_the_middle_and_the_order(rate: float) -> None:
    frames = frames_at_rate(rate)
    assert len(frames) == 16
    assert (np.diff(frames) >= 0).all()
    assert frames.min() >= 0
    assert frames.max() <= 15
    assert abs(float(frames[7:9].mean()) - 7.5) <= 1


def test_rate_one_is_the_clip_itself() -> None:
    assert frames_at_rate(1.0).tolist() == list(range(16))


# Vectors of entries are computed once


class Counting:
    """A model, or its trunk, that counts the entries it is asked for."""

    def __init__(self, embeds: Embeds) -> None:
        self._embeds, self.asked = embeds, Counter[str]()
        self.name, self.fingerprint, self.dim = embeds.name, embeds.fingerprint, embeds.dim

    def track(self, episode: Episode, reading: Reading) -> VideoTrack:
        return self._embeds.track(episode, reading)

    def entry(self, entry: Entry, reading: Reading, views: Views = Views()) -> FloatArray:
        self.asked[entry.entry_id] += 1
        return self._embeds.entry(entry, reading, views)

    def entries_name(self, reading: Reading, views: Views = Views()) -> str:
        return self._embeds.entries_name(reading, views)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Entry, ...]:
    folder = tmp_path_factory.mktemp("noisy")
    videos = [write_noise(folder / f"{word}.mp4", 30 + number) for number, word in enumerate(("apple", "bread"))]
    return tuple(Entry(entry_id=video.stem, word=Word(video.stem), video=video) for video in videos)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Entry, ...]:
    folder = write_dictionary(tmp_path_factory.mktemp("signed") / "dictionary")
    return tuple(Entry(entry_id=word, word=Word(word), video=folder / f"{word}.pose") for word in WORDS)


def picture_model() -> PictureModel:
    return PictureModel(embedder_of(tiny_i3d(), tiny_head()))


@pytest.mark.parametrize("views", [Views(), Views(mirror=True), Views(mirror=True, rates=(0.7,))])
@pytest.mark.parametrize("kind", ["colour", "pictures", "picture trunk", "landmarks", "landmark trunk"])
def test_entries_are_read_from_the_store_the_second_time(
    tmp_path: Path, noisy: tuple[Entry, ...], signed: tuple[Entry, ...], kind: str, views: Views
) -> None:
    embeds: Embeds = ColourModel() if kind == "colour" else picture_model() if "picture" in kind else random_model()
    if "trunk" in kind:
        embeds = trunk_of(embeds)  # type: ignore[arg-type]
    entries = signed if "landmark" in kind else noisy
    kept, n_views = replace(HERE, store=tmp_path), 1 + views.mirror if "landmark" in kind else len(views)
    counting = Counting(embeds)
    without = embed_entries(entries, embeds, HERE, views)
    first, second = (embed_entries(entries, counting, kept, views) for _ in range(2))
    assert counting.asked == dict.fromkeys((entry.entry_id for entry in entries), 1)
    for made in (first, second):
        assert made.entries == entries and made.vectors.shape == (len(entries), n_views, embeds.dim)
        np.testing.assert_array_equal(made.vectors, without.vectors)
    embed_entries(entries, counting, kept, Views(rates=(1.4,)) if "landmark" not in kind else views)
    asked_again = 1 if "landmark" in kind else 2  # other views are other vectors, and a landmark model has no rates
    assert set(counting.asked.values()) == {asked_again}
    if "landmark" not in kind:
        embed_entries(entries, counting, replace(kept, seed=1), views)
        assert set(counting.asked.values()) == {3}


def test_a_clip_that_changed_is_computed_again(tmp_path: Path, signed: tuple[Entry, ...]) -> None:
    counting, kept = Counting(random_model()), replace(HERE, store=tmp_path / "store")
    copy = tmp_path / "bread.pose"
    copy.write_bytes(signed[0].video.read_bytes())  # type: ignore[union-attr]
    entry = replace(signed[0], video=copy)
    first = embed_entries([entry], counting, kept)
    copy.write_bytes(signed[1].video.read_bytes())  # type: ignore[union-attr]
    changed = embed_entries([entry], counting, kept)
    assert counting.asked["bread"] == 2 and not np.array_equal(first.vectors, changed.vectors)


def test_vectors_of_a_damaged_store_are_computed_again(tmp_path: Path, signed: tuple[Entry, ...]) -> None:
    counting, kept = Counting(random_model()), replace(HERE, store=tmp_path)
    first = embed_entries(signed, counting, kept)
    catalogue = sqlite3.connect(tmp_path / "catalogue.sqlite3")
    with catalogue:
        catalogue.execute("UPDATE entry_vector SET vector = zeroblob(length(vector))")
    catalogue.close()
    again = embed_entries(signed, counting, kept)
    assert set(counting.asked.values()) == {2}
    np.testing.assert_array_equal(first.vectors, again.vectors)


def test_entries_that_fail_are_noted_and_tried_again(tmp_path: Path, signed: tuple[Entry, ...]) -> None:
    gone = replace(signed[0], entry_id="gone", video=tmp_path / "gone.pose")
    counting = Counting(random_model())
    for _ in range(2):
        reading, said = replace(HERE, store=tmp_path).collecting()
        made = embed_entries([gone, *signed], counting, reading)
        assert made.entries == signed and [entry.entry_id for entry, _ in made.failures] == ["gone"]
        made.notify(reading)
        assert [str(one).startswith("left out of the dictionary: ") and "gone.pose" in one.what for one in said] == [
            True
        ]
    assert counting.asked["gone"] == 2


def test_progress_counts_all_entries_also_those_that_fail_or_are_known(
    tmp_path: Path, signed: tuple[Entry, ...]
) -> None:
    steps: list[tuple[str, float, float | None]] = []
    entries = [replace(signed[0], entry_id="gone", video=None), *signed]
    for _ in range(2):
        reading = replace(HERE, store=tmp_path, progress=lambda *step: steps.append(step))
        embed_entries(entries, random_model(), reading)
    read = [step for step in steps if step[0] == "reading the dictionary"]
    assert read == [("reading the dictionary", number, 5) for number in range(1, 6)] * 2


def test_a_query_has_a_row_for_every_view_of_every_entry(noisy: tuple[Entry, ...]) -> None:
    dictionary = Dictionary.of("d", [*noisy, replace(noisy[0], entry_id="apple2")])
    reading, said = HERE.collecting()
    query = embed_query([Word("apple")], dictionary, ColourModel(), reading, Views(mirror=True))
    (apple,) = query.words
    assert query.n_views == 2 and [entry.entry_id for entry in apple.entries] == ["apple", "apple", "apple2", "apple2"]
    assert apple.vectors.shape == (4, 3) and apple.fingerprint == ColourModel().fingerprint and said == []


def test_speeds_that_a_landmark_model_does_not_need_are_named(signed: tuple[Entry, ...]) -> None:
    model: LandmarkModel = random_model()
    reading, said = HERE.collecting()
    query = embed_query([Word("bread")], Dictionary.of("d", signed), model, reading, Views(rates=(0.7,)))
    assert query.n_views == 1 and "--rates changes nothing" in str(said[0]) and model.name in str(said[0])


def test_a_word_or_a_dictionary_without_a_usable_clip_says_why(signed: tuple[Entry, ...]) -> None:
    gone = Dictionary.of("d", [replace(entry, video=None) for entry in signed[:2]])
    with pytest.raises(DictionaryError, match="bread: none of its clips can be used: bread: has no clip"):
        embed_query([Word("bread")], gone, random_model(), HERE)
    with pytest.raises(DictionaryError, match="d: none of its clips can be read: left out of the dictionary: bread"):
        embed_gallery(gone, random_model(), HERE)


def test_a_gallery_has_the_plain_view_of_every_entry(signed: tuple[Entry, ...]) -> None:
    model = load_model("landmark-v1")
    reading, said = HERE.collecting()
    gallery = embed_gallery(Dictionary.of("d", signed), model, reading)
    assert gallery.entries == signed and said == []
    np.testing.assert_array_equal(gallery.vectors, [model.entry(entry, HERE)[0] for entry in signed])


def test_stored_vectors_go_through_the_head_and_are_named(tmp_path: Path) -> None:
    means = np.random.default_rng(0).random((2, 128), np.float32)
    features = EntryFeatures(("a", "b"), {"i3d": FeatureSet("somebody's trunk", means, np.array([True, False]))})
    features.write(tmp_path)
    a, b = (Entry(entry_id=name, word=Word("w"), features=tmp_path / "features.safetensors") for name in "ab")
    model = picture_model()
    reading, said = replace(HERE, store=tmp_path / "store").collecting()
    made = embed_entries([a, b], model, reading, Views(mirror=True))
    made.notify(reading)
    assert made.entries == (a,) and "b: has neither a clip nor a stored vector" in str(said[1])
    assert str(said[0]).startswith(f"{tmp_path.name}: stored vectors are used (somebody's trunk)")
    expected = model.network.head_vectors(means[:1]).repeat(2, axis=0)
    np.testing.assert_allclose(made.vectors[0], expected, atol=1e-6)  # rows of a batch differ in their last digits
    with pytest.raises(InputError, match="a: its stored vector has 128 numbers, which the model 'colour' cannot use"):
        embed_entries([a], ColourModel(), HERE)
