"""Two dictionaries side by side: what looks the same under the same word, and under different ones.

Words are compared by their entries: the cosine of two words is that of their two most similar entries. A cosine says
little by itself, because some signs look like many others; so each is also compared with what is usual for its two
words: `closeness` is the cosine minus the mean of both words' `neighbours` next best cosines in the other language
("cross-domain similarity local scaling", half of it). Two words are of the same form if they are close enough, and each
is among the first few of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Entry, Word
from signspot.domain.tracks import FloatArray, Ints


class Relation(Enum):
    """How a word of one language and a word of another relate, in the order in which people look at them."""

    FALSE_FRIEND = "different words, same form"
    DIFFERENT_FORM = "same word, different form"
    COGNATE = "same word, same form"

    @classmethod
    def of(cls, *, same_word: bool, same_form: bool) -> Relation:
        """How two words relate of which at least something is the same."""
        if not same_word:
            return cls.FALSE_FRIEND
        return cls.COGNATE if same_form else cls.DIFFERENT_FORM


@dataclass(frozen=True, slots=True, kw_only=True)
class FriendOptions:
    """When two signs count as the same form."""

    least_closeness: float = 0.5
    least_cosine: float = -1.0  # among few words the closest may look nothing alike
    neighbours: int = 10  # that say what is usual for a word
    rank: int = 2  # each word is among that many first of the other: a word may have a cognate and a false friend

    def __post_init__(self) -> None:
        if self.neighbours < 1 or self.rank < 1 or not -2 <= self.least_closeness <= 2:
            raise ValueError(f"friends cannot be told by {self}")


@dataclass(frozen=True, slots=True)
class Friends:
    """Two words of two languages, by their two most similar entries."""

    relation: Relation
    entry: Entry  # of the first dictionary
    other: Entry  # of the second
    cosine: float
    closeness: float  # the cosine beyond what is usual for these two words

    @property
    def likeness(self) -> str:
        return f"closeness {self.closeness:.2f}, cosine {self.cosine:.2f}"


@dataclass(frozen=True, slots=True, eq=False)
class Gallery:
    """One dictionary, embedded."""

    entries: tuple[Entry, ...]
    vectors: FloatArray  # (n, d) unit rows

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.entries):
            raise ValueError(f"{len(self.entries)} entries but vectors of shape {self.vectors.shape}")

    def words(self) -> list[Word]:
        return sorted({entry.word for entry in self.entries})


def friends(first: Gallery, second: Gallery, options: FriendOptions = FriendOptions()) -> tuple[Friends, ...]:
    """All pairs worth showing: false friends, then words in both that differ, then cognates; the closest first."""
    if not first.entries or not second.entries:
        return ()
    words, other_words = first.words(), second.words()
    cosine, entry_at, other_at = _word_cosines(first, second, words, other_words)
    usual = (_usual(cosine, options.neighbours) + _usual(cosine.T, options.neighbours).T) / np.float32(2)
    closeness: FloatArray = cosine - usual
    same_form = (closeness >= options.least_closeness) & _among_first(closeness, options.rank)
    same_form &= _among_first(closeness.T, options.rank).T & (cosine >= options.least_cosine)
    found = [
        Friends(
            Relation.of(same_word=words[i] == other_words[j], same_form=bool(same_form[i, j])),
            first.entries[entry_at[i, j]],
            second.entries[other_at[i, j]],
            float(cosine[i, j]),
            float(closeness[i, j]),
        )
        for i, j in worth_showing(words, other_words, same_form)
    ]
    order = list(Relation)
    return tuple(
        sorted(found, key=lambda one: (order.index(one.relation), -one.closeness, one.entry.word, one.other.word))
    )


def worth_showing(
    words: Sequence[Word], other_words: Sequence[Word], same_form: npt.NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Which words (of the first, of the other language) have the same form, or are the same word."""
    place, shown = {word: number for number, word in enumerate(other_words)}, same_form.copy()
    for i, word in enumerate(words):
        if word in place:
            shown[i, place[word]] = True
    return [(i, j) for i, j in np.argwhere(shown).tolist()]


def _word_cosines(
    first: Gallery, second: Gallery, words: list[Word], other_words: list[Word]
) -> tuple[FloatArray, Ints, Ints]:
    """(n_words, n_other_words) the cosine of the most similar entries, and which two entries those are."""
    columns = [np.flatnonzero([entry.word == word for entry in second.entries]) for word in other_words]
    cosine = np.empty((len(words), len(other_words)), np.float32)
    entry_at, other_at = np.zeros(cosine.shape, np.int64), np.zeros(cosine.shape, np.int64)
    for i, word in enumerate(words):
        rows = np.flatnonzero([entry.word == word for entry in first.entries])
        block = first.vectors[rows] @ second.vectors.T
        for j, own in enumerate(columns):
            part = block[:, own]
            row, column = np.unravel_index(int(part.argmax()), part.shape)
            cosine[i, j] = part[row, column]
            entry_at[i, j], other_at[i, j] = rows[row], own[column]
    return cosine, entry_at, other_at


def _usual(cosine: FloatArray, neighbours: int) -> FloatArray:
    """(n, 1) the mean of the cosines of each row that come after its highest."""
    ranked = -np.sort(-cosine, axis=1)[:, 1 : neighbours + 1]
    if not ranked.shape[1]:
        return np.zeros((len(cosine), 1), np.float32)
    usual: FloatArray = ranked.mean(axis=1, keepdims=True)
    return usual


def _among_first(closeness: FloatArray, rank: int) -> npt.NDArray[np.bool_]:
    """Which cells are among the `rank` highest of their row."""
    least = -np.sort(-closeness, axis=1)[:, min(rank, closeness.shape[1]) - 1]
    return np.asarray(closeness >= least[:, None])
