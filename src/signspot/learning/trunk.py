"""Training of the trunk by classification, in the stages of Paper App. C.1, with a state that continues to the bit.

Every random draw depends on the seed, the stage and the step alone, so the state is weights, momentum, and where the
run stands. On a CPU, with the same number of threads, a run that was killed at any moment and continued ends with the
same bits as one that was not.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.domain.recordings import Vocabulary
from signspot.domain.time import FRAME_RATE
from signspot.domain.tracks import (
    CLIP_LENGTH,
    LANDMARK_DIM,
    FloatArray,
    Ints,
)
from signspot.errors import InputError
from signspot.files.json import write_json
from signspot.interrupts import at_interruption, is_asked
from signspot.learning import runs
from signspot.learning.batches import on_device, prefetch
from signspot.learning.clips import Frames, LandmarkAugmentation, RecordedClips
from signspot.learning.config import TrunkRunConfig
from signspot.learning.runs import RunFolder
from signspot.media.frames import RELEASED, Augmentation, Normalisation
from signspot.models.checkpoints import (
    Checkpoint,
    ModelCard,
    Setting,
    Trunk,
    build_trunk,
    describe,
    load_checkpoint,
    save_checkpoint,
    state_of,
)
from signspot.models.embedders import CONTINUOUS, DICTIONARY
from signspot.models.i3d import InceptionTrunk, TrunkOutput, copied_to_domains, reinitialise_batch_norm
from signspot.models.landmarks import HAND_POINTS, Body, Part, mirrored

# Minibatches of clips for the trunk: an equal share of each source, and every clip as often as the others.
#
# Batch number `step` depends on the seed, the stage and the step alone: not on the batches before, nor on how many
# threads prepare them.


@dataclass(frozen=True, slots=True, eq=False)
class _ClipBatch:
    """Labelled clips as a trunk takes them, but for the normalisation of pixels."""

    clips: Tensor  # (B, 16, H, W, 3) uint8 or (B, 16, 258) float32
    labels: Tensor  # (B,) int64
    domains: Tensor  # (B,) int64
    names: tuple[str, ...]
    landmarks: Tensor | None = None  # (B, 16, 258) float32 of the same frames, mirrored where they are


@dataclass(frozen=True, slots=True, eq=False)
class _SourceShare:
    """One source of a stage: which of its clips, in which domain, with the landmarks of the same clips if needed."""

    source: RecordedClips
    chosen: Ints  # (n,) clips of the source, n >= 1
    domain: int = CONTINUOUS
    landmarks: RecordedClips | None = None  # clip i of it shows the frames of clip i of the source


class _ClipBatches:
    """The batches of one stage of training."""

    def __init__(
        self, shares: tuple[_SourceShare, ...], transform: _ClipTransform, *, batch_size: int, seed: tuple[int, ...]
    ) -> None:
        if not shares or batch_size % len(shares) or not all(len(share.chosen) for share in shares):
            raise ValueError(f"a batch of {batch_size} from {[len(share.chosen) for share in shares]} clips")
        self._shares, self._transform, self._seed = shares, transform, seed
        self._per_source = batch_size // len(shares)

    @property
    def steps_per_epoch(self) -> int:
        """How many batches show every clip of the larger source once; clips of the smaller ones return."""
        return max(-(-len(share.chosen) // self._per_source) for share in self._shares)

    def batch(self, step: int) -> _ClipBatch:
        shown, names, labels, domains, landmarks = [], [], [], [], []
        for number, share in enumerate(self._shares):
            for place in range(step * self._per_source, (step + 1) * self._per_source):
                # Every clip once in a random order, then all again in another.
                turn, offset = divmod(place, len(share.chosen))
                i = int(share.chosen[_order((*self._seed, number, turn), len(share.chosen))[offset]])
                key = (*self._seed, number, place)
                drawn = share.source.clip(i, np.random.default_rng((*key, 0)))
                clip, is_mirrored = self._transform.training(drawn, np.random.default_rng((*key, 1)))
                shown.append(torch.from_numpy(clip))
                names.append(share.source.places[i].name)
                labels.append(share.source.places[i].label)
                domains.append(share.domain)
                if share.landmarks is not None:
                    # The same random numbers draw the same frames.
                    points = share.landmarks.clip(i, np.random.default_rng((*key, 0)))
                    posed = torch.from_numpy(np.array(points, dtype=np.float32))
                    landmarks.append(mirrored(posed) if is_mirrored else posed)
        posed_clips = torch.stack(landmarks) if landmarks else None
        return _ClipBatch(torch.stack(shown), torch.tensor(labels), torch.tensor(domains), tuple(names), posed_clips)

    def batches(self, first: int, stop: int, *, workers: int = 0) -> Iterator[_ClipBatch]:
        """The batches of the steps first, first + 1, ... stop - 1; `workers` threads prepare them ahead."""
        return prefetch(self.batch, range(first, stop), workers=workers, ahead=2 * workers)


@lru_cache(maxsize=8)
def _order(key: tuple[int, ...], n: int) -> Ints:
    return np.random.default_rng((*key, 2)).permutation(n)


# A trunk takes frames (B, 3, 16, H, W), normalised, or landmarks (B, 16, 258).


class _ClipTransform(Protocol):
    """How clips look when they reach a trunk: changed at random in training, as they are in a test."""

    def training(self, clip: Frames, rng: np.random.Generator) -> tuple[Frames, bool]:
        """One clip (16, ...), changed at random, and whether it is mirrored."""

    def testing(self, clips: Frames) -> Frames:
        """Clips (n, 16, ...), unchanged but for their size."""

    def tensor(self, clips: Tensor) -> Tensor:
        """Clips (n, 16, ...), on any device, as the network takes them."""


@dataclass(frozen=True, slots=True)
class _PixelTransform:
    """For I3D and S3D: clips (16, side, side, 3) uint8, shown as (16, crop, crop, 3)."""

    augmentation: Augmentation = Augmentation()
    normalisation: Normalisation = RELEASED

    def training(self, clip: Frames, rng: np.random.Generator) -> tuple[Frames, bool]:
        change = self.augmentation.draw(rng)
        return change.apply(self._checked(clip).astype(np.uint8, copy=False)), change.flip

    def testing(self, clips: Frames) -> Frames:
        crop = self.augmentation.crop
        top, left = ((side - crop) // 2 for side in self._checked(clips).shape[-3:-1])
        return clips[..., top : top + crop, left : left + crop, :]

    def tensor(self, clips: Tensor) -> Tensor:
        """(n, 16, H, W, 3) uint8 -> (n, 3, 16, H, W) float32, normalised."""
        numbers = self.normalisation.mean, self.normalisation.std
        mean, std = (clips.new_tensor(one, dtype=torch.float32) for one in numbers)
        # Channels last, as the pixels lie: convolutions of narrow networks are several times faster that way.
        moved = ((clips / 255 - mean) / std).movedim(-1, 1)
        return moved.contiguous(memory_format=torch.channels_last_3d)

    def _checked(self, clips: Frames) -> Frames:
        crop = self.augmentation.crop
        *_, n, height, width, colours = (0, 0, 0, 0, *clips.shape)
        if clips.dtype != np.uint8 or (n, colours) != (CLIP_LENGTH, 3) or min(height, width) < crop:
            raise ValueError(f"clips of {clips.dtype} {clips.shape} where {CLIP_LENGTH} frames of {crop} are cut out")
        return clips


@dataclass(frozen=True, slots=True)
class _LandmarkTransform:
    """For the landmark encoder: clips (16, 258) float32."""

    augmentation: LandmarkAugmentation = LandmarkAugmentation()

    def training(self, clip: Frames, rng: np.random.Generator) -> tuple[Frames, bool]:
        change = self.augmentation.draw(rng)
        return change.apply(self._checked(clip).astype(np.float32, copy=False)), change.mirror

    def testing(self, clips: Frames) -> Frames:
        return self._checked(clips)

    def tensor(self, clips: Tensor) -> Tensor:
        return clips

    def _checked(self, clips: Frames) -> Frames:
        if clips.shape[-2:] != (CLIP_LENGTH, LANDMARK_DIM) or clips.dtype != np.float32:
            raise ValueError(f"clips of {clips.dtype} {clips.shape} instead of ({CLIP_LENGTH}, {LANDMARK_DIM})")
        return clips


@dataclass(frozen=True, slots=True, kw_only=True)
class _TrunkEpoch:
    """One finished epoch."""

    stage: str
    epoch: int  # of the stage, from 0
    loss: float  # mean over the steps
    right: float  # share of training clips whose own word scored highest, as they were shown
    learning_rate: float
    tests: dict[str, _ClassAccuracy] = field(default_factory=dict)  # by the name of the test set, where evaluated


@dataclass(frozen=True, slots=True)
class TrunkProgress:
    """Where a run stands."""

    stage: str
    epoch: int  # the one under way, from 0
    epochs: int  # of the stage
    step: int  # steps done in the epoch
    steps: int
    loss: float  # mean over the epoch so far
    finished: _TrunkEpoch | None = None  # the epoch that has just ended


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkControls:
    """How a run is watched and steered; nothing here changes what is learned."""

    progress: Callable[[TrunkProgress], None] = lambda moment: None
    stop: Callable[[], bool] = is_asked  # after every step
    save_seconds: float = 600.0  # between two states inside an epoch
    workers: int = 1  # threads that prepare clips ahead
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class _Position:
    """Where a run stands, beside its tensors."""

    stage: int = 0  # its place among the stages of the run
    step: int = 0  # steps done in the stage
    loss_sum: float = 0.0  # over the steps of this epoch
    n_right: int = 0
    n_clips: int = 0
    epochs: list[_TrunkEpoch] = field(default_factory=list)


def train_trunk(
    config: TrunkRunConfig, data: TrunkData, run: RunFolder, controls: TrunkControls = TrunkControls()
) -> ModelCard:
    """Train through all stages, from the state in the run folder if there is one; the model is `run.last`.

    A loss that is no number stops the run and names the clips; `controls.stop` ends it with the state saved
    (`runs.Interrupted`).
    """
    device = runs.usable_device(config.device)
    saved = runs.SavedState.load(run.state) if run.state.exists() else None
    with runs.repeatable(runs.threads_of(config.threads, saved), device) as threads:
        return _Training(config, data, run, controls).run(saved, device, threads)


def _trunk_card(config: TrunkRunConfig, data: TrunkData, trunk: Trunk) -> ModelCard:
    frames: dict[str, Setting] = {"clip_length": CLIP_LENGTH, "frame_rate": FRAME_RATE}
    if config.architecture != "landmark":
        frames |= asdict(config.frame_shape) | {"mean": RELEASED.mean[0], "std": RELEASED.std[0]}
    stages = ", ".join(f"{stage.name} of {stage.epochs} epochs" for stage in _stages_of(config))
    return ModelCard(
        name=f"{config.architecture}-{config.sources}",
        architecture=config.architecture,
        config=describe(trunk),
        preprocessing=frames,
        vocabulary=tuple(data.vocabulary),
        training_data=data.description,
        created_from=f"signspot train trunk: {stages}; seed {config.seed}",
    )


class _Training:
    def __init__(self, config: TrunkRunConfig, data: TrunkData, run: RunFolder, controls: TrunkControls) -> None:
        self.config, self.data, self.folder, self.controls = config, data, run, controls
        self.stages = _stages_of(config)
        _refuse_unusable_tests(data)
        # All of them at once: what is missing is said before anything is learned.
        self.batches = [_batches_of(stage, config, data) for stage in self.stages]
        self.transform = transform_of(config)
        self.position = _Position()
        self.device, self.n_threads = torch.device("cpu"), 1

    def run(self, saved: runs.SavedState | None, device: torch.device, n_threads: int) -> ModelCard:
        self.device, self.n_threads = device, n_threads
        if saved is not None:
            self.position = self._read_position(saved)
        trunk = None
        if saved is None:
            trunk = _new_trunk(self.config, len(self.data.vocabulary))
            if self.config.initial_model is not None:
                _start_from(trunk, load_checkpoint(self.config.initial_model), self.config.architecture)
        for number in range(self.position.stage, len(self.stages)):
            stage = self.stages[number]
            if trunk is None:
                trunk = _new_trunk(self.config, len(self.data.vocabulary), stage.sets_of_batch_norm)
            else:
                self.position = _Position(stage=number, epochs=self.position.epochs)
                trunk = _trunk_for(stage, self.config, trunk)
            _StageRun(self, stage, trunk).learn(saved)
            saved = None
        if trunk is None:
            raise InputError(self.folder.state, "does not fit this run", "start again with --overwrite")
        card = _trunk_card(self.config, self.data, trunk)
        card = save_checkpoint(self.folder.last, state_of(trunk), card, overwrite=True)
        epochs = self.position.epochs
        results = {"final": asdict(epochs[-1]), "epochs": len(epochs), "weights_sha256": card.weights_sha256}
        write_json(results, self.folder.results, overwrite=True)
        return card

    def steps_per_epoch(self, stage: _Stage) -> int:
        return self.config.steps_per_epoch or self.batches[self.stages.index(stage)].steps_per_epoch

    def save(self, run: _StageRun) -> None:
        facts = asdict(self.position) | {"threads": self.n_threads}
        runs.SavedState(run.tensors(), facts).save(self.folder.state)
        self.folder.write_lines(self.folder.curves, [asdict(epoch) for epoch in self.position.epochs])

    def tested(self, trunk: Trunk) -> dict[str, _ClassAccuracy]:
        return {test.name: accuracy_of(trunk, test, self.transform, self.device) for test in self.data.tests}

    def _read_position(self, saved: runs.SavedState) -> _Position:
        facts = {key: value for key, value in saved.facts.items() if key != "threads"}
        try:
            epochs = list[_TrunkEpoch]()
            for row in facts.pop("epochs"):  # type: ignore[attr-defined]
                row["tests"] = {name: _ClassAccuracy(**held) for name, held in row["tests"].items()}
                epochs.append(_TrunkEpoch(**row))
            position = _Position(epochs=epochs, **facts)  # type: ignore[arg-type]
            stage = self.stages[position.stage]
            if not 0 <= position.step <= stage.epochs * self.steps_per_epoch(stage):
                raise ValueError(f"step {position.step} of {stage.name}")
        except (ValueError, TypeError, KeyError, IndexError) as error:
            what = f"does not fit this run ({error})"
            raise InputError(self.folder.state, what, "start again with --overwrite") from error
        return position


class _StageRun:
    def __init__(self, training: _Training, stage: _Stage, trunk: Trunk) -> None:
        self.training, self.stage, self.config = training, stage, training.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            learner = _Learner(trunk, training.transform, distils=stage.number == 0)
        self.learner = learner.to(training.device).train()
        parameters, rate, decay = self.learner.parameters(), self.config.learning_rate, self.config.weight_decay
        self.optimiser: torch.optim.Optimizer
        if self.config.optimiser == "adamw":
            self.optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=decay)
        else:
            momentum = self.config.momentum
            self.optimiser = torch.optim.SGD(parameters, lr=rate, momentum=momentum, weight_decay=decay)
        self.guard, self.counters = runs.StepGuard(), dict[str, Tensor]()

    def learn(self, saved: runs.SavedState | None) -> None:
        if saved is not None:
            try:
                runs.restore_training(self.learner, self.optimiser, saved.tensors)
            except ValueError as error:
                what = f"does not fit this run ({error})"
                raise InputError(self.training.folder.state, what, "start again with --overwrite") from error
        with at_interruption(self._save_if_consistent):
            self._learn()

    def tensors(self) -> dict[str, Tensor]:
        return runs.training_tensors(self.learner, self.optimiser) | {
            f"{runs.WEIGHTS}{n}": t for n, t in self.counters.items()
        }

    def _save_if_consistent(self) -> None:
        if self.guard.is_consistent:
            self.training.save(self)

    def _learn(self) -> None:
        training, controls = self.training, self.training.controls
        steps = training.steps_per_epoch(self.stage)
        batches = training.batches[training.stages.index(self.stage)]
        if training.position.n_clips and training.position.step % steps == 0:  # interrupted while it was evaluated
            self._close_epoch(training.position.step // steps - 1, steps)
        last_saved = controls.clock()
        for batch in batches.batches(training.position.step, self.stage.epochs * steps, workers=controls.workers):
            epoch, done = divmod(training.position.step, steps)
            self._step(batch, self.config.learning_rate_in(epoch))
            if is_epoch_over := done + 1 == steps:
                self._close_epoch(epoch, steps)
                last_saved = controls.clock()
            else:
                self._report(epoch, done + 1, steps)
            wants_stop = controls.stop()
            if not is_epoch_over and (wants_stop or controls.clock() - last_saved >= controls.save_seconds):
                training.save(self)
                last_saved = controls.clock()
            if wants_stop:
                raise runs.Interrupted

    def _step(self, batch: _ClipBatch, learning_rate: float) -> None:
        position, device = self.training.position, self.training.device
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.zero_grad(set_to_none=True)
        # Looking at clips changes what batch norm counts, and only the end of the step makes that true.
        self.counters = {name: buffer.clone() for name, buffer in self.learner.named_buffers()}
        with _seeded(device, self.config.seed, self.stage.number, position.step):
            with runs.mixed_precision(device, self.config.precision):
                loss, n_right = self.learner(on_device(batch, device))
            loss.backward()
        value = float(loss.detach())
        gradients = [parameter.grad for parameter in self.learner.parameters() if parameter.grad is not None]
        if not math.isfinite(value) or not math.isfinite(float(torch.nn.utils.get_total_norm(gradients))):
            self._refuse(batch, value)
        with self.guard.update():
            self.optimiser.step()
            position.loss_sum += value
            position.n_right += int(n_right)
            position.n_clips += len(batch.labels)
            position.step += 1
            self.counters = {}

    def _close_epoch(self, epoch: int, steps: int) -> None:
        position, config = self.training.position, self.config
        is_last = epoch + 1 == self.stage.epochs
        is_due = is_last or (config.evaluate_every and (epoch + 1) % config.evaluate_every == 0)
        has_words = self.stage.number > 0
        finished = _TrunkEpoch(
            stage=self.stage.name,
            epoch=epoch,
            loss=position.loss_sum / steps,
            right=position.n_right / position.n_clips,
            learning_rate=config.learning_rate_in(epoch),
            tests=self.training.tested(self.learner.trunk) if is_due and has_words else {},
        )
        self._report(epoch, steps, steps, finished)
        with self.guard.update():
            position.epochs.append(finished)
            position.loss_sum, position.n_right, position.n_clips = 0.0, 0, 0
            self.training.save(self)

    def _report(self, epoch: int, done: int, steps: int, finished: _TrunkEpoch | None = None) -> None:
        loss = self.training.position.loss_sum / done
        moment = TrunkProgress(self.stage.name, epoch, self.stage.epochs, done, steps, loss, finished)
        self.training.controls.progress(moment)

    def _refuse(self, batch: _ClipBatch, loss: float) -> None:
        """Leave the names of the clips and stop; the state stays as it was last saved."""
        run, step = self.training.folder, self.training.position.step
        described = {"stage": self.stage.name, "step": step, "loss": str(loss), "clips": list(batch.names)}
        write_json(described, run.bad_batch, overwrite=True)
        what = f"training stopped: the loss of {self.stage.name}, step {step + 1} or its gradient is no number"
        fix = f"{run.bad_batch.name} lists its clips; look at them, or lower learning_rate"
        raise InputError(run.path, what, fix)


@contextmanager
def _seeded(device: torch.device, *key: int) -> Iterator[None]:
    """A block in which dropout depends on the key alone; the generators of torch are as before afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]))
        yield


