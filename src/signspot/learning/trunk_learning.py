"""What one batch of clips teaches a trunk."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.learning.clip_batches import ClipBatch
from signspot.learning.pose_distillation import PoseReader, pose_loss, pose_target
from signspot.learning.presenting import Presenter
from signspot.models.networks import Trunk
from signspot.models.trunk import InceptionTrunk, TrunkOutput


class Outcome(NamedTuple):
    """What came of showing a batch."""

    loss: Tensor  # ()
    n_right: Tensor  # (): clips whose own word scored highest; zero where words are not what is learned


class Learner(nn.Module):
    """A trunk with what a stage adds to it: a reader of landmarks in pose distillation, else nothing."""

    def __init__(self, trunk: Trunk, presenter: Presenter, *, distils: bool) -> None:
        super().__init__()
        self.trunk = trunk
        self.pose = PoseReader(trunk.embedding_dim) if distils else None
        self._presenter = presenter

    def forward(self, batch: ClipBatch) -> Outcome:
        """The loss of a batch on the device of the learner."""
        output = seen(self.trunk, self._presenter.tensor(batch.clips), batch.domains)
        if self.pose is not None:
            if batch.landmarks is None:
                raise ValueError("pose distillation from clips without landmarks")
            return Outcome(pose_loss(self.pose(output.embedding), pose_target(batch.landmarks)), torch.tensor(0))
        logits = output.logits.float()
        n_right = (logits.detach().argmax(dim=1) == batch.labels).sum()
        return Outcome(F.cross_entropy(logits, batch.labels), n_right)


def seen(trunk: Trunk, clips: Tensor, domains: Tensor) -> TrunkOutput:
    """What a trunk says about clips (B, ...) of domains (B,); one set of batch norm normalises all together."""
    if not isinstance(trunk, InceptionTrunk) or trunk.config.domains == 1:
        output: TrunkOutput = trunk(clips)
        return output
    rows = [torch.nonzero(domains == domain)[:, 0] for domain in range(trunk.config.domains)]
    outputs = [trunk(clips[chosen], domain) for domain, chosen in enumerate(rows) if len(chosen)]
    back = torch.argsort(torch.cat(rows))
    return TrunkOutput(*(torch.cat(parts)[back] for parts in zip(*outputs, strict=True)))
