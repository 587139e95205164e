"""Which form of a sign somebody uses, and forms that the dictionary does not have.

The variant of an occurrence is that of the entry that looks most like it; its margin is how much less the best entry of
any other variant does. Forms unknown to the dictionary show only indirectly: a word is mentioned again and again where
no known variant is found, and the same something is signed there. `recurring_windows` looks for it, `clusters` puts
what looks alike together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import FloatArray, SimilarityTrack
from signspot.spotting.peaks import Occurrence

MAX_CLUSTERED = 2000  # more would take minutes


@dataclass(frozen=True, slots=True)
class VariantMatch:
    """The variant that a window shows, by the dictionary."""

    variant: str
    cosine: float
    margin: float | None  # to the best other variant; None: the word has only one


@dataclass(frozen=True, slots=True)
class RecurringWindow:
    """The window of a passage that recurs most in other passages, compared with chance."""

    passage: int
    window: int
    contrast: float  # mean cosine with the passages that mention the word, minus that with passages that do not


def by_variant(similarity: SimilarityTrack) -> SimilarityTrack:
    """One column for each variant, the highest of its entries; the first entry of each stands for it."""
    names = [entry.variant for entry in similarity.entries]
    variants = list(dict.fromkeys(names))
    columns = [similarity.cosine[:, [name == variant for name in names]].max(axis=1) for variant in variants]
    cosine = np.stack(columns, axis=1) if columns else similarity.cosine
    entries = tuple(similarity.entries[names.index(variant)] for variant in variants)
    return dataclasses.replace(similarity, entries=entries, cosine=cosine)


def variant_at(variants: SimilarityTrack, window: int) -> VariantMatch:
    """The variant of one window of what `by_variant` gives."""
    row = variants.cosine[window]
    best = int(row.argmax())
    others = np.delete(row, best)
    margin = float(row[best] - others.max()) if len(others) and np.isfinite(others.max()) else None
    return VariantMatch(variants.entries[best].variant, float(row[best]), margin)


def recurring_windows(passages: Sequence[FloatArray], background: Sequence[FloatArray]) -> tuple[RecurringWindow, ...]:
    """For each passage its window that looks most like some window of the others, and least like the background.

    `passages` are the windows (n, d), unit rows, of stretches in which the same thing is expected; `background` are
    those of stretches in which it is not. A window is judged by the better half of the passages, because a word may be
    left out of some, and by equally many of the background: what is signed everywhere gains nothing.
    """
    found: list[RecurringWindow] = []
    for number, windows in enumerate(passages):
        others = [other for place, other in enumerate(passages) if place != number and len(other)]
        if not len(windows) or not others:
            continue
        n_judges = max(1, len(others) // 2)
        contrast = _best_mean(windows, others, n_judges)
        if usable := [other for other in background if len(other)]:
            contrast = contrast - _best_mean(windows, usable, min(n_judges, len(usable)))
        window = int(contrast.argmax())
        found.append(RecurringWindow(number, window, float(contrast[window])))
    return tuple(found)


def _best_mean(windows: FloatArray, others: Sequence[FloatArray], n_judges: int) -> FloatArray:
    """The mean over the `n_judges` most similar of the others of each window's highest cosine there: (n,)."""
    closest = np.stack([(windows @ other.T).max(axis=1) for other in others])
    judges: FloatArray = np.sort(closest, axis=0)[-n_judges:].mean(axis=0)
    return judges


def clusters(vectors: FloatArray, least_cosine: float) -> tuple[tuple[int, ...], ...]:
    """Group unit rows (n, d): groups are joined, the most alike first, while their mean cosine is high enough.

    Average linkage. Groups come largest first, their members in order; a row that fits nothing is a group of its own.
    """
    if len(vectors) > MAX_CLUSTERED:
        raise ValueError(f"{len(vectors)} rows are too many to cluster")
    groups: list[tuple[int, ...]] = [(number,) for number in range(len(vectors))]
    cosine = (vectors @ vectors.T).astype(np.float64)
    np.fill_diagonal(cosine, -np.inf)
    while len(groups) > 1:
        first, second = sorted(np.unravel_index(int(cosine.argmax()), cosine.shape))
        if cosine[first, second] < least_cosine:
            break
        sizes = len(groups[first]), len(groups[second])
        joined = (sizes[0] * cosine[first] + sizes[1] * cosine[second]) / sum(sizes)
        cosine[first], cosine[:, first] = joined, joined
        cosine[first, first] = -np.inf
        cosine = np.delete(np.delete(cosine, second, axis=0), second, axis=1)
        groups[first] = tuple(sorted(groups[first] + groups[second]))
        del groups[second]
    return tuple(sorted(groups, key=lambda group: (-len(group), group)))


# Choosing examples to show: the best, but not the same signer from the same video over and over. Maximal marginal
# relevance: each next example is the one with the highest cosine to the dictionary, less what it repeats of those
# already chosen: their looks, their video, their signer.


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """How much a repetition costs, in cosine."""

    count: int = 50
    per_video: int = 5  # examples of one video at most
    alike: float = 0.2  # times the cosine with the most similar example chosen before
    same_signer: float = 0.05  # for each example of the same signer chosen before

    def __post_init__(self) -> None:
        if self.count < 1 or self.per_video < 1:
            raise ValueError(f"no examples can be chosen by {self}")
        if not (0 <= self.alike <= 10 and 0 <= self.same_signer <= 10):
            raise ValueError(f"a repetition cannot cost {self.alike} or {self.same_signer}")


def diverse(candidates: Sequence[Occurrence], diversity: Diversity = Diversity()) -> tuple[Occurrence, ...]:
    """The examples in the order in which they are chosen; ties go to the earlier candidate.

    Without any cost this is the ranking by cosine, limited per video.
    """
    if not candidates:
        return ()
    vectors = np.stack([candidate.vector for candidate in candidates])
    videos = [candidate.episode.video_id for candidate in candidates]
    signers = [candidate.episode.signer for candidate in candidates]
    value = np.array([candidate.spotting.cosine for candidate in candidates])
    repeats, known = np.zeros(len(value)), np.zeros(len(value))  # cosine with the chosen; times the signer was chosen
    open_ = np.ones(len(value), dtype=bool)
    chosen: list[int] = []
    while open_.any() and len(chosen) < diversity.count:
        gain = value - diversity.alike * repeats - diversity.same_signer * known
        best = int(np.where(open_, gain, -np.inf).argmax())
        chosen.append(best)
        open_[best] = False
        repeats = np.maximum(repeats, np.clip(vectors @ vectors[best], 0, 1))
        known += _same(signers, best) if signers[best] else 0
        if sum(videos[number] == videos[best] for number in chosen) >= diversity.per_video:
            open_ &= ~_same(videos, best)
    return tuple(candidates[number] for number in chosen)


def _same(names: Sequence[str], number: int) -> npt.NDArray[np.bool_]:
    return np.array([name == names[number] for name in names])
