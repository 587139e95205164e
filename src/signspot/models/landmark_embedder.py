"""A model that sees landmarks instead of pictures: windows of 16 frames of 258 numbers in, unit vectors out."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, FloatArray, FrameShape
from signspot.domain.words import Word
from signspot.errors import InputError
from signspot.models.checkpoints import Checkpoint, load_checkpoint, networks_of
from signspot.models.head import Head, unit_rows
from signspot.models.landmark_encoder import LandmarkEncoder
from signspot.models.staged import StagedModel

_ROWS_AT_ONCE = 256


class LandmarkEmbedder(StagedModel):
    """Landmarks -> encoder -> head -> rows of length 1. The networks given are copied."""

    sees_landmarks = True
    backend = "torch-fp32"
    # It takes no pictures. What finds its landmarks looks at the signer, where a recording says where that is.
    frame_shape = FrameShape(side=1, crop=1, keep_aspect=True, signer_box=True)

    def __init__(
        self,
        trunk: LandmarkEncoder,
        head: Head | None,
        *,
        name: str,
        threshold: float = 0.0,
        words: Sequence[Word] = (),
    ) -> None:
        self.name, self.threshold = name, threshold
        self.words = tuple(words)  # that it learned to name, in the order of its classifier
        self._trunk = copy.deepcopy(trunk).eval()
        super().__init__(self._trunk, copy.deepcopy(head).eval() if head is not None else None, {"sees": "landmarks"})

    def embed(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        """(n, 16, 258) -> (n, dim) float32 rows of length 1."""
        return self.head_vectors(self.trunk_vectors(clips))

    @property
    def word_directions(self) -> FloatArray:
        """(n_words, dim) unit rows: where the vectors of its own words lie; none without a classifier of them."""
        if self._head is None or self._head.logits is None or self._head.logits.out_features != len(self.words):
            return np.zeros((0, self.dim), np.float32)
        directions: FloatArray = unit_rows(self._head.logits.weight.detach()).numpy()
        return directions

    def trunk_vectors(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        """(n, 16, 258), zeros where nothing was detected -> (n, trunk dim) float32."""
        if clips.shape[1:] != (CLIP_LENGTH, LANDMARK_DIM):
            raise ValueError(f"landmarks of shape {clips.shape} instead of (n, {CLIP_LENGTH}, {LANDMARK_DIM})")
        vectors = [np.empty((0, self.trunk_dim), np.float32)]
        with torch.inference_mode():
            for first in range(0, len(clips), _ROWS_AT_ONCE):
                rows = torch.from_numpy(np.array(clips[first : first + _ROWS_AT_ONCE], np.float32))
                vectors.append(self._trunk(rows).embedding.numpy())
        return np.concatenate(vectors)


def landmark_embedder_from_checkpoint(source: Path | Checkpoint) -> LandmarkEmbedder:
    """The model of a .safetensors file whose trunk is a landmark encoder."""
    checkpoint = source if isinstance(source, Checkpoint) else load_checkpoint(source)
    where = checkpoint.card.name if isinstance(source, Checkpoint) else str(source)
    try:
        trunk, head = networks_of(checkpoint)
        if not isinstance(trunk, LandmarkEncoder):
            raise ValueError("it sees pictures, not landmarks")
        threshold = float(checkpoint.card.config.get("threshold") or 0.0)
        words = tuple(Word(word) for word in checkpoint.card.vocabulary)
        return LandmarkEmbedder(trunk, head, name=checkpoint.card.name, threshold=threshold, words=words)
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: torch, for tensors that do not fit
        reason = str(error).splitlines()[0]
        fix = "get the file again, or import it again"
        raise InputError(where, f"the weights and the model card do not fit together ({reason})", fix) from error
