from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.tracks import FloatArray
from signspot.errors import InputError
from signspot.evaluation.confusion import MinimalPair, look_alike_pairs, minimal_pair_report
from signspot.evaluation.protocol import ProtocolOptions, score_passages
from tests.evaluation.embedded import random_gallery, random_passages, true_passages

WORDS = np.array([0, 1, 1, 2, 3])  # of the gallery


def row(**best: float) -> list[float]:
    """The cosines of one passage; the second entry of word 1 is never better than the first."""
    return [best.get("zero", 0.0), best.get("one", 0.0), -1.0, best.get("two", 0.0), best.get("three", 0.0)]


def table(*rows: list[float]) -> FloatArray:
    return np.array(rows, dtype=np.float32)


def test_confusion_counts_both_directions_and_ties_are_confused() -> None:
    pair = MinimalPair(0, 1, "handshape")
    cosine = table(
        row(zero=0.9, one=0.5),  # of word 0: told apart
        row(zero=0.5, one=0.75),  # of word 0: confused
        row(zero=0.5, one=0.5),  # of word 1: a tie
        row(two=0.9),  # of word 2: not of the pair
    )
    report = minimal_pair_report(cosine, WORDS, np.array([0, 0, 1, 2]), [pair])
    (found,) = report.pairs
    assert (found.n_confused, found.n_passages, found.rate) == (2, 3, pytest.approx(2 / 3))
    assert found.mean_margin == pytest.approx((0.4 - 0.25 + 0) / 3)
    assert [(kind.differs_in, kind.rate.estimate) for kind in report.kinds] == [("handshape", pytest.approx(2 / 3))]


def test_other_words_are_those_that_form_no_pair_with_the_passages_word() -> None:
    cosine = table(
        row(zero=0.5, one=0.9, two=0.7, three=0.1),  # of word 0: other words 2 (ahead) and 3 (behind); 1 is its pair
        row(zero=0.5, one=0.9, two=0.7, three=0.1),  # of word 2: others 0 (behind), 1 (ahead), 3 (behind)
    )
    report = minimal_pair_report(cosine, WORDS, np.array([0, 2]), [MinimalPair(1, 0, "location")])
    assert report.other_words is not None
    assert report.other_words.estimate == pytest.approx(2 / 5)


def test_the_worst_pair_comes_first_and_pairs_nobody_shows_are_named() -> None:
    cosine = table(row(zero=0.9, one=0.1, two=0.95), row(zero=0.9, one=0.1, two=0.95))
    mild, bad = MinimalPair(0, 1, "movement"), MinimalPair(0, 2, "location")
    unknown, not_signed = MinimalPair(0, 77, "location"), MinimalPair(2, 3, "handshape")
    report = minimal_pair_report(cosine, WORDS, np.array([0, 0]), [mild, unknown, bad, not_signed])
    assert [one.pair for one in report.pairs] == [bad, mild]
    assert report.not_shown == (unknown, not_signed)
    assert [kind.differs_in for kind in report.kinds] == ["location", "movement"]


def test_truth_confuses_nothing_and_blind_vectors_confuse_half() -> None:
    rng = np.random.default_rng(0)
    gallery = random_gallery(rng, np.repeat(np.arange(20), 2), d=64)
    pairs = [MinimalPair(i, i + 1, "handshape") for i in range(0, 20, 2)]
    keep = ProtocolOptions(keep_cosine=True)
    for passages, rate in (
        (true_passages(rng, gallery, np.arange(40) % 20), 0.0),
        (random_passages(rng, np.arange(1000) % 20, n_windows=50, d=64), 0.5),
    ):
        scores = score_passages(passages, gallery, keep)
        assert scores.cosine is not None
        report = minimal_pair_report(scores.cosine, gallery.words, scores.passages.words, pairs)
        assert report.kinds[0].rate.estimate == pytest.approx(rate, abs=0.05)
        assert report.other_words is not None
        assert report.other_words.estimate == pytest.approx(rate, abs=0.05)


def test_what_could_not_be_compared_is_confused_not_a_failure() -> None:
    cosine = np.full((1, 5), -np.inf, dtype=np.float32)
    report = minimal_pair_report(cosine, WORDS, np.array([0]), [MinimalPair(0, 1, "handshape")])
    assert report.pairs[0].n_confused == 1
    assert report.pairs[0].mean_margin == 0.0


def test_a_gallery_of_one_pair_has_no_other_words() -> None:
    cosine = np.array([[0.5, 0.1]], dtype=np.float32)
    report = minimal_pair_report(cosine, np.array([0, 1]), np.array([0]), [MinimalPair(0, 1, "handshape")])
    assert report.other_words is None


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="one row for each passage"):
        minimal_pair_report(np.zeros((2, 5), np.float32), WORDS, np.array([0]), [])
    with pytest.raises(InputError, match="one row for each passage"):
        minimal_pair_report(np.zeros((0, 5), np.float32), WORDS, np.empty(0, np.int64), [])


def test_words_that_are_each_others_nearest_are_a_pair() -> None:
    angles = np.radians([0, 90, 5, 92, 40, 180])  # of the entries of words 3, 5, 4, 5, 6, 7
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    pairs = look_alike_pairs(vectors, np.array([3, 5, 4, 5, 6, 7]))
    # 6 is nearest to 4, but 4 is nearest to 3; 7 is nearest to 5, and 5 to 6.
    assert pairs == (MinimalPair(3, 4, "look alike"),)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_mutual_and_no_word_is_in_two(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gallery = random_gallery(rng, np.repeat(np.arange(20), 2), d=4)
    cosine = gallery.vectors.astype(np.float64) @ gallery.vectors.T.astype(np.float64)
    alike = cosine.reshape(20, 2, 20, 2).max(axis=(1, 3))
    np.fill_diagonal(alike, -2)
    expected = {
        (a, int(alike[a].argmax())) for a in range(20) if alike[alike[a].argmax()].argmax() == a < alike[a].argmax()
    }
    pairs = look_alike_pairs(gallery.vectors, gallery.words)
    assert {(pair.first, pair.second) for pair in pairs} == expected and expected
    assert len({word for pair in pairs for word in (pair.first, pair.second)}) == 2 * len(pairs)


def test_one_word_has_nothing_to_be_taken_for() -> None:
    assert look_alike_pairs(np.eye(3, dtype=np.float32), np.zeros(3, np.int64)) == ()
    with pytest.raises(InputError, match="give pairs"):
        look_alike_pairs(np.eye(3, dtype=np.float32), np.zeros(2, np.int64))
