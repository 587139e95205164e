from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.errors import InputError
from signspot.learning.batches import BACKGROUND, BatchOptions, BatchSource, Minibatch
from signspot.learning.material import Material
from tests.learning.problems import Sizes, one_passage, random_material, with_passages

TENSORS = [field.name for field in dataclasses.fields(Minibatch) if field.name not in ("n_items", "passages")]


def same(first: Minibatch, second: Minibatch) -> bool:
    return first.passages == second.passages and all(
        torch.equal(getattr(first, name), getattr(second, name)) for name in TENSORS
    )


def rows_by_hand(material: Material, passage: int, shown: Iterable[int]) -> list[tuple[int, bool]]:
    """The dictionary rows of an item, read aloud: the label's entries, then those of each further mention."""
    columns = material.passages
    label = int(columns.label[passage])
    mentions = columns.words[columns.word_offsets[passage] : columns.word_offsets[passage + 1]].tolist()
    others = [word for word in mentions if word != label and word in set(shown)]
    runs = [label] + [word for i, word in enumerate(others) if i == 0 or others[i - 1] != word]
    return [
        (entry, word == label)
        for word in runs
        for entry in range(len(material.entry_ids))
        if material.entry_word[entry] == word
    ]


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 9), st.booleans(), st.sampled_from(["full", "limited"]))
def test_a_minibatch_is_what_the_paper_describes(seed: int, batch_size: int, balanced: bool, dictionary: str) -> None:
    material = random_material(seed=seed)
    training = frozenset(material.vocabulary.words[:6])
    options = BatchOptions(
        batch_size=batch_size, balanced=balanced, dictionary=dictionary, words=training, n_background=4
    )
    source = BatchSource(material, options, seed=seed)
    batch = source.minibatch(0, source.steps_per_epoch - 1)
    columns = material.passages
    shown = range(6) if dictionary == "limited" else range(12)
    assert batch.n_items == len(batch.passages) == min(batch_size, 6 if balanced else batch_size)
    entry_number = {tuple(row): i for i, row in enumerate(material.entry_vectors.tolist())}
    numbers = [entry_number[tuple(row)] for row in batch.entries.tolist()]
    assert len(set(numbers)) == len(numbers)
    assert batch.entry_word.tolist() == material.entry_word[numbers].tolist()
    for item, passage in enumerate(batch.passages):
        rows = torch.nonzero(batch.row_item == item).flatten()
        found = [(numbers[batch.row_entry[row]], bool(batch.row_is_foreground[row])) for row in rows]
        assert found == rows_by_hand(material, passage, shown)
        clips = torch.nonzero(batch.segment_item == item).flatten()
        label, frame = int(columns.label[passage]), int(columns.label_frame[passage])
        assert label < 6
        assert batch.segment_word[clips].tolist() == [label] + [BACKGROUND] * 4
        tracks, windows = batch.segments[clips, 0].tolist(), batch.segments[clips, 1].tolist()
        assert set(tracks) == {float(columns.track[passage])}
        assert frame - 20 <= windows[0] and windows[0] + 16 <= frame + 5
        assert len(set(windows[1:])) == 4
        for window in windows[1:]:
            assert window + 16 <= frame - 20 or window >= frame + 5 + 16
            assert columns.start[passage] <= window and window + 16 <= columns.stop[passage]


def test_vectors_are_the_rows_of_their_windows() -> None:
    material = random_material()
    batch = BatchSource(material, BatchOptions(batch_size=8), seed=3).minibatch(2, 1)
    assert batch.segments.dtype == batch.entries.dtype == torch.float32
    for row in batch.segments.numpy():
        assert (material.tracks[int(row[0])][int(row[1])] == row.astype(np.float16)).all()