# The stages in which a trunk is trained (Paper App. C.1), and the network of each.
#
# Pose distillation (if asked for), then the annotated clips alone, then, with batch norm re-initialised, annotated and
# dictionary clips together. A trunk of one source has only its own stage.


@dataclass(frozen=True, slots=True, eq=False)
class ClipTest:
    """Clips that are classified to see how far the training is."""

    name: str
    source: RecordedClips
    domain: int = CONTINUOUS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrunkData:
    """What a trunk learns from; landmarks of the same clips are needed for pose distillation only."""

    vocabulary: Vocabulary  # what labels mean
    continuous: RecordedClips | None = None
    dictionary: RecordedClips | None = None
    continuous_landmarks: RecordedClips | None = None
    dictionary_landmarks: RecordedClips | None = None
    tests: tuple[ClipTest, ...] = ()
    description: str = ""  # for the model card

    def fingerprints(self) -> dict[str, str]:
        """Checksums of names, labels and confidences: a run continues only with the data it was begun with."""
        names = ("continuous", "dictionary", "continuous_landmarks", "dictionary_landmarks")
        sources: dict[str, RecordedClips | None] = {name: getattr(self, name) for name in names}
        sources |= {f"test {test.name}": test.source for test in self.tests}
        checked = {name: _fingerprint(source) for name, source in sources.items() if source is not None}
        return checked | {"vocabulary": hashlib.sha256("\0".join(self.vocabulary).encode()).hexdigest()}


