"""The stages in which a trunk is trained (Paper App. C.1), and the network of each.

Pose distillation (if asked for), then the annotated clips alone, then, with batch norm re-initialised, annotated and
dictionary clips together. A trunk of one source has only its own stage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from signspot.domain.words import Vocabulary
from signspot.errors import InputError
from signspot.learning.clip_batches import ClipBatches, SourceShare
from signspot.learning.clips import ClipSource
from signspot.learning.presenting import LandmarkPresenter, PixelPresenter, Presenter
from signspot.learning.trunk_config import TrunkRunConfig
from signspot.models.checkpoints import Checkpoint
from signspot.models.layers import copied_to_domains, reinitialise_batch_norm
from signspot.models.networks import Setting, Trunk, build_trunk
from signspot.models.staged import CONTINUOUS, DICTIONARY
from signspot.models.trunk import InceptionTrunk


@dataclass(frozen=True, slots=True, eq=False)
class ClipTest:
    """Clips that are classified to see how far the training is."""

    name: str
    source: ClipSource
    domain: int = CONTINUOUS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrunkData:
    """What a trunk learns from; landmarks of the same clips are needed for pose distillation only."""

    vocabulary: Vocabulary  # what labels mean
    continuous: ClipSource | None = None
    dictionary: ClipSource | None = None
    continuous_landmarks: ClipSource | None = None
    dictionary_landmarks: ClipSource | None = None
    tests: tuple[ClipTest, ...] = ()
    description: str = ""  # for the model card

    def fingerprints(self) -> dict[str, str]:
        """Checksums of names, labels and confidences: a run continues only with the data it was begun with."""
        sources = {
            "continuous": self.continuous,
            "dictionary": self.dictionary,
            "continuous_landmarks": self.continuous_landmarks,
            "dictionary_landmarks": self.dictionary_landmarks,
        } | {f"test {test.name}": test.source for test in self.tests}
        checked = {name: _fingerprint(source) for name, source in sources.items() if source is not None}
        return checked | {"vocabulary": hashlib.sha256("\0".join(self.vocabulary).encode()).hexdigest()}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of training."""

    number: int  # 0 pose, 1 annotated clips alone, 2 with or of the dictionary: part of every random seed
    name: Literal["pose", "stage 1", "stage 2"]
    epochs: int
    domains: tuple[int, ...]  # the sources
    min_confidence: float  # of annotated clips
    sets_of_batch_norm: int = 1
    reinitialises: bool = False


def stages_of(config: TrunkRunConfig) -> tuple[Stage, ...]:
    """The stages of a run that have epochs, in order."""
    has_stage1, has_stage2 = config.sources != "dictionary", config.sources != "continuous"
    both = (CONTINUOUS, DICTIONARY) if config.sources == "both" else (DICTIONARY,)
    first = (CONTINUOUS,) if has_stage1 else (DICTIONARY,)
    planned = [Stage(0, "pose", config.pose_epochs, first, config.stage1_confidence)]
    if has_stage1:
        planned.append(Stage(1, "stage 1", config.stage1_epochs, (CONTINUOUS,), config.stage1_confidence))
    if has_stage2:
        planned.append(
            Stage(
                2,
                "stage 2",
                config.stage2_epochs,
                both,
                config.stage2_confidence,
                sets_of_batch_norm=2 if config.domain_specific_batch_norm else 1,
                reinitialises=config.reinitialise_batch_norm,
            )
        )
    stages = tuple(stage for stage in planned if stage.epochs)
    if not stages:
        raise InputError("training", "no stage has any epochs", "set stage1_epochs or stage2_epochs")
    return stages


def batches_of(stage: Stage, config: TrunkRunConfig, data: TrunkData) -> ClipBatches:
    """The minibatches of a stage: an equal share of each of its sources."""
    shares = tuple(_share(domain, stage, data) for domain in stage.domains)
    # The number of the stage is part of the seed, so that stages do not repeat each other's draws.
    seed = (config.seed, stage.number)
    batches = ClipBatches(shares, presenter_of(config), batch_size=config.batch_size, seed=seed)
    try:
        batches.batch(0)
    except ValueError as error:
        what = f"the clips do not fit the network ({error})"
        raise InputError(stage.name, what, "check architecture, side and crop") from error
    return batches


def refuse_unusable_tests(data: TrunkData) -> None:
    """Raise if a test set has no clips, or labels of another vocabulary."""
    for test in data.tests:
        if not len(test.source):
            raise InputError(f"test set {test.name}", "is empty", "add clips to it, or leave it out")
        _refuse_unknown_labels(test.source, np.arange(len(test.source)), len(data.vocabulary), f"test set {test.name}")


