from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from signspot.domain.recordings import Dictionary, Entry, Subtitle, Word
from signspot.domain.results import Provenance
from signspot.domain.time import MillisSpan, TimeAxis
from signspot.domain.tracks import EmbeddingTrack, EntryVectors, SimilarityTrack, WindowGrid
from signspot.embedding.landmarks import LandmarkModel
from signspot.embedding.pictures import ColourModel
from signspot.evaluation.calibration import Calibration, Logistic, PresenceFit
from signspot.spotting.search import Query, Rule, attributed, best_only, compare, drawn_together, search

PROVENANCE = Provenance(media_sha256="0" * 64, model="m", fingerprint="f", dictionary="d")
N_FRAMES = 215


def track(planted: dict[int, int]) -> EmbeddingTrack:
    """200 windows that look like nothing but axis 3, with the axes `planted` at some of them."""
    rows = np.zeros((N_FRAMES - 15, 4), np.float32)
    rows[:, 3] = 1
    for window, axis in planted.items():
        rows[window] = np.eye(4, dtype=np.float32)[axis]
    return EmbeddingTrack("v", WindowGrid(N_FRAMES), TimeAxis(np.arange(N_FRAMES) * 40.0), rows, "f")


def query(n_views: int = 1, **words: list[int]) -> Query:
    """Words whose entries, each in `n_views` rows, are the axes given."""
    made = []
    for word, axes in words.items():
        entries = tuple(Entry(entry_id=f"{word}{row // n_views}", word=Word(word)) for row in range(len(axes)))
        made.append(EntryVectors(Word(word), entries, np.eye(4, dtype=np.float32)[axes], "f"))
    own = {entry.entry_id: entry for vectors in made for entry in vectors.entries}
    return Query(tuple(made), Dictionary.of("d", own.values()), n_views)


def test_of_several_views_the_most_similar_counts() -> None:
    entries = tuple(Entry(entry_id=name, word=Word("a")) for name in ("a1", "a1", "a2", "a2"))
    vectors = np.array([[0.1, 0.9, 0.3, 0.2], [0.5, 0.4, -0.1, 0.0]], np.float32)
    unit = np.concatenate([vectors, np.sqrt(1 - (vectors**2).sum(axis=1, keepdims=True))], axis=1)
    seen = EmbeddingTrack("v", WindowGrid(17), TimeAxis(np.arange(17) * 40.0), unit, "f")
    words = EntryVectors(Word("a"), entries, np.eye(4, 5, dtype=np.float32), "f")
    (best,) = compare(seen, Query((words,), Dictionary.of("d", entries[::2]), n_views=2))
    assert best.entry_ids == ("a1", "a2")
    np.testing.assert_allclose(best.cosine, [[0.9, 0.3], [0.5, 0.0]], atol=1e-6)
    (plain,) = compare(seen, Query((words,), Dictionary.of("d", entries[::2])))
    assert plain.entry_ids == ("a1", "a1", "a2", "a2")


def test_every_word_is_found_where_it_was_planted() -> None:
    apple, bread = search(track({50: 0, 120: 1}), query(apple=[0], bread=[1]), Rule(threshold=0.5), PROVENANCE)
    for answer, window in ((apple, 50), (bread, 120)):
        (found,) = answer.spottings
        assert found.cosine == pytest.approx(1) and answer.searched_ms is None
        assert found.span_ms.start <= (window + 8) * 40 <= found.span_ms.stop
    assert search(track({}), query(apple=[0]), Rule(threshold=0.5), PROVENANCE)[0].spottings == ()


def test_with_subtitles_a_word_is_looked_for_only_around_its_mentions() -> None:
    seen = track({50: 0, 120: 0})  # at 2.3 s and 5.1 s
    subtitle = Subtitle(MillisSpan(4000, 4500), "An apple.")
    rule, asked = Rule(threshold=0.5), query(apple=[0], bread=[1])
    apple, bread = search(seen, asked, rule, PROVENANCE, {Word("apple"): (subtitle,)}, padding_ms=1000)
    (found,) = apple.spottings
    assert found.span_ms.start <= 5120 <= found.span_ms.stop and found.provenance.subtitle == subtitle
    assert apple.searched_ms == (MillisSpan(3000, 5500),)
    assert bread.spottings == () and bread.searched_ms == ()
    narrow, _ = search(seen, asked, rule, PROVENANCE, {Word("apple"): (subtitle,)}, padding_ms=100)
    assert narrow.spottings == ()


def test_the_nearest_mention_within_reach_is_named() -> None:
    (answer,) = search(track({50: 0}), query(apple=[0]), Rule(threshold=0.5), PROVENANCE)  # at 2.3 s
    early, late = Subtitle(MillisSpan(0, 1000), "early"), Subtitle(MillisSpan(9000, 9500), "late")
    assert [one.provenance.subtitle for one in attributed(answer.spottings, (late, early))] == [early]
    assert [one.provenance.subtitle for one in attributed(answer.spottings, (late, early), reach_ms=100)] == [None]