@dataclass(frozen=True, slots=True)
class _Stage:
    """One stage of training."""

    number: int  # 0 pose, 1 annotated clips alone, 2 with or of the dictionary: part of every random seed
    name: Literal["pose", "stage 1", "stage 2"]
    epochs: int
    domains: tuple[int, ...]  # the sources
    min_confidence: float  # of annotated clips
    sets_of_batch_norm: int = 1
    reinitialises: bool = False


def _stages_of(config: TrunkRunConfig) -> tuple[_Stage, ...]:
    has_stage1, has_stage2 = config.sources != "dictionary", config.sources != "continuous"
    both = (CONTINUOUS, DICTIONARY) if config.sources == "both" else (DICTIONARY,)
    first = (CONTINUOUS,) if has_stage1 else (DICTIONARY,)
    planned = [_Stage(0, "pose", config.pose_epochs, first, config.stage1_confidence)]
    if has_stage1:
        planned.append(_Stage(1, "stage 1", config.stage1_epochs, (CONTINUOUS,), config.stage1_confidence))
    if has_stage2:
        sets, is_new = 2 if config.domain_specific_batch_norm else 1, config.reinitialise_batch_norm
        planned.append(_Stage(2, "stage 2", config.stage2_epochs, both, config.stage2_confidence, sets, is_new))
    stages = tuple(stage for stage in planned if stage.epochs)
    if not stages:
        raise InputError("training", "no stage has any epochs", "set stage1_epochs or stage2_epochs")
    return stages


