"""A track with more than one vector for a place: windows of several lengths around the same frame."""

from __future__ import annotations

from dataclasses import dataclass

from signspot.domain.tracks import EmbeddingTrack, Vectors


@dataclass(frozen=True, slots=True, eq=False)
class RateTrack(EmbeddingTrack):
    """Embeddings of the usual windows, and of shorter and longer ones; whichever resembles an entry most counts."""

    other_rates: tuple[Vectors, ...] = ()  # each (n_windows, d), rows of length 1, or zero where nobody is seen
    lengths: tuple[int, ...] = ()  # frames of the usual windows, then of the others; empty: unknown

    def __post_init__(self) -> None:
        EmbeddingTrack.__post_init__(self)
        if any(vectors.shape != self.vectors.shape for vectors in self.other_rates):
            raise ValueError(f"{self.video_id}: vectors of other rates of another shape than {self.vectors.shape}")
        if len(self.lengths) not in (0, 1 + len(self.other_rates)):
            raise ValueError(f"{self.video_id}: {len(self.lengths)} lengths of {1 + len(self.other_rates)} rates")


def rates_of(track: EmbeddingTrack) -> tuple[Vectors, ...]:
    """The vectors of a track for every length of window that it has: the usual one, then the others."""
    return (track.vectors, *track.other_rates) if isinstance(track, RateTrack) else (track.vectors,)


def lengths_of(track: EmbeddingTrack) -> tuple[int, ...]:
    """The frames of each of `rates_of`, where there are several."""
    return track.lengths if isinstance(track, RateTrack) else ()
