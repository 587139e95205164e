from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

import signspot
from signspot.domain.recordings import Annotation, Subtitle, Synonyms, Word
from signspot.domain.time import MillisSpan
from signspot.embedding.model import Reading
from signspot.errors import InputError
from signspot.evaluation.localisation import SignSpan
from signspot.formats.bobsl import ReleasedCorpus, _read_released
from signspot.formats.challenge import read_challenge
from signspot.spotting.peaks import spottings_at, window_near
from signspot.workflows.annotate import Annotated, KnownWords, annotate, explained, known_words
from signspot.workflows.outputs import Context, Output
from signspot.workflows.spot import SpotOptions, spot
from tests.toy_world import ToyWorld

TRUSTED = SpotOptions(reading=Reading(isolated=False))


@pytest.fixture(scope="module")
def dictionary(toy_world: ToyWorld) -> signspot.Dictionary:
    return signspot.open_dictionary(toy_world.dictionary)


@pytest.fixture(scope="module")
def subtitles(toy_world: ToyWorld) -> tuple[Subtitle, ...]:
    return tuple(signspot.read_subtitles(toy_world.subtitles).subtitles)


@pytest.fixture(scope="module")
def annotated(toy_world: ToyWorld, dictionary: signspot.Dictionary) -> Annotated:
    return annotate(
        toy_world.broadcast,
        subtitles=toy_world.subtitles,
        dictionary=dictionary,
        model=signspot.load_model("colour"),
        options=TRUSTED,
    )


def test_every_mention_that_is_signed_is_explained_by_its_sign_and_the_other_by_none(
    annotated: Annotated, toy_world: ToyWorld
) -> None:
    found = list(annotated)
    assert [(one.word, one.variant) for one in found] == [(t.sign.word, t.sign.variant) for t in toy_world.truth]
    for one, truth in zip(found, toy_world.truth, strict=True):
        assert truth.span_ms.start <= one.span_ms.start < one.span_ms.stop <= truth.span_ms.stop
        assert one.provenance.subtitle is not None
        assert one.provenance.subtitle.span_ms.overlaps(truth.span_ms)
    (unexplained,) = annotated.unexplained
    assert unexplained.word == "house"  # in a subtitle, and never signed
    assert annotated.n_explained == len(toy_world.truth)


def test_where_each_mention_would_be_is_said_found_or_not(annotated: Annotated) -> None:
    for mention in annotated.mentions:
        assert mention.likely is not None
        near = mention.subtitle.span_ms.padded(2000, 2000)
        assert near.start <= mention.likely.time_ms < near.stop
        if mention.spotting is None:
            assert mention.likely.cosine < annotated.answer.threshold
        else:
            assert mention.spotting.span_ms.start <= mention.likely.time_ms < mention.spotting.span_ms.stop


def test_the_other_words_of_a_subtitle_count_against_a_place(
    annotated: Annotated, dictionary: signspot.Dictionary
) -> None:
    """*apple* is made to resemble the sign of *tree* a little more than its own, as *eat* resembles *lunch*."""
    tree, apple = (next(one for one in annotated if one.word == word) for word in ("tree", "apple"))
    both = MillisSpan.of(min(tree.span_ms.start, apple.span_ms.start), max(tree.span_ms.stop, apple.span_ms.stop))
    words = {word.word: word for word in annotated.answer.words if word.word in (Word("tree"), Word("apple"))}
    curve = np.zeros(len(words[Word("apple")].similarity.grid), np.float32)
    for spotting, height in ((apple, 0.90), (tree, 0.92)):
        curve[window_near(words[Word("apple")].similarity.grid, spotting.frame)] = height
    similarity = words[Word("apple")].similarity
    confused = dataclasses.replace(similarity, entries=similarity.entries[:1], cosine=curve[:, None])
    found = spottings_at(confused, np.sort(np.argsort(curve)[-2:]), apple.provenance)
    words[Word("apple")] = dataclasses.replace(words[Word("apple")], similarity=confused, spottings=found)
    words[Word("tree")] = dataclasses.replace(words[Word("tree")], spottings=())  # nothing is in the way
    answer = dataclasses.replace(annotated.answer, words=tuple(words.values()), threshold=0.5)
    for text, place in (("An apple.", tree), ("An apple and a tree.", apple)):
        options = dataclasses.replace(TRUSTED, subtitles=(Subtitle(both, text),))
        mention = explained(answer, options, dictionary.vocabulary).mentions[0]
        assert mention.word == "apple" and mention.likely is not None
        assert mention.likely.time_ms == pytest.approx(similarity.axis.time_of(place.frame), abs=1)
        assert mention.spotting is not None and mention.spotting.frame == place.frame


def test_spans_do_not_overlap(annotated: Annotated) -> None:
    assert all(a.span_ms.stop <= b.span_ms.start for a, b in itertools.pairwise(annotated))


def test_one_sign_explains_one_mention(
    annotated: Annotated, toy_world: ToyWorld, dictionary: signspot.Dictionary
) -> None:
    tree = next(truth for truth in toy_world.truth if truth.sign.word == "tree")
    cues = tuple(Subtitle(tree.span_ms.padded(100 + n, 100), "A tree is a tree.") for n in range(2))
    options = dataclasses.replace(TRUSTED, subtitles=cues, padding_ms=300)
    answer = spot(
        toy_world.broadcast, ["tree"], dictionary=dictionary, model=signspot.load_model("colour"), options=options
    )
    again = explained(answer, options, dictionary.vocabulary)
    assert len(again.mentions) == 4
    assert again.n_explained == 1