def _batches_of(stage: _Stage, config: TrunkRunConfig, data: TrunkData) -> _ClipBatches:
    shares = tuple(_share(domain, stage, data) for domain in stage.domains)
    # The number of the stage is part of the seed, so that stages do not repeat each other's draws.
    seed = (config.seed, stage.number)
    batches = _ClipBatches(shares, transform_of(config), batch_size=config.batch_size, seed=seed)
    try:
        batches.batch(0)
    except ValueError as error:
        what = f"the clips do not fit the network ({error})"
        raise InputError(stage.name, what, "check architecture, side and crop") from error
    return batches


def _refuse_unusable_tests(data: TrunkData) -> None:
    for test in data.tests:
        if not len(test.source):
            raise InputError(f"test set {test.name}", "is empty", "add clips to it, or leave it out")
        _refuse_unknown_labels(test.source, np.arange(len(test.source)), len(data.vocabulary), f"test set {test.name}")


def transform_of(config: TrunkRunConfig) -> _ClipTransform:
    if config.architecture == "landmark":
        return _LandmarkTransform(config.landmark_augmentation)
    return _PixelTransform(config.augmentation)


def _new_trunk(config: TrunkRunConfig, classes: int, sets_of_batch_norm: int = 1) -> Trunk:
    width = config.landmark_width if config.architecture == "landmark" else config.width
    shape: dict[str, Setting] = {"classes": classes, "width": width, "domains": sets_of_batch_norm}
    shape |= {"gated": config.gated, "embedding_dim": config.embedding_dim}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        trunk = build_trunk(config.architecture, shape)
    for module in trunk.modules():
        if isinstance(module, nn.BatchNorm3d):
            module.momentum = config.batch_norm_momentum
    return trunk


