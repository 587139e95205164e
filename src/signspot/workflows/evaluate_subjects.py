"""What can be evaluated: a trained run, a model file or a model of the zoo, and two for checks, truth and chance.

A subject gives vectors of unit length for dictionary entries and for windows. `truth` knows the annotations: it scores
100% unless a label lies so near the edge of its passage that no window is close enough. `random` knows nothing: it
scores chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from signspot.domain.spans import Tolerance
from signspot.domain.tracks import CLIP_LENGTH, FloatArray
from signspot.errors import InputError
from signspot.evaluation.localisation import is_near
from signspot.learning.config import EmbeddingConfig, read_config
from signspot.learning.head_scores import embedded
from signspot.learning.material import Ints, Material
from signspot.learning.run_folder import RunFolder
from signspot.models.checkpoints import Checkpoint, load_checkpoint
from signspot.models.head import Head
from signspot.models.networks import HEAD, build_head
from signspot.models.staged import CONTINUOUS, DICTIONARY
from signspot.models.zoo import model_path
from signspot.workflows.train import trunk_fingerprints

TRUTH, RANDOM = "truth", "random"
WhichModel = Literal["last", "best"]
_RANDOM_DIM = 256  # Paper 3.2: as long as a real embedding
_N_RANDOM = 1 << 13
_LARGE_PRIME = 1_000_003


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Windows of one track, and the signs known to be among them."""

    track: int
    starts: Ints  # (n,) first frames
    label: Ints  # (m,) words
    label_frame: Ints  # (m,)

    @property
    def centres(self) -> Ints:
        """(n,) the frames that stand for the windows (deviation D7)."""
        return self.starts + CLIP_LENGTH // 2


class Subject(Protocol):
    """Whatever turns the vectors of a test set into vectors that are compared."""

    def entries(self, test: Material, rows: Ints) -> FloatArray:
        """Of some dictionary entries: (n, d) unit rows."""

    def windows(self, test: Material, asked: Windows) -> FloatArray:
        """Of some windows: (n, d) unit rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """A model that was named: its file, and the options it was trained with where they are known."""

    name: str
    path: Path | None = None  # None: truth or random
    checkpoint: Checkpoint | None = None
    config: EmbeddingConfig | None = None  # of a run
    run: RunFolder | None = None
    notes: tuple[str, ...] = ()


def open_model(name: str, which: WhichModel = "last") -> Model:
    """Find a run folder, a model file or a name of the zoo, or one of the two made for checks."""
    if which not in ("last", "best"):
        raise InputError(f"--checkpoint {which}", "is none", "choose last or best")
    if name in (TRUTH, RANDOM):
        return Model(name=name)
    if not Path(name).is_dir():
        path = model_path(name)
        return Model(name=name, path=path, checkpoint=load_checkpoint(path))
    run = RunFolder(Path(name))
    if not run.config.is_file():
        raise InputError(name, "is no run folder: it has no config.toml", "name a folder of `signspot train embedding`")
    path = run.best if which == "best" else run.last
    if not path.is_file():
        raise InputError(
            path, "is not there", "train until the first epoch is finished, or choose another --checkpoint"
        )
    notes = ("the best epoch was chosen on the test set: its figures are too good",) if which == "best" else ()
    config = read_config(run.config, EmbeddingConfig, ())
    return Model(name=name, path=path, checkpoint=load_checkpoint(path), config=config, run=run, notes=notes)


def subject_of(model: Model, test: Material, seed: int = 0) -> Subject:
    """The model made ready for a test set; one whose vectors come from another trunk is refused."""
    if model.checkpoint is None:
        return TruthSubject() if model.name == TRUTH else RandomSubject(seed)
    checkpoint = model.checkpoint
    parts = checkpoint.card.architecture.split("+")
    head = None
    if HEAD in parts:
        head = build_head(checkpoint.card.config)
        head.load_state_dict(checkpoint.part(HEAD))
        head.eval().requires_grad_(False)
    dim = test.entry_vectors.shape[1]
    if head is not None and head.config.input_dim != dim:
        sizes = f"takes vectors of {head.config.input_dim} numbers, those of the test set have {dim}"
        raise InputError(model.name, sizes, "name test material that was made with its trunk")
    if not _is_made_by(checkpoint, test.fingerprint):
        what = "is not the model whose trunk made the vectors of the test set"
        raise InputError(model.name, what, "make the test material with it: `signspot train material --trunk`")
    return HeadSubject(head)


@dataclass(frozen=True, slots=True, eq=False)
class HeadSubject:
    """A head on the vectors of a trunk; without one the trunk's vectors are compared as they are."""

    head: Head | None

    def entries(self, test: Material, rows: Ints) -> FloatArray:
        """The stored vectors of the entries through the head."""
        return embedded(self.head, np.asarray(test.entry_vectors[rows], np.float32), DICTIONARY)

    def windows(self, test: Material, asked: Windows) -> FloatArray:
        """The stored vectors of the windows through the head."""
        return embedded(self.head, np.asarray(test.tracks[asked.track][asked.starts], np.float32), CONTINUOUS)


@dataclass(frozen=True, slots=True, eq=False)
class TruthSubject:
    """An oracle: a window near a known sign looks exactly like that sign, any other like nothing."""

    tolerance: Tolerance = field(default_factory=Tolerance)

    def entries(self, test: Material, rows: Ints) -> FloatArray:
        """One direction a word, one for no word."""
        return np.eye(len(test.vocabulary) + 1, dtype=np.float32)[test.entry_word[rows]]

    def windows(self, test: Material, asked: Windows) -> FloatArray:
        """The directions of all signs that are near."""
        vectors = np.zeros((len(asked.starts), len(test.vocabulary) + 1), np.float32)
        for word, frame in zip(asked.label, asked.label_frame, strict=True):
            vectors[is_near(asked.centres, frame, self.tolerance), word] = 1
        vectors[~vectors.any(axis=1), -1] = 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


class RandomSubject:
    """Chance: windows and entries have random directions, the same each time for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._entry_seed, self._window_seed = np.random.SeedSequence(seed).spawn(2)
        self._drawn = _random_rows(self._window_seed, _N_RANDOM)

    def entries(self, test: Material, rows: Ints) -> FloatArray:
        """Random directions."""
        return _random_rows(self._entry_seed, len(test.entry_word))[rows]

    def windows(self, test: Material, asked: Windows) -> FloatArray:
        """Random directions; a window has the same one in every passage."""
        # Drawn once and used again: a passage is far shorter than the table, so its windows all differ.
        return self._drawn[(asked.track * _LARGE_PRIME + asked.starts) % _N_RANDOM]


def _random_rows(seed: np.random.SeedSequence, n: int) -> FloatArray:
    rows = np.random.default_rng(seed).standard_normal((n, _RANDOM_DIM), dtype=np.float32)
    unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _is_made_by(checkpoint: Checkpoint, fingerprint: str) -> bool:
    """Whether the model's trunk made vectors of this fingerprint; yes where the file does not say."""
    if checkpoint.card.architecture == HEAD:
        _, is_said, trunk = checkpoint.card.created_from.rpartition("; trunk ")
        return not is_said or fingerprint.startswith(trunk)
    return fingerprint in trunk_fingerprints(checkpoint)
