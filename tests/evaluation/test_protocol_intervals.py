from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from signspot.evaluation.measures import BootstrapOptions
from signspot.evaluation.protocol import score_passages
from tests.evaluation.embedded import random_gallery, random_passages, true_passages


def test_vectors_that_know_nothing_score_chance_on_average_over_many_worlds() -> None:
    figures = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        gallery = random_gallery(rng, np.repeat(np.arange(40), 3), d=32)
        scores = score_passages(random_passages(rng, np.arange(400) % 40, d=32), gallery)
        figures.append(
            (
                scores.mean_ap / scores.chance_mean_ap,
                scores.recall_at_5 / scores.chance_recall_at_k,
                scores.localisation / scores.chance_localisation,
            )
        )
        assert scores.chance_localisation == pytest.approx(0.26)
    mean, error = np.mean(figures, axis=0), np.std(figures, axis=0, ddof=1) / 4
    assert (error < [0.06, 0.12, 0.04]).all()  # close enough to notice a wrong formula
    assert (np.abs(mean - 1) < 3 * error).all()


def test_most_intervals_hold_chance() -> None:
    held = []
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        gallery = random_gallery(rng, np.repeat(np.arange(30), 3), d=32)
        scores = score_passages(random_passages(rng, np.arange(240) % 30, d=32), gallery)
        intervals = scores.intervals(BootstrapOptions(draws=300))
        held.append(
            (
                scores.chance_mean_ap in intervals.mean_ap.by_class,
                scores.chance_localisation in intervals.localisation.by_class,
            )
        )
    assert (np.mean(held, axis=0) >= 0.75).all()


def test_estimates_are_the_scores_themselves() -> None:
    rng = np.random.default_rng(2)
    gallery = random_gallery(rng, np.repeat(np.arange(10), 3))
    scores = score_passages(random_passages(rng, rng.integers(0, 10, size=80)), gallery)
    intervals = scores.intervals(BootstrapOptions(draws=50))
    for both, expected in (
        (intervals.mean_ap, scores.mean_ap),
        (intervals.recall_at_k, scores.recall_at_5),
        (intervals.localisation, scores.localisation),
    ):
        assert both.by_class.estimate == pytest.approx(expected) == both.by_signer.estimate
        assert (both.by_class.n_units, both.by_signer.n_units) == (10, 5)
    assert intervals.entries_mean_ap.estimate == pytest.approx(scores.entries.class_ap.mean)
    assert intervals.entries_recall_at_k.estimate == pytest.approx(scores.entries.class_recall.mean)


def test_truth_leaves_no_doubt() -> None:
    rng = np.random.default_rng(0)
    gallery = random_gallery(rng, np.repeat(np.arange(30), 3), d=64)
    scores = score_passages(true_passages(rng, gallery, np.arange(60) % 30), gallery)
    for interval in (scores.intervals().mean_ap.by_class, scores.intervals().localisation.by_signer):
        assert (interval.estimate, interval.low, interval.high) == (1.0, 1.0, 1.0)


def test_signers_are_drawn_only_where_all_are_named() -> None:
    rng = np.random.default_rng(3)
    gallery = random_gallery(rng, np.arange(4))
    named = random_passages(rng, np.arange(12) % 4)
    assert score_passages(named, gallery).intervals().mean_ap.by_signer.n_units == 5
    some = [*named, replace(named[0], signer="")]
    unnamed = score_passages(some, gallery).intervals().localisation.by_signer
    assert (unnamed.n_units, unnamed.low, unnamed.high) == (1, None, None)
