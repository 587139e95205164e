from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from signspot.domain.time import Tolerance
from signspot.domain.tracks import Ints
from signspot.errors import InputError
from signspot.evaluation.protocol import Gallery, ProtocolOptions, TestPassage, score_passages
from tests.evaluation.embedded import random_gallery, random_passages, true_passages, unit_rows

AXES = np.eye(6, dtype=np.float32)


def passage(word: int, label: int, windows: list[int], **more: object) -> TestPassage:
    """A passage whose windows are axes of space, one frame apart from frame 0 on."""
    centres = np.arange(len(windows))
    return TestPassage(
        passage_id=str(more.get("name", "p")),
        word=word,
        label_frame=label,
        centres=centres,
        vectors=AXES[windows],
        signer=str(more.get("signer", "")),
    )


def score_read_aloud(passages: list[TestPassage], gallery: Gallery, options: ProtocolOptions) -> dict[str, float]:
    """The protocol in loops, as its docstring tells it, in double precision."""
    ap: dict[int, list[float]] = {}
    recall: dict[int, list[float]] = {}
    localised = []
    for one in passages:
        heights, frames = [], []
        for entry in gallery.vectors:
            cosines = [float(np.dot(entry.astype(float), window.astype(float))) for window in one.vectors]
            heights.append(max(cosines))
            frames.append(int(one.centres[cosines.index(max(cosines))]))
        order = sorted(range(len(heights)), key=lambda e: (-heights[e], e))
        near = [frame in options.tolerance.around(one.label_frame) for frame in frames]
        own = [int(word) == one.word for word in gallery.words]
        seen, precisions, in_first = 0, [], 0
        for rank, entry_place in enumerate(order, start=1):
            if own[entry_place] and near[entry_place]:
                seen += 1
                precisions.append(seen / rank)
                in_first += rank <= options.k
        ap.setdefault(one.word, []).append(sum(precisions) / sum(own))
        recall.setdefault(one.word, []).append(in_first / min(options.k, sum(own)))
        best = next(e for e in order if own[e])
        localised.append(near[best])
    return {
        "mean_ap": float(np.mean([np.mean(each) for each in ap.values()])),
        "recall": float(np.mean([np.mean(each) for each in recall.values()])),
        "localisation": float(np.mean(localised)),
    }


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_what_the_definition_read_aloud_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gallery = random_gallery(rng, rng.integers(0, 8, size=30), d=4)
    words = rng.choice(gallery.words, size=25)
    passages = random_passages(rng, words, n_windows=45, d=4)
    options = ProtocolOptions(tolerance=Tolerance(9, 2), k=3)
    scores, expected = score_passages(passages, gallery, options), score_read_aloud(passages, gallery, options)
    assert scores.mean_ap == pytest.approx(expected["mean_ap"], abs=1e-12)
    assert scores.recall_at_k == pytest.approx(expected["recall"], abs=1e-12)
    assert scores.localisation == pytest.approx(expected["localisation"], abs=1e-12)
    assert 0 < scores.mean_ap < 1


def test_a_case_computed_by_hand() -> None:
    # Three entries of word 0 (axes 0, 1, 5), one of word 1 (axis 2), one of word 2 (axis 3).
    gallery = Gallery(np.array([0, 1, 0, 2, 0]), AXES[[0, 2, 1, 3, 5]])
    # Axis 0 at frame 30 (right), axis 2 at frame 31, axis 1 at frame 3 (too early); axes 3 and 5 never.
    windows = [4] * 40
    windows[30], windows[31], windows[3] = 0, 2, 1
    scores = score_passages([passage(0, 30, windows)], gallery)
    # Ranking by cosine, ties by place: entry 0 (right), entry 1 (word 1), entry 2 (wrong time), entries 3 and 4 with
    # cosine 0 and their maximum at the first window. One of three entries is right, at rank 1.
    assert scores.passages.ap.tolist() == [pytest.approx(1 / 3)]
    assert scores.passages.recall.tolist() == [pytest.approx(1 / 3)]
    assert (scores.passages.n_relevant.tolist(), scores.passages.n_right.tolist()) == ([3], [1])
    assert scores.found_frame.tolist() == [30]
    assert scores.localisation == 1.0