def _trunk_for(stage: _Stage, config: TrunkRunConfig, before: Trunk) -> Trunk:
    """The trunk a stage starts with, from the one the stage before ended with (Paper App. C.1)."""
    trunk = before
    if isinstance(before, InceptionTrunk) and stage.sets_of_batch_norm != before.config.domains:
        trunk = _new_trunk(config, before.config.classes, stage.sets_of_batch_norm)
        trunk.load_state_dict(copied_to_domains(before.state_dict(), stage.sets_of_batch_norm))
    if stage.reinitialises:
        reinitialise_batch_norm(trunk)
    return trunk


def _start_from(trunk: Trunk, checkpoint: Checkpoint, architecture: str) -> None:
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


def _fingerprint(source: RecordedClips) -> str:
    digest = hashlib.sha256()
    for place in source.places:
        digest.update(f"{place.name}\0{place.label}\0{place.confidence}\0".encode(errors="replace"))
    return digest.hexdigest()


def _share(domain: int, stage: _Stage, data: TrunkData) -> _SourceShare:
    is_continuous = domain == CONTINUOUS
    called = "annotated clips" if is_continuous else "dictionary clips"
    source = data.continuous if is_continuous else data.dictionary
    landmarks = data.continuous_landmarks if is_continuous else data.dictionary_landmarks
    if source is None:
        raise InputError(stage.name, f"needs {called}, and none are given", "add them, or choose other sources")
    at_least = stage.min_confidence if is_continuous else 0.0
    chosen = np.array([i for i, place in enumerate(source.places) if place.confidence >= at_least], np.int64)
    if not len(chosen):
        sure = f" of confidence {at_least} or more" if at_least else ""
        raise InputError(stage.name, f"there are no {called}{sure} to learn from", "add some, or lower the confidence")
    _refuse_unknown_labels(source, chosen, len(data.vocabulary), stage.name)
    if stage.number:
        return _SourceShare(source, chosen, domain)
    if landmarks is None or len(landmarks) != len(source):
        raise InputError(stage.name, f"needs the landmarks of the {called}", "add them, or set pose_epochs = 0")
    return _SourceShare(source, chosen, domain, landmarks)


