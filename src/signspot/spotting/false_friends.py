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

from signspot.domain.dictionary import Entry
from signspot.domain.tracks import FloatArray
from signspot.domain.words import Word
from signspot.spotting.form_judge import agreement

Numbers = npt.NDArray[np.int64]


class Relation(Enum):
    """How a word of one language and a word of another relate."""

    COGNATE = "same word, same form"
    DIFFERENT_FORM = "same word, different form"
    FALSE_FRIEND = "different words, same form"


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
    cosine: float | None  # None: they were compared part by part
    closeness: float  # the cosine beyond what is usual for these two words; by parts: log odds that the form is one
    agree: tuple[str, ...] = ()  # the parts in which the two agree, where they were compared part by part
    differ: tuple[str, ...] = ()

    @property
    def likeness(self) -> str:
        """How alike the two are, for people."""
        if self.cosine is None:
            return f"{_agreement(self.agree, self.differ)}; log odds {self.closeness:.1f}"
        return f"closeness {self.closeness:.2f}, cosine {self.cosine:.2f}"


def _agreement(agree: tuple[str, ...], differ: tuple[str, ...]) -> str:
    """Which parts agree, for people.

    >>> _agreement(("place", "movement", "palm"), ("hand shape",))
    'same place, movement and palm; hand shape differs'
    """
    if not differ:
        return "all parts agree"
    names, verb = _listed(differ), "differs" if len(differ) == 1 else "differ"
    return f"same {_listed(agree)}; {names} {verb}" if agree else f"{names} differ"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


@dataclass(frozen=True, slots=True, eq=False)
class Shelf:
    """One dictionary, embedded."""

    entries: tuple[Entry, ...]
    vectors: FloatArray  # (n, d) unit rows

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.entries):
            raise ValueError(f"{len(self.entries)} entries but vectors of shape {self.vectors.shape}")


def friends(first: Shelf, second: Shelf, options: FriendOptions = FriendOptions()) -> tuple[Friends, ...]:
    """All pairs worth showing: false friends, then words in both that differ, then cognates; the closest first."""
    if not first.entries or not second.entries:
        return ()
    words, other_words = words_of(first.entries), words_of(second.entries)
    cosine, entry_at, other_at = _word_cosines(first, second, words, other_words)
    usual = (_usual(cosine, options.neighbours) + _usual(cosine.T, options.neighbours).T) / np.float32(2)
    closeness: FloatArray = cosine - usual
    same_form = (closeness >= options.least_closeness) & _among_first(closeness, options.rank)
    same_form &= _among_first(closeness.T, options.rank).T & (cosine >= options.least_cosine)
    return told(Compared(words, other_words, cosine, closeness, same_form, entry_at, other_at), first, second)


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """All words of one dictionary with all of another; every array is (n_words, n_other_words)."""

    words: list[Word]
    other_words: list[Word]
    cosine: FloatArray | None
    closeness: FloatArray
    same_form: npt.NDArray[np.bool_]
    entry_at: Numbers  # the entries that speak for their words
    other_at: Numbers
    parts: FloatArray | None = None  # (..., 5) how much each part differs; None: compared by one vector each


def told(compared: Compared, first: Shelf, second: Shelf) -> tuple[Friends, ...]:
    """The pairs of the same form and those of the same word, in the order in which people look at them."""
    place = {word: number for number, word in enumerate(compared.other_words)}
    found: list[Friends] = []
    for i, word in enumerate(compared.words):
        of_interest = {*np.flatnonzero(compared.same_form[i]).tolist(), *([place[word]] if word in place else [])}
        for j in sorted(of_interest):
            same_form = bool(compared.same_form[i, j])
            relation = _relation(same_word=word == compared.other_words[j], same_form=same_form)
            entry, other = first.entries[compared.entry_at[i, j]], second.entries[compared.other_at[i, j]]
            cosine = None if compared.cosine is None else float(compared.cosine[i, j])
            agree, differ = ((), ()) if compared.parts is None else agreement(compared.parts[i, j])
            found.append(Friends(relation, entry, other, cosine, float(compared.closeness[i, j]), agree, differ))
    order = {Relation.FALSE_FRIEND: 0, Relation.DIFFERENT_FORM: 1, Relation.COGNATE: 2}
    return tuple(sorted(found, key=lambda one: (order[one.relation], -one.closeness, one.entry.word, one.other.word)))


def _relation(*, same_word: bool, same_form: bool) -> Relation:
    if not same_word:
        return Relation.FALSE_FRIEND
    return Relation.COGNATE if same_form else Relation.DIFFERENT_FORM


def words_of(entries: Sequence[Entry]) -> list[Word]:
    """The words of some entries, sorted."""
    return sorted({entry.word for entry in entries})


def _word_cosines(
    first: Shelf, second: Shelf, words: list[Word], other_words: list[Word]
) -> tuple[FloatArray, Numbers, Numbers]:
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
