from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Annotation, Subtitle, Vocabulary, Word, normalise
from signspot.domain.time import FrameSpan, MillisSpan, TimeAxis
from signspot.learning.material import Footage, LabelledPassage, PassageOptions, Passages

VOCABULARY = Vocabulary.of(normalise(word) for word in ("apple", "tree", "garden", "ice cream"))
AXIS = TimeAxis(np.arange(1000) * 40.0)


def cue(start_seconds: float, stop_seconds: float, text: str) -> Subtitle:
    return Subtitle(MillisSpan.of(start_seconds * 1000, stop_seconds * 1000), text)


def found(cues: list[Subtitle], *marks: tuple[str, int]) -> tuple[tuple[LabelledPassage, ...], Counter[str]]:
    annotations = [Annotation("v", Word(word), frame, 0.75) for word, frame in marks]
    return Footage("v", AXIS, cues, annotations).labelled_passages(VOCABULARY, PassageOptions())


def test_a_passage_is_a_subtitle_with_two_seconds_on_both_sides() -> None:
    (passage,) = found([cue(10, 13, "Apples, and ice cream; the apple!")], ("apple", 300))[0]
    assert passage.span == FrameSpan(200, 375)
    assert passage.words == ("apple", "ice-cream", "apple")
    assert "v at 10.000 s" in passage.name


def test_passages_end_with_the_video() -> None:
    (first,) = found([cue(0.5, 3, "apple")], ("apple", 30))[0]
    (last,) = found([cue(37, 39.9, "apple")], ("apple", 950))[0]
    assert (first.span.start, last.span.stop) == (0, 1000)


def test_short_subtitles_make_no_passage() -> None:
    result = found([cue(10, 12, "apple")], ("apple", 275))
    assert result[0] == ()
    assert result[1] == {"no subtitle of over 2 s is near": 1}


def test_the_padding_counts_and_what_lies_outside_does_not() -> None:
    cues = [cue(10, 13, "apple")]
    assert len(found(cues, ("apple", 200), ("apple", 374))[0]) == 2
    assert found(cues, ("apple", 199), ("apple", 375))[0] == ()


def test_an_annotation_labels_every_subtitle_near_it_that_mentions_its_word() -> None:
    cues = [cue(10, 13, "apple"), cue(13, 16, "tree"), cue(16, 19, "an apple")]
    passages = found(cues, ("apple", 362))[0]
    assert [passage.span.start for passage in passages] == [200, 350]


def test_a_sign_that_subtitles_leave_out_goes_to_the_one_on_screen_with_its_word_first() -> None:
    cues = [cue(10, 13, "apple"), cue(13, 16, "tree, garden")]
    (passage,) = found(cues, ("ice-cream", 330))[0]
    assert passage.span.start == 275
    assert passage.words == ("ice-cream", "tree", "garden")


def test_annotations_that_label_nothing_are_counted() -> None:
    result = found([cue(10, 13, "tree")], ("apple", 340), ("pear", 260), ("apple", 900))
    assert result[0] == ()
    assert result[1] == {
        "it lies between subtitles that do not mention its word": 1,
        "the dictionary has no entry for the word": 1,
        "no subtitle of over 2 s is near": 1,
    }


def test_a_video_without_subtitles_or_annotations_has_no_passages() -> None:
    assert found([], ("apple", 3))[0] == ()
    assert found([cue(10, 13, "apple")])[0] == ()


@given(st.lists(st.tuples(st.sampled_from(["apple", "tree", "pear"]), st.integers(0, 999)), max_size=12))
def test_every_annotation_labels_a_passage_that_holds_it_or_is_counted(marks: list[tuple[str, int]]) -> None:
    cues = [cue(2, 5, "apple tree"), cue(5, 6, "apple"), cue(8, 11.5, "a tree"), cue(20, 30, "nothing here")]
    result = found(cues, *marks)
    labelled = {id(passage.annotation) for passage in result[0]}
    assert len(labelled) + sum(result[1].values()) == len(marks)
    for passage in result[0]:
        assert passage.annotation.frame in passage.span
        assert passage.annotation.word in passage.words


def test_columns_say_what_the_passages_say() -> None:
    tracks = [
        found([cue(10, 13, "apple tree tree")], ("apple", 300), ("tree", 301))[0],
        (),
        found([cue(20, 23, "garden")], ("garden", 520))[0],
    ]
    columns = Passages.of(tracks, VOCABULARY)
    assert columns.track.tolist() == [0, 0, 2]
    assert columns.start.tolist() == [200, 200, 450]
    assert columns.stop.tolist() == [375, 375, 625]
    assert columns.label_frame.tolist() == [300, 301, 520]
    assert [VOCABULARY.words[label] for label in columns.label] == ["apple", "tree", "garden"]
    assert columns.word_offsets.tolist() == [0, 3, 6, 7]
    assert [VOCABULARY.words[word] for word in columns.words] == ["apple", "tree", "tree"] * 2 + ["garden"]
    assert columns.confidence.tolist() == [0.75] * 3


def test_columns_of_nothing_are_empty() -> None:
    columns = Passages.of([], VOCABULARY)
    assert (len(columns), columns.word_offsets.tolist(), columns.track.dtype) == (0, [0], np.int64)