def _refuse_unknown_labels(source: RecordedClips, chosen: Ints, n_words: int, where: str) -> None:
    for place in (source.places[i] for i in chosen):
        if not 0 <= place.label < n_words:
            what = f"{place.name} has the label {place.label}, the vocabulary {n_words} words"
            raise InputError(where, what, "give the vocabulary the labels were made with")


# What one batch of clips teaches a trunk.


class _Learner(nn.Module):
    """A trunk with what a stage adds to it: a reader of landmarks in pose distillation, else nothing."""

    def __init__(self, trunk: Trunk, transform: _ClipTransform, *, distils: bool) -> None:
        super().__init__()
        self.trunk = trunk
        self.pose = _PoseRegressor(trunk.embedding_dim) if distils else None
        self._transform = transform

    def forward(self, batch: _ClipBatch) -> tuple[Tensor, Tensor]:
        """The loss, and how many clips' own word scored highest; zero where words are not what is learned."""
        output = _trunk_output(self.trunk, self._transform.tensor(batch.clips), batch.domains)
        if self.pose is not None:
            if batch.landmarks is None:
                raise ValueError("pose distillation from clips without landmarks")
            return _pose_loss(self.pose(output.embedding), *_pose_target(batch.landmarks)), torch.tensor(0)
        logits = output.logits.float()
        n_right = (logits.detach().argmax(dim=1) == batch.labels).sum()
        return F.cross_entropy(logits, batch.labels), n_right


