from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from signspot.domain.recordings import Vocabulary, Word
from signspot.errors import InputError
from signspot.learning.material import Material
from tests.learning.problems import Sizes, random_material, with_passages


def with_column(name: str, value: Any) -> Material:
    material = random_material()
    return with_passages(material, dataclasses.replace(material.passages, **{name: value}))


def replaced(**changes: Any) -> Material:
    return dataclasses.replace(random_material(), **changes)


def test_sound_material_passes() -> None:
    random_material().check("here")


@pytest.mark.parametrize(
    ("material", "message"),
    [
        (replaced(vocabulary=Vocabulary(())), "has an empty vocabulary"),
        (replaced(fingerprint=""), "does not say which trunk"),
        (replaced(entry_word=np.zeros(3, np.int64)), "24 dictionary entries, 3 words"),
        (
            replaced(entry_ids=(), entry_word=np.empty(0, np.int64), entry_vectors=np.empty((0, 6), np.float32)),
            "has no dictionary entries",
        ),
        (replaced(entry_word=np.full(24, 99)), "words of entries: are not whole numbers from 0 to 11"),
        (replaced(entry_word=np.zeros(24)), "words of entries: are not whole numbers"),
        (replaced(entry_vectors=np.full((24, 6), np.nan, np.float32)), "entry 0: its vector holds what is no number"),
        (replaced(tracks=(np.zeros((30, 5), np.float16),)), "track 0 has float16 rows of shape"),
        (replaced(tracks=(np.zeros((30, 6), np.int64),)), "track 0 has int64 rows"),
        (replaced(tracks=()), "tracks of passages: are not whole numbers"),
        (with_column("start", np.zeros(3, np.int64)), r"different lengths: \[3, 60\]"),
        (with_column("label", np.full(60, -1)), "labels of passages: are not whole numbers from 0 to 11"),
        (with_column("label_frame", np.full(60, -5)), "label_frame of passages"),
        (with_column("words", np.full(300, 12)), "words of passages"),
        (with_column("word_offsets", np.arange(61)), "the words of passages do not follow one another"),
        (with_column("confidence", np.full(60, np.nan, np.float32)), "a confidence that is not between 0 and 1"),
    ],
)
def test_columns_that_do_not_fit_are_refused(material: Material, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        material.check("here")
    assert str(caught.value).startswith("here")


def test_vectors_of_other_trunks_do_not_mix() -> None:
    first = random_material()
    first.refuse_other_trunk(random_material(Sizes(n_passages=3)), "test set")
    with pytest.raises(InputError, match="test set: its vectors come from the trunk 0123"):
        first.refuse_other_trunk(replaced(fingerprint="0123"), "test set")
    with pytest.raises(InputError, match="its vocabulary is another one"):
        first.refuse_other_trunk(replaced(vocabulary=Vocabulary((Word("a"),))), "test set")