def presenter_of(config: TrunkRunConfig) -> Presenter:
    """How clips are shown to the trunk of a run."""
    if config.architecture == "landmark":
        return LandmarkPresenter(config.landmark_augmentation)
    return PixelPresenter(config.augmentation)


def new_trunk(config: TrunkRunConfig, classes: int, sets_of_batch_norm: int = 1) -> Trunk:
    """A trunk with the weights that the seed of the run gives."""
    is_landmark = config.architecture == "landmark"
    shape: dict[str, Setting] = {"classes": classes, "width": config.width, "domains": sets_of_batch_norm}
    shape |= {"gated": config.gated, "embedding_dim": config.embedding_dim}
    shape |= {"width": config.landmark_width} if is_landmark else {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        trunk = build_trunk(config.architecture, shape)
    for module in trunk.modules():
        if isinstance(module, nn.BatchNorm3d):
            module.momentum = config.batch_norm_momentum
    return trunk


def trunk_for(stage: Stage, config: TrunkRunConfig, before: Trunk) -> Trunk:
    """The trunk a stage starts with, from the one the stage before ended with (Paper App. C.1)."""
    trunk = before
    if isinstance(before, InceptionTrunk) and stage.sets_of_batch_norm != before.config.domains:
        trunk = new_trunk(config, before.config.classes, stage.sets_of_batch_norm)
        trunk.load_state_dict(copied_to_domains(before.state_dict(), stage.sets_of_batch_norm))
    if stage.reinitialises:
        reinitialise_batch_norm(trunk)
    return trunk


def start_from(trunk: Trunk, checkpoint: Checkpoint, architecture: str) -> None:
    """Give a trunk the weights of a model; a classifier of other words is left as it is."""
    state: Mapping[str, Tensor] = checkpoint.part(architecture)
    own = trunk.state_dict()
    fitting = {name: tensor for name, tensor in state.items() if name in own and own[name].shape == tensor.shape}
    misfits = [name for name in (*own, *state) if name not in fitting and not name.startswith("logits.")]
    if not state or misfits:
        what = f"is no {architecture} like the one to train" + (f" ({misfits[0]} differs)" if state else "")
        raise InputError(checkpoint.card.name, what, "name a model of the same architecture and width")
    same_words = all(name in fitting for name in own if name.startswith("logits."))
    kept = {name: tensor for name, tensor in fitting.items() if same_words or not name.startswith("logits.")}
    trunk.load_state_dict(own | kept)


def _fingerprint(source: ClipSource) -> str:
    digest = hashlib.sha256()
    for i in range(len(source)):
        digest.update(f"{source.name(i)}\0{source.label(i)}\0{source.confidence(i)}\0".encode(errors="replace"))
    return digest.hexdigest()


def _share(domain: int, stage: Stage, data: TrunkData) -> SourceShare:
    is_continuous = domain == CONTINUOUS
    called = "annotated clips" if is_continuous else "dictionary clips"
    source = data.continuous if is_continuous else data.dictionary
    landmarks = data.continuous_landmarks if is_continuous else data.dictionary_landmarks
    if source is None:
        raise InputError(stage.name, f"needs {called}, and none are given", "add them, or choose other sources")
    at_least = stage.min_confidence if is_continuous else 0.0
    chosen = np.array([i for i in range(len(source)) if source.confidence(i) >= at_least], np.int64)
    if not len(chosen):
        sure = f" of confidence {at_least} or more" if at_least else ""
        raise InputError(stage.name, f"there are no {called}{sure} to learn from", "add some, or lower the confidence")
    _refuse_unknown_labels(source, chosen, len(data.vocabulary), stage.name)
    if stage.number:
        return SourceShare(source, chosen, domain)
    if landmarks is None or len(landmarks) != len(source):
        raise InputError(stage.name, f"needs the landmarks of the {called}", "add them, or set pose_epochs = 0")
    return SourceShare(source, chosen, domain, landmarks)


def _refuse_unknown_labels(source: ClipSource, chosen: npt.NDArray[np.int64], n_words: int, where: str) -> None:
    for i in chosen.tolist():
        if not 0 <= source.label(i) < n_words:
            what = f"{source.name(i)} has the label {source.label(i)}, the vocabulary {n_words} words"
            raise InputError(where, what, "give the vocabulary the labels were made with")