def _trunk_output(trunk: Trunk, clips: Tensor, domains: Tensor) -> TrunkOutput:
    """What a trunk says about clips (B, ...) of domains (B,); one set of batch norm normalises all together."""
    if not isinstance(trunk, InceptionTrunk) or trunk.config.domains == 1:
        output: TrunkOutput = trunk(clips)
        return output
    rows = [torch.nonzero(domains == domain)[:, 0] for domain in range(trunk.config.domains)]
    outputs = [trunk(clips[chosen], domain) for domain, chosen in enumerate(rows) if len(chosen)]
    back = torch.argsort(torch.cat(rows))
    return TrunkOutput(*(torch.cat(parts)[back] for parts in zip(*outputs, strict=True)))


# How often a classifier is right: over clips, and over words (Paper App. B.7, Tab. "Trunk network architecture").

_CLIPS_PER_STEP = 8
_ITEMS_PER_STEP = 8


@dataclass(frozen=True, slots=True)
class _ClassAccuracy:
    """Shares from 0 to 1 of test items whose word is among the first or the first five."""

    n_items: int
    top1: float  # per instance
    top5: float
    class_top1: float  # the mean over the words of each word's share
    class_top5: float


def _class_accuracy(scores: FloatArray, labels: Ints) -> _ClassAccuracy:
    """Compare scores (n, classes) with labels (n,), each a column; of equal scores the first column wins.

    >>> class_accuracy(np.eye(2, dtype=np.float32)[[0, 0, 0, 1]], np.array([0, 0, 1, 1])).class_top1
    0.75
    """
    if scores.ndim != 2 or labels.shape != (len(scores),) or not len(scores):
        raise ValueError(f"scores of shape {scores.shape} for labels of shape {labels.shape}")
    if not np.isfinite(scores).all() or labels.min() < 0 or labels.max() >= scores.shape[1]:
        raise ValueError("scores that are not finite, or labels without a column")
    own = np.take_along_axis(scores, labels[:, None], axis=1)
    before = np.arange(scores.shape[1]) < labels[:, None]
    rank = ((scores > own) | ((scores == own) & before)).sum(axis=1)
    counts = np.bincount(labels)
    top1, top5 = (rank < 1), (rank < 5)
    of_class = [np.bincount(labels, right)[counts > 0] / counts[counts > 0] for right in (top1, top5)]
    return _ClassAccuracy(len(scores), *(float(share.mean()) for share in (top1, top5, *of_class)))


