from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

import signspot
from signspot.embedding.model import Reading, Views
from signspot.embedding.zoo import ModelChoice
from signspot.errors import InputError, Notice
from signspot.media.writer import VideoWriter
from signspot.workflows.outputs import Outputs
from signspot.workflows.spot import SpotOptions, read_words, spot
from signspot.workflows.spot_files import SpotRequest, _wanted_signs, _without_still_ends, spot_files
from tests.toy_world import ToyWorld

COLOUR, ALONE = signspot.load_model("colour"), Reading(isolated=False)


def test_clips_of_a_sign_are_found_without_any_dictionary(toy_world: ToyWorld) -> None:
    clips = tuple(toy_world.dictionary / "apple" / f"apple_{number}.mp4" for number in (1, 2))
    request = SpotRequest(
        source=toy_world.broadcast,
        words=(),
        dictionary=None,
        model=ModelChoice(name="colour"),
        queries=clips,
        options=SpotOptions(reading=Reading(isolated=False)),
        outputs=Outputs(),
    )
    (outcome,) = spot_files(request)
    assert outcome.answer is not None
    apples = [truth for truth in toy_world.truth if truth.sign.word == "apple"]
    found = list(outcome.answer)
    assert [one.entry_id for one in found] == [f"apple_{truth.sign.variant}" for truth in apples]
    assert {one.word for one in found} == {"apple_1"}


def test_clips_join_the_words_of_a_dictionary(toy_world: ToyWorld) -> None:
    clip = toy_world.dictionary / "tree" / "tree_1.mp4"
    shelf = _without_still_ends(_wanted_signs(toy_world.dictionary, [clip, clip], ["water"], ALONE), COLOUR, ALONE)
    assert shelf.words == ("water", "tree_1")
    assert shelf.dictionary.name.endswith(" and query tree_1.mp4, tree_1.mp4")  # a result says what it was found by
    assert [entry.entry_id for entry in shelf.dictionary.entries(signspot.normalise("tree_1"))] == [
        "tree_1",
        "tree_1-2",
    ]
    assert "apple" in shelf.dictionary.vocabulary


def test_a_clip_named_as_a_word_is_told_apart_from_it(toy_world: ToyWorld, tmp_path: Path) -> None:
    clip = shutil.copy(toy_world.dictionary / "tree" / "tree_1.mp4", tmp_path / "Tree.mp4")
    shelf = _without_still_ends(_wanted_signs(toy_world.dictionary, [clip], [], ALONE), COLOUR, ALONE)
    assert shelf.words == ("query-tree",)
    (entry,) = shelf.dictionary.entries(signspot.normalise("query tree"))
    assert entry.kept is not None
    assert 3 <= entry.kept.start < entry.kept.stop <= 53  # six still frames lie at either end


def test_a_clip_without_motion_is_said_to_have_none(tmp_path: Path) -> None:
    clip = tmp_path / "still.mp4"
    with VideoWriter(clip, width=64, height=64) as writer:
        for number in range(3):
            writer.write(np.full((64, 64, 3), 90, np.uint8), number * 40.0)
    reading, said = ALONE.collecting()
    _without_still_ends(_wanted_signs(None, [clip], [], reading), COLOUR, reading)
    assert len(said) == 1 and "still.mp4: nothing moves" in str(said[0])


def test_words_without_a_dictionary_are_refused_by_a_model_that_knows_none(toy_world: ToyWorld) -> None:
    options = SpotOptions(reading=ALONE)
    with pytest.raises(InputError, match="colour: knows no words by itself: give --dictionary"):
        spot(toy_world.broadcast, "apple", model=COLOUR, options=options)
    with pytest.raises(InputError, match="dictionary: none given: give one, or do without --no-lexicon"):
        spot(toy_world.broadcast, "apple", model=COLOUR, options=dataclasses.replace(options, lexicon=False))


def test_a_list_of_words_may_have_remarks(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("\ufeffapple\n\n# fruit above\r\nice cream \n", encoding="utf-8")
    assert read_words(path) == ("apple", "ice cream")
    path.write_text("\n# nothing\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no word"):
        read_words(path)
    path.write_text("x" * 5000, encoding="utf-8")
    with pytest.raises(InputError, match="is no list of words"):
        read_words(path)


def test_more_views_never_find_less(toy_world: ToyWorld) -> None:
    dictionary, model = signspot.open_dictionary(toy_world.dictionary), signspot.load_model("colour")
    plain = SpotOptions(reading=Reading(isolated=False))
    more = dataclasses.replace(plain, views=Views(mirror=True, rates=(0.7, 1.4)))
    before, after = (
        spot(toy_world.broadcast, ["tree"], dictionary=dictionary, model=model, options=options).words[0]
        for options in (plain, more)
    )
    assert after.similarity.entry_ids == before.similarity.entry_ids
    assert (after.similarity.cosine >= before.similarity.cosine - 1e-5).all()


@pytest.mark.parametrize("given", [{"false_alarms": 1.0}, {"least_presence": 0.5}])
def test_probabilities_need_a_calibration(toy_world: ToyWorld, given: dict[str, float]) -> None:
    options = dataclasses.replace(SpotOptions(reading=Reading(isolated=False)), **given)  # type: ignore[arg-type]
    dictionary = signspot.open_dictionary(toy_world.dictionary)
    with pytest.raises(InputError, match="this model is not calibrated"):
        spot(toy_world.broadcast, "tree", dictionary=dictionary, model=signspot.load_model("colour"), options=options)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InputError, match="several are given"):
        SpotOptions(threshold=0.4, false_alarms=1)
    with pytest.raises(InputError, match="presence: 2 is out of range"):
        SpotOptions(least_presence=2)
    with pytest.raises(InputError, match="give speeds from"):
        Views(rates=(0.1,))


def test_other_processes_call_nobody_in_this_one(toy_world: ToyWorld, tmp_path: Path) -> None:
    videos, heard, steps = tmp_path / "videos", list[Notice](), set[str]()
    videos.mkdir()
    for name in ("a.mp4", "b.mp4"):
        shutil.copy(toy_world.broadcast, videos / name)
    # Neither function could be sent to another process.
    reading = dataclasses.replace(
        ALONE, notify=lambda one: heard.append(one), progress=lambda step, done, total: steps.add(step)
    )
    request = SpotRequest(
        source=videos,
        words=("tree",),
        dictionary=toy_world.dictionary,
        options=SpotOptions(reading=reading),
        failures=tmp_path / "failures.jsonl",
        jobs=2,
    )
    first, second = (outcome.answer for outcome in spot_files(request))
    assert first is not None and second is not None and len(list(first)) == len(list(second)) > 0
    assert [one.where for one in heard] == ["model colour"] and "searching videos" in steps
