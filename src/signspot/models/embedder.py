"""A trunk and a head behind the Embedder protocol: 16 frames in, one unit vector out (Paper 3.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from signspot.domain.tracks import CLIP_LENGTH, FloatArray, FrameShape
from signspot.errors import InputError
from signspot.media.transforms import RELEASED, Normalisation, normalised
from signspot.models.backends import Backend, Program, TorchBackend, choose_backend
from signspot.models.checkpoints import Checkpoint, load_checkpoint, networks_of
from signspot.models.folding import folded
from signspot.models.head import Head
from signspot.models.landmark_encoder import LandmarkEncoder
from signspot.models.networks import Setting
from signspot.models.staged import CONTINUOUS, DICTIONARY, StagedModel
from signspot.models.trunk import InceptionTrunk

_FULL_SIZE_ROWS = 2  # clips of a full-size I3D that a program takes at a time; more take more memory
_MOST_ROWS = 64  # of a small one: more gain nothing
_FEW_ROWS = 8  # where there are few clips, as in a dictionary entry: a program computes all its rows
_GET_AGAIN = "get the file again, or import it again"
RELEASED_THRESHOLD = 0.4  # the cosine at which the released demo's (1 + cosine) / 2 reaches its 0.7 (deviation D5)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings:
    """What belongs to a model beside its weights; the defaults are the released model's."""

    name: str
    frame_shape: FrameShape = FrameShape(side=256, crop=224)
    normalisation: Normalisation = RELEASED
    threshold: float = RELEASED_THRESHOLD
    backend: Backend = field(default_factory=TorchBackend)


class VideoEmbedder(StagedModel):
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
        """What people call the model."""
        return self.settings.name

    @property
    def backend(self) -> str:
        """Where it runs and how precisely, such as openvino-fp32."""
        return self.settings.backend.name

    @property
    def frame_shape(self) -> FrameShape:
        """The size of the frames it takes."""
        return self.settings.frame_shape

    @property
    def threshold(self) -> float:
        """The lowest cosine that counts as found unless the user says otherwise."""
        return self.settings.threshold

    @property
    def rows_per_step(self) -> int:
        """How many clips or positions a program takes at a time: of a small network many, or the cores wait."""
        share = self.trunk.config.width * (self.frame_shape.crop / 224) ** 2  # of a full-size network's numbers
        return max(_FULL_SIZE_ROWS, min(_MOST_ROWS, int(_FULL_SIZE_ROWS / share)))

    def embed(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        """(n, 16, H, W, 3), uint8 or normalised float32 -> (n, dim) float32 rows of length 1."""
        return self.head_vectors(self.trunk_vectors(clips))

    def trunk_vectors(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        """(n, 16, H, W, 3), uint8 or normalised float32 -> (n, trunk dim) float32, not negative."""
        side, n = self.frame_shape.crop, self.rows_per_step
        if 2 * len(clips) < n:
            n = min(n, _FEW_ROWS)
        if clips.shape[1:] != (CLIP_LENGTH, side, side, 3):
            raise ValueError(f"clips of shape {clips.shape} instead of (n, {CLIP_LENGTH}, {side}, {side}, 3)")
        program = self.program(
            f"{n} windows",
            lambda: LaterStages(self.trunk, domain=self._domain),
            ((n, 3, CLIP_LENGTH, side, side),),
        )
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


class LaterStages(nn.Module):
    """The stages of a trunk behind the one named (or all) and the average: (B, channels, T, H, W) -> (B, trunk dim)."""

    def __init__(self, trunk: InceptionTrunk, after: str | None = None, domain: int = CONTINUOUS) -> None:
        super().__init__()
        self.trunk, self.after = folded(trunk, domain if trunk.config.domains > 1 else CONTINUOUS), after

    def forward(self, maps: Tensor) -> tuple[Tensor]:
        """A tuple of one, as every program gives."""
        return (self.trunk.features(maps, after=self.after).mean(dim=(2, 3, 4)),)


def embedder_from_checkpoint(source: Path | Checkpoint, *, device: str = "cpu", backend: str = "auto") -> VideoEmbedder:
    """The model of a .safetensors file, ready for use: its networks, its frames, its threshold."""
    checkpoint = source if isinstance(source, Checkpoint) else load_checkpoint(source)
    where = checkpoint.card.name if isinstance(source, Checkpoint) else str(source)
    try:
        trunk, head = networks_of(checkpoint)
        if isinstance(trunk, LandmarkEncoder):
            fix = "name it with --model, or open it with `load_model`; `signspot models list` shows the others"
            raise InputError(where, "sees landmarks, not pictures", fix)
        settings = EmbedderSettings(
            name=checkpoint.card.name,
            frame_shape=_frame_shape(checkpoint.card.preprocessing),
            normalisation=_normalisation(checkpoint.card.preprocessing),
            threshold=float(checkpoint.card.config.get("threshold") or RELEASED_THRESHOLD),
            backend=choose_backend(backend, device=device),
        )
        return VideoEmbedder(trunk, head, settings)
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: torch, for tensors that do not fit
        reason = str(error).splitlines()[0]
        raise InputError(where, f"the weights and the model card do not fit together ({reason})", _GET_AGAIN) from error


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


def _normalisation(preprocessing: Mapping[str, Setting]) -> Normalisation:
    mean, std = (float(preprocessing.get(key) or default) for key, default in (("mean", 0.0), ("std", 1.0)))
    return Normalisation((mean, mean, mean), (std, std, std))