@torch.no_grad()
def accuracy_of(trunk: Trunk, test: ClipTest, transform: _ClipTransform, device: torch.device) -> _ClassAccuracy:
    """Classify every item of a test set by the mean of its clips' probabilities; nothing is changed at random."""
    was_training = trunk.training
    trunk.eval()
    try:
        scores = list(_probabilities(trunk, test, transform, device))
    finally:
        trunk.train(was_training)
    labels = np.array([place.label for place in test.source.places], np.int64)
    return _class_accuracy(torch.cat(scores).numpy(), labels)


def _probabilities(trunk: Trunk, test: ClipTest, transform: _ClipTransform, device: torch.device) -> Iterator[Tensor]:
    for first in range(0, len(test.source), _ITEMS_PER_STEP):
        items = range(first, min(first + _ITEMS_PER_STEP, len(test.source)))
        clips = [transform.testing(test.source.test_clips(i)) for i in items]
        scores = []
        for some in torch.split(torch.from_numpy(np.concatenate(clips)), _CLIPS_PER_STEP):
            domains = torch.full((len(some),), test.domain, device=device)
            output = _trunk_output(trunk, transform.tensor(some.to(device)), domains)
            scores.append(output.logits.float().softmax(dim=1))
        of_item = torch.split(torch.cat(scores).cpu(), [len(of_one) for of_one in clips])
        yield torch.stack([of_one.mean(dim=0) for of_one in of_item])


# Learning to see the body before learning signs: the landmarks of a clip, regressed from its embedding.
#
# Paper App. C.1 names "pose distillation" as the first training of the trunk and leaves the details open (deviation
# (h)): here a linear layer reads all 16 frames' upper body and hands from the embedding, in shoulder widths from
# between the shoulders, so that scaling and moving the picture leave the answer as it is; the mean absolute error over
# the points that were detected is the loss.

_UPPER_BODY_POINTS = 25  # the pose down to the hips
_N_POINTS = _UPPER_BODY_POINTS + 2 * HAND_POINTS


class _PoseRegressor(nn.Module):
    """(B, embedding dim) -> (B, 16, 67, 2)."""

    def __init__(self, embedding_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(embedding_dim, CLIP_LENGTH * _N_POINTS * 2)

    def forward(self, embedding: Tensor) -> Tensor:
        places: Tensor = self.linear(embedding).unflatten(1, (CLIP_LENGTH, _N_POINTS, 2))
        return places


def _pose_target(landmarks: Tensor) -> tuple[Tensor, Tensor]:
    """Where the points of bodies (B, 16, 258) are, (B, 16, 67, 2) in shoulder widths, and which were detected."""
    body = Body.of(landmarks).in_body_coordinates()
    pose = Part(body.pose.points[..., :_UPPER_BODY_POINTS, :], body.pose.found)
    parts = (pose, body.left, body.right)
    places = torch.cat([part.points[..., :2] for part in parts], dim=-2)
    found = torch.cat([part.found[..., None].expand(part.points.shape[:-1]) for part in parts], dim=-1)
    return places, found


def _pose_loss(places: Tensor, target: Tensor, found: Tensor) -> Tensor:
    """The mean absolute error of the points that were detected; zero where none was."""
    error = torch.where(found[..., None], (places.float() - target).abs(), 0.0)
    return error.sum() / (2 * found.sum()).clamp_min(1)
