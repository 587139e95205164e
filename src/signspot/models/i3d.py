"""I3D: Inception-v1 with every kernel inflated in time (Paper 3.2; Carreira and Zisserman 2017).

The names of its parameters are those of the released checkpoints, so a released state loads as it is. Only
`domains > 1` changes them: `bn.weight` becomes `bn.0.weight`, `bn.1.weight`, ... (see `layers.copied_to_domains`).
"""

from __future__ import annotations

from dataclasses import dataclass

from signspot.models.layers import ConvUnit
from signspot.models.trunk import InceptionTrunk, TrunkConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class I3DConfig(TrunkConfig):
    """Everything that shapes an I3D; the defaults are the released network's."""


class I3D(InceptionTrunk):
    """(B, 3, 16, 224, 224) normalised frames -> embedding (B, 1024) and logits (B, classes)."""

    def __init__(self, config: I3DConfig | None = None) -> None:
        super().__init__(config or I3DConfig(), ConvUnit)
