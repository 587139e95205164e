from __future__ import annotations

import numpy as np
import pytest

from signspot.errors import InputError
from signspot.evaluation.measures import average_precision
from signspot.evaluation.protocol import ProtocolOptions, ProtocolScores, _margins, choose_cases, score_passages
from tests.evaluation.embedded import random_gallery, random_passages

GALLERY_WORDS = np.repeat(np.arange(10), 3)


def scored(n_listed: int | None, seed: int = 0) -> ProtocolScores:
    rng = np.random.default_rng(seed)
    passages = random_passages(rng, np.arange(20) % 10, d=6)
    options = ProtocolOptions(n_listed=n_listed, keep_cosine=True)
    return score_passages(passages, random_gallery(rng, GALLERY_WORDS, d=6), options)


@pytest.mark.parametrize("n_listed", [0, 4])
def test_decisions_are_those_a_loop_over_windows_makes(n_listed: int) -> None:
    rng = np.random.default_rng(3)
    gallery = random_gallery(rng, GALLERY_WORDS, d=6)
    passages = random_passages(rng, np.arange(20) % 10, d=6)
    found = score_passages(passages, gallery, ProtocolOptions(n_listed=n_listed)).decisions
    assert found is not None
    expected = []
    for number, passage in enumerate(passages):
        cosine = passage.vectors.astype(np.float64) @ gallery.vectors.astype(np.float64).T
        order = sorted(range(30), key=lambda row: -cosine[:, row].max())
        for row in range(30):
            if row in order[:n_listed] or gallery.words[row] == passage.word:
                frame = int(passage.centres[cosine[:, row].argmax()])
                right = gallery.words[row] == passage.word and -20 <= frame - passage.label_frame <= 5
                expected.append((number, row, order.index(row) + 1, frame, bool(right)))
    columns = (found.passage, found.entry_row, found.rank, found.found_frame, found.is_right)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


def test_the_scores_can_be_computed_from_the_decisions_alone() -> None:
    scores = scored(n_listed=5)
    listed = scores.decisions
    assert listed is not None and scores.cosine is not None
    for place in range(len(scores.passage_ids)):
        own = listed.passage == place
        assert average_precision(listed.rank[own & listed.is_right], 3) == scores.passages.ap[place]
        assert set(range(1, 6)) <= set(listed.rank[own].tolist())
    np.testing.assert_array_equal(listed.cosine, scores.cosine[listed.passage, listed.entry_row])


def test_listing_changes_no_score_and_is_off_unless_asked_for() -> None:
    plain, listed = scored(None), scored(7)
    assert plain.decisions is None
    assert plain.passages.ap.tolist() == listed.passages.ap.tolist()
    assert plain.found_frame.tolist() == listed.found_frame.tolist()
    with pytest.raises(InputError, match="see ProtocolOptions"):
        ProtocolOptions(n_listed=-1)


COSINE = np.array(
    [
        [0.9, 0.3, 0.1],  # word 0: clear
        [0.5, 0.6, 0.1],  # word 0: just beaten by word 1
        [0.2, 0.8, 0.1],  # word 1: first, but elsewhere
        [0.7, 0.1, 0.2],  # word 1: missed
        [0.4, 0.2, 0.3],  # word 2: missed, by less
    ],
    dtype=np.float32,
)
PASSAGE_WORDS = np.array([0, 0, 1, 1, 2])
LOCALISED = np.array([True, True, False, False, False])


def test_margins_by_hand() -> None:
    margin, other = _margins(COSINE, PASSAGE_WORDS, np.arange(3))
    np.testing.assert_allclose(margin, [0.6, -0.1, 0.6, -0.6, -0.1], atol=1e-6)
    assert other.tolist() == [1, 1, 0, 0, 0]


def test_a_margin_without_another_word_is_against_nothing() -> None:
    margin, other = _margins(np.array([[0.25, -np.inf]], np.float32), np.array([4]), np.array([4, 4]))
    assert (margin.tolist(), other.tolist()) == ([2.25], [-1])
    with pytest.raises(InputError, match="one row a passage"):
        _margins(COSINE, PASSAGE_WORDS[:2], np.arange(3))


def test_cases_are_the_extremes_of_each_kind() -> None:
    cases = choose_cases(COSINE, PASSAGE_WORDS, np.arange(3), LOCALISED)
    assert [(one.kind, one.passage) for one in cases] == [
        ("clear", 0),
        ("just beaten", 1),
        ("wrong time", 2),
        ("missed", 3),
        ("missed", 4),
    ]
    assert [one.kind for one in choose_cases(COSINE, PASSAGE_WORDS, np.arange(3), LOCALISED, each=1)][-1] == "missed"
    assert len(choose_cases(COSINE, PASSAGE_WORDS, np.arange(3), LOCALISED, each=1)) == 4


def test_a_word_is_shown_once_of_each_kind() -> None:
    cosine = np.array([[0.9, 0.1], [0.8, 0.1], [0.1, 0.2]], np.float32)
    cases = choose_cases(cosine, np.array([0, 0, 1]), np.arange(2), np.ones(3, np.bool_))
    assert [one.passage for one in cases] == [0, 2]
