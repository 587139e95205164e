"""The two stages of a model: vectors of the trunk cost hours and are kept, those of the head cost seconds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeGuard

import numpy as np

from signspot.domain.recordings import Entry, SignerBox
from signspot.domain.time import FRAME_RATE
from signspot.domain.tracks import Embedder, EmbeddingTrack, FloatArray, Pixels, StagedEmbedder
from signspot.domain.words import Word
from signspot.errors import InputError, VideoError
from signspot.formats.pose import POSE_SUFFIX
from signspot.media.trim import NO_WRISTS, NOTHING_MOVES, Trim
from signspot.stores.features import FeatureStore, Remarks, RowFile, StageVectors, open_store, row_blocks

if TYPE_CHECKING:
    from signspot.models.embedders import LandmarkEmbedder


LANDMARK_MODEL = "landmark-v1"  # of real signing, shipped: the one that people meet first
COLOUR_MODEL = "colour"


LEFT_OUT = "left out of the dictionary: "


LONGEST_SECONDS = 20  # of a recording of one sign
FEWEST_FRAMES = 8  # a third of a second: the shortest signs take as long
NO_MOTION = "nothing moves in it: record a sign, in good light, with the camera held still"


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSign:
    """A recording of one sign, ready to be looked up."""

    vectors: FloatArray  # (2, d): as recorded, and mirrored; (0, d) where there is a fault
    trim: Trim
    pictures: tuple[Pixels, ...] = ()  # (96, W, 3) uint8, of the part that moves
    faults: tuple[str, ...] = ()  # why nothing can be found by it
    doubts: tuple[str, ...] = ()  # why what is found may be wrong


class SignEmbedder(Protocol):
    """Whatever turns single signs into vectors that can be compared."""

    @property
    def name(self) -> str:
        """What people call the model."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""

    @property
    def dim(self) -> int:
        """The length of a vector."""

    @property
    def threshold(self) -> float:
        """The lowest cosine that counts as alike."""

    def entry_vector(self, entry: Entry) -> FloatArray:
        """The vector (d,) of a dictionary entry; raises VideoError where it has none."""

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""

    def recorded(self, path: Path, box: SignerBox | None = None) -> RecordedSign:
        """The vectors of a recording; raises VideoError where it cannot be read."""


def faults_of(trim: Trim, path: Path) -> tuple[str, ...]:
    """Why a recording shows no sign: too short, or nothing moves."""
    if trim.n_frames < FEWEST_FRAMES:
        return (f"{path.name} {too_short(trim.n_frames)}: record the whole sign",)
    return (NO_MOTION,) if trim.remark in (NOTHING_MOVES, NO_WRISTS) else ()


def damage_of(path: Path, partial: str, warnings: Sequence[str]) -> tuple[str, ...]:
    """What was noticed while a recording was read, as doubts about what is found by it."""
    return tuple(f"{path.name}: {said}" for said in (partial, *warnings) if said)


def too_short(n_frames: int) -> str:
    """What is wrong with a clip of so many frames."""
    return f"is too short ({n_frames} frame{'s' * (n_frames != 1)}, {n_frames / FRAME_RATE:.1f} s)"


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """The vectors of a video, what was noticed while reading it, and whether they were computed before."""

    track: EmbeddingTrack
    media_sha256: str
    remarks: Remarks
    was_stored: bool = False
    box: SignerBox | None = None  # the part of the pictures that was looked at; None: all


def refuse_landmark_file(path: Path, model: Embedder) -> None:
    """Raise where a model that sees pictures is given a file of landmarks."""
    if path.suffix.lower() == POSE_SUFFIX:
        what = f"holds landmarks and no pictures, which the model {model.name!r} needs"
        raise VideoError(path, what, f"give the video, or use --model {LANDMARK_MODEL}")


def store_at(folder: Path | None) -> FeatureStore | nullcontext[None]:
    """The store in `folder`, or none."""
    return nullcontext() if folder is None else open_store(folder)


Stage = Literal["embedding", "trunk"]


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
