from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from signspot.domain.recordings import Annotation
from signspot.errors import InputError
from signspot.text.words import find_words
from signspot.world.lexicon import OTHER_LANGUAGE
from signspot.world.measure import world_statistics
from signspot.world.settings import PRESETS, preset_named
from signspot.world.simulation import EpisodePerformance, World


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(preset_named("small"), 5)


@pytest.fixture(scope="module")
def episodes(world: World) -> list[EpisodePerformance]:
    return [world.perform_episode(episode_id) for episode_id in world.episodes("train")[:6]]


def digest(episode: EpisodePerformance) -> str:
    parts = (episode.performance.points.tobytes(), episode.performance.mouth.tobytes(),
             repr((episode.subtitles, episode.annotations, episode.truth)).encode())  # fmt: skip
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_one_episode_alone_is_the_same_as_among_all(world: World, episodes: list[EpisodePerformance]) -> None:
    alone = World.of(world.preset, 5).perform_episode("train-0003")
    assert digest(alone) == digest(episodes[3])
    assert len({episode.subtitle_words[:3] for episode in episodes}) == len(episodes)
    assert digest(World.of(world.preset, 6).perform_episode("train-0003")) != digest(alone)


def test_one_entry_is_performed_the_same_twice(world: World) -> None:
    entry = world.dictionary_entries()[17]
    one, again = world.perform_entry(entry), World.of(world.preset, 5).perform_entry(entry)
    assert one.points.tobytes() == again.points.tobytes()
    assert (world.detected(one, "x") == world.detected(again, "x")).all()


@pytest.mark.parametrize("name", ["demo", "small"])
def test_the_world_resembles_the_corpora_of_the_paper(name: str) -> None:
    for seed in range(2):
        for comparison in world_statistics(World.of(preset_named(name), seed)):
            assert comparison.deviation < 0.15, comparison


def test_every_word_has_one_to_ten_entries_that_show_all_its_variants(world: World) -> None:
    entries = world.dictionary_entries()
    counts = Counter(entry.word for entry in entries)
    assert set(counts) == set(world.vocabulary) and min(counts.values()) >= 1 and max(counts.values()) <= 10
    for word, senses in world.lexicon.senses.items():
        assert {entry.type_id for entry in entries if entry.word == word} == {sense.form_id for sense in senses}
    assert len({entry.entry_id for entry in entries + world.dictionary_entries(OTHER_LANGUAGE)}) > len(entries)


def test_dictionary_and_broadcast_signers_are_different_people(world: World) -> None:
    filmed = {world.perform_episode(world.episodes(s)[0]).performance.signer.signer_id for s in ("train", "test")}
    assert len(filmed) == 2
    assert not filmed & {entry.signer.signer_id for entry in world.dictionary_entries() if entry.signer}


def test_signs_are_in_order_and_do_not_overlap(episodes: list[EpisodePerformance]) -> None:
    for episode in episodes:
        for one, following in pairwise(episode.truth):
            assert one.span.stop <= following.span.start
        assert episode.truth[-1].span.stop <= len(episode.performance)
        assert all(5 <= len(token.span) <= 13 for token in episode.truth)


def test_subtitles_do_not_overlap_and_say_their_words(world: World, episodes: list[EpisodePerformance]) -> None:
    vocabulary = world.vocabulary
    for episode in episodes[:2]:
        for one, following in pairwise(episode.subtitles):
            assert one.span_ms.stop <= following.span_ms.start
        for subtitle, words in zip(episode.subtitles, episode.subtitle_words, strict=True):
            assert tuple(mention.word for mention in find_words(subtitle.text, vocabulary)) == words


def test_some_words_are_never_signed_and_some_signs_never_subtitled(episodes: list[EpisodePerformance]) -> None:
    said = sum(len(words) for episode in episodes for words in episode.subtitle_words)
    signed = sum(token.subtitle is not None for episode in episodes for token in episode.truth)
    extra = sum(token.subtitle is None for episode in episodes for token in episode.truth)
    assert 0.6 < signed / said < 0.85
    assert 0.05 < extra / (signed + extra) < 0.25


def test_signs_follow_another_order_than_the_subtitle(episodes: list[EpisodePerformance]) -> None:
    swapped = total = 0
    for episode in episodes:
        for number, words in enumerate(episode.subtitle_words):
            places = [words.index(t.word) for t in episode.truth if t.subtitle == number]
            swapped += sum(a > b for a, b in pairwise(places))
            total += max(0, len(places) - 1)
    assert 0.1 < swapped / total < 0.45


def is_right(annotation: Annotation, episode: EpisodePerformance) -> bool:
    near = [t for t in episode.truth if abs(t.span.stop - 1 - annotation.frame) <= 8]
    return any(token.word == annotation.word for token in near)


def test_annotations_err_less_the_more_confident_they_are(world: World) -> None:
    marks = [
        (annotation.confidence, is_right(annotation, episode))
        for episode in map(world.perform_episode, world.episodes("train")[:30])
        for annotation in episode.annotations
    ]
    confidence, right = np.array(marks).T
    assert confidence.min() >= 0.5 and confidence.max() <= 1
    assert (confidence >= 0.9).mean() == pytest.approx(0.135, abs=0.04)  # Paper App. B.6
    sure, unsure = right[confidence >= 0.8].mean(), right[confidence < 0.65].mean()
    assert sure > 0.88 and sure > unsure + 0.05


def test_a_right_annotation_marks_the_end_of_its_sign(episodes: list[EpisodePerformance]) -> None:
    late = [
        min((a.frame - (t.span.stop - 1) for t in episode.truth if t.word == a.word), key=abs, default=99)
        for episode in episodes
        for a in episode.annotations
    ]
    assert np.median(np.abs(late)) <= 2


def test_test_passages_have_one_confident_annotation_of_a_test_word(world: World) -> None:
    episode = world.perform_episode("test-0001")
    passages = episode.passages
    assert len(passages) > 0.7 * len(episode.subtitles)
    for passage in passages:
        assert all(a.word in world.test_words and a.confidence >= 0.9 for a in passage.annotations)
        assert all(a.frame in passage.span for a in passage.annotations)


def test_the_presets_have_the_sizes_of_the_paper() -> None:
    paper = PRESETS["paper"]
    assert (paper.n_words, paper.n_annotated, paper.n_test_words) == (9283, 1064, 264)
    assert (paper.n_dictionary_signers, paper.n_train_signers + paper.n_test_signers) == (148, 40)


def test_the_dictionary_of_the_paper_preset_has_its_size() -> None:
    paper = World.of(preset_named("paper"), 0)
    entries = paper.dictionary_entries()
    assert len(entries) == pytest.approx(14210, rel=0.02)
    assert sum(entry.word in paper.annotated_words for entry in entries) == pytest.approx(2992, rel=0.02)
    assert len(set(paper.test_words)) == 264 and set(paper.test_words) < set(paper.annotated_words)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda world: world.perform_episode("train-9999"), "not in this world"),
        (lambda world: world.perform_episode("nonsense"), "not a split"),
        (lambda world: world.episodes("validation"), "choose train or test"),
        (lambda world: world.signer("nobody"), "not in this world"),
        (lambda world: world.perform_entry(replace(world.dictionary_entries()[0], type_id="x")), "not in this world"),
        (lambda world: World.of(world.preset, -1), "negative"),
        (lambda world: preset_named("huge"), "demo, small, paper"),
    ],
)
def test_asking_for_what_is_not_there_is_said(world: World, ask: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ask(world)  # type: ignore[operator]
