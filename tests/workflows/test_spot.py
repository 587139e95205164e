from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

import signspot
from signspot.domain.recordings import Subtitle, Synonyms, Word
from signspot.domain.time import MillisSpan
from signspot.embedding.model import Reading
from signspot.errors import DictionaryError, InputError, Notice, UnknownWord
from signspot.evaluation.calibration import Calibration, Logistic, PresenceFit
from signspot.stores.spottings import answer_record
from signspot.workflows.spot import SpotOptions, _known_words, late_subtitles, spot
from tests.toy_world import ToyWorld

TRUSTED = SpotOptions(reading=Reading(isolated=False))


@pytest.fixture(scope="module")
def dictionary(toy_world: ToyWorld) -> signspot.Dictionary:
    return signspot.open_dictionary(toy_world.dictionary)


@pytest.fixture(scope="module")
def model() -> signspot.Embedder:
    return signspot.load_model("colour")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> SpotOptions:
    """The vectors of the broadcast are computed once for all that ask with these."""
    return dataclasses.replace(TRUSTED, reading=Reading(isolated=False, store=tmp_path_factory.mktemp("store")))


def test_every_planted_sign_is_found_in_place_and_variant_and_nothing_else(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder
) -> None:
    words = ["apple", "garden", "house", "tree", "water"]
    answer = spot(toy_world.broadcast, words, dictionary=dictionary, model=model)
    found = list(answer)
    assert [(s.word, s.variant) for s in found] == [(t.sign.word, t.sign.variant) for t in toy_world.truth]
    for spotting, truth in zip(found, toy_world.truth, strict=True):
        shared = min(spotting.span_ms.stop, truth.span_ms.stop) - max(spotting.span_ms.start, truth.span_ms.start)
        assert shared >= 0.7 * min(spotting.span_ms.duration, truth.span_ms.duration)
        assert spotting.frame in range(truth.span_ms.start // 40, truth.span_ms.stop // 40)
    house = answer.words[2]
    assert (house.word, house.spottings) == ("house", ())
    assert house.best_cosine is not None
    assert house.best_cosine < model.threshold


def test_subtitles_limit_where_a_word_is_searched(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder
) -> None:
    apples = [t for t in toy_world.truth if t.sign.word == "apple"]
    cue = Subtitle(apples[1].span_ms, "Two APPLES, please.")
    options = dataclasses.replace(TRUSTED, subtitles=(cue,), padding_ms=0)
    answer = spot(toy_world.broadcast, ["apple", "tree"], dictionary=dictionary, model=model, options=options)
    (found,) = answer
    assert found.span_ms.overlaps(apples[1].span_ms)
    assert found.provenance.subtitle == cue
    assert answer.words[1].searched_ms == ()


@pytest.mark.parametrize(("gap_ms", "n_found"), [(1300, 1), (2500, 0)])
@pytest.mark.parametrize("is_early", [True, False])
def test_a_word_is_searched_two_seconds_around_its_subtitle(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder, stored: SpotOptions, *,
    gap_ms: int, n_found: int, is_early: bool,
) -> None:  # fmt: skip
    """Paper 4.1: interpreters lag behind what is said, and the subtitles behind that."""
    sign = next(one.span_ms for one in toy_world.truth if one.sign.word == "tree")
    start = sign.start - gap_ms - 200 if is_early else sign.stop + gap_ms
    cue = Subtitle(MillisSpan.of(start, start + 200), "An old tree.")
    options = dataclasses.replace(stored, subtitles=(cue,))
    answer = spot(toy_world.broadcast, ["tree"], dictionary=dictionary, model=model, options=options)
    assert [found.span_ms.overlaps(sign) for found in answer] == [True] * n_found
    assert answer.words[0].searched_ms == (MillisSpan.of(start - 2000, start + 2200),)


def test_a_sign_that_begins_where_the_search_ends_is_not_found_by_its_beginning(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder, stored: SpotOptions
) -> None:
    """Another sign, perhaps of another word: only its rising flank lies within reach of the subtitle."""
    sign = next(one.span_ms for one in toy_world.truth if one.sign.word == "tree")
    cue = Subtitle(MillisSpan.of(sign.start - 2000, sign.start + 200), "An old tree.")
    options = dataclasses.replace(stored, subtitles=(cue,), padding_ms=0)
    answer = spot(toy_world.broadcast, ["tree"], dictionary=dictionary, model=model, options=options)
    similarity = answer.words[0].similarity
    assert similarity.best.max() >= answer.threshold, "it is as alike as a finding must be"
    assert list(answer) == []


def test_a_finding_names_the_nearest_subtitle_that_mentions_it(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder, stored: SpotOptions
) -> None:
    sign = next(one.span_ms for one in toy_world.truth if one.sign.word == "tree")
    cues = tuple(
        Subtitle(MillisSpan.of(sign.start + shift, sign.stop + shift), f"Tree {shift}.") for shift in (-1500, 300, 1600)
    )
    options = dataclasses.replace(stored, subtitles=cues)
    (found,) = spot(toy_world.broadcast, ["tree"], dictionary=dictionary, model=model, options=options)
    assert found.provenance.subtitle == cues[1]


def test_only_synonyms_that_the_dictionary_has_are_looked_for(
    dictionary: signspot.Dictionary, model: signspot.Model
) -> None:
    cue = Subtitle(MillisSpan.of(0, 2000), "An old tree.")
    synonyms = Synonyms.of([(Word("tree"), Word("garden")), (Word("tree"), Word("oak"))])
    options = dataclasses.replace(TRUSTED, subtitles=(cue,), synonyms=synonyms)
    assert _known_words([], dictionary, model, options) == ("garden", "tree")


@pytest.mark.parametrize(("start_ms", "n_late"), [(5999, 0), (6000, 1)])
def test_a_subtitle_that_begins_where_the_video_ends_is_late(start_ms: int, n_late: int) -> None:
    cue = Subtitle(MillisSpan.of(start_ms, start_ms + 500), "The end.")
    assert len(late_subtitles((cue,), 6000)) == n_late


def test_without_words_all_that_the_subtitles_mention_are_searched(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder
) -> None:
    subtitles = signspot.read_subtitles(toy_world.subtitles).subtitles
    options = dataclasses.replace(TRUSTED, subtitles=subtitles)
    answer = spot(toy_world.broadcast, [], dictionary=dictionary, model=model, options=options)
    assert [word.word for word in answer.words] == ["apple", "garden", "house", "tree", "water"]
    assert len(list(answer)) == len(toy_world.truth)


def test_a_word_inside_a_longer_phrase_of_the_dictionary_is_no_mention(
    toy_world: ToyWorld, model: signspot.Embedder, tmp_path: Path
) -> None:
    folder = tmp_path / "dictionary"
    shutil.copytree(toy_world.dictionary, folder)
    shutil.copytree(folder / "tree", folder / "apple tree")
    options = dataclasses.replace(TRUSTED, subtitles=(Subtitle(MillisSpan.of(0, 60_000), "An apple tree."),))
    dictionary = signspot.open_dictionary(folder)
    answer = spot(toy_world.broadcast, ["apple"], dictionary=dictionary, model=model, options=options)
    assert answer.words[0].searched_ms == ()


def test_an_unknown_word_brings_suggestions(dictionary: signspot.Dictionary, model: signspot.Embedder) -> None:
    with pytest.raises(UnknownWord, match=r"aple: the dictionary has no entry for this word: did you mean apple\?"):
        spot("x.mp4", ["aple"], dictionary=dictionary, model=model)


def test_no_words_and_no_subtitles_is_explained(dictionary: signspot.Dictionary, model: signspot.Embedder) -> None:
    with pytest.raises(InputError, match="none given: name the words to look for"):
        spot("x.mp4", [], dictionary=dictionary, model=model)


def calibration(model: signspot.Embedder) -> Calibration:
    """Without subtitles, a cosine of 1 is a sign with probability 0.73, one of 0.92 with 0.46; with them, 0.70."""
    logistic = Logistic((0.93, *(0,) * 5), (0.07, *(1,) * 5), (1.0, *(0,) * 5), 0.0)
    plain = PresenceFit(logistic, None, np.array([0.6, 0.45, 0.2]), word_hours=1.0)
    read = dataclasses.replace(plain, logistic=dataclasses.replace(logistic, bias=1.0))
    return Calibration(
        model=model.name, fingerprint=model.fingerprint, plain=plain, read=read,
        cohort=np.eye(3, dtype=np.float32)[:1], cohort_words=(Word("red"),), fitted_on="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "least", "is_more"),
    [
        ({}, 0.5, False),
        ({"least_presence": 0.4}, 0.4, True),
        ({"false_alarms": 1.0}, 0.45, True),  # the second alarm of an hour is one too many
        ({"false_alarms": 0.5}, 0.6, False),
        ({"subtitles": (Subtitle(MillisSpan.of(0, 60_000), "Apples."),)}, 0.5, True),
        ({"threshold": 0.9}, None, True),
        ({"threshold": 0.95}, None, False),
    ],
)
def test_with_a_calibration_probabilities_decide_unless_a_cosine_is_asked_for(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder, stored: SpotOptions, *,
    asked: dict[str, object], least: float | None, is_more: bool,
) -> None:  # fmt: skip
    options = dataclasses.replace(stored, calibration=calibration(model), **asked)  # type: ignore[arg-type]
    answer = spot(toy_world.broadcast, ["apple"], dictionary=dictionary, model=model, options=options)
    n_signed = sum(one.sign.word == "apple" for one in toy_world.truth)
    assert (len(list(answer)) > n_signed) == is_more and len(list(answer)) >= n_signed
    assert answer.least_presence == (None if least is None else pytest.approx(least))
    for found in answer:
        assert found.presence is not None
        assert found.presence.probability >= (answer.least_presence or 0)
        assert found.cosine >= answer.threshold


def test_a_calibration_of_another_model_is_refused(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder, stored: SpotOptions
) -> None:
    other = dataclasses.replace(calibration(model), fingerprint="another")
    options = dataclasses.replace(stored, calibration=other)
    with pytest.raises(InputError, match=r"was fitted for another model than 'colour'.*run `signspot calibrate`"):
        spot(toy_world.broadcast, ["apple"], dictionary=dictionary, model=model, options=options)


@pytest.mark.parametrize("threshold", [1.5, -2, float("nan")])
def test_an_impossible_threshold_is_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="is out of range: use a cosine from -1 to 1"):
        SpotOptions(threshold=threshold)


