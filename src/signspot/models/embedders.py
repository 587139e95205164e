"""A trunk and a head as one network: 16 frames in, one unit vector out (Paper 3.2)."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from signspot.domain.recordings import Word
from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, FloatArray, FrameShape
from signspot.errors import InputError
from signspot.media.frames import RELEASED, Normalisation, normalised
from signspot.models.backends import Backend, Program, TorchBackend, choose_backend
from signspot.models.checkpoints import Checkpoint, ModelCard, Setting, Trunk, load_checkpoint, weights_sha256
from signspot.models.head import Head, unit_rows
from signspot.models.i3d import InceptionTrunk, folded
from signspot.models.landmarks import LandmarkEncoder

# What every model of two stages has: a trunk that sees clips, and a head that makes unit vectors of its vectors.

_LARGEST_KEPT = float(np.finfo(np.float16).max)  # vectors are kept as halves, and rounded so even where they are not
CONTINUOUS, DICTIONARY = 0, 1  # the domains of networks that have layers of their own for each (Paper App. B.3, C.1)


class _StagedModel:
    """A trunk and, unless it stands alone, a head; `how` is what else the vectors depend on, such as frame sizes."""

    def __init__(self, trunk: InceptionTrunk | LandmarkEncoder, head: Head | None, how: Mapping[str, object]) -> None:
        if head is not None and head.config.input_dim != trunk.embedding_dim:
            raise ValueError(f"a head for {head.config.input_dim} numbers on a trunk of {trunk.embedding_dim}")
        self._head = head
        self._domain = CONTINUOUS
        self.trunk_dim = trunk.embedding_dim
        self.dim = trunk.embedding_dim if head is None else head.config.embedding_dim
        self.trunk_fingerprint = _fingerprint_of({"trunk": trunk}, how)
        self.fingerprint = _fingerprint_of({"trunk": trunk, **({} if head is None else {"head": head})}, how)

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        with torch.inference_mode():
            rows = torch.from_numpy(np.array(vectors, dtype=np.float32))  # a copy: stored vectors are read-only
            domain = self._domain if self._head is not None and self._head.config.domains > 1 else CONTINUOUS
            embedding = unit_rows(rows) if self._head is None else self._head(rows, domain).embedding
        unit: FloatArray = embedding.numpy()
        is_kept_whole = bool((rows.abs() <= _LARGEST_KEPT).all())  # which no NaN is
        if not is_kept_whole or not np.isfinite(unit).all():
            what = "its vectors are not numbers: its weights are damaged or far too large"
            where = f"model {getattr(self, 'name', '')}".rstrip()
            raise InputError(where, what, "get the file again, or choose another model")
        return unit


def _fingerprint_of(networks: Mapping[str, nn.Module], how: Mapping[str, object]) -> str:
    """A checksum of all that the vectors depend on: not of classifiers, lexicons and counters."""
    weights = {
        f"{part}.{name}": tensor
        for part, network in networks.items()
        for name, tensor in network.state_dict().items()
        if not name.startswith(("logits.", "prototypes")) and not name.endswith("num_batches_tracked")
    }
    described = {
        "weights": weights_sha256(weights),
        "networks": {part: repr(network.config) for part, network in networks.items()},
        **how,
    }
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


_FULL_SIZE_ROWS = 2  # clips of a full-size I3D that a program takes at a time; more take more memory
_MOST_ROWS = 64  # of a small one: more gain nothing
_FEW_ROWS = 8  # where there are few clips, as in a dictionary entry: a program computes all its rows
_RELEASED_THRESHOLD = 0.4  # the cosine at which the released demo's (1 + cosine) / 2 reaches its 0.7 (deviation D5)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings:
    """What belongs to a model beside its weights; the defaults are the released model's."""

    name: str
    frame_shape: FrameShape = FrameShape(side=256, crop=224)
    normalisation: Normalisation = RELEASED
    threshold: float = _RELEASED_THRESHOLD
    backend: Backend = field(default_factory=TorchBackend)