def test_a_minibatch_depends_on_seed_epoch_and_step_alone() -> None:
    material = random_material()
    options = BatchOptions(batch_size=4)
    source = BatchSource(material, options, seed=7)
    in_order = [list(source.epoch(epoch)) for epoch in range(3)]
    fresh = BatchSource(material, dataclasses.replace(options, prefetch=0), seed=7)
    for epoch, step in [(2, 3), (0, 0), (1, 5), (2, 0)]:
        assert same(fresh.minibatch(epoch, step), in_order[epoch][step])
    assert not same(in_order[0][0], in_order[1][0])
    assert not same(in_order[0][0], BatchSource(material, options, seed=8).minibatch(0, 0))


@pytest.mark.parametrize("prefetch", [0, 1, 5, 100])
def test_an_epoch_continues_at_any_step(prefetch: int) -> None:
    source = BatchSource(random_material(), BatchOptions(batch_size=4, prefetch=prefetch), seed=1)
    whole, rest = list(source.epoch(1)), list(source.epoch(1, first_step=6))
    assert len(whole) == source.steps_per_epoch == 15
    assert all(same(a, b) for a, b in zip(whole[6:], rest, strict=True))


def minibatch_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("made-ahead")]


def test_an_epoch_that_is_left_early_leaves_no_thread_behind() -> None:
    source = BatchSource(random_material(), BatchOptions(batch_size=4), seed=1)
    batches = source.epoch(0)
    next(batches)
    assert minibatch_threads()
    batches.close()  # type: ignore[attr-defined]
    assert not minibatch_threads()
    list(source.epoch(0))
    assert not minibatch_threads()


@pytest.mark.parametrize("prefetch", [0, 3])
def test_rows_that_are_no_numbers_stop_with_the_name_of_the_passage(prefetch: int) -> None:
    material = one_passage(frame=100)
    material.tracks[0][80:90, 3] = np.nan
    source = BatchSource(material, BatchOptions(prefetch=prefetch), seed=0)
    with pytest.raises(InputError, match=r"passage 0, window 8\d: its vector holds what is no number"):
        list(source.epoch(0))
    assert not minibatch_threads()


def test_a_word_mentioned_again_later_is_a_second_run() -> None:
    material = one_passage(frame=100, words=(3, 0, 3, 3, 5, 3, 0))
    batch = BatchSource(material, BatchOptions(), seed=0).minibatch(0, 0)
    assert torch.unique_consecutive(batch.row_word).tolist() == [0, 3, 5, 3]
    assert len(batch.row_word) == 8
    assert len(batch.entries) == 6


def test_a_label_that_the_subtitle_lacks_comes_first_all_the_same() -> None:
    batch = BatchSource(one_passage(frame=100, words=(4, 2)), BatchOptions(), seed=0).minibatch(0, 0)
    assert torch.unique_consecutive(batch.row_word).tolist() == [0, 4, 2]


def test_words_without_entries_give_no_rows() -> None:
    material = one_passage(frame=100, words=(0, 1, 2))
    has_entry = material.entry_word != 1
    fewer = dataclasses.replace(
        material,
        entry_word=material.entry_word[has_entry],
        entry_vectors=material.entry_vectors[has_entry],
        entry_ids=tuple(np.array(material.entry_ids)[has_entry].tolist()),
    )
    batch = BatchSource(fewer, BatchOptions(), seed=0).minibatch(0, 0)
    assert torch.unique_consecutive(batch.row_word).tolist() == [0, 2]


def test_items_without_background_words_or_clips_are_used_and_counted() -> None:
    source = BatchSource(one_passage(frame=20, stop=56, words=(0,)), BatchOptions(), seed=0)
    batch = source.minibatch(0, 0)
    assert (batch.n_items, len(batch.segments), len(batch.row_entry)) == (1, 1, 2)
    assert (source.report.without_background_words, source.report.without_background_clips) == (1, 1)
    assert "1 passages have no room for background clips" in source.report.lines()


def test_few_background_windows_are_repeated_evenly() -> None:
    batch = BatchSource(one_passage(frame=100, start=60, stop=140), BatchOptions(), seed=0).minibatch(0, 0)
    windows = batch.segments[1:, 1].tolist()
    assert sorted(set(windows)) == [60, 61, 62, 63, 64, 121, 122, 123, 124]
    assert len(windows) == 10


