"""What every model of two stages has: a trunk that sees clips, and a head that makes unit vectors of its vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from signspot.domain.tracks import FloatArray
from signspot.errors import InputError
from signspot.models.checkpoints import weights_sha256
from signspot.models.head import Head, unit_rows
from signspot.models.landmark_encoder import LandmarkEncoder
from signspot.models.trunk import InceptionTrunk

_LARGEST_KEPT = float(np.finfo(np.float16).max)  # vectors are kept as halves, and rounded so even where they are not
CONTINUOUS, DICTIONARY = 0, 1  # the domains of networks that have layers of their own for each (Paper App. B.3, C.1)


class StagedModel:
    """A trunk and, unless it stands alone, a head; `how` is what else the vectors depend on, such as frame sizes."""

    def __init__(self, trunk: InceptionTrunk | LandmarkEncoder, head: Head | None, how: Mapping[str, object]) -> None:
        if head is not None and head.config.input_dim != trunk.embedding_dim:
            raise ValueError(f"a head for {head.config.input_dim} numbers on a trunk of {trunk.embedding_dim}")
        self._head = head
        self._domain = CONTINUOUS
        self.trunk_dim = trunk.embedding_dim
        self.dim = trunk.embedding_dim if head is None else head.config.embedding_dim
        self.trunk_fingerprint = fingerprint_of({"trunk": trunk}, how)
        self.fingerprint = fingerprint_of({"trunk": trunk, **({} if head is None else {"head": head})}, how)

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        """Vectors of the trunk, or means of them (n, trunk dim), -> (n, dim) float32 rows of length 1."""
        with torch.inference_mode():
            rows = torch.from_numpy(np.array(vectors, dtype=np.float32))  # a copy: stored vectors are read-only
            embedding = unit_rows(rows) if self._head is None else self._head(rows, self._head_domain).embedding
        unit: FloatArray = embedding.numpy()
        is_kept_whole = bool((rows.abs() <= _LARGEST_KEPT).all())  # which no NaN is
        if not is_kept_whole or not np.isfinite(unit).all():
            what = "its vectors are no numbers: its weights are damaged or far too large"
            raise InputError(
                f"model {getattr(self, 'name', '')}".rstrip(), what, "get the file again, or choose another model"
            )
        return unit

    @property
    def _head_domain(self) -> int:
        return self._domain if self._head is not None and self._head.config.domains > 1 else CONTINUOUS


def fingerprint_of(networks: Mapping[str, nn.Module], how: Mapping[str, object]) -> str:
    """A checksum of all that the vectors depend on: not of classifiers and counters."""
    weights = {
        f"{part}.{name}": tensor
        for part, network in networks.items()
        for name, tensor in network.state_dict().items()
        if not name.startswith("logits.") and not name.endswith("num_batches_tracked")
    }
    described = {
        "weights": weights_sha256(weights),
        "networks": {part: repr(network.config) for part, network in networks.items()},
        **how,
    }
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
