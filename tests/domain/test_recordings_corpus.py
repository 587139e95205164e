from __future__ import annotations

from datetime import date

import pytest

from signspot.domain.recordings import Annotation, Dictionary, Entry, Rights, Word

TODAY = date(2026, 1, 1)


def test_what_is_not_known_to_be_allowed_is_not_allowed() -> None:
    assert not Rights().allows("export_clips", TODAY)
    assert Rights(may_train=True).allows("train", TODAY)
    assert not Rights(may_train=True, expires=TODAY).allows("train", TODAY)


@pytest.mark.parametrize(("frame", "confidence"), [(-1, 1.0), (0, 1.1), (0, float("nan"))])
def test_an_impossible_annotation_is_refused(frame: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="v: "):
        Annotation("v", Word("apple"), frame, confidence)


def test_a_dictionary_files_entries_by_word_and_variant() -> None:
    rows = [("3", "b", "x"), ("1", "a", "y"), ("2", "b", "x")]
    entries = [Entry(entry_id=i, word=Word(w), variant=v) for i, w, v in rows]
    dictionary = Dictionary.of("d", entries)
    assert list(dictionary.vocabulary) == ["a", "b"]
    assert [e.entry_id for e in dictionary.entries(Word("b"))] == ["3", "2"]
    assert [(v.name, len(v.entries)) for v in dictionary.variants(Word("b"))] == [("x", 2)]
    assert dictionary.entries(Word("zebra")) == ()
    with pytest.raises(ValueError, match="two entries have the id"):
        Dictionary.of("d", [entries[0], entries[0]])
