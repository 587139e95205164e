"""Which words a protocol trains on and tests, and what it compares: pure choices on arrays.

Paper 4.2 trains on all 1064 words or on 800 of them, and tests on the other 264 either way ("seen", "unseen"). How the
264 were chosen is not said: here they are drawn evenly over the range of frequencies, by a seed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from signspot.errors import InputError
from signspot.evaluation.protocol import Gallery, TestPassage
from signspot.evaluation.ranking import Ints

N_UNSEEN = 264  # Paper 4.2
TEST_CONFIDENCE = 0.9  # Paper 4.1: of the automatic labels that passages are tested on


def draw_unseen_words(frequency: Ints, n_unseen: int = N_UNSEEN, *, seed: int = 0) -> Ints:
    """Choose the words to test, ascending, from the `frequency` (n_words,) of every word in the annotations.

    Words are ordered by frequency and cut into `n_unseen` runs of nearly equal length; one word is drawn of each. Words
    that were never annotated cannot be tested and are not drawn.
    """
    annotated = np.flatnonzero(frequency > 0)
    if not 0 < n_unseen <= len(annotated):
        what = f"{n_unseen} unseen words of {len(annotated)} that have annotations"
        raise InputError("split", what, "ask for fewer words, or annotate more")
    by_frequency = annotated[np.argsort(-frequency[annotated], kind="stable")]
    rng = np.random.default_rng(seed)
    return np.sort([rng.choice(run) for run in np.array_split(by_frequency, n_unseen)])


def limited_to(gallery: Gallery, words: Ints) -> Gallery:
    """The entries of `words` only, in the same order (Paper Tab. 3: a limited dictionary vocabulary)."""
    kept = np.isin(gallery.words, words)
    return Gallery(gallery.words[kept], gallery.vectors[kept])


def with_stride(passage: TestPassage, stride: int) -> TestPassage:
    """The passage with every `stride`-th window and the last, as a grid of that stride has them (Paper App. B.5)."""
    if stride < 1:
        raise InputError(passage.passage_id, f"a stride of {stride}", "a stride is at least 1")
    n_windows = len(passage.centres)
    kept = np.union1d(np.arange(0, n_windows, stride), np.arange(max(0, n_windows - 1), n_windows))
    return replace(passage, centres=passage.centres[kept], vectors=passage.vectors[kept])