def test_a_word_said_and_signed_twice_is_found_twice(annotated: Annotated, dictionary: signspot.Dictionary) -> None:
    """Both mentions like the better of the two signs best: the second one must have another to fall back on."""
    signed = [one for one in annotated if one.word == "garden"]
    cue = Subtitle(MillisSpan.of(signed[0].span_ms.start, signed[1].span_ms.stop), "A garden, and another garden.")
    options = dataclasses.replace(TRUSTED, subtitles=(cue,))
    again = explained(annotated.answer, options, dictionary.vocabulary)
    assert len(again.mentions) == again.n_explained == 2
    assert [one.frame for one in again] == [one.frame for one in signed]


def test_a_synonym_explains_a_mention_on_request(annotated: Annotated, dictionary: signspot.Dictionary) -> None:
    """The findings of a search are the same: only what may explain what differs."""
    synonyms = Synonyms.of([(Word("tree"), Word("apple"))])
    tree = next(one for one in annotated if one.word == "tree")
    cue = Subtitle(tree.span_ms.padded(500, 500), "An apple.")
    for asked, n_explained in ((None, 0), (synonyms, 1)):
        options = dataclasses.replace(TRUSTED, subtitles=(cue,), synonyms=asked)
        assert explained(annotated.answer, options, dictionary.vocabulary).n_explained == n_explained


def test_known_words_are_counted_by_the_tolerance_of_the_paper(annotated: Annotated, toy_world: ToyWorld) -> None:
    marks = [Annotation("broadcast", t.sign.word, t.span_ms.stop // 40 - 1) for t in toy_world.truth]
    assert known_words(annotated, marks, 2000) == KnownWords(len(marks), len(marks), len(marks), len(marks))
    late = [dataclasses.replace(mark, frame=mark.frame + 30) for mark in marks]
    missed = known_words(annotated, late, 2000)
    assert missed.n_localised == missed.n_right == 0
    assert missed.accuracy == 0
    assert known_words(annotated, [Annotation("broadcast", Word("water"), 10_000)], 2000).accuracy is None


def test_the_lag_is_measured_once_there_are_enough_signs(annotated: Annotated) -> None:
    assert len(annotated.lag.lags_ms) == annotated.n_explained
    assert annotated.lag.lag_ms == pytest.approx(
        -100, abs=200
    )  # a sign lies 700 ms after the start, 900 before the end


def test_a_corpus_goes_out_in_the_layouts_of_bobsl_and_the_challenge(
    annotated: Annotated, dictionary: signspot.Dictionary, tmp_path: Path
) -> None:
    spottings, words = tuple(annotated), dictionary.vocabulary
    context = Context(classes={word: words.id_of(word) for word in words})
    Output.BOBSL.write(spottings, tmp_path / "b.json", context)
    back = list(_read_released(ReleasedCorpus(annotations=tmp_path / "b.json", source="dictionary")))
    assert sorted((one.word, one.time_ms) for one in back) == sorted((s.word, s.span_ms.start) for s in spottings)
    Output.CHALLENGE.write(spottings, tmp_path / "c.json", context)
    spans = read_challenge(tmp_path / "c.json")
    assert spans == {"broadcast": tuple(SignSpan(words.id_of(s.word), s.span_ms) for s in spottings)}


def test_subtitles_of_another_programme_are_said_to_mention_nothing(
    toy_world: ToyWorld, dictionary: signspot.Dictionary
) -> None:
    cues = (Subtitle(MillisSpan.of(0, 3000), "Nothing of the kind"),)
    with pytest.raises(InputError, match="mention no word of the dictionary"):
        annotate(
            toy_world.broadcast,
            subtitles=cues,
            dictionary=dictionary,
            model=signspot.load_model("colour"),
            options=TRUSTED,
        )


def test_subtitles_that_cannot_be_used_are_said_with_the_answer(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, tmp_path: Path
) -> None:
    file = tmp_path / "news.vtt"
    file.write_text(f"{toy_world.subtitles.read_text().rstrip()}\n\n00:xx --> 00:01\nA tree.\n")
    model = signspot.load_model("colour")
    found = annotate(toy_world.broadcast, subtitles=file, dictionary=dictionary, model=model, options=TRUSTED)
    assert found.answer.warnings == ('news.vtt: cue 10: its time line cannot be read: left out: "A tree."',)


def test_subtitles_after_the_end_of_the_video_are_doubted(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, subtitles: tuple[Subtitle, ...]
) -> None:
    late = Subtitle(MillisSpan.of(600_000, 602_000), subtitles[0].text)

    def warnings(cues: tuple[Subtitle, ...]) -> tuple[str, ...]:
        model = signspot.load_model("colour")
        found = annotate(toy_world.broadcast, subtitles=cues, dictionary=dictionary, model=model, options=TRUSTED)
        return found.answer.warnings

    assert not warnings(subtitles)
    (said,) = warnings((*subtitles, late))
    assert f"1 of {len(subtitles) + 1} subtitles begin after the video's end" in said
