"""Training of the head: SGD over minibatches of trunk vectors, and a state that can be continued to the bit.

A minibatch depends on nothing but the seed, its epoch and its step, and so does every random draw of the loss. The
state is therefore small: weights, momentum, and where the run stands. On a CPU, with the same number of threads, a run
that was killed at any moment and continued ends with the same bits as one that was not.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from signspot.domain.recordings import Synonyms, Word
from signspot.domain.time import Tolerance
from signspot.domain.tracks import CLIP_LENGTH, FloatArray, Ints
from signspot.errors import InputError
from signspot.evaluation.protocol import Gallery, ProtocolScores, TestPassage, score_passages
from signspot.files.json import write_json
from signspot.interrupts import at_interruption, is_asked
from signspot.learning import runs
from signspot.learning.batches import BatchOptions, BatchSource, Minibatch
from signspot.learning.config import EmbeddingConfig
from signspot.learning.losses import Objective, step_generator
from signspot.learning.material import Material, WordSplit
from signspot.learning.runs import RunFolder
from signspot.models.checkpoints import HEAD, Checkpoint, ModelCard, describe, save_checkpoint, state_of
from signspot.models.embedders import CONTINUOUS, DICTIONARY
from signspot.models.head import Head, HeadConfig, unit_rows

# How training goes, epoch by epoch: a line of numbers, and TensorBoard where it is installed.


@dataclass(frozen=True, slots=True, kw_only=True)
class _CurveRow:
    """One epoch; scores are None where none were taken."""

    epoch: int  # from 0
    loss: float  # mean over the steps
    learning_rate: float
    seconds: float  # of training, without evaluation
    mean_ap: float | None = None
    recall_at_5: float | None = None
    localisation: float | None = None

    def with_scores(self, scores: ProtocolScores) -> _CurveRow:
        mean_ap, recall, localisation = map(float, (scores.mean_ap, scores.recall_at_5, scores.localisation))
        return replace(self, mean_ap=mean_ap, recall_at_5=recall, localisation=localisation)


def _tensorboard_log(folder: Path, row: _CurveRow) -> None:
    """Add an epoch to what TensorBoard shows, if the extra `train` is installed; an epoch that is repeated replaces."""
    if importlib.util.find_spec("tensorboard") is None:
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), purge_step=row.epoch) as writer:
        for name, value in asdict(row).items():
            if isinstance(value, float):
                writer.add_scalar(name, value, row.epoch)


@dataclass(frozen=True, slots=True)
class HeadProgress:
    """Where a run stands."""

    epoch: int  # the one that is under way, from 0
    epochs: int
    step: int  # steps done in it
    steps: int
    loss: float  # mean over the epoch so far
    seconds_left: float
    finished: _CurveRow | None = None  # the epoch that has just ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """How a run is watched and steered; nothing here changes what is learned."""

    progress: Callable[[HeadProgress], None] = lambda moment: None
    stop: Callable[[], bool] = is_asked  # after every step
    save_seconds: float = 300.0  # between two states inside an epoch
    clock: Callable[[], float] = time.monotonic
    team: runs.Team = runs.Team()
    device: str = ""  # where this process computes; "" as the config says


@dataclass(slots=True)
class _Position:
    """Where a run stands, beside its tensors."""

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0  # over the steps of this epoch
    seconds: float = 0.0  # spent on this epoch
    best_score: float | None = None
    rows: list[_CurveRow] = field(default_factory=list)


def train_head(config: EmbeddingConfig, setup: _TrainingSetup, run: RunFolder, controls: Controls = Controls()) -> None:
    """Train until the last epoch, from the state in the run folder if there is one; results lie in the folder."""
    if run.results.exists():
        return
    saved = runs.SavedState.load(run.state) if run.state.exists() else None
    device = runs.usable_device(controls.device or config.device)
    with runs.repeatable(runs.threads_of(config.threads, saved), device) as n_threads:
        training = _Training(config, setup, run, controls, n_threads)
        if saved is not None:
            training.restore(saved)
        training.run()


class _Training:
    def __init__(
        self, config: EmbeddingConfig, setup: _TrainingSetup, run: RunFolder, controls: Controls, n_threads: int
    ) -> None:
        self.config, self.setup, self.run_folder, self.controls = config, setup, run, controls
        self.n_threads = n_threads
        self.head = new_head(config, setup).to(controls.device or config.device)
        self.optimiser = torch.optim.SGD(
            self.head.parameters(), lr=config.learning_rate, momentum=config.momentum, weight_decay=config.weight_decay
        )
        self.position, self.guard = _Position(), runs.StepGuard()

    def run(self) -> None:
        with at_interruption(self._save_if_consistent):
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
        for batch in self.setup.batches.epoch(position.epoch, position.step):
            wants_stop = self._step(batch)
            position.seconds = clock() - begun
            self._report(None)
            if wants_stop or clock() - saved >= self.controls.save_seconds:
                self._save()
                saved = clock()
            if wants_stop:
                raise runs.Interrupted

    def _step(self, batch: Minibatch) -> bool:
        """Learn from one minibatch; whether the run is to stop."""
        position, team = self.position, self.controls.team
        rng = step_generator(self.config.seed, position.epoch, position.step)
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.setup.objective.loss(self.head, batch, team, rng)
        value = float(loss.detach())
        if loss.requires_grad:  # a batch without any pair teaches nothing
            loss.backward()  # type: ignore[no-untyped-call]
        wants_stop = team.sum_gradients(self.head, stop=self.controls.stop())
        gradients = [parameter.grad for parameter in self.head.parameters() if parameter.grad is not None]
        length = float(torch.nn.utils.get_total_norm(gradients)) if gradients else 0.0
        if not math.isfinite(value) or not math.isfinite(length):
            self._refuse(batch, value)
        with self.guard.update():
            self.optimiser.step()
            position.loss_sum += value
            position.step += 1
        return wants_stop

    def _close_epoch(self) -> None:
        """Evaluate, note, keep the models; the state comes last: what stands before it is done again after a kill."""
        position, steps = self.position, self.setup.batches.steps_per_epoch
        row = _CurveRow(
            epoch=position.epoch,
            loss=position.loss_sum / max(1, steps),
            learning_rate=self.config.learning_rate_in(position.epoch),
            seconds=round(position.seconds, 3),
        )
        is_last = position.epoch + 1 == self.config.epochs
        is_due = is_last or (position.epoch + 1) % self.config.evaluate_every == 0
        if self.controls.team.is_leader and is_due and self.setup.test is not None:
            stride = self.config.test_stride
            row = row.with_scores(score_head(self.head, self.setup.test, self.setup.test_words, stride=stride))
        with self.guard.update():
            position.rows.append(row)
            if self.controls.team.is_leader:
                self._save_models(row)
                self.run_folder.write_lines(self.run_folder.curves, [asdict(one) for one in position.rows])
                _tensorboard_log(self.run_folder.logs, row)
            self._report(row)
            position.epoch, position.step, position.loss_sum, position.seconds = position.epoch + 1, 0, 0.0, 0.0
            self._save()

    def _save_models(self, row: _CurveRow) -> None:
        run, model_file = self.run_folder, self.setup.model_file
        model_file.save(run.last, self.head)
        # Without a test set the newest is the best known.
        is_best = self.setup.test is None or (
            row.mean_ap is not None and (self.position.best_score is None or row.mean_ap > self.position.best_score)
        )
        if is_best:
            self.position.best_score = row.mean_ap
            model_file.save(run.best, self.head)

    def _save_if_consistent(self) -> None:
        if self.guard.is_consistent and self.position.epoch < self.config.epochs:
            self._save()

    def _save(self) -> None:
        if not self.controls.team.is_leader:
            return
        facts = asdict(self.position) | {"threads": self.n_threads, "processes": self.controls.team.size}
        runs.SavedState(runs.training_tensors(self.head, self.optimiser), facts).save(self.run_folder.state)

    def restore(self, state: runs.SavedState) -> None:
        path, team = self.run_folder.state, self.controls.team
        facts = dict(state.facts)
        facts.pop("threads", None)
        if (size := facts.pop("processes", 1)) != team.size:
            raise InputError(path, f"was saved by {size} processes, this is {team.size}", "start as many as before")
        try:
            runs.restore_training(self.head, self.optimiser, state.tensors)
            rows = [_CurveRow(**row) for row in facts.pop("rows")]  # type: ignore[attr-defined]
            self.position = _Position(rows=rows, **facts)  # type: ignore[arg-type]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(path, f"does not fit this run ({error})", "start again with --overwrite") from error

    def _report(self, finished: _CurveRow | None) -> None:
        position, steps = self.position, self.setup.batches.steps_per_epoch
        left_in_epoch = position.seconds / max(1, position.step) * (steps - position.step)
        later = position.seconds / max(1, position.step) * steps * (self.config.epochs - position.epoch - 1)
        loss, epochs = position.loss_sum / max(1, position.step), self.config.epochs
        done = HeadProgress(position.epoch, epochs, position.step, steps, loss, left_in_epoch + later, finished)
        self.controls.progress(done)

    def _refuse(self, batch: Minibatch, loss: float) -> None:
        """Leave the batch for inspection and stop; the state stays as it was last saved."""
        position, run, names = self.position, self.run_folder, self.setup.passage_names
        passages = [{"passage": place, "name": names[place] if place < len(names) else ""} for place in batch.passages]
        described = {"epoch": position.epoch, "step": position.step, "loss": str(loss), "passages": passages}
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
            "final": asdict(rows[-1]),
            "best": asdict(best),
            "epochs": len(rows),
            "steps_per_epoch": self.setup.batches.steps_per_epoch,
            "seconds": round(sum(row.seconds for row in rows), 3),
            "parameters": sum(parameter.numel() for parameter in self.head.parameters()),
        }


def new_head(config: EmbeddingConfig, setup: _TrainingSetup) -> Head:
    shape = HeadConfig(
        input_dim=setup.input_dim,
        hidden_dim=config.hidden_dim,
        embedding_dim=config.embedding_dim,
        activation_after_last=config.activation_after_last,
        classes=setup.n_words if config.loss == "classification" else None,
        domains=2 if config.domain_specific else 1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Head(shape)


# How well a head spots signs in a test set: every window of every test passage against the dictionary (Paper 4.2).

_ROWS_AT_ONCE = 4096  # windows the head embeds together: one passage alone would leave the cores idle


def score_head(head: Head | None, test: Material, words: tuple[Word, ...] | None, *, stride: int = 1) -> ProtocolScores:
    """Score a head on the test passages of `words` (None: of all) against the dictionary entries of these words.

    Without a head the vectors of the trunk are compared as they are.
    """
    wanted = test.numbers_of(words)
    rows = np.flatnonzero(np.isin(test.entry_word, wanted))
    if not len(rows):
        raise InputError("test set", "the dictionary has no entry for any test word", "check the split file")
    gallery = Gallery(test.entry_word[rows], embedded(head, test.entry_vectors[rows], DICTIONARY))
    passages = np.flatnonzero(np.isin(test.passages.label, wanted))
    return score_passages(_test_passages(head, test, passages, stride), gallery)


def _test_passages(head: Head | None, test: Material, passages: Ints, stride: int) -> Iterator[TestPassage]:
    held: list[tuple[int, Ints, FloatArray]] = []
    n_rows = 0
    for place in passages.tolist():
        track = test.tracks[int(test.passages.track[place])]
        start, stop = int(test.passages.start[place]), int(test.passages.stop[place])
        # The last window is pulled back to the end of the passage, as in `WindowGrid`.
        last = min(max(start, stop - CLIP_LENGTH), len(track) - 1)
        starts = np.minimum(np.arange(min(start, last), last + stride, stride, dtype=np.int64), last)
        held.append((place, starts, np.asarray(track[starts], dtype=np.float32)))
        n_rows += len(starts)
        if n_rows >= _ROWS_AT_ONCE:
            yield from _together(head, test, held)
            held, n_rows = [], 0
    yield from _together(head, test, held)


def _together(head: Head | None, test: Material, held: list[tuple[int, Ints, FloatArray]]) -> Iterator[TestPassage]:
    if not held:
        return
    vectors = embedded(head, np.concatenate([rows for _, _, rows in held]), CONTINUOUS)
    ends = np.cumsum([len(starts) for _, starts, _ in held])[:-1]
    for (place, starts, _), part in zip(held, np.split(vectors, ends), strict=True):
        yield TestPassage(
            passage_id=test.passages.names[place],
            word=int(test.passages.label[place]),
            label_frame=int(test.passages.label_frame[place]),
            centres=starts + CLIP_LENGTH // 2,  # deviation D7
            vectors=part,
        )


def embedded(head: Head | None, rows: FloatArray, domain: int) -> FloatArray:
    """Vectors of a trunk (n, trunk dim) through a head, or as they are without one: (n, d) float32 unit rows."""
    with torch.inference_mode():
        vectors = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32))
        if head is None:
            embedding = unit_rows(vectors)
        else:
            vectors = vectors.to(next(head.parameters()).device)
            embedding = head(vectors, domain if head.config.domains > 1 else 0).embedding
    result: FloatArray = embedding.float().cpu().numpy()
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelFile:
    """The model file of a run: the head, and the trunk it was trained on where that is known."""

    name: str = "embedding"
    trunk: Checkpoint | None = None  # None: the file holds the head alone and cannot embed video
    training_data: str = ""
    created_from: str = ""
    words: tuple[str, ...] = ()  # of the head's classifier, if it has one

    def save(self, path: Path, head: Head) -> None:
        trunk = self.trunk.weights.items() if self.trunk is not None else ()
        weights = {name: tensor for name, tensor in trunk if not name.startswith(f"{HEAD}.")} | state_of(None, head)
        save_checkpoint(path, weights, self.card(head), overwrite=True)

    def card(self, head: Head) -> ModelCard:
        """The card of the joint model: the trunk's settings and frames, and the shape of the head."""
        shape = head.config
        trunk = self.trunk.card if self.trunk is not None else None
        settings = trunk.config.items() if trunk is not None else ()
        config = {name: value for name, value in settings if not name.startswith("head_")}
        parts = [part for part in trunk.architecture.split("+") if part != HEAD] if trunk is not None else []
        return ModelCard(
            name=self.name,
            architecture="+".join([*parts, HEAD]),
            config=config | describe(None, head),
            preprocessing=trunk.preprocessing if trunk else {},
            vocabulary=self.words if shape.classes else (trunk.vocabulary if trunk else ()),
            training_data=self.training_data or (trunk.training_data if trunk else ""),
            licence=trunk.licence if trunk else "",
            created_from=self.created_from,
        )


