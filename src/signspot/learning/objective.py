"""From a minibatch of trunk vectors to the loss of the joint batch: embed, gather from all processes, compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from signspot.learning.bags import Paper, Released
from signspot.learning.config import EmbeddingConfig
from signspot.learning.device import mixed_precision
from signspot.learning.distributed import Team
from signspot.learning.losses import classification, foreground_only, infonce, watch_lookup, watch_read_lookup
from signspot.learning.minibatch import Minibatch
from signspot.models.head import Head, HeadOutput
from signspot.models.staged import CONTINUOUS, DICTIONARY

_DRAWS = 2  # what this stream of random numbers is for; `batches` has its own


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """The loss that a config asks for."""

    config: EmbeddingConfig
    synonyms: Tensor | None = None  # (n, 2) int64: pairs of words that are neither positive nor negative

    def loss(self, head: Head, batch: Minibatch, team: Team, rng: torch.Generator) -> Tensor:
        """The loss of the joint batch; its gradient reaches the head through this process's rows alone."""
        if self.config.loss != "watch-read-lookup":
            batch = foreground_only(batch)
        device = next(head.parameters()).device
        batch = batch.to(device)
        segments = self._outputs(head, batch.segments, CONTINUOUS, team)
        entries = self._outputs(head, batch.entries, DICTIONARY, team)
        embedded = batch.with_vectors(segments.embedding, entries.embedding)
        return self._compared(embedded, segments.logits, entries.logits, rng)

    def _compared(
        self, batch: Minibatch, segment_logits: Tensor | None, entry_logits: Tensor | None, rng: torch.Generator
    ) -> Tensor:
        config, discard = self.config, self.synonyms
        match config.loss:
            case "watch-read-lookup":
                return watch_read_lookup(batch, self.formulation, config.temperature, discard)
            case "watch-lookup":
                return watch_lookup(batch, self.formulation, config.temperature, config.anchors, discard)
            case "infonce":
                return infonce(batch, rng, config.temperature, discard)
            case "classification":
                if segment_logits is None or entry_logits is None:
                    raise ValueError("a head without a classifier cannot learn to classify")
                return classification(batch, segment_logits, entry_logits)

    @property
    def formulation(self) -> Paper | Released:
        """Which pairs are positive and which negative."""
        if self.config.formulation == "released":
            return Released()
        return Paper(
            segment_background=self.config.segment_background, average=self.config.average, repeats=self.config.repeats
        )

    def _outputs(self, head: Head, rows: Tensor, domain: int, team: Team) -> HeadOutput:
        with mixed_precision(rows.device, self.config.precision):
            own = head(rows[team.share(len(rows))], domain if head.config.domains > 1 else 0)
        logits = None if own.logits is None else team.gathered(own.logits.float(), len(rows))
        return HeadOutput(team.gathered(own.embedding.float(), len(rows)), logits)


def drawn_by(seed: int, epoch: int, step: int) -> torch.Generator:
    """Random numbers for one step; the same whatever came before it."""
    state = np.random.SeedSequence(seed, spawn_key=(_DRAWS, epoch, step)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]) >> 1)
