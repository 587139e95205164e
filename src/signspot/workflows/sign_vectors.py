"""Single signs as vectors: clips of a dictionary, and recordings that somebody asks about.

A model sees pictures or landmarks. One sign is trimmed to what moves, and embedded as a dictionary clip is. A recording
is embedded twice, as it is and mirrored: a left-handed signer signs the mirror image. Nothing of a recording is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from signspot.domain.boxes import SignerBox
from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.spans import FRAME_RATE
from signspot.domain.tracks import Embedder, FloatArray, Pixels, StagedEmbedder
from signspot.domain.words import Word
from signspot.errors import VideoError
from signspot.features.stages import for_dictionary, sees_landmarks
from signspot.media.reader import VideoReader
from signspot.media.sampling import random_clips
from signspot.media.thumbnails import thumbnail
from signspot.media.transforms import cut_square, shape_frame
from signspot.media.trim import NO_WRISTS, NOTHING_MOVES, Trim, trim_by_motion
from signspot.models.zoo import load_model
from signspot.workflows.default_model import chosen_model
from signspot.workflows.entry_vectors import EntrySource
from signspot.workflows.tracks import refuse_landmark_file

if TYPE_CHECKING:
    from signspot.workflows.landmark_signs import LandmarkSigns

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SignModel:
    """Which model, and how it reads."""

    name: str = ""  # a name, or the path of a .safetensors file; "": what can see the clips best
    backend: str = "auto"
    device: str = "cpu"
    seed: int = 0
    isolated: bool = True


def sign_embedder(wanted: SignModel, dictionary: Dictionary, store: Path | None = None) -> PictureSigns | LandmarkSigns:
    """The model of a name, of either kind, for the signs of a dictionary; `store` keeps landmarks of its clips."""
    name = chosen_model(wanted.name, (entry.video for entry in dictionary)).name
    model = load_model(name, backend=wanted.backend, device=wanted.device)
    return signs_of(model, dictionary, SignReading(seed=wanted.seed, isolated=wanted.isolated, store=store))


@dataclass(frozen=True, slots=True, kw_only=True)
class SignReading:
    """How clips are read."""

    seed: int = 0
    isolated: bool = True
    store: Path | None = None  # where landmarks of dictionary clips are kept


def signs_of(model: Embedder, dictionary: Dictionary, how: SignReading = SignReading()) -> PictureSigns | LandmarkSigns:
    """Signs as a model of either kind sees them."""
    if sees_landmarks(model):
        from signspot.workflows.landmark_signs import LandmarkSigns  # torch, which only networks need

        return LandmarkSigns(model, how.isolated, how.store)
    return PictureSigns(model, EntrySource.of(dictionary, model, seed=how.seed, isolated=how.isolated))


@dataclass(frozen=True, slots=True)
class PictureSigns:
    """Signs as a model of pictures sees them."""

    model: Embedder
    source: EntrySource

    @property
    def name(self) -> str:
        """What people call the model."""
        return self.model.name

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        return self.model.fingerprint

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self.model.dim

    @property
    def threshold(self) -> float:
        """The lowest cosine that counts as alike."""
        return self.model.threshold

    def entry_vector(self, entry: Entry) -> FloatArray:
        """The vector (d,) of a dictionary entry."""
        return self.source.vector(entry)

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""
        return self.source.remarks(words)

    def recorded(self, path: Path, box: SignerBox | None = None) -> RecordedSign:
        """Read a recording once: trimmed by what moves, brought to the model's size."""
        refuse_landmark_file(path, self.model)
        watched = _Watched(path, self.model, box)
        with VideoReader(path, isolated=self.source.isolated) as reader:
            trim = trim_by_motion(watched.frames(reader))
        faults, doubts = faults_of(trim, path), damage_of(path, reader.report.partial, reader.report.warnings)
        if faults:
            return RecordedSign(np.zeros((0, self.dim), np.float32), trim, tuple(watched.pictures), faults)
        kept = slice(trim.kept.start, trim.kept.stop)
        shown = np.stack(watched.shaped[kept])
        clips = shown[random_clips(len(shown), np.random.default_rng(self.source.seed))]
        vectors = np.stack([_one_vector(view, self.model) for view in (clips, clips[:, :, :, ::-1])])
        return RecordedSign(vectors, trim, tuple(watched.pictures[kept]), doubts=doubts)


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


@dataclass(slots=True)
class _Watched:
    """What is remembered of the frames that pass by: their large pictures are let go."""

    path: Path
    model: Embedder
    box: SignerBox | None
    shaped: list[Pixels] = field(default_factory=list)
    pictures: list[Pixels] = field(default_factory=list)

    def frames(self, reader: VideoReader) -> Iterator[Pixels]:
        most = LONGEST_SECONDS * FRAME_RATE
        for frame in islice(reader, most + 1):
            if len(self.shaped) == most:
                what = f"is longer than {LONGEST_SECONDS} s"
                raise VideoError(self.path, what, "record one sign; `signspot spot` searches long videos")
            pixels = frame.pixels if self.box is None else cut_square(frame.pixels, self.box)
            self.shaped.append(shape_frame(pixels, self.model.frame_shape))
            self.pictures.append(thumbnail(pixels))
            yield pixels


def _one_vector(clips: Pixels, model: Embedder) -> FloatArray:
    """Clips (n, 16, H, W, 3) of one sign -> (d,), as a dictionary clip is embedded."""
    embedder = for_dictionary(model)
    clips = np.ascontiguousarray(clips)
    if isinstance(embedder, StagedEmbedder):
        mean = embedder.trunk_vectors(clips).mean(axis=0, dtype=np.float64).astype(np.float32)
        staged: FloatArray = embedder.head_vectors(mean[None])[0]
        return staged
    vector: FloatArray = embedder.embed(clips).mean(axis=0, dtype=np.float64).astype(np.float32)
    return vector
