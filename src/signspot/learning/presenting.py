"""How clips look when they reach a trunk: changed at random in training, as they are in a test.

A trunk takes frames (B, 3, 16, H, W), normalised, or landmarks (B, 16, 258).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM
from signspot.learning.clips import Frames
from signspot.learning.landmark_changes import LandmarkAugmentation
from signspot.media.transforms import RELEASED, Augmentation, Normalisation


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A clip as it is shown in training."""

    frames: Frames
    is_mirrored: bool


class Presenter(Protocol):
    """Stands between the clips of a source and a network."""

    def training(self, clip: Frames, rng: np.random.Generator) -> Shown:
        """One clip (16, ...), changed at random."""

    def testing(self, clips: Frames) -> Frames:
        """Clips (n, 16, ...), unchanged but for their size."""

    def tensor(self, clips: Tensor) -> Tensor:
        """Shown clips (n, 16, ...), on any device, as the network takes them."""


@dataclass(frozen=True, slots=True)
class PixelPresenter:
    """For I3D and S3D: clips (16, side, side, 3) uint8, shown as (16, crop, crop, 3)."""

    augmentation: Augmentation = Augmentation()
    normalisation: Normalisation = RELEASED

    def training(self, clip: Frames, rng: np.random.Generator) -> Shown:
        """Scaled, moved, mirrored, recoloured (Paper 3.2)."""
        change = self.augmentation.draw(rng)
        return Shown(change.apply(self._checked(clip).astype(np.uint8, copy=False)), change.flip)

    def testing(self, clips: Frames) -> Frames:
        """The middle of the frames."""
        crop = self.augmentation.crop
        top, left = ((side - crop) // 2 for side in self._checked(clips).shape[-3:-1])
        return clips[..., top : top + crop, left : left + crop, :]

    def tensor(self, clips: Tensor) -> Tensor:
        """(n, 16, H, W, 3) uint8 -> (n, 3, 16, H, W) float32, normalised."""
        mean, std = (clips.new_tensor(numbers, dtype=torch.float32) for numbers in self._numbers())
        # Channels last, as the pixels lie: convolutions of narrow networks are several times faster that way.
        moved = ((clips / 255 - mean) / std).movedim(-1, 1)
        return moved.contiguous(memory_format=torch.channels_last_3d)

    def _numbers(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        return self.normalisation.mean, self.normalisation.std

    def _checked(self, clips: Frames) -> Frames:
        crop = self.augmentation.crop
        *_, n, height, width, colours = (0, 0, 0, 0, *clips.shape)
        if clips.dtype != np.uint8 or (n, colours) != (CLIP_LENGTH, 3) or min(height, width) < crop:
            raise ValueError(f"clips of {clips.dtype} {clips.shape} where {CLIP_LENGTH} frames of {crop} are cut out")
        return clips


@dataclass(frozen=True, slots=True)
class LandmarkPresenter:
    """For the landmark encoder: clips (16, 258) float32."""

    augmentation: LandmarkAugmentation = LandmarkAugmentation()

    def training(self, clip: Frames, rng: np.random.Generator) -> Shown:
        """Turned, stretched, slower or faster, mirrored, a hand lost."""
        change = self.augmentation.draw(rng)
        return Shown(change.apply(self._checked(clip).astype(np.float32, copy=False)), change.mirror)

    def testing(self, clips: Frames) -> Frames:
        """As they are."""
        return self._checked(clips)

    def tensor(self, clips: Tensor) -> Tensor:
        """(n, 16, 258) as it is."""
        return clips

    def _checked(self, clips: Frames) -> Frames:
        if clips.shape[-2:] != (CLIP_LENGTH, LANDMARK_DIM) or clips.dtype != np.float32:
            raise ValueError(f"clips of {clips.dtype} {clips.shape} instead of ({CLIP_LENGTH}, {LANDMARK_DIM})")
        return clips
