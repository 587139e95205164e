"""Choosing examples to show: the best, but not the same signer from the same video over and over.

Maximal marginal relevance: each next example is the one with the highest cosine to the dictionary, less what it repeats
of those already chosen: their looks, their video, their signer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.spotting.occurrences import Occurrence


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
