"""Training of the trunk by classification, in the stages of Paper App. C.1, with a state that continues to the bit.

Every random draw depends on the seed, the stage and the step alone, so the state is weights, momentum, and where the
run stands. On a CPU, with the same number of threads, a run that was killed at any moment and continued ends with the
same bits as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from signspot.domain.spans import FRAME_RATE
from signspot.domain.tracks import CLIP_LENGTH
from signspot.errors import InputError
from signspot.formats.safe_json import write_json
from signspot.interrupts import at_interruption, is_asked
from signspot.learning.clip_batches import ClipBatch
from signspot.learning.device import mixed_precision, repeatable, usable_device
from signspot.learning.resume import (
    WEIGHTS,
    Interrupted,
    SavedState,
    Whole,
    load_state,
    restore_training,
    save_state,
    threads_of,
    training_tensors,
)
from signspot.learning.run_folder import RunFolder
from signspot.learning.trunk_accuracy import ClassAccuracy, accuracy_of
from signspot.learning.trunk_config import TrunkRunConfig
from signspot.learning.trunk_learning import Learner
from signspot.learning.trunk_stages import (
    Stage,
    TrunkData,
    batches_of,
    new_trunk,
    presenter_of,
    refuse_unusable_tests,
    stages_of,
    start_from,
    trunk_for,
)
from signspot.media.transforms import RELEASED
from signspot.models.checkpoints import ModelCard, load_checkpoint, save_checkpoint
from signspot.models.networks import Setting, Trunk, describe, state_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkEpoch:
    """One finished epoch."""

    stage: str
    epoch: int  # of the stage, from 0
    loss: float  # mean over the steps
    right: float  # share of training clips whose own word scored highest, as they were shown
    learning_rate: float
    tests: dict[str, ClassAccuracy] = field(default_factory=dict)  # by the name of the test set, where evaluated


@dataclass(frozen=True, slots=True)
class TrunkMoment:
    """Where a run stands."""

    stage: str
    epoch: int  # the one under way, from 0
    epochs: int  # of the stage
    step: int  # steps done in the epoch
    steps: int
    loss: float  # mean over the epoch so far
    finished: TrunkEpoch | None = None  # the epoch that has just ended


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkControls:
    """How a run is watched and steered; nothing here changes what is learned."""

    progress: Callable[[TrunkMoment], None] = lambda moment: None
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
    epochs: list[TrunkEpoch] = field(default_factory=list)


def train_trunk(
    config: TrunkRunConfig, data: TrunkData, run: RunFolder, controls: TrunkControls = TrunkControls()
) -> ModelCard:
    """Train through all stages, from the state in the run folder if there is one; the model is `run.last`.

    A loss that is no number stops the run and names the clips; `controls.stop` ends it with the state saved
    (`Interrupted`).
    """
    device = usable_device(config.device)
    saved = load_state(run.state) if run.state.exists() else None
    with repeatable(threads_of(config.threads, saved), device) as threads:
        return _Training(config, data, run, controls).run(saved, device, threads)


def trunk_card(config: TrunkRunConfig, data: TrunkData, trunk: Trunk) -> ModelCard:
    """The model card of a trained trunk."""
    frames: dict[str, Setting] = {"clip_length": CLIP_LENGTH, "frame_rate": FRAME_RATE}
    if config.architecture != "landmark":
        frames |= asdict(config.frame_shape)
        frames |= {"mean": RELEASED.mean[0], "std": RELEASED.std[0]}
    stages = ", ".join(f"{stage.name} of {stage.epochs} epochs" for stage in stages_of(config))
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
        self.stages = stages_of(config)
        refuse_unusable_tests(data)
        # All of them at once: what is missing is said before anything is learned.
        self.batches = [batches_of(stage, config, data) for stage in self.stages]
        self.presenter = presenter_of(config)
        self.position = _Position()
        self.device, self.n_threads = torch.device("cpu"), 1

    def run(self, saved: SavedState | None, device: torch.device, n_threads: int) -> ModelCard:
        """Every stage that is left, then the model."""
        self.device, self.n_threads = device, n_threads
        if saved is not None:
            self.position = self._read_position(saved)
        trunk = self._initial_trunk() if saved is None else None
        for number in range(self.position.stage, len(self.stages)):
            stage = self.stages[number]
            if trunk is None:
                trunk = new_trunk(self.config, len(self.data.vocabulary), stage.sets_of_batch_norm)
            else:
                self.position = _Position(stage=number, epochs=self.position.epochs)
                trunk = trunk_for(stage, self.config, trunk)
            _StageRun(self, stage, trunk).learn(saved)
            saved = None
        if trunk is None:
            raise InputError(self.folder.state, "does not fit this run", "start again with --overwrite")
        return self._finish(trunk)

    def steps_per_epoch(self, stage: Stage) -> int:
        """How many batches an epoch of a stage has."""
        return self.config.steps_per_epoch or self.batches[self.stages.index(stage)].steps_per_epoch

    def save(self, run: _StageRun) -> None:
        """Write the state, then the curves."""
        facts = asdict(self.position) | {"threads": self.n_threads}
        save_state(self.folder.state, run.tensors(), facts)
        self.folder.write_lines(self.folder.curves, [asdict(epoch) for epoch in self.position.epochs])

    def tested(self, trunk: Trunk) -> dict[str, ClassAccuracy]:
        """How well the trunk does on every test set."""
        return {test.name: accuracy_of(trunk, test, self.presenter, self.device) for test in self.data.tests}

    def _initial_trunk(self) -> Trunk:
        trunk = new_trunk(self.config, len(self.data.vocabulary))
        if self.config.initial_model is not None:
            start_from(trunk, load_checkpoint(self.config.initial_model), self.config.architecture)
        return trunk

    def _read_position(self, saved: SavedState) -> _Position:
        facts = {key: value for key, value in saved.facts.items() if key != "threads"}
        try:
            epochs = [_epoch_from(row) for row in facts.pop("epochs")]  # type: ignore[attr-defined]
            position = _Position(epochs=epochs, **facts)  # type: ignore[arg-type]
            stage = self.stages[position.stage]
            if not 0 <= position.step <= stage.epochs * self.steps_per_epoch(stage):
                raise ValueError(f"step {position.step} of {stage.name}")
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise InputError(
                self.folder.state, f"does not fit this run ({error})", "start again with --overwrite"
            ) from error
        return position

    def _finish(self, trunk: Trunk) -> ModelCard:
        card = trunk_card(self.config, self.data, trunk)
        card = save_checkpoint(self.folder.last, state_of(trunk), card, overwrite=True)
        final = self.position.epochs[-1]
        results = {"final": asdict(final), "epochs": len(self.position.epochs), "weights_sha256": card.weights_sha256}
        write_json(results, self.folder.results, overwrite=True)
        return card


def _optimiser(learner: Learner, config: TrunkRunConfig) -> torch.optim.Optimizer:
    parameters, rate, decay = learner.parameters(), config.learning_rate, config.weight_decay
    if config.optimiser == "adamw":
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay)
    return torch.optim.SGD(parameters, lr=rate, momentum=config.momentum, weight_decay=decay)


class _StageRun:
    """One stage under way."""

    def __init__(self, training: _Training, stage: Stage, trunk: Trunk) -> None:
        self.training, self.stage, self.config = training, stage, training.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            learner = Learner(trunk, training.presenter, distils=stage.number == 0)
        self.learner = learner.to(training.device).train()
        self.optimiser = _optimiser(self.learner, self.config)
        self.whole, self.counters = Whole(), dict[str, Tensor]()

    def learn(self, saved: SavedState | None) -> None:
        """All steps that are left."""
        if saved is not None:
            self._restore(saved)
        with at_interruption(self._save_if_whole):
            self._learn()

    def tensors(self) -> dict[str, Tensor]:
        """The state after the last whole step."""
        return training_tensors(self.learner, self.optimiser) | {f"{WEIGHTS}{n}": t for n, t in self.counters.items()}

    def _save_if_whole(self) -> None:
        if self.whole.is_true:
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
                raise Interrupted

    def _step(self, batch: ClipBatch, learning_rate: float) -> None:
        position, device = self.training.position, self.training.device
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.zero_grad(set_to_none=True)
        # Looking at clips changes what batch norm counts, and only the end of the step makes that true.
        self.counters = {name: buffer.clone() for name, buffer in self.learner.named_buffers()}
        with _drawn_by(device, self.config.seed, self.stage.number, position.step):
            with mixed_precision(device, self.config.precision):
                loss, n_right = self.learner(_on(device, batch))
            loss.backward()
        value = float(loss.detach())
        gradients = [parameter.grad for parameter in self.learner.parameters() if parameter.grad is not None]
        if not math.isfinite(value) or not math.isfinite(float(torch.nn.utils.get_total_norm(gradients))):
            self._refuse(batch, value)
        with self.whole.change():
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
        finished = TrunkEpoch(
            stage=self.stage.name,
            epoch=epoch,
            loss=position.loss_sum / steps,
            right=position.n_right / position.n_clips,
            learning_rate=config.learning_rate_in(epoch),
            tests=self.training.tested(self.learner.trunk) if is_due and has_words else {},
        )
        self._report(epoch, steps, steps, finished)
        with self.whole.change():
            position.epochs.append(finished)
            position.loss_sum, position.n_right, position.n_clips = 0.0, 0, 0
            self.training.save(self)

    def _report(self, epoch: int, done: int, steps: int, finished: TrunkEpoch | None = None) -> None:
        loss = self.training.position.loss_sum / done
        moment = TrunkMoment(self.stage.name, epoch, self.stage.epochs, done, steps, loss, finished)
        self.training.controls.progress(moment)

    def _restore(self, saved: SavedState) -> None:
        try:
            restore_training(self.learner, self.optimiser, saved.tensors)
        except ValueError as error:
            what = f"does not fit this run ({error})"
            raise InputError(self.training.folder.state, what, "start again with --overwrite") from error

    def _refuse(self, batch: ClipBatch, loss: float) -> None:
        """Leave the names of the clips and stop; the state stays as it was last saved."""
        run, step = self.training.folder, self.training.position.step
        described = {"stage": self.stage.name, "step": step, "loss": str(loss), "clips": list(batch.names)}
        write_json(described, run.bad_batch, overwrite=True)
        what = f"training stopped: the loss of {self.stage.name}, step {step + 1} or its gradient is no number"
        fix = f"{run.bad_batch.name} lists its clips; look at them, or lower learning_rate"
        raise InputError(run.path, what, fix)


@contextmanager
def _drawn_by(device: torch.device, *key: int) -> Iterator[None]:
    """A block in which dropout depends on the key alone; the generators of torch are as before afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]))
        yield


def _on(device: torch.device, batch: ClipBatch) -> ClipBatch:
    landmarks = batch.landmarks.to(device) if batch.landmarks is not None else None
    return replace(
        batch,
        clips=batch.clips.to(device),
        labels=batch.labels.to(device),
        domains=batch.domains.to(device),
        landmarks=landmarks,
    )


def _epoch_from(row: dict[str, object]) -> TrunkEpoch:
    tests = {name: ClassAccuracy(**held) for name, held in row["tests"].items()}  # type: ignore[attr-defined]
    return TrunkEpoch(**(row | {"tests": tests}))  # type: ignore[arg-type]