def test_a_broken_dictionary_clip_is_left_out_and_named(
    toy_world: ToyWorld, model: signspot.Embedder, tmp_path: Path
) -> None:
    folder = tmp_path / "dictionary"
    shutil.copytree(toy_world.dictionary, folder)
    (folder / "apple" / "apple_2.mp4").write_bytes(b"not a video")
    dictionary = signspot.open_dictionary(folder)
    answer = spot(toy_world.broadcast, ["apple"], dictionary=dictionary, model=model, options=TRUSTED)
    assert {s.variant for s in answer} == {"1"}
    assert any("apple_2.mp4" in warning for warning in answer.warnings)
    heard: list[Notice] = []
    listening = dataclasses.replace(TRUSTED, reading=dataclasses.replace(TRUSTED.reading, notify=heard.append))
    again = spot(toy_world.broadcast, ["apple"], dictionary=dictionary, model=model, options=listening)
    assert tuple(map(str, heard)) == again.warnings == answer.warnings
    (folder / "apple" / "apple_1.mp4").write_bytes(b"")
    with pytest.raises(DictionaryError, match="none of its clips can be used"):
        spot(toy_world.broadcast, ["apple"], dictionary=dictionary, model=model, options=TRUSTED)


def test_the_decoding_process_changes_nothing(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder
) -> None:
    both = [
        [(s.spotting_id, s.cosine) for s in spot(toy_world.broadcast, ["tree"], dictionary=dictionary, model=model,
                                                 options=SpotOptions(reading=Reading(isolated=isolated)))]
        for isolated in (True, False)
    ]  # fmt: skip
    assert both[0] == both[1]