# From a config and what it is to be trained on to a setup: which words, which batches, which loss, which test.


class _BatchStream(Protocol):
    """Where minibatches come from."""

    @property
    def steps_per_epoch(self) -> int: ...

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[Minibatch]: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TrainingSetup:
    """What a run learns from and is tested on."""

    batches: _BatchStream
    objective: Objective
    input_dim: int  # of the trunk's vectors
    n_words: int  # of the vocabulary, for a classifier
    passage_names: tuple[str, ...] = ()
    test: Material | None = None
    test_words: tuple[Word, ...] | None = None  # None: every label of the test set
    model_file: ModelFile = ModelFile()
    report: tuple[str, ...] = ()  # what is used of the data and what is left out, for people


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingData:
    """What the user gave to learn from."""

    train: Material
    test: Material | None = None
    split: WordSplit | None = None
    synonyms: Synonyms | None = None
    model_file: ModelFile = ModelFile()


def make_setup(config: EmbeddingConfig, data: TrainingData) -> _TrainingSetup:
    """Put together what the config asks for; what it asks for and the data lack is refused."""
    if config.training_words == "train" and data.split is None:
        raise InputError("training_words = train", "needs a split file", "add --set split=SPLIT.json")
    if config.synonyms != "keep" and data.synonyms is None:
        raise InputError(f"synonyms = {config.synonyms}", "no synonyms were given", "name where they come from")
    if data.test is not None:
        data.train.refuse_other_trunk(data.test, "test set")
    words = None if data.split is None else data.split.words
    if data.split is not None and config.training_words == "train":
        words = frozenset(data.split.train)
    batches = BatchSource(data.train, _batch_options(config, words), config.seed)
    return _TrainingSetup(
        batches=batches,
        objective=Objective(config, _pairs(data) if config.synonyms != "keep" else None),
        input_dim=data.train.entry_vectors.shape[1],
        n_words=len(data.train.vocabulary),
        passage_names=data.train.passages.names,
        test=data.test,
        test_words=data.split.test if data.split is not None else None,
        model_file=data.model_file,
        report=batches.report.lines(),
    )


def _batch_options(config: EmbeddingConfig, words: frozenset[Word] | None) -> BatchOptions:
    try:
        return BatchOptions(
            batch_size=config.batch_size,
            # Only watch-read-lookup looks at clips without a label.
            n_background=config.background_clips if config.loss == "watch-read-lookup" else 0,
            around=Tolerance(config.foreground_before, config.foreground_after),
            foreground=config.foreground,
            min_confidence=config.min_confidence,
            balanced=config.balanced,
            words=words,
            dictionary=config.dictionary,
        )
    except ValueError as error:
        raise InputError("config", str(error), "correct these options") from error


def _pairs(data: TrainingData) -> Tensor:
    """(n, 2) int64: the pairs of words of the vocabulary that are synonyms."""
    vocabulary = data.train.vocabulary
    held = data.synonyms.pairs if data.synonyms is not None else ()
    known = sorted((a, b) for a, b in held if a in vocabulary and b in vocabulary)
    ids = [(vocabulary.id_of(a), vocabulary.id_of(b)) for a, b in known]
    return torch.tensor(ids, dtype=torch.int64).reshape(-1, 2)
