"""Minibatches of clips for the trunk: an equal share of each source, and every clip as often as the others.

Batch number `step` depends on the seed, the stage and the step alone: not on the batches before, nor on how many
threads prepare them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from signspot.learning.ahead import made_ahead
from signspot.learning.clips import ClipSource, Frames
from signspot.learning.presenting import Presenter
from signspot.models.body import mirrored
from signspot.models.staged import CONTINUOUS


@dataclass(frozen=True, slots=True, eq=False)
class ClipBatch:
    """Labelled clips as a trunk takes them, but for the normalisation of pixels."""

    clips: Tensor  # (B, 16, H, W, 3) uint8 or (B, 16, 258) float32
    labels: Tensor  # (B,) int64
    domains: Tensor  # (B,) int64
    names: tuple[str, ...]
    landmarks: Tensor | None = None  # (B, 16, 258) float32 of the same frames, mirrored where they are


@dataclass(frozen=True, slots=True, eq=False)
class SourceShare:
    """One source of a stage: which of its clips, in which domain, with the landmarks of the same clips if needed."""

    source: ClipSource
    chosen: npt.NDArray[np.int64]  # (n,) clips of the source, n >= 1
    domain: int = CONTINUOUS
    landmarks: ClipSource | None = None  # clip i of it shows the frames of clip i of the source


class ClipBatches:
    """The batches of one stage of training."""

    def __init__(
        self, shares: tuple[SourceShare, ...], presenter: Presenter, *, batch_size: int, seed: tuple[int, ...]
    ) -> None:
        if not shares or batch_size % len(shares) or not all(len(share.chosen) for share in shares):
            raise ValueError(f"a batch of {batch_size} from {[len(share.chosen) for share in shares]} clips")
        self._shares, self._presenter, self._seed = shares, presenter, seed
        self._per_source = batch_size // len(shares)

    @property
    def steps_per_epoch(self) -> int:
        """How many batches show every clip of the larger source once; clips of the smaller ones return."""
        return max(-(-len(share.chosen) // self._per_source) for share in self._shares)

    def batch(self, step: int) -> ClipBatch:
        """The batch of a step, counted from 0 over the whole stage."""
        shown, names, labels, domains, landmarks = [], [], [], [], []
        for number, share in enumerate(self._shares):
            for place in range(step * self._per_source, (step + 1) * self._per_source):
                i = self._clip_at(number, place)
                key = (*self._seed, number, place)
                clip = self._presenter.training(share.source.clip(i, _rng(*key, 0)), _rng(*key, 1))
                shown.append(torch.from_numpy(clip.frames))
                names.append(share.source.name(i))
                labels.append(share.source.label(i))
                domains.append(share.domain)
                if share.landmarks is not None:
                    # The same random numbers draw the same frames.
                    posed = _floats(share.landmarks.clip(i, _rng(*key, 0)))
                    landmarks.append(mirrored(posed) if clip.is_mirrored else posed)
        return ClipBatch(
            torch.stack(shown),
            torch.tensor(labels),
            torch.tensor(domains),
            tuple(names),
            torch.stack(landmarks) if landmarks else None,
        )

    def batches(self, first: int, stop: int, *, workers: int = 0) -> Iterator[ClipBatch]:
        """The batches of the steps first, first + 1, ... stop - 1; `workers` threads prepare them ahead."""
        return made_ahead(self.batch, range(first, stop), workers=workers, ahead=2 * workers)

    def _clip_at(self, share: int, place: int) -> int:
        """Every clip once in a random order, then all again in another."""
        chosen = self._shares[share].chosen
        turn, offset = divmod(place, len(chosen))
        return int(chosen[_order((*self._seed, share, turn), len(chosen))[offset]])


@lru_cache(maxsize=8)
def _order(key: tuple[int, ...], n: int) -> npt.NDArray[np.int64]:
    return _rng(*key, 2).permutation(n)


def _rng(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def _floats(frames: Frames) -> Tensor:
    return torch.from_numpy(np.array(frames, dtype=np.float32))
