"""Did you mean: the words whose dictionary clips look most like a recording of one sign, with a band of confidence.

The bands are those of every command (`domain.results.Band`). Here cosines decide: how the recording compares with the
dictionary. experiments/lookup says how often each band was right where the truth is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from signspot.domain.recordings import Entry, Word
from signspot.domain.results import Band
from signspot.domain.tracks import FloatArray, unit

_MIRRORED = 2 / 3  # of the way from a perfect match: a mirror image that is hardly nearer says nothing about the hands


@dataclass(frozen=True, slots=True)
class Guess:
    """A word that a recording may show."""

    word: Word
    entry: Entry  # that looks most like the recording
    cosine: float
    band: Band
    is_mirrored: bool = False  # the mirror image looks clearly more like it: a left-handed signer, or clip


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupLimits:
    """When a guess is likely (looks enough alike, and clearly more than any other word) or possible (others do too).

    What is unlikely is shown because nothing looks more alike.
    """

    possible: float  # least cosine
    clear: float = 0.05  # by which the first word must lead the second to be likely
    count: int = 6  # what fits on a screen

    def __post_init__(self) -> None:
        if not -1 <= self.possible <= 1 or self.clear < 0 or self.count < 1:
            raise ValueError(f"guesses cannot be ranked by {self}")


def guesses(
    queries: FloatArray, entries: Sequence[Entry], vectors: FloatArray, limits: LookupLimits
) -> tuple[Guess, ...]:
    """The best words, the most similar first; ties go to the word that comes first.

    `queries` (2, d) are the recording and its mirror image (or (1, d), without), `vectors` (n, d) the entries' vectors.
    Entries without a usable vector are never guessed.
    """
    rows = unit(vectors)
    cosine = np.clip(unit(queries) @ rows.T, -1, 1)
    is_mirrored = 1 - cosine.max(axis=0) < _MIRRORED * (1 - cosine[0])
    highest = np.where(rows.any(axis=1), cosine.max(axis=0), -np.inf)
    first_of: dict[Word, int] = {}
    for number in np.argsort(-highest, kind="stable").tolist():
        if np.isfinite(highest[number]):
            first_of.setdefault(entries[number].word, number)
    ranked = sorted(first_of.values(), key=lambda number: (-highest[number], entries[number].word))[: limits.count + 1]
    lead = float(highest[ranked[0]] - highest[ranked[1]]) if len(ranked) > 1 else np.inf
    found: list[Guess] = []
    for place, number in enumerate(ranked[: limits.count]):
        band = Band.LIKELY if place == 0 and lead >= limits.clear else Band.POSSIBLE
        if highest[number] < limits.possible:
            band = Band.UNLIKELY
        entry = entries[number]
        found.append(Guess(entry.word, entry, float(highest[number]), band, bool(is_mirrored[number])))
    return tuple(found)
