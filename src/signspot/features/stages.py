"""The two stages of a model: vectors of the trunk cost hours and are kept, those of the head cost seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeGuard

import numpy as np

from signspot.domain.boxes import SignerBox
from signspot.domain.tracks import Embedder, EmbeddingTrack, StagedEmbedder
from signspot.errors import InputError
from signspot.features.rows import RowFile, row_blocks

if TYPE_CHECKING:
    from signspot.models.landmark_embedder import LandmarkEmbedder

Stage = Literal["embedding", "trunk"]


@dataclass(frozen=True, slots=True)
class StageVectors:
    """What the vectors of a stage are filed under, and how long they are."""

    fingerprint: str
    dim: int


def sees_landmarks(model: object) -> TypeGuard[LandmarkEmbedder]:
    """Whether a model is shown landmarks instead of pictures."""
    return bool(getattr(model, "sees_landmarks", False))


def trunk_fingerprint(model: Embedder | LandmarkEmbedder) -> str:
    """What vectors of the model's trunk are filed under; "" if they cannot be had by themselves."""
    return str(getattr(model, "trunk_fingerprint", ""))


def filed_under(fingerprint: str, box: SignerBox | None) -> str:
    """What vectors of a part of the picture are filed under: never mistaken for those of another part, or of all."""
    return fingerprint if box is None else f"{fingerprint} box {box}"


def stage_vectors(model: Embedder | LandmarkEmbedder, stage: Stage) -> StageVectors:
    """What the vectors of a stage of the model are; raises where it has no such stage."""
    if stage == "embedding":
        return StageVectors(model.fingerprint, model.dim)
    if not trunk_fingerprint(model):
        raise InputError(model.name, "has no trunk whose vectors could be used", "name a model that is a network")
    return StageVectors(trunk_fingerprint(model), int(getattr(model, "trunk_dim", 0)))


def for_dictionary(model: Embedder) -> Embedder:
    """The model for dictionary clips: another one only if its networks tell the two domains apart (Paper App. B.3)."""
    twin: Embedder = getattr(model, "of_dictionary", lambda: model)()
    return twin


def with_head(track: EmbeddingTrack, model: StagedEmbedder) -> EmbeddingTrack:
    """The embeddings that the model's head makes of a track of its trunk; memory does not grow with the track."""
    if track.unit_rows or track.fingerprint != trunk_fingerprint(model):
        raise ValueError(f"{track.video_id}: vectors by {track.fingerprint!r} are not of the trunk of {model.name!r}")
    with RowFile(model.dim) as rows:
        for block in row_blocks(track.vectors):
            rows.append(model.head_vectors(block.astype(np.float32)))
        return replace(track, vectors=rows.mapped(), fingerprint=model.fingerprint, unit_rows=True)
