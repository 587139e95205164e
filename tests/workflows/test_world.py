from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.time import FRAME_MS
from signspot.errors import InputError
from signspot.formats.pose import landmarks_beside, read_pose
from signspot.learning.material import WordSplit
from signspot.media.reader import VideoReader
from signspot.stores.corpus import read_corpus, read_truth
from signspot.stores.dictionary import read_dictionary
from signspot.text.subtitles import read_subtitles
from signspot.workflows.world import WorldFolder, WorldRequest, make_world, measure_world, preview_world
from signspot.world.settings import PRESETS
from signspot.world.simulation import World

TINY = replace(
    PRESETS["demo"], name="tiny", n_words=6, n_annotated=6, n_test_words=2, train_episodes=1, test_episodes=1,
    subtitles_per_episode=1, entries_per_annotated_word=1.0,
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def tiny_preset() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(PRESETS, "tiny", TINY)
        yield


@pytest.fixture(scope="module")
def files(tiny_preset: None, tmp_path_factory: pytest.TempPathFactory) -> WorldFolder:
    """A world that tests only look at."""
    return made(tmp_path_factory.mktemp("world") / "w")


def made(folder: Path, seed: int = 0, workers: int = 2) -> WorldFolder:
    return make_world(WorldRequest(folder=folder, preset="tiny", seed=seed, side=64, workers=workers))


def checksums(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_second_language_has_a_dictionary_of_its_own(files: WorldFolder, tmp_path: Path) -> None:
    request = WorldRequest(folder=tmp_path / "w", preset="tiny", side=64, workers=2, other_language=True)
    both = make_world(request)
    assert checksums(both.dictionary) == checksums(files.dictionary) and not files.other_dictionary.exists()
    other = read_dictionary(both.other_dictionary)
    assert not other.problems and {entry.language for entry in other.dictionary} == {"qab"}
    assert set(other.dictionary.by_word) == set(read_dictionary(files.dictionary).dictionary.by_word)
    assert all(entry.video and landmarks_beside(entry.video) for entry in other.dictionary)


def test_a_world_is_an_ordinary_corpus_and_dictionary(files: WorldFolder) -> None:
    world = World.of(TINY, 0)
    dictionary, corpus = read_dictionary(files.dictionary), read_corpus(files.corpus)
    assert not dictionary.problems and not corpus.problems
    assert {entry.entry_id for entry in dictionary.dictionary} == {e.entry_id for e in world.dictionary_entries()}
    assert [(episode.video_id, episode.split) for episode in corpus.episodes] == [
        ("train-0000", "train"),
        ("test-0000", "test"),
    ]
    for listed in corpus.episodes:
        performed = world.perform_episode(listed.video_id)
        with VideoReader(listed.video, isolated=False) as reader:
            assert sum(1 for _ in reader) == len(performed.performance)
        assert listed.subtitles is not None
        cues = read_subtitles(listed.subtitles).subtitles
        assert [(cue.span_ms, cue.text) for cue in cues] == [(s.span_ms, s.text) for s in performed.subtitles]
        marks = [mark for mark in corpus.annotations if mark.video_id == listed.video_id]
        assert [(m.word, m.frame) for m in marks] == [(a.word, a.frame) for a in performed.annotations]
    split = WordSplit.read(files.split)
    assert set(split.test) == set(world.test_words)
    assert not set(split.train) & set(split.test)


def test_landmarks_lie_beside_every_video_where_the_signer_is(files: WorldFolder) -> None:
    world = World.of(TINY, 0)
    for entry in world.dictionary_entries():
        performance = world.perform_entry(entry)
        read = read_pose(files.dictionary / "clips" / f"{entry.entry_id}.pose")
        assert np.allclose(read.track.points, world.detected(performance, entry.entry_id), atol=1e-5)
        assert len(read.track.axis) == len(performance) and read.aspect == 1
    for listed in read_corpus(files.corpus).episodes:
        beside = landmarks_beside(listed.video)
        assert beside is not None and listed.box is not None
        pose = read_pose(beside).track.points[:, 4 * 11 : 4 * 13].reshape(-1, 2, 4)  # the shoulders
        assert ((pose[..., 0] > listed.box.left) & (pose[..., 0] < listed.box.right)).all()
        clean = world.perform_episode(listed.video_id).performance.points[:, 4 * 11 : 4 * 13].reshape(-1, 2, 4)
        assert np.abs(pose[..., 0] - (0.24 + 0.9 * clean[..., 0])).max() < 0.1  # as in render_scene.Broadcast


def test_the_truth_names_every_sign(files: WorldFolder) -> None:
    truth = read_truth(files.truth)
    performed = World.of(TINY, 0).perform_episode("train-0000")
    rows = [row for row in truth if row.video_id == "train-0000"]
    assert [(r.start_frame, r.stop_frame, r.word) for r in rows] == [
        (token.span.start, token.span.stop, token.word) for token in performed.truth
    ]
    assert rows[-1].stop_frame * FRAME_MS <= len(performed.performance) * FRAME_MS


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(files: WorldFolder, tmp_path: Path) -> None:
    first, again = checksums(files.folder), checksums(made(tmp_path / "b", workers=1).folder)
    assert first == again
    other = checksums(made(tmp_path / "c", seed=1, workers=1).folder)
    assert first["corpus/episodes/train-0000.mp4"] != other["corpus/episodes/train-0000.mp4"]


def test_making_it_again_continues_where_it_was_cut_off(files: WorldFolder, tmp_path: Path) -> None:
    whole = checksums(files.folder)
    files = WorldFolder(shutil.copytree(files.folder, tmp_path / "w"))
    (files.corpus / "episodes" / "train-0000.mp4").unlink()
    files.truth.unlink()
    (files.corpus / "episodes" / "test-0000.pose").unlink()
    kept = files.corpus / "episodes" / "test-0000.mp4"
    before = kept.stat().st_mtime_ns
    made(tmp_path / "w", workers=1)
    assert checksums(files.folder) == whole
    assert kept.stat().st_mtime_ns == before


def test_a_folder_of_something_else_is_left_alone(files: WorldFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is there already and holds no world"):
        made(tmp_path / "mine")
    with pytest.raises(InputError, match="holds another world"):
        made(files.folder, seed=1)
    with pytest.raises(InputError, match="is not a preset of the world: choose one of demo, small, paper"):
        make_world(WorldRequest(folder=tmp_path / "x", preset="huge"))


def test_pictures_of_a_world_can_be_looked_at(tmp_path: Path) -> None:
    paths = preview_world(tmp_path / "pictures", "tiny", 0)
    assert {path.suffix for path in paths} == {".png", ".gif"}
    assert all(path.stat().st_size > 1000 for path in paths)


def test_the_measures_of_a_world_can_be_printed() -> None:
    measured = measure_world("demo", 0)
    assert all(row.deviation <= 0.15 for row in measured.statistics)
    assert measured.chance_mean_ap < measured.mean_ap < 0.15
