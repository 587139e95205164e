"""The clips of a dictionary as every view of them that a search compares with: mirrored, or at other speeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.tracks import Embedder, FloatArray
from signspot.domain.words import Word
from signspot.features.stages import for_dictionary, sees_landmarks
from signspot.spotting.queries import views_of
from signspot.workflows.entry_vectors import EntrySource

if TYPE_CHECKING:
    from signspot.workflows.landmark_signs import LandmarkSigns

NO_RATES = "--rates changes nothing: a model of landmarks looks for signs of every usual speed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """How clips are read, and which views of them there are."""

    mirror: bool = False
    rates: tuple[float, ...] = ()
    seed: int = 0
    isolated: bool = True
    store: Path | None = None  # where landmarks of clips are kept


class EntryViews(Protocol):
    """Where the vectors of a dictionary's entries come from."""

    @property
    def n_views(self) -> int:
        """How many vectors each entry has."""

    def vectors(self, entry: Entry) -> FloatArray:
        """(n_views, d), as it is first; raises VideoError where the entry cannot be read."""

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""


def entry_views(dictionary: Dictionary, model: Embedder, options: ViewOptions = ViewOptions()) -> EntryViews:
    """The views that a model has of a dictionary, whether it sees pictures or landmarks."""
    if sees_landmarks(model):
        from signspot.workflows.landmark_signs import LandmarkSigns  # torch, which only networks need

        signs = LandmarkSigns(model, options.isolated, options.store)
        return LandmarkViews(signs, 2 if options.mirror else 1, (NO_RATES,) if options.rates else ())
    views = views_of(for_dictionary(model), mirror=options.mirror, rates=options.rates)
    seed, isolated = options.seed, options.isolated
    return PictureViews(tuple(EntrySource.of(dictionary, view, seed=seed, isolated=isolated) for view in views))


@dataclass(frozen=True, slots=True)
class PictureViews:
    """Views of a model that sees pictures."""

    sources: tuple[EntrySource, ...]

    @property
    def n_views(self) -> int:
        """How many vectors each entry has."""
        return len(self.sources)

    def vectors(self, entry: Entry) -> FloatArray:
        """(n_views, d), as it is first."""
        return np.stack([source.vector(entry) for source in self.sources])

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""
        return self.sources[0].remarks(words)


@dataclass(frozen=True, slots=True)
class LandmarkViews:
    """Views of a model that sees landmarks; it looks for every speed in the video instead."""

    signs: LandmarkSigns
    n_views: int
    said: tuple[str, ...] = ()

    def vectors(self, entry: Entry) -> FloatArray:
        """(n_views, d), as it is first."""
        return self.signs.entry_views(entry)[: self.n_views]

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What was asked for in vain."""
        del words
        return self.said
