"""Training of the head: SGD over minibatches of trunk vectors, and a state that can be continued to the bit.

A minibatch depends on nothing but the seed, its epoch and its step, and so does every random draw of the loss. The
state is therefore small: weights, momentum, and where the run stands. On a CPU, with the same number of threads, a run
that was killed at any moment and continued ends with the same bits as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import torch

from signspot.errors import InputError
from signspot.formats.safe_json import write_json
from signspot.interrupts import at_interruption, is_asked
from signspot.learning.config import EmbeddingConfig
from signspot.learning.device import repeatable, usable_device
from signspot.learning.distributed import Team
from signspot.learning.head_scores import score_head
from signspot.learning.lesson import Lesson
from signspot.learning.minibatch import Minibatch
from signspot.learning.objective import drawn_by
from signspot.learning.resume import (
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
from signspot.learning.run_log import CurveRow, tensorboard_log
from signspot.models.head import Head, HeadConfig


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a run stands."""

    epoch: int  # the one that is under way, from 0
    epochs: int
    step: int  # steps done in it
    steps: int
    loss: float  # mean over the epoch so far
    seconds_left: float
    finished: CurveRow | None = None  # the epoch that has just ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """How a run is watched and steered; nothing here changes what is learned."""

    progress: Callable[[Moment], None] = lambda moment: None
    stop: Callable[[], bool] = is_asked  # after every step
    save_seconds: float = 300.0  # between two states inside an epoch
    clock: Callable[[], float] = time.monotonic
    team: Team = Team()
    device: str = ""  # where this process computes; "" as the config says


@dataclass(slots=True)
class _Position:
    """Where a run stands, beside its tensors."""

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0  # over the steps of this epoch
    seconds: float = 0.0  # spent on this epoch
    best_score: float | None = None
    rows: list[CurveRow] = field(default_factory=list)


def train_head(config: EmbeddingConfig, lesson: Lesson, run: RunFolder, controls: Controls = Controls()) -> None:
    """Train until the last epoch, from the state in the run folder if there is one; results lie in the folder."""
    if run.results.exists():
        return
    saved = load_state(run.state) if run.state.exists() else None
    device = usable_device(controls.device or config.device)
    with repeatable(threads_of(config.threads, saved), device) as n_threads:
        training = _Training(config, lesson, run, controls, n_threads)
        if saved is not None:
            training.restore(saved)
        training.run()


