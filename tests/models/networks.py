"""Small video networks for tests, whose answers depend on what they see."""

from __future__ import annotations

import numpy as np
import torch

from signspot.domain.tracks import FrameShape
from signspot.models.backends import Backend, TorchBackend
from signspot.models.embedders import EmbedderSettings, VideoEmbedder
from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, S3D, I3DConfig, InceptionTrunk, S3DConfig


def lively(trunk: InceptionTrunk, side: int) -> InceptionTrunk:
    """Random weights whose batch norms have seen noise: no layer is dead, and none drowns in its bias."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for module in trunk.modules():
            if isinstance(module, torch.nn.Conv3d):
                torch.nn.init.kaiming_normal_(module.weight, generator=generator)
            elif isinstance(module, torch.nn.BatchNorm3d):
                module.momentum = 1.0
                module.weight.uniform_(0.5, 1.5, generator=generator)
                module.bias.uniform_(-0.3, 0.3, generator=generator)
        trunk.train()(torch.rand(4, 3, 16, side, side, generator=generator) - 0.5)
    return trunk.eval()


def tiny_i3d(width: float = 0.125, side: int = 64) -> InceptionTrunk:
    torch.manual_seed(0)
    return lively(I3D(I3DConfig(classes=3, width=width)), side)


def tiny_s3d(side: int = 64, *, gated: bool = False) -> InceptionTrunk:
    torch.manual_seed(0)
    return lively(S3D(S3DConfig(classes=3, width=0.125, gated=gated)), side)


def tiny_head(input_dim: int = 128) -> Head:
    torch.manual_seed(0)
    return Head(HeadConfig(input_dim=input_dim, hidden_dim=32, embedding_dim=16))


def embedder_of(
    trunk: InceptionTrunk, head: Head | None = None, *, side: int = 64, backend: Backend | None = None
) -> VideoEmbedder:
    shape = FrameShape(side, side)
    return VideoEmbedder(
        trunk, head, EmbedderSettings(name="tiny", frame_shape=shape, backend=backend or TorchBackend())
    )


def moving_frames(count: int, side: int = 64, seed: int = 0) -> np.ndarray:
    """(count, side, side, 3) uint8: noise that drifts and changes, so that windows differ a lot."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, side // 8, side // 8, 3), dtype=np.uint8)
    return coarse.repeat(8, axis=1).repeat(8, axis=2)


def relative_error(got: np.ndarray, expected: np.ndarray) -> float:
    """The greatest difference against how much the rows differ among themselves (or their size, for a single row).

    All windows share a large common part; measured against that, wrong answers would look right.
    """
    spread = np.abs(expected - expected.mean(axis=0)).max() if len(expected) > 1 else np.abs(expected).max()
    return float(np.abs(got - expected).max() / spread)