@pytest.mark.parametrize(("frame", "is_right"), [(9, False), (10, True), (30, True), (35, True), (36, False)])
def test_the_maximum_must_lie_from_20_before_to_5_after_the_label(frame: int, is_right: bool) -> None:
    windows = [1] * 60
    windows[frame] = 0
    scores = score_passages([passage(7, 30, windows)], Gallery(np.array([7]), AXES[:1]))
    assert scores.mean_ap == scores.recall_at_5 == scores.localisation == float(is_right)


def test_of_equal_maxima_the_first_window_counts() -> None:
    windows = [1] * 60
    windows[2] = windows[30] = 0
    assert score_passages([passage(7, 30, windows)], Gallery(np.array([7]), AXES[:1])).localisation == 0.0


@pytest.mark.parametrize(("place", "expected"), [(0, 1.0), (1, 1 / 2), (2, 1 / 3), (3, 1 / 4)])
@pytest.mark.parametrize("n_entries", [17, 100, 333])
def test_entries_with_the_same_vector_keep_the_order_of_the_gallery(
    n_entries: int, place: int, expected: float
) -> None:
    # A matrix product rounds the same column differently at another place of the gallery.
    rng = np.random.default_rng(n_entries)
    gallery = random_gallery(rng, np.arange(n_entries))
    alike = [0, n_entries // 3, n_entries // 2, n_entries - 1]
    gallery.vectors[alike] = gallery.vectors[0]
    vectors = unit_rows(rng, 41)
    vectors[17] = (gallery.vectors[0] * 99 + vectors[17]) / np.linalg.norm(gallery.vectors[0] * 99 + vectors[17])
    shown = TestPassage("p", alike[place], 17, np.arange(41), vectors)
    assert score_passages([shown], gallery).mean_ap == pytest.approx(expected)


@pytest.mark.parametrize("n_entries", [17, 100, 333])
def test_in_a_still_picture_the_first_window_counts(n_entries: int) -> None:
    rng = np.random.default_rng(n_entries)
    gallery = random_gallery(rng, np.arange(n_entries))
    still = np.repeat(unit_rows(rng, 1), 150, axis=0)
    passages = [TestPassage("p", word, 100, np.arange(8, 158), still) for word in range(n_entries)]
    assert set(score_passages(passages, gallery).found_frame.tolist()) == {8}


def test_words_weigh_the_same_however_many_passages_they_have() -> None:
    gallery = Gallery(np.array([0, 1]), AXES[:2])
    found = passage(0, 0, [0])
    missed = passage(1, 0, [0])
    scores = score_passages([found, found, found, missed], gallery)
    assert scores.passages.class_ap.values.tolist() == [1.0, 0.5]  # the missed one ranks second of two
    assert scores.mean_ap == 0.75
    assert scores.localisation == 1.0  # per passage, word known


def test_the_opposite_direction_ranks_passages_for_each_entry() -> None:
    gallery = Gallery(np.array([0, 0, 5]), AXES[[0, 1, 2]])
    first, second = passage(0, 1, [3, 0]), passage(0, 1, [3, 3])
    other = TestPassage("p", 5, 1, np.arange(2), np.stack([AXES[4], (AXES[2] + AXES[0] / 2) / 1.25**0.5]))
    scores = score_passages([second, other, first], gallery)
    # Entry 0: passages first (1.0, right), other (0.45), second (0.0, at frame 0, within the tolerance).
    # Entry 1: all 0 and at frame 0; in order second (right), other, first (right).
    assert scores.entry_rows.tolist() == [0, 1, 2]
    assert scores.entries.words.tolist() == [0, 0, 5]
    assert scores.entries.ap.tolist() == pytest.approx([(1 + 2 / 3) / 2, (1 + 2 / 3) / 2, 1.0])
    assert scores.entries.class_ap.mean == pytest.approx((5 / 6 + 1) / 2)


def test_the_opposite_direction_leaves_out_entries_no_passage_shows() -> None:
    gallery = Gallery(np.array([3, 0, 4]), AXES[:3])
    assert score_passages([passage(0, 0, [1])], gallery).entry_rows.tolist() == [1]


@pytest.mark.parametrize("seed", range(5))
def test_both_directions_agree_with_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gallery = random_gallery(rng, np.repeat(np.arange(12), 3))
    passages = random_passages(rng, rng.integers(0, 12, size=40))
    scores = score_passages(passages, gallery, ProtocolOptions(keep_cosine=True))
    assert scores.cosine is not None and scores.cosine.shape == (40, 36)
    frame = np.stack([one.centres[(one.vectors @ gallery.vectors.T).argmax(axis=0)] for one in passages])
    label, word = scores.label_frame[:, None], scores.passages.words[:, None]
    right = (word == gallery.words) & (frame >= label - 20) & (frame <= label + 5)
    # The library divides by the right ones, the protocol by the relevant ones.
    passages_ap, entries_ap = (
        r.ap * r.n_relevant / np.maximum(r.n_right, 1) for r in (scores.passages, scores.entries)
    )
    for given_ap, truth, height in zip(passages_ap, right, scores.cosine, strict=True):
        assert given_ap == pytest.approx(average_precision_score(truth, height) if truth.any() else 0, abs=1e-9)
    for given_ap, row in zip(entries_ap, scores.entry_rows, strict=True):
        truth, height = right[:, row], scores.cosine[:, row]
        assert given_ap == pytest.approx(average_precision_score(truth, height) if truth.any() else 0, abs=1e-9)


def test_truth_scores_one_hundred_per_cent() -> None:
    rng = np.random.default_rng(0)
    words: Ints = np.repeat(np.arange(30), rng.integers(1, 9, size=30))  # some have more entries than the first 5 hold
    gallery = random_gallery(rng, words, d=64)
    scores = score_passages(true_passages(rng, gallery, np.arange(60) % 30), gallery)
    assert scores.mean_ap == scores.recall_at_5 == scores.localisation == 1.0
    assert scores.entries.class_ap.mean == scores.entries.class_recall.mean == 1.0


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_placing_an_entry_wrongly_never_raises_a_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gallery = random_gallery(rng, rng.integers(0, 3, size=9), d=3)
    passages = random_passages(rng, gallery.words[:4], d=3)
    wide = score_passages(passages, gallery, ProtocolOptions(tolerance=Tolerance(30, 30)))
    narrow = score_passages(passages, gallery, ProtocolOptions(tolerance=Tolerance(10, 10)))
    assert (narrow.passages.ap <= wide.passages.ap).all()
    assert (narrow.passages.recall <= wide.passages.recall).all()
    assert (narrow.entries.ap <= wide.entries.ap).all()


def test_the_order_of_the_gallery_does_not_matter_without_ties() -> None:
    rng = np.random.default_rng(5)
    gallery = random_gallery(rng, np.repeat(np.arange(10), 3))
    passages = random_passages(rng, np.arange(30) % 10)
    order = rng.permutation(30)
    shuffled = Gallery(gallery.words[order], gallery.vectors[order])
    assert (
        score_passages(passages, shuffled).passages.ap.tolist()
        == score_passages(passages, gallery).passages.ap.tolist()
    )


def test_passages_may_come_from_a_generator_and_are_read_once() -> None:
    rng = np.random.default_rng(6)
    gallery = random_gallery(rng, np.arange(10))
    passages = random_passages(rng, np.arange(10))
    assert score_passages(iter(passages), gallery).mean_ap == score_passages(passages, gallery).mean_ap


def test_a_passage_whose_word_the_gallery_lacks_is_left_out_and_named() -> None:
    gallery = Gallery(np.array([0]), AXES[:1])
    scores = score_passages([passage(0, 0, [0]), passage(9, 0, [0], name="lost")], gallery)
    assert (scores.left_out, scores.passage_ids, scores.mean_ap) == (("lost",), ("p",), 1.0)


@pytest.mark.parametrize("gallery", [Gallery(np.array([4]), AXES[:1]), Gallery(np.empty(0, np.int64), AXES[:0])])
def test_nothing_to_score_is_said(gallery: Gallery) -> None:
    with pytest.raises(InputError, match="no passage shows a word of the gallery"):
        score_passages([passage(0, 0, [0])], gallery)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_windows_without_a_direction_are_compared_with_nothing(bad: float) -> None:
    vectors = AXES[[1] * 60].copy()
    vectors[30], vectors[35:] = AXES[0], bad
    shown = TestPassage("p", 0, 30, np.arange(60), vectors)
    scores = score_passages([shown], Gallery(np.array([0]), -AXES[:1]))
    assert scores.found_frame.tolist() == [0]  # -axis 0 is best where the window is orthogonal, not where it is broken
    blind = replace(shown, vectors=np.full_like(vectors, bad))
    scores = score_passages([blind], Gallery(np.array([0]), AXES[:1]))
    assert (scores.mean_ap, scores.localisation, scores.found_frame.tolist()) == (0.0, 0.0, [-1])


def test_entries_without_a_direction_come_last_and_are_never_right() -> None:
    gallery = Gallery(np.array([0, 0, 1]), np.stack([np.zeros(6, np.float32), AXES[0], -AXES[0]]))
    scores = score_passages([passage(0, 0, [0])], gallery)
    assert (scores.passages.ap.tolist(), scores.passages.n_right.tolist()) == ([0.5], [1])
    assert scores.localisation == 1.0


def test_a_passage_without_windows_scores_zero() -> None:
    empty = TestPassage("p", 0, 0, np.empty(0, np.int64), AXES[:0])
    scores = score_passages([empty], Gallery(np.array([0]), AXES[:1]))
    assert (scores.mean_ap, scores.localisation, scores.chance_localisation) == (0.0, 0.0, 0.0)


def test_bad_input_is_refused_by_name() -> None:
    gallery = Gallery(np.array([0]), AXES[:1])
    with pytest.raises(InputError, match="show-3: the vectors do not have length 1"):
        score_passages([TestPassage("show-3", 0, 0, np.arange(1), AXES[:1] * 2)], gallery)
    with pytest.raises(InputError, match="gallery: the vectors do not have length 1"):
        score_passages([passage(0, 0, [0])], Gallery(np.array([0]), AXES[:1] / 2))
    with pytest.raises(InputError, match=r"p: vectors of 5 numbers, the gallery's have 6: embed both with the same"):
        score_passages([TestPassage("p", 0, 0, np.arange(1), np.eye(5, dtype=np.float32)[:1])], gallery)
    with pytest.raises(InputError, match="one row and one centre for each window"):
        TestPassage("p", 0, 0, np.arange(2), AXES[:1])
    with pytest.raises(InputError, match="one row and one word for each entry"):
        Gallery(np.array([0, 1]), AXES[:1])
    with pytest.raises(InputError, match="k 0"):
        ProtocolOptions(k=0)


def test_r_at_5_is_not_given_for_another_k() -> None:
    scores = score_passages([passage(0, 0, [0])], Gallery(np.array([0]), AXES[:1]), ProtocolOptions(k=1))
    assert scores.recall_at_k == 1.0
    with pytest.raises(InputError, match="read recall_at_k"):
        _ = scores.recall_at_5


def test_inputs_are_not_changed_and_cosines_are_kept_only_on_request() -> None:
    rng = np.random.default_rng(8)
    gallery, vectors = random_gallery(rng, np.arange(5)), unit_rows(rng, 50)
    vectors[3] = np.nan
    shown = TestPassage("p", 2, 30, np.arange(50), vectors)
    before = (gallery.vectors.copy(), vectors.copy())
    for array in (gallery.vectors, gallery.words, vectors):
        array.setflags(write=False)
    assert score_passages([shown], gallery).cosine is None
    assert np.array_equal(gallery.vectors, before[0]) and np.array_equal(vectors, before[1], equal_nan=True)