def test_unbalanced_minibatches_may_have_a_word_twice() -> None:
    material = one_passage(frame=100, n=6)
    plain = BatchSource(material, BatchOptions(balanced=False, batch_size=4), seed=0)
    assert plain.minibatch(0, 0).n_items == 4
    ten = BatchSource(one_passage(frame=100, n=103), BatchOptions(balanced=False, batch_size=10), seed=0)
    shown = [passage for step in range(ten.steps_per_epoch) for passage in ten.minibatch(0, step).passages]
    assert len(shown) == len(set(shown)) == 100 and shown != sorted(shown), "each at most once, in random order"
    assert BatchSource(material, BatchOptions(batch_size=4), seed=0).minibatch(0, 0).n_items == 1


def test_what_is_left_out_is_counted_by_reason() -> None:
    material = random_material(Sizes(n_passages=8))
    columns = material.passages
    label = columns.label_frame.copy()
    start, stop, confidence = columns.start.copy(), columns.stop.copy(), columns.confidence.copy()
    words = columns.label.copy()
    words[:] = [0, 11, 1, 2, 3, 4, 5, 6]
    confidence[0] = 0.4
    # 1: no training word; 2: no entry; 3: outside; 4: too short; 5: at the edge
    label[3] = stop[3]
    stop[4] = start[4] + 15
    label[4] = start[4] + 5
    label[5] = start[5] + 10
    columns = dataclasses.replace(
        columns, label=words, label_frame=label, start=start, stop=stop, confidence=confidence
    )
    has_entry = material.entry_word != 1
    material = dataclasses.replace(
        with_passages(material, columns),
        entry_word=material.entry_word[has_entry],
        entry_vectors=material.entry_vectors[has_entry],
        entry_ids=tuple(np.array(material.entry_ids)[has_entry].tolist()),
    )
    options = BatchOptions(words=frozenset(material.vocabulary.words[:11]))
    report = BatchSource(material, options, seed=0).report
    assert report.dropped == (
        ("labelled with a confidence below 0.5", 1),
        ("the label is not a training word", 1),
        ("the dictionary has no entry for the label", 1),
        ("the label lies outside the passage or its video", 1),
        ("shorter than 16 frames", 1),
        ("no clip around the label fits into the passage", 1),
    )
    assert (report.n_passages, report.n_used, report.n_labels) == (8, 2, 2)
    assert "2 of 8 labelled passages, 2 words: 1 minibatches of 2 in an epoch" in report.lines()


def test_a_label_behind_the_end_of_the_video_is_left_out() -> None:
    with pytest.raises(InputError, match="1: the label lies outside the passage or its video"):
        BatchSource(one_passage(frame=416, stop=500), BatchOptions(), seed=0)


def test_material_without_a_usable_passage_is_refused_with_the_reasons() -> None:
    material = random_material()
    quiet = dataclasses.replace(material.passages, confidence=np.full(60, 0.2, np.float32))
    with pytest.raises(InputError, match=r"no usable passage \(60: labelled with a confidence below 0.5\)"):
        BatchSource(with_passages(material, quiet), BatchOptions(), seed=0)


def test_training_words_that_are_nowhere_are_refused() -> None:
    with pytest.raises(InputError, match="typo: 1 training words are not in the vocabulary"):
        BatchSource(random_material(), BatchOptions(words=frozenset([Word("typo")])), seed=0)


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"n_background": -1}, {"min_confidence": 1.5}, {"prefetch": -1}])
def test_impossible_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"no minibatch|confidence"):
        BatchOptions(**wrong)


def test_steps_that_do_not_exist_are_refused() -> None:
    source = BatchSource(random_material(), BatchOptions(batch_size=4), seed=0)
    with pytest.raises(ValueError, match="no step 15 of epoch 0"):
        source.minibatch(0, 15)
    with pytest.raises(InputError, match="seed -1: is negative"):
        BatchSource(random_material(), BatchOptions(), seed=-1)
