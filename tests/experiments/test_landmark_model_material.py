"""Who is held out: never the same word, signer or recording on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.lib.landmark_model import Fold, RealSign, RealSigning, RecordedSign, draw_fold

from signspot.domain.recordings import Word
from signspot.domain.time import FrameSpan


def real(word: str, signer: str, split: str = "", is_repeat: bool = False) -> RealSign:
    sign = RecordedSign(Word(word), signer, np.zeros((1, 258), np.float32), FrameSpan(0, 1))
    return RealSign(sign, f"{word} {signer}", split, is_repeat)


SIGNING = RealSigning(
    tuple(
        real(f"w{word}", f"s{signer}", ("train", "val", "test")[(word + signer) % 3], (word, signer) == (1, 1))
        for word in range(12)
        for signer in range(10)
    ),
    tuple(real(f"w{word}", f"s{signer}") for word in range(14) for signer in range(12)),
)


@pytest.fixture(scope="module", params=range(4))
def fold(request: pytest.FixtureRequest) -> Fold:
    return draw_fold(SIGNING, request.param, n_words=5, signer_share=0.3)


def test_neither_words_nor_signers_of_the_queries_are_trained(fold: Fold) -> None:
    trained, queries = ({sign.word for sign in signs} for signs in (fold.training, fold.query))
    assert not trained & queries and len(queries) == 5
    signers = {sign.signer for sign in fold.training}
    assert not signers & {sign.signer for sign in (*fold.query, *fold.seen_query)}
    assert len({sign.signer for sign in fold.query}) == 3  # three tenths of the clips


def test_examples_are_of_held_out_words_by_other_signers(fold: Fold) -> None:
    assert {sign.word for sign in fold.support} == {sign.word for sign in fold.query}
    assert not {sign.signer for sign in fold.support} & {sign.signer for sign in fold.query}


def test_a_fold_loses_no_clip_but_the_repeats(fold: Fold) -> None:
    n = sum(len(signs) for signs in (fold.support, fold.query, fold.seen_support, fold.seen_query))
    assert n == len(SIGNING.wlasl300) - 1


def test_the_same_seed_draws_the_same_fold() -> None:
    first, second = (draw_fold(SIGNING, 3, n_words=5).query for _ in range(2))
    assert [id(sign) for sign in first] == [id(sign) for sign in second]


def test_official_splits_are_kept_apart_and_repeats_dropped() -> None:
    train, test = SIGNING.official("train"), SIGNING.test("test")
    ids = {id(sign) for sign in train}
    assert not ids & {id(sign) for sign in test}
    assert len(train) == sum(r.split == "train" and not r.is_repeat for r in SIGNING.wlasl300) + len(SIGNING.asl30)
