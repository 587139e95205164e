"""Train the head on material made before, and compare runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from signspot.errors import EnvironmentProblem, InputError
from signspot.features.stages import trunk_fingerprint
from signspot.interrupts import at_interruption, undisturbed
from signspot.learning.config import EmbeddingConfig, read_config
from signspot.learning.distributed import joined_team, own_device
from signspot.learning.lesson import TrainingData, make_lesson
from signspot.learning.material import Material
from signspot.learning.material_files import file_sha256, read_material, read_synonyms, refuse_missing
from signspot.learning.model_file import ModelFile
from signspot.learning.run_folder import FINISHED_BEFORE, RunFolder, Start, results_of
from signspot.learning.splits import read_split
from signspot.learning.toml_options import read_table
from signspot.learning.train import Controls, train_head
from signspot.models.checkpoints import Checkpoint, load_checkpoint
from signspot.models.embedder import embedder_from_checkpoint
from signspot.models.landmark_embedder import landmark_embedder_from_checkpoint

Cell = str | int | float | bool | None
_MANIFEST = "material.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRun:
    """What the user asked to be trained."""

    config: Path
    data: Path  # a folder of training material
    out: Path  # the run folder
    test: Path | None = None  # a folder of test material
    trunk: Path | None = None  # the model that made the vectors: with it the result can embed video
    changes: tuple[str, ...] = ()  # key=value, over the config
    start: Start = "new"


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """What a run left."""

    folder: RunFolder
    results: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One option or result in all runs compared; None where a run lacks it."""

    name: str
    values: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side."""

    runs: tuple[str, ...]
    options: tuple[ComparedRow, ...]  # only those that differ
    results: tuple[ComparedRow, ...]


def train_embedding(
    request: EmbeddingRun, controls: Controls = Controls(), tell: Callable[[str], None] = lambda line: None
) -> TrainedRun:
    """Train as asked; processes that torchrun started work as one. `tell` gets what is known before the first step."""
    config = read_config(request.config, EmbeddingConfig, request.changes)
    run = RunFolder(request.out)
    facts = data_facts(request, config)
    run.check(config, facts, request.start)
    lesson = make_lesson(config, _data_of(request, config))
    with joined_team(os.environ, config.device) as team:
        team.wait()  # everyone has checked the folder before the leader changes it
        with run.opened(config, facts, request.start) if team.is_leader else nullcontext():
            team.wait()
            if team.is_leader:
                for line in (FINISHED_BEFORE,) if run.results.exists() else lesson.report:
                    tell(line)
            # A team stops after a step that all have done; alone, a run stops where it stands.
            own = replace(controls, team=team, device=own_device(config.device, os.environ))
            with (
                at_interruption(lambda: run.to_continue(request.start)),
                undisturbed() if team.size > 1 else nullcontext(),
            ):
                train_head(config, lesson, run, own)
            team.wait()
    return TrainedRun(run, results_of(run) or {})


def data_facts(request: EmbeddingRun, config: EmbeddingConfig) -> dict[str, str]:
    """The checksums of all that is learned from; the manifest of a material holds those of its files."""
    for folder in (request.data, request.test):
        if folder is not None:
            refuse_missing(folder)
    files = {
        "train": request.data / _MANIFEST,
        "test": request.test / _MANIFEST if request.test is not None else None,
        "trunk": request.trunk,
        "split": config.split,
    }
    return {name: file_sha256(path) for name, path in files.items() if path is not None}


def compare_runs(folders: tuple[Path, ...]) -> Comparison:
    """The options in which runs differ, and what came out of each."""
    runs = [RunFolder(folder) for folder in folders]
    for run in runs:
        if not run.config.is_file():
            raise InputError(run.path, "is no run folder: it has no config.toml", "name folders of `signspot train`")
    options = _rows([_flat(read_table(run.config)) for run in runs])
    results = _rows([_flat(results_of(run) or {"state": "not finished"}) for run in runs])
    differing = tuple(row for row in options if len(set(map(repr, row.values))) > 1)
    return Comparison(tuple(map(str, folders)), differing, results)


def _data_of(request: EmbeddingRun, config: EmbeddingConfig) -> TrainingData:
    train = read_material(request.data)
    return TrainingData(
        train=train,
        test=read_material(request.test) if request.test is not None else None,
        split=read_split(config.split) if config.split is not None else None,
        synonyms=read_synonyms(request.data, config.synonyms) if config.synonyms != "keep" else None,
        model_file=_model_file(request, config, train),
    )


def _model_file(request: EmbeddingRun, config: EmbeddingConfig, train: Material) -> ModelFile:
    run, made_by = request.out.absolute().name, f"signspot train embedding, run {request.out.absolute().name}"
    words = tuple(train.vocabulary) if config.loss == "classification" else ()
    if request.trunk is None:
        return ModelFile(name=run, created_from=f"{made_by}; trunk {train.fingerprint[:12]}", words=words)
    checkpoint = load_checkpoint(request.trunk)
    if train.fingerprint not in trunk_fingerprints(checkpoint):
        what = "is not the trunk that made the vectors of the training material"
        raise InputError(request.trunk, what, "name the model the material was made with")
    return ModelFile(name=run, trunk=checkpoint, created_from=f"{made_by}; trunk {checkpoint.card.name}", words=words)


def trunk_fingerprints(checkpoint: Checkpoint) -> Iterator[str]:
    """What vectors of a trunk may be filed under: those of another backend differ in their last digits."""
    if checkpoint.card.architecture.startswith("landmark"):
        yield trunk_fingerprint(landmark_embedder_from_checkpoint(checkpoint))
        return
    for backend in ("auto", "torch", "openvino-bf16"):
        with suppress(EnvironmentProblem):  # a backend that is not installed made none of them here
            yield trunk_fingerprint(embedder_from_checkpoint(checkpoint, backend=backend))


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, Cell]:
    """Nested tables as one, with dotted names; lists as text."""
    flat: dict[str, Cell] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value if isinstance(value, str | int | float | bool | None) else str(value)
    return flat


def _rows(tables: list[dict[str, Cell]]) -> tuple[ComparedRow, ...]:
    names = dict.fromkeys(name for table in tables for name in table)  # each once, in order
    return tuple(ComparedRow(name, tuple(table.get(name) for table in tables)) for name in names)