class VideoEmbedder(_StagedModel):
    """Clips -> trunk -> head -> rows of length 1. The networks given are copied, and later changes do not matter."""

    def __init__(self, trunk: InceptionTrunk, head: Head | None, settings: EmbedderSettings) -> None:
        self.settings = settings
        self.trunk = copy.deepcopy(trunk).eval()
        how = {
            "frames": _described(settings.frame_shape),
            "normalisation": asdict(settings.normalisation),
            "backend": settings.backend.name,
        }
        super().__init__(self.trunk, copy.deepcopy(head).eval() if head is not None else None, how)
        self._programs: dict[str, Program] = {}

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def backend(self) -> str:
        return self.settings.backend.name

    @property
    def frame_shape(self) -> FrameShape:
        return self.settings.frame_shape

    @property
    def threshold(self) -> float:
        return self.settings.threshold

    @property
    def rows_per_step(self) -> int:
        """How many clips or positions a program takes at a time: of a small network many, or the cores wait."""
        share = self.trunk.config.width * (self.frame_shape.crop / 224) ** 2  # of a full-size network's numbers
        return max(_FULL_SIZE_ROWS, min(_MOST_ROWS, int(_FULL_SIZE_ROWS / share)))

    def embed(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        return self.head_vectors(self.trunk_vectors(clips))

    def trunk_vectors(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        """(n, 16, H, W, 3), uint8 or normalised float32 -> (n, trunk dim) float32, not negative."""
        side, n = self.frame_shape.crop, self.rows_per_step
        if 2 * len(clips) < n:
            n = min(n, _FEW_ROWS)
        if clips.shape[1:] != (CLIP_LENGTH, side, side, 3):
            raise ValueError(f"clips of shape {clips.shape} instead of (n, {CLIP_LENGTH}, {side}, {side}, 3)")
        shapes = ((n, 3, CLIP_LENGTH, side, side),)
        program = self.program(f"{n} windows", lambda: _LaterStages(self.trunk, domain=self._domain), shapes)
        vectors = [np.empty((0, self.trunk.embedding_dim), np.float32)]
        for first in range(0, len(clips), n):
            (rows,) = program(self.tensor(clips[first : first + n]))
            vectors.append(rows.float().cpu().numpy().copy())
        return np.concatenate(vectors)

    def of_dictionary(self) -> VideoEmbedder:
        """The same model for dictionary clips: another one only if its networks tell the two domains apart."""
        if self.trunk.config.domains == 1 and (self._head is None or self._head.config.domains == 1):
            return self
        twin = copy.copy(self)
        twin._domain, twin._programs = DICTIONARY, {}
        return twin

    def tensor(self, pixels: npt.NDArray[np.uint8] | FloatArray) -> Tensor:
        """(n, ..., H, W, 3) uint8 or normalised float32 -> (n, 3, ..., H, W) float32, normalised."""
        if pixels.dtype == np.uint8:
            pixels = normalised(pixels.astype(np.uint8, copy=False), self.settings.normalisation)
        elif pixels.dtype != np.float32:
            raise ValueError(f"frames are uint8 or normalised float32, not {pixels.dtype}")
        return torch.from_numpy(np.moveaxis(pixels, -1, 1)).to(self.settings.backend.device)

    def program(self, key: str, make: Callable[[], nn.Module], shapes: tuple[tuple[int, ...], ...]) -> Program:
        """The network that `make` builds, compiled at the first use for inputs of these shapes."""
        if key not in self._programs:
            examples = tuple(torch.empty(shape) for shape in shapes)  # nobody looks at their numbers
            self._programs[key] = self.settings.backend.compiled(make(), examples)
        return self._programs[key]


class _LaterStages(nn.Module):
    """The stages of a trunk behind the one named (or all) and the average: (B, channels, T, H, W) -> (B, trunk dim)."""

    def __init__(self, trunk: InceptionTrunk, after: str | None = None, domain: int = CONTINUOUS) -> None:
        super().__init__()
        self.trunk, self.after = folded(trunk, domain if trunk.config.domains > 1 else CONTINUOUS), after

    def forward(self, maps: Tensor) -> tuple[Tensor]:
        """A tuple of one, as every program gives."""
        return (self.trunk.features(maps, after=self.after).mean(dim=(2, 3, 4)),)


@contextmanager
def _opened(source: Path | Checkpoint, where: str) -> Iterator[tuple[ModelCard, Trunk, Head | None, str]]:
    """A model's card, networks and name for messages; what does not fit together inside is an InputError."""
    checkpoint = source if isinstance(source, Checkpoint) else load_checkpoint(source)
    where = where or (checkpoint.card.name if isinstance(source, Checkpoint) else str(source))
    try:
        yield checkpoint.card, *checkpoint.networks(), where
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: torch, for tensors that do not fit
        what = f"the weights and the model card do not fit together ({str(error).splitlines()[0]})"
        raise InputError(where, what, "get the file again, or import it again") from error


def embedder_from_checkpoint(
    source: Path | Checkpoint, *, device: str = "cpu", backend: str = "auto", where: str = ""
) -> VideoEmbedder:
    """The model of a .safetensors file, ready for use: its networks, its frames, its threshold."""
    with _opened(source, where) as (card, trunk, head, where):
        if isinstance(trunk, LandmarkEncoder):
            fix = "name it with --model, or open it with `load_model`; `signspot models list` shows the others"
            raise InputError(where, "sees landmarks, not pictures", fix)
        mean, std = float(card.preprocessing.get("mean") or 0.0), float(card.preprocessing.get("std") or 1.0)
        settings = EmbedderSettings(
            name=card.name,
            frame_shape=_frame_shape(card.preprocessing),
            normalisation=Normalisation((mean, mean, mean), (std, std, std)),
            threshold=float(card.config.get("threshold") or _RELEASED_THRESHOLD),
            backend=choose_backend(backend, device=device),
        )
        return VideoEmbedder(trunk, head, settings)


def _frame_shape(preprocessing: Mapping[str, Setting]) -> FrameShape:
    if preprocessing.get("clip_length", CLIP_LENGTH) != CLIP_LENGTH:
        raise ValueError(f"clips of {preprocessing['clip_length']} frames; only {CLIP_LENGTH} are supported")
    side, crop = preprocessing.get("side", 256), preprocessing.get("crop", 224)
    if not isinstance(side, int) or not isinstance(crop, int):
        raise ValueError(f"frames of {side} by {crop} pixels")
    keep_aspect, signer_box = (bool(preprocessing.get(key, False)) for key in ("keep_aspect", "signer_box"))
    return FrameShape(side, crop, keep_aspect, signer_box)


def _described(shape: FrameShape) -> dict[str, object]:
    """For the fingerprint: models that do without boxes keep theirs, and with it the vectors that are stored."""
    return {name: value for name, value in asdict(shape).items() if name != "signer_box" or value}


# A model that sees landmarks instead of pictures: windows of 16 frames of 258 numbers in, unit vectors out.

_ROWS_AT_ONCE = 256
_LEARNED_LANGUAGE = "ase"  # of the words of models whose cards do not say: all so far learned American Sign Language


class LandmarkEmbedder(_StagedModel):
    """Landmarks -> encoder -> head -> rows of length 1. The networks given are copied."""

    backend = "torch-fp32"

    def __init__(
        self,
        trunk: LandmarkEncoder,
        head: Head | None,
        *,
        name: str,
        threshold: float = 0.0,
        words: Sequence[Word] = (),
        language: str = "",
    ) -> None:
        self.name, self.threshold = name, threshold
        self.words = tuple(words)  # of the rows of its classifier and lexicon; one of several forms has several rows
        self.language = language  # that it learned these in
        self._trunk = copy.deepcopy(trunk).eval()
        super().__init__(self._trunk, copy.deepcopy(head).eval() if head is not None else None, {"sees": "landmarks"})

    def embed(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        return self.head_vectors(self.trunk_vectors(clips))

    @property
    def word_directions(self) -> FloatArray:
        """(n_words, dim) unit rows: where the vectors of its own words lie; none without a classifier of them."""
        if self._head is None or self._head.logits is None or self._head.logits.out_features != len(self.words):
            return np.zeros((0, self.dim), np.float32)
        return np.asarray(unit_rows(self._head.logits.weight.detach()).numpy())

    @property
    def word_prototypes(self) -> FloatArray:
        """(n_words, dim) unit rows to search videos by: like clips of its own words; their directions in old files."""
        rows = None if self._head is None else self._head.prototypes
        if rows is None or len(rows) != len(self.words):
            return self.word_directions
        return np.asarray(unit_rows(rows).numpy())

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


def landmark_embedder_from_checkpoint(source: Path | Checkpoint, where: str = "") -> LandmarkEmbedder:
    with _opened(source, where) as (card, trunk, head, _):
        if not isinstance(trunk, LandmarkEncoder):
            raise ValueError("it sees pictures, not landmarks")
        threshold, words = float(card.config.get("threshold") or 0.0), tuple(map(Word, card.vocabulary))
        language = str(card.config.get("language") or _LEARNED_LANGUAGE)
        return LandmarkEmbedder(trunk, head, name=card.name, threshold=threshold, words=words, language=language)