def test_a_quick_look_finds_the_same_signs_and_says_what_it_is(
    toy_world: ToyWorld, dictionary: signspot.Dictionary, model: signspot.Embedder, tmp_path: Path
) -> None:
    options = dataclasses.replace(TRUSTED, reading=Reading(isolated=False, store=tmp_path))
    words = ["apple", "garden", "tree", "water"]
    quick, full, again = (
        spot(toy_world.broadcast, words, dictionary=dictionary, model=model, options=asked)
        for asked in (dataclasses.replace(options, quick=True), options, dataclasses.replace(options, quick=True))
    )
    assert [(s.word, s.variant) for s in quick] == [(s.word, s.variant) for s in full]
    assert [s.frame for s in quick] == pytest.approx([s.frame for s in full], abs=1)  # stored vectors are rounded
    assert [s.cosine for s in quick] == pytest.approx([s.cosine for s in full], abs=1e-3)
    assert any("a quick look" in warning for warning in quick.warnings)
    assert full.warnings == again.warnings == ()
    assert [s.cosine for s in again] == [s.cosine for s in full], "what is stored is used"
    assert any("a quick look" in str(warning) for warning in answer_record(quick)["warnings"])  # type: ignore[attr-defined]


def test_a_quick_look_has_no_stride_of_the_user_s() -> None:
    with pytest.raises(InputError, match="a quick look chooses its own: leave out one of --quick and --stride"):
        SpotOptions(quick=True, reading=Reading(stride=2))
