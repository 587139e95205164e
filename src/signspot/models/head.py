"""The head: a three-layer MLP from the trunk's embedding to the embedding signs are compared in (Paper 3.2, App. C.1).

The names of its parameters are those of the released checkpoints; only `domains > 1` changes them: `res.0.weight`
becomes `res.<domain>.0.weight`, and the same for `adaptor`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

_SLOPE = 0.2  # Paper 3.2: leaky ReLU with negative slope 0.2
_SHORTEST = 1e-12  # a vector no longer than this has no direction


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadConfig:
    """Everything that shapes a head."""

    input_dim: int = 1024
    hidden_dim: int = 512
    embedding_dim: int = 256
    # Deviation D4: the paper has activations between the layers, the released head also one after the last.
    activation_after_last: Literal["paper", "released"] = "paper"
    classes: int | None = None  # adds a classifier (1064 in the released head)
    domains: int = 1  # 2: own layers for continuous (0) and dictionary (1) clips (Paper App. B.3); shared classifier
    # Adds a lexicon of so many rows. Not in `repr`, which fingerprints are made of: it changes no vector.
    prototypes: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if min(self.input_dim, self.hidden_dim, self.embedding_dim, self.domains) < 1:
            raise ValueError(f"a head without numbers or domains: {self}")
        if self.classes is not None and self.classes < 1:
            raise ValueError(f"a classifier of {self.classes} classes")
        if self.prototypes is not None and self.prototypes < 1:
            raise ValueError(f"a lexicon of {self.prototypes} rows")
        if self.activation_after_last not in ("paper", "released"):
            raise ValueError(f"activation_after_last is 'paper' or 'released', not {self.activation_after_last!r}")


class HeadOutput(NamedTuple):
    """What the head says about each vector."""

    embedding: Tensor  # (B, embedding_dim), rows of length 1; a zero row where there is no direction
    logits: Tensor | None  # (B, classes), of the classifier if there is one


class Head(nn.Module):
    """x + leaky(Linear x), then two linear layers, then length 1."""

    def __init__(self, config: HeadConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or HeadConfig()
        d, hidden, out = config.input_dim, config.hidden_dim, config.embedding_dim
        last = [nn.LeakyReLU(_SLOPE)] if config.activation_after_last == "released" else []
        # In this order, domain by domain: the random weights of a seed depend on it.
        residuals = [nn.Sequential(nn.Linear(d, d), nn.LeakyReLU(_SLOPE)) for _ in range(config.domains)]
        adaptors = [
            nn.Sequential(nn.Linear(d, hidden), nn.LeakyReLU(_SLOPE), nn.Linear(hidden, out), *last)
            for _ in range(config.domains)
        ]
        self.res, self.adaptor = _per_domain(residuals), _per_domain(adaptors)
        self.logits = None if config.classes is None else nn.Linear(config.embedding_dim, config.classes)
        # (rows, embedding_dim): where the signs of known words lie, in the order of the card's vocabulary.
        self.prototypes: Tensor | None
        self.register_buffer("prototypes", None if not config.prototypes else torch.zeros(config.prototypes, out))

    def forward(self, vectors: Tensor, domain: int = 0) -> HeadOutput:
        """Embed vectors (B, input_dim), all of one domain."""
        if not 0 <= domain < self.config.domains:
            raise ValueError(f"domain {domain} of a head with {self.config.domains}")
        if vectors.ndim != 2 or vectors.shape[1] != self.config.input_dim:
            raise ValueError(f"vectors of shape {tuple(vectors.shape)} instead of (B, {self.config.input_dim})")
        res = self.res[domain] if isinstance(self.res, nn.ModuleList) else self.res
        adaptor = self.adaptor[domain] if isinstance(self.adaptor, nn.ModuleList) else self.adaptor
        projected = adaptor(vectors + res(vectors))
        # The classifier reads the vector at its full length: on unit vectors cross-entropy hardly moves at first.
        return HeadOutput(unit_rows(projected), None if self.logits is None else self.logits(projected))


def unit_rows(vectors: Tensor) -> Tensor:
    """(B, d) -> rows of length 1; a row too short to have a direction becomes zero, with a zero gradient."""
    shortest = max(_SHORTEST, torch.finfo(vectors.dtype).tiny)
    length = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    # Not `length > shortest`: a row that is not a number must stay one, so that training notices.
    return torch.where(length <= shortest, 0.0, vectors / length.clamp_min(shortest))


def _per_domain(parts: list[nn.Sequential]) -> nn.Sequential | nn.ModuleList:
    return parts[0] if len(parts) == 1 else nn.ModuleList(parts)
