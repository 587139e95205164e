from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from signspot.domain.recordings import Word
from signspot.errors import InputError
from signspot.evaluation.protocol import Gallery, TestPassage, score_passages
from signspot.learning.head import score_head
from signspot.learning.material import Material
from signspot.models.head import Head, HeadConfig
from tests.learning.planted import DIM, World, planted

WORLD = World(n_words=12, n_annotated=6, n_signers=4)


@pytest.fixture(scope="module")
def test_set() -> Material:
    return planted(WORLD, seed=3, n_train=6, n_test=40)[1]


def head(domains: int = 1) -> Head:
    torch.manual_seed(0)
    return Head(HeadConfig(input_dim=DIM, hidden_dim=16, embedding_dim=8, domains=domains))


@pytest.mark.parametrize(("stride", "domains"), [(1, 1), (8, 1), (1, 2)])
def test_scores_are_those_of_every_passage_embedded_by_itself(test_set: Material, stride: int, domains: int) -> None:
    network = head(domains)

    def embedded(rows: object, domain: int) -> object:
        with torch.no_grad():
            return network(torch.tensor(np.asarray(rows, np.float32)), min(domain, domains - 1)).embedding.numpy()

    p = test_set.passages
    gallery = [e for e in range(len(test_set.entry_word)) if test_set.entry_word[e] in set(p.label)]
    expected = score_passages(
        [
            TestPassage(
                p.names[i],
                int(p.label[i]),
                int(p.label_frame[i]),
                np.array(starts) + 8,
                embedded(test_set.tracks[i][starts], 0),  # type: ignore[arg-type]
            )
            for i in range(len(p))
            for starts in [sorted({*range(0, p.stop[i] - 15, stride), int(p.stop[i]) - 16})]
        ],
        Gallery(test_set.entry_word[gallery], embedded(test_set.entry_vectors[gallery], 1)),  # type: ignore[arg-type]
    )
    scores = score_head(network, test_set, None, stride=stride)
    assert scores.mean_ap == pytest.approx(expected.mean_ap, abs=1e-9)
    assert scores.recall_at_5 == pytest.approx(expected.recall_at_5, abs=1e-9)
    assert scores.localisation == expected.localisation
    np.testing.assert_array_equal(scores.found_frame, expected.found_frame)


def test_only_the_test_words_are_looked_up(test_set: Material) -> None:
    words = WORLD.unannotated[:2]
    scores = score_head(head(), test_set, (*words, Word("unheard-of")))
    assert set(scores.passages.words) == {6, 7}
    assert scores.n_entries == 4


def test_windows_stay_inside_the_passage(test_set: Material) -> None:
    p = test_set.passages
    cut = replace(test_set, passages=replace(p, start=p.start + 30, stop=p.stop - 30))
    scores = score_head(head(), cut, None)
    assert scores.found_frame.min() >= 30 + 8
    assert scores.found_frame.max() <= int(p.stop[0]) - 30 - 8


def test_a_passage_at_the_very_end_of_its_video_has_a_window(test_set: Material) -> None:
    p = test_set.passages
    late = replace(test_set, passages=replace(p, start=p.stop - 3))
    assert len(score_head(head(), late, None).found_frame) == len(p)


def test_test_words_without_entries_are_an_error(test_set: Material) -> None:
    with pytest.raises(InputError, match="no entry for any test word"):
        score_head(head(), test_set, (Word("unheard-of"),))
