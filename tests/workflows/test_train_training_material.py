from __future__ import annotations

import csv
import dataclasses
import json
import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.recordings import Dictionary, Entry, Rights, SignerBox, Word
from signspot.domain.tracks import FrameShape
from signspot.embedding.model import Embeds, Reading, trunk_of
from signspot.embedding.pictures import ClipNetwork, ColourModel, PictureModel
from signspot.errors import DictionaryError, InputError, OutputExists
from signspot.learning.batches import BatchOptions, BatchSource
from signspot.learning.material import Material, read_synonyms
from signspot.media.reader import VideoReader
from signspot.media.video import media_sha256
from signspot.stores.corpus import CorpusSource, read_corpus
from signspot.stores.dictionary import read_dictionary
from signspot.stores.features import TrackKey, open_store
from signspot.workflows.train import (
    MaterialFiles,
    MaterialOptions,
    MaterialSources,
    make_training_material,
    write_training_material,
)
from tests.models.networks import embedder_of, tiny_head, tiny_i3d
from tests.text.wordnet_folder import write_wordnet
from tests.toy_world import ToyWorld

SIDE = 32


class Mosaic:
    """A model of two stages that anyone can follow: 16 patches of colour, averaged over the clip, then made a unit."""

    name, fingerprint, trunk_fingerprint = "mosaic", "mosaic and unit", "mosaic"
    dim = trunk_dim = 48
    threshold, backend = 0.5, "numpy"
    frame_shape = FrameShape(SIDE, SIDE)

    def trunk_vectors(self, clips: np.ndarray) -> np.ndarray:
        patches = clips.reshape(len(clips), 16, 4, SIDE // 4, 4, SIDE // 4, 3)
        return patches.mean(axis=(1, 3, 5), dtype=np.float32).reshape(len(clips), 48) / 64

    def head_vectors(self, vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def of_dictionary(self) -> Mosaic:
        return self


def trunk(network: ClipNetwork) -> Embeds:
    return trunk_of(PictureModel(network))


def reading(place: Place, **options: object) -> Reading:
    return Reading(isolated=False, store=place.store, **options)


@pytest.fixture(scope="module")
def model() -> Mosaic:
    return Mosaic()


@dataclasses.dataclass(frozen=True)
class Place:
    world: ToyWorld
    corpus: Path
    store: Path


@pytest.fixture(scope="module")
def place(toy_world: ToyWorld, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The broadcast of the toy world with every sign annotated where it ends."""
    root = tmp_path_factory.mktemp("material")
    corpus = root / "corpus"
    corpus.mkdir()
    shutil.copy(toy_world.broadcast, corpus)
    shutil.copy(toy_world.subtitles, corpus)
    with (corpus / "annotations.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("video", "word", "time_ms", "confidence", "source"))
        rows.writerows(("broadcast", one.sign.word, one.span_ms.stop, 0.9, "mouthing") for one in toy_world.truth)
    return Place(toy_world, corpus, root / "store")


@pytest.fixture(scope="module")
def written(place: Place, model: Mosaic, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("written") / "train"
    files = MaterialFiles(corpus=place.corpus, dictionary=place.world.dictionary, out=out)
    made = write_training_material(files, trunk(model), MaterialOptions(reading=reading(place)))
    assert made.left_out == ()
    assert made.lines()[0].startswith("8 labelled passages of 1 videos, 4 words; 6 dictionary entries of 5 words")
    return out


def made_from(place: Place, model: Mosaic, corpus: CorpusSource, **options: object) -> Material:
    dictionary = read_dictionary(place.world.dictionary).dictionary
    sources = MaterialSources(corpus=corpus, dictionary=dictionary, trunk=trunk(model))
    material = make_training_material(sources, MaterialOptions(reading=reading(place), **options)).material
    return dataclasses.replace(material, tracks=tuple(np.array(track) for track in material.tracks))


def test_labels_lie_where_the_signs_end(written: Path, place: Place, model: Mosaic) -> None:
    material = Material.read(written)
    columns, words = material.passages, material.vocabulary.words
    truth = [(one.sign.word, one.span_ms.stop // 40) for one in place.world.truth]
    labels = [(words[label], int(frame)) for label, frame in zip(columns.label, columns.label_frame, strict=True)]
    assert labels == truth
    assert columns.confidence.tolist() == pytest.approx([0.9] * 8)
    assert material.fingerprint == model.trunk_fingerprint
    spoken = [columns.words[columns.word_offsets[p] : columns.word_offsets[p + 1]] for p in range(8)]
    assert all(label in said for label, said in zip(columns.label, spoken, strict=True))


def test_rows_and_entries_are_vectors_of_the_trunk(written: Path, place: Place, model: Mosaic) -> None:
    material = Material.read(written)
    assert material.tracks[0].shape[1] == material.entry_vectors.shape[1] == model.trunk_dim
    with VideoReader(place.world.broadcast, shape=model.frame_shape, isolated=False) as reader:
        frames = np.stack([frame.pixels for frame in reader])
    for window in (0, 100, len(frames) - 16):
        by_hand = model.trunk_vectors(frames[None, window : window + 16])[0]
        assert np.array_equal(material.tracks[0][window], by_hand.astype(np.float16))
    with open_store(place.store) as store:
        rows = store.open_rows(TrackKey(media_sha256(place.world.broadcast), model.trunk_fingerprint))
        assert rows is not None
        assert np.array_equal(material.tracks[0], rows)


def test_the_rows_of_a_model_for_boxes_are_of_the_box(place: Place) -> None:
    class Boxed(Mosaic):
        trunk_fingerprint = "boxed mosaic"
        frame_shape = FrameShape(SIDE, SIDE, keep_aspect=True, signer_box=True)

    model, box, corpus = Boxed(), SignerBox(0.5, 0.5, 1, 1), read_corpus(place.corpus)
    boxed = dataclasses.replace(corpus, episodes=tuple(dataclasses.replace(e, box=box) for e in corpus.episodes))
    with VideoReader(place.world.broadcast, shape=model.frame_shape, box=box, isolated=False) as reader:
        frames = np.stack([frame.pixels for frame in reader])
    of_box, of_all = made_from(place, model, boxed), made_from(place, model, corpus)
    assert np.array_equal(of_box.tracks[0][100], model.trunk_vectors(frames[None, 100:116])[0].astype(np.float16))
    assert not np.array_equal(of_box.tracks[0], of_all.tracks[0])
    assert of_box.fingerprint == of_all.fingerprint == model.trunk_fingerprint


def test_minibatches_come_from_the_written_folder(written: Path) -> None:
    source = BatchSource(Material.read(written), BatchOptions(), seed=0)
    batch = source.minibatch(0, 0)
    assert source.report.n_used == 8
    assert batch.n_items == 4
    assert bool(torch.isfinite(batch.segments).all())


def test_sign_synonyms_are_kept_and_english_ones_on_request(
    written: Path, place: Place, model: Mosaic, tmp_path: Path
) -> None:
    assert read_synonyms(written, "sign").pairs == frozenset()
    pytest.importorskip("nltk", reason="the extra wordnet is not installed")
    wordnet = write_wordnet(tmp_path / "wordnet", [("n", ("tree", "garden"))])
    files = MaterialFiles(corpus=place.corpus, dictionary=place.world.dictionary, out=tmp_path / "m", wordnet=wordnet)
    write_training_material(files, trunk(model), MaterialOptions(reading=reading(place)))
    assert read_synonyms(tmp_path / "m", "english").pairs == {("garden", "tree"), ("tree", "garden")}


def test_without_a_store_the_material_is_the_same(place: Place, model: Mosaic, written: Path) -> None:
    dictionary = read_dictionary(place.world.dictionary).dictionary
    sources = MaterialSources(corpus=read_corpus(place.corpus), dictionary=dictionary, trunk=trunk(model))
    options = MaterialOptions(reading=Reading(isolated=False))
    loose, kept = make_training_material(sources, options).material, Material.read(written)
    assert np.array_equal(loose.tracks[0], kept.tracks[0])
    assert np.array_equal(loose.entry_vectors, kept.entry_vectors)


def test_what_the_store_keeps_is_not_computed_again(place: Place, written: Path, tmp_path: Path) -> None:
    class Counting(Mosaic):
        n_calls = 0

        def trunk_vectors(self, clips: np.ndarray) -> np.ndarray:
            type(self).n_calls += 1
            return super().trunk_vectors(clips)

    files = MaterialFiles(corpus=place.corpus, dictionary=place.world.dictionary, out=tmp_path / "m")
    write_training_material(files, trunk(Counting()), MaterialOptions(reading=reading(place)))
    assert Counting.n_calls == 0
    assert np.array_equal(Material.read(tmp_path / "m").entry_vectors, Material.read(written).entry_vectors)
    other = MaterialOptions(reading=reading(place, seed=1))
    write_training_material(dataclasses.replace(files, out=tmp_path / "other"), trunk(Counting()), other)
    assert Counting.n_calls == 6  # other draws of the clips; the windows of the video are the same


def test_rights_that_say_nothing_are_told_once(place: Place, model: Mosaic) -> None:
    corpus = read_corpus(place.corpus)
    allowed = dataclasses.replace(corpus.episodes[0], rights=Rights(may_train=True))
    dictionary = read_dictionary(place.world.dictionary).dictionary
    sources, options = MaterialSources(corpus=corpus, dictionary=dictionary, trunk=trunk(model)), reading(place)
    unknown = make_training_material(sources, MaterialOptions(reading=options)).lines()
    known = dataclasses.replace(sources, corpus=dataclasses.replace(corpus, episodes=(allowed,)))
    partly = make_training_material(known, MaterialOptions(reading=options)).lines()
    said = "recordings do not say whether they may be used for training"
    assert [line.split(said)[0] for line in unknown if said in line] == ["7 of 7 "]
    assert [line.split(said)[0] for line in partly if said in line] == ["6 of 7 "]


def test_problems_of_one_kind_take_one_line(place: Place, model: Mosaic, tmp_path: Path) -> None:
    dictionary = read_dictionary(place.world.dictionary).dictionary
    bare = (Entry(entry_id=f"bare {n}", word=Word("apple")) for n in range(3))
    forbidden = Entry(entry_id="private", word=Word("tree"), rights=Rights(may_train=False))
    more = Dictionary.of("more", (*dictionary, *bare, forbidden))
    sources = MaterialSources(corpus=read_corpus(place.corpus), dictionary=more, trunk=trunk(model))
    made = make_training_material(sources, MaterialOptions(reading=reading(place)))
    assert len(made.material.entry_ids) == 6
    assert [line for line in made.lines() if "bare" in line or "private" in line] == [
        "3 times such as bare 0: has neither a clip nor a stored vector: add the clip or remove it",
        "private: may not be used for training: it is left out",
    ]


def test_what_cannot_be_used_is_counted(place: Place, model: Mosaic, tmp_path: Path) -> None:
    corpus = read_corpus(place.corpus)
    (episode,) = corpus.episodes
    mark = corpus.annotations[0]
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    rights = dataclasses.replace(episode.rights, may_train=False)
    expired = dataclasses.replace(episode.rights, expires=date(2020, 1, 1))
    more = (
        dataclasses.replace(episode, video_id="silent", subtitles=None),
        dataclasses.replace(episode, video_id="forbidden", rights=rights),
        dataclasses.replace(episode, video_id="expired", rights=expired),
        dataclasses.replace(episode, video_id="broken", video=broken),
        dataclasses.replace(episode, video_id="unmarked"),
    )
    marks = (
        *corpus.annotations,
        *(dataclasses.replace(mark, video_id=name) for name in ("silent", "forbidden", "expired", "broken")),
        dataclasses.replace(mark, word=Word("pear")),
        dataclasses.replace(mark, time_ms=10**8),
    )
    dictionary = read_dictionary(place.world.dictionary).dictionary
    corpus = CorpusSource((episode, *more), marks)
    sources = MaterialSources(corpus=corpus, dictionary=dictionary, trunk=trunk(model))
    made = make_training_material(sources, MaterialOptions(reading=reading(place)))
    assert len(made.material.passages) == 8
    assert dict(made.left_out) == {
        "its video has no subtitles": 1,
        "its video may not be used for training": 2,
        "its video or its subtitles cannot be used": 1,
        "the dictionary has no entry for the word": 1,
        "it lies after the end of its video": 1,
    }
    assert made.n_annotations == 14
    assert any("broken.mp4" in line for line in made.lines())


def test_only_the_videos_of_a_split_are_used(place: Place, model: Mosaic) -> None:
    corpus = read_corpus(place.corpus)
    named = CorpusSource((dataclasses.replace(corpus.episodes[0], split="train"),), corpus.annotations)
    assert len(made_from(place, model, named, split="train").passages) == 8
    with pytest.raises(InputError, match=r"no labelled passage \(8: its video is not in the split 'test'\)"):
        made_from(place, model, named, split="test")


def test_a_corpus_without_annotations_is_refused(place: Place, model: Mosaic) -> None:
    episodes = read_corpus(place.corpus).episodes
    with pytest.raises(InputError, match=r"no labelled passage \(it has no annotations\)"):
        made_from(place, model, CorpusSource(episodes))


def test_a_model_without_a_trunk_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="has no trunk whose vectors could be used"):
        trunk_of(ColourModel())


def test_an_existing_output_is_refused_before_anything_is_read(written: Path, model: Mosaic) -> None:
    files = MaterialFiles(corpus=Path("nowhere"), dictionary=Path("nowhere"), out=written)
    with pytest.raises(OutputExists, match="exists already"):
        write_training_material(files, trunk(model))


def test_entries_that_cannot_be_read_are_left_out_and_named(place: Place, model: Mosaic, tmp_path: Path) -> None:
    folder = tmp_path / "dictionary"
    shutil.copytree(place.world.dictionary, folder)
    (folder / "apple" / "apple_3.mp4").write_bytes(b"no video")
    other = dataclasses.replace(place, world=dataclasses.replace(place.world, dictionary=folder))
    material = made_from(other, model, read_corpus(place.corpus))
    assert len(material.entry_ids) == 6
    for clip in folder.rglob("*.mp4"):
        clip.write_bytes(b"no video")
    with pytest.raises(DictionaryError, match="none of its 7 entries can be used; the first problem"):
        made_from(other, model, read_corpus(place.corpus))


def test_a_shard_that_is_damaged_or_gone_meanwhile_is_a_typed_error(
    place: Place, model: Mosaic, written: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "store"
    shutil.copytree(place.store, copy)
    dictionary = read_dictionary(place.world.dictionary).dictionary
    sources = MaterialSources(corpus=read_corpus(place.corpus), dictionary=dictionary, trunk=trunk(model))
    options = MaterialOptions(reading=Reading(isolated=False, store=copy))
    material = make_training_material(sources, options).material
    for shard in copy.glob("shards/*.safetensors"):
        shard.unlink()
    with pytest.raises(InputError, match="the stored vectors of this video are gone or damaged"):
        BatchSource(material, BatchOptions(), seed=0)


def test_the_written_folder_names_the_trunk(written: Path, model: Mosaic) -> None:
    assert json.loads((written / "material.json").read_text())["fingerprint"] == model.trunk_fingerprint


@pytest.mark.soak
def test_a_network_gives_material_too(place: Place, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    network = embedder_of(tiny_i3d(side=SIDE), tiny_head(), side=SIDE)
    files = MaterialFiles(corpus=place.corpus, dictionary=place.world.dictionary, out=tmp_path / "m")
    write_training_material(files, trunk(network), MaterialOptions(reading=reading(place)))
    material = Material.read(tmp_path / "m")
    assert material.fingerprint == network.trunk_fingerprint
    assert BatchSource(material, BatchOptions(), seed=0).minibatch(0, 0).segments.shape[1] == network.trunk_dim