def test_the_lowest_cosine_is_the_threshold_unless_probabilities_decide() -> None:
    answers = search(track({50: 0}), query(apple=[0]), rule := Rule(threshold=0.5), PROVENANCE)
    assert rule.lowest_cosine(answers) == 0.5
    assert replace(rule, least_presence=0.9).lowest_cosine(answers) == pytest.approx(1)
    assert replace(rule, least_presence=0.9).lowest_cosine(()) == 0.5


def test_the_best_curve_has_the_name_of_the_entry_that_is_highest_anywhere() -> None:
    entries = tuple(Entry(entry_id=name, word=Word("a")) for name in ("a1", "a2"))
    cosine = np.array([[0.6, 0.1], [0.2, 0.9]], np.float32)
    compared = SimilarityTrack(Word("a"), "v", WindowGrid(17), TimeAxis(np.arange(17) * 40.0), entries, cosine)
    best = best_only(compared)
    assert best.entry_ids == ("a2",) and best.cosine.tolist() == np.array([[0.6], [0.9]], np.float32).tolist()
    alone = replace(compared, entries=entries[:1], cosine=cosine[:, :1])
    assert best_only(alone) is alone


def test_clips_of_one_variant_are_drawn_half_way_to_their_mean_and_no_others() -> None:
    """The rule of experiments/queries."""
    rows = np.eye(4, dtype=np.float32)[:, None]
    drawn = drawn_together(rows, ["a", "a", "b", None], 1.0)[:, 0]
    middle = np.array([1, 1, 0, 0], np.float32) / np.sqrt(2)
    expected = rows[0, 0] + middle
    np.testing.assert_allclose(drawn[0], expected / np.linalg.norm(expected), atol=1e-6)
    np.testing.assert_array_equal(drawn[2:], rows[2:, 0])
    np.testing.assert_array_equal(drawn_together(rows, ["a"] * 4, 0.0), rows)
    assert (LandmarkModel.towards_mean, ColourModel.towards_mean) == (1.0, 0.0)


def test_a_clip_that_could_not_be_embedded_draws_no_other() -> None:
    rows = np.array([[1, 0], [0, 0], [np.nan, 1]], np.float32)[:, None]
    np.testing.assert_array_equal(drawn_together(rows, ["a"] * 3, 1.0), rows)


def test_a_moment_is_given_to_the_word_it_resembles_most() -> None:
    """Two words look like the same window; the rule says whether they compete for it."""
    seen = track({50: 0, 120: 1})
    rows = seen.vectors.copy()
    rows[50] = (0.8, 0.6, 0, 0)
    seen = replace(seen, vectors=rows)
    for compete, found in ((True, ([50], [120])), (False, ([50], [50, 120]))):
        rule = Rule(threshold=0.5, compete=compete)
        answers = search(seen, query(apple=[0], bread=[1]), rule, PROVENANCE)
        assert tuple([one.frame - 8 for one in answer.spottings] for answer in answers) == found


def test_with_a_calibration_probabilities_decide_and_the_lowest_cosines_are_not_looked_at() -> None:
    logistic = Logistic((0.0,) * 6, (1.0,) * 6, (10.0, 0.0, 0.0, 0.0, 0.0, 0.0), -5.0)  # one half at 0.5
    fit = PresenceFit(logistic, None, np.array([0.9, 0.6, 0.1]), 1.0)
    known = Calibration(
        model="m", fingerprint="f", plain=fit, read=None, cohort=np.zeros((0, 4), np.float32), cohort_words=(),
        fitted_on="", lowest=0.2,
    )  # fmt: skip
    rows = np.zeros((N_FRAMES - 15, 4), np.float32)
    rows[:, 3] = 1
    for window, cosine in ((20, 0.1), (80, 0.4), (140, 0.7)):
        rows[window] = (cosine, 0, 0, (1 - cosine**2) ** 0.5)
    seen = replace(track({}), vectors=rows)
    rule = Rule(threshold=0.3, calibration=known, least_presence=0.5)
    (answer,) = search(seen, query(apple=[0]), rule, PROVENANCE)
    assert [one.frame - 8 for one in answer.spottings] == [140]
    assert answer.presence is not None
    shown, hidden = (1 / (1 + np.exp(-(10 * cosine - 5))) for cosine in (0.7, 0.4))
    assert answer.presence.probability == pytest.approx(1 - (1 - shown) * (1 - hidden), abs=1e-4)
    (by_cosine,) = search(seen, query(apple=[0]), replace(rule, least_presence=None), PROVENANCE)
    assert [one.frame - 8 for one in by_cosine.spottings] == [80, 140], "a threshold that is asked for decides"