class _Training:
    def __init__(
        self, config: EmbeddingConfig, lesson: Lesson, run: RunFolder, controls: Controls, n_threads: int
    ) -> None:
        self.config, self.lesson, self.run_folder, self.controls = config, lesson, run, controls
        self.n_threads = n_threads
        self.head = new_head(config, lesson).to(controls.device or config.device)
        self.optimiser = torch.optim.SGD(
            self.head.parameters(),
            lr=config.learning_rate,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )
        self.position, self.whole = _Position(), Whole()

    def run(self) -> None:
        """Every epoch that is left, then the results."""
        with at_interruption(self._save_if_whole):
            for epoch in range(self.position.epoch, self.config.epochs):
                for group in self.optimiser.param_groups:
                    group["lr"] = self.config.learning_rate_in(epoch)
                self._learn()
                self._close_epoch()
        if self.controls.team.is_leader:
            write_json(self._results(), self.run_folder.results, overwrite=True)

    def _learn(self) -> None:
        position, clock = self.position, self.controls.clock
        begun, saved = clock() - position.seconds, clock()
        for batch in self.lesson.batches.epoch(position.epoch, position.step):
            wants_stop = self._step(batch)
            position.seconds = clock() - begun
            self._report(None)
            if wants_stop or clock() - saved >= self.controls.save_seconds:
                self._save()
                saved = clock()
            if wants_stop:
                raise Interrupted

    def _step(self, batch: Minibatch) -> bool:
        """Learn from one minibatch; whether the run is to stop."""
        position, team = self.position, self.controls.team
        rng = drawn_by(self.config.seed, position.epoch, position.step)
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.lesson.objective.loss(self.head, batch, team, rng)
        value = float(loss.detach())
        if loss.requires_grad:  # a batch without any pair teaches nothing
            loss.backward()  # type: ignore[no-untyped-call]
        wants_stop = team.sum_gradients(self.head, stop=self.controls.stop())
        gradients = [parameter.grad for parameter in self.head.parameters() if parameter.grad is not None]
        length = float(torch.nn.utils.get_total_norm(gradients)) if gradients else 0.0
        if not math.isfinite(value) or not math.isfinite(length):
            self._refuse(batch, value)
        with self.whole.change():
            self.optimiser.step()
            position.loss_sum += value
            position.step += 1
        return wants_stop

    def _close_epoch(self) -> None:
        """Evaluate, note, keep the models; the state comes last: what stands before it is done again after a kill."""
        position, steps = self.position, self.lesson.batches.steps_per_epoch
        row = CurveRow(
            epoch=position.epoch,
            loss=position.loss_sum / max(1, steps),
            learning_rate=self.config.learning_rate_in(position.epoch),
            seconds=round(position.seconds, 3),
        )
        is_last = position.epoch + 1 == self.config.epochs
        is_due = is_last or (position.epoch + 1) % self.config.evaluate_every == 0
        if self.controls.team.is_leader and is_due and self.lesson.test is not None:
            stride = self.config.test_stride
            row = row.with_scores(score_head(self.head, self.lesson.test, self.lesson.test_words, stride=stride))
        with self.whole.change():
            position.rows.append(row)
            if self.controls.team.is_leader:
                self._keep_models(row)
                self.run_folder.write_lines(self.run_folder.curves, [one.as_json() for one in position.rows])
                tensorboard_log(self.run_folder.logs, row)
            self._report(row)
            position.epoch, position.step, position.loss_sum, position.seconds = position.epoch + 1, 0, 0.0, 0.0
            self._save()

    def _keep_models(self, row: CurveRow) -> None:
        run, model_file = self.run_folder, self.lesson.model_file
        model_file.save(run.last, self.head)
        # Without a test set the newest is the best known.
        is_best = self.lesson.test is None or (
            row.mean_ap is not None and (self.position.best_score is None or row.mean_ap > self.position.best_score)
        )
        if is_best:
            self.position.best_score = row.mean_ap
            model_file.save(run.best, self.head)

    def _save_if_whole(self) -> None:
        if self.whole.is_true and self.position.epoch < self.config.epochs:
            self._save()

    def _save(self) -> None:
        if not self.controls.team.is_leader:
            return
        facts = {key: value for key, value in asdict(self.position).items() if key != "rows"}
        rows = [row.as_json() for row in self.position.rows]
        save_state(
            self.run_folder.state,
            training_tensors(self.head, self.optimiser),
            facts | {"rows": rows, "threads": self.n_threads, "processes": self.controls.team.size},
        )

    def restore(self, state: SavedState) -> None:
        """Stand where a run stood when its state was saved."""
        path, team = self.run_folder.state, self.controls.team
        facts = dict(state.facts)
        facts.pop("threads", None)
        if (size := facts.pop("processes", 1)) != team.size:
            raise InputError(path, f"was saved by {size} processes, this is {team.size}", "start as many as before")
        try:
            restore_training(self.head, self.optimiser, state.tensors)
            rows = [CurveRow(**row) for row in facts.pop("rows")]  # type: ignore[attr-defined]
            self.position = _Position(rows=rows, **facts)  # type: ignore[arg-type]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(path, f"does not fit this run ({error})", "start again with --overwrite") from error

    def _report(self, finished: CurveRow | None) -> None:
        position, steps = self.position, self.lesson.batches.steps_per_epoch
        left_in_epoch = position.seconds / max(1, position.step) * (steps - position.step)
        later = position.seconds / max(1, position.step) * steps * (self.config.epochs - position.epoch - 1)
        self.controls.progress(
            Moment(
                epoch=position.epoch,
                epochs=self.config.epochs,
                step=position.step,
                steps=steps,
                loss=position.loss_sum / max(1, position.step),
                seconds_left=left_in_epoch + later,
                finished=finished,
            )
        )

    def _refuse(self, batch: Minibatch, loss: float) -> None:
        """Leave the batch for inspection and stop; the state stays as it was last saved."""
        position, run = self.position, self.run_folder
        names = self.lesson.passage_names
        described = {
            "epoch": position.epoch,
            "step": position.step,
            "loss": str(loss),
            "passages": [
                {"passage": place, "name": names[place] if place < len(names) else ""} for place in batch.passages
            ],
        }
        if self.controls.team.is_leader:
            write_json(described, run.bad_batch, overwrite=True)
        what = f"training stopped: the loss of epoch {position.epoch + 1}, step {position.step + 1} has no number"
        fix = f"{run.bad_batch.name} lists its passages; look at their vectors, or lower learning_rate"
        raise InputError(run.path, what, fix)

    def _results(self) -> dict[str, object]:
        rows = self.position.rows
        scored = [row for row in rows if row.mean_ap is not None]
        best = max(scored, key=lambda row: row.mean_ap or 0.0, default=rows[-1])
        return {
            "final": rows[-1].as_json(),
            "best": best.as_json(),
            "epochs": len(rows),
            "steps_per_epoch": self.lesson.batches.steps_per_epoch,
            "seconds": round(sum(row.seconds for row in rows), 3),
            "parameters": sum(parameter.numel() for parameter in self.head.parameters()),
        }


def new_head(config: EmbeddingConfig, lesson: Lesson) -> Head:
    """A head with the weights that the seed of the config gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Head(
            HeadConfig(
                input_dim=lesson.input_dim,
                hidden_dim=config.hidden_dim,
                embedding_dim=config.embedding_dim,
                activation_after_last=config.activation_after_last,
                classes=lesson.n_words if config.loss == "classification" else None,
                domains=2 if config.domain_specific else 1,
            )
        )
