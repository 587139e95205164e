"""The folder of a training run: what was asked, on which data and machine, how it went, and what came out.

config.toml         every option, defaults included
data.json           checksums of what was learned from
environment.json    versions and the machine
curves.jsonl        one line per epoch
state.safetensors   all that is needed to continue
last.safetensors, best.safetensors    models
results.json        at the end
bad_batch.json      the batch that broke the training, if one did
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from signspot.atomic import atomic_output, explained, names_in, take_lock
from signspot.errors import InputError, OutputExists
from signspot.formats.safe_json import read_json, write_json
from signspot.learning.toml_options import as_toml

Start = Literal["new", "resume", "overwrite"]

# The config goes last when a run is replaced: as long as it is there, the folder is known as ours.
_FILES = ("data.json", "environment.json", "curves.jsonl", "results.json", "bad_batch.json", "config.toml")
_MODELS = ("state.safetensors", "last.safetensors", "best.safetensors")
_LOCK = ".lock"
_LOGS = "tensorboard"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The names of the files of a run."""

    path: Path

    @property
    def config(self) -> Path:
        """Every option of the run, as TOML."""
        return self.path / "config.toml"

    @property
    def data(self) -> Path:
        """Checksums of what was learned from."""
        return self.path / "data.json"

    @property
    def state(self) -> Path:
        """All that is needed to continue."""
        return self.path / "state.safetensors"

    @property
    def last(self) -> Path:
        """The model after the last finished epoch."""
        return self.path / "last.safetensors"

    @property
    def best(self) -> Path:
        """The model that scored highest on the test set."""
        return self.path / "best.safetensors"

    @property
    def curves(self) -> Path:
        """One JSON object per finished epoch."""
        return self.path / "curves.jsonl"

    @property
    def results(self) -> Path:
        """What came out; there once the run is complete."""
        return self.path / "results.json"

    @property
    def bad_batch(self) -> Path:
        """The batch whose loss was not a number."""
        return self.path / "bad_batch.json"

    @property
    def logs(self) -> Path:
        """What TensorBoard reads."""
        return self.path / _LOGS

    def check(self, config: object, data: Mapping[str, str], start: Start) -> None:
        """Refuse a folder that is not free for this run; nothing is changed."""
        if not self.path.exists() or (self.path.is_dir() and not _content(self.path)):
            return
        if not self.config.is_file():
            raise OutputExists(self.path, "exists and is no run folder", "name a new folder")
        if start == "overwrite":
            return
        if start == "new":
            raise OutputExists(self.path, "holds a run", "continue it with --resume, or add --overwrite")
        if different := _first_difference(self.config.read_text(), as_toml(config)):
            raise InputError(self.path, f"was begun with other options ({different})", "choose another folder")
        # A run killed before it wrote this has learned nothing yet.
        known = read_json(self.data) if self.data.is_file() else dict(data)
        if known != dict(data):
            raise InputError(self.path, "was begun with other data", "name the same data, or choose another folder")

    @contextmanager
    def opened(self, config: object, data: Mapping[str, str], start: Start) -> Iterator[None]:
        """Hold the folder for this process alone; what the run needs to be understood is written at once."""
        self.check(config, data, start)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / _LOCK).open("w")
        except OSError as error:
            raise explained(error, self.path) from error
        with lock:
            try:
                take_lock(lock)
            except BlockingIOError as error:
                raise InputError(self.path, "another process trains in this folder", "wait, or end it") from error
            self._clear(everything=start == "overwrite")
            with atomic_output(self.config, overwrite=True) as temporary:
                temporary.write_text(as_toml(config))
            write_json(dict(data), self.data, overwrite=True)
            write_json(environment(), self.path / "environment.json", overwrite=True)
            yield

    def write_lines(self, path: Path, rows: list[dict[str, object]]) -> None:
        """Write rows as JSON lines in place of what was there."""
        with atomic_output(path, overwrite=True) as temporary:
            temporary.write_text("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))

    def to_continue(self, start: Start) -> str:
        """For a run that is interrupted: what is saved, and how to go on."""
        how = "with --resume in place of --overwrite" if start == "overwrite" else "with --resume"
        how = "the same command" if start == "resume" else f"the same command {how}"
        if not self.state.exists():
            return f"nothing is learned yet in {self.path}: run {how} to begin again"
        return f"the state is saved in {self.path}: run {how} to continue"

    def _clear(self, *, everything: bool) -> None:
        """Take away what a killed process left half-written; on a new start, the files of the old run too."""
        leftovers = list(self.path.glob(".signspot-*.tmp*"))
        if everything:
            leftovers += [self.path / name for name in (*_MODELS, *_FILES)]
            leftovers[:0] = list(self.logs.glob("events.*"))
        try:
            for path in leftovers:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise explained(error, self.path) from error


FINISHED_BEFORE = "this run had finished: there is nothing left to train"


def results_of(run: RunFolder) -> dict[str, object] | None:
    """The results of a complete run."""
    if not run.results.is_file():
        return None
    results = read_json(run.results)
    if not isinstance(results, dict):
        raise InputError(run.results, "holds no results of a run", "train again with --overwrite")
    return results


def environment() -> dict[str, object]:
    """The versions and the machine a run depends on."""
    return {
        "signspot": version("signspot"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpu": platform.processor() or platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _content(folder: Path) -> list[str]:
    """What lies in a folder beside what a run killed at its very beginning leaves."""
    return [name for name in names_in(folder) if name not in (_LOCK, _LOGS) and not name.startswith(".signspot-")]


def _first_difference(old: str, new: str) -> str:
    """The first line of two files of options that differs, as `old, now new`."""
    before, now = set(old.splitlines()), new.splitlines()
    changed = next((line for line in now if line not in before), "")
    if changed:
        key = changed.partition(" = ")[0]
        was = next((line for line in old.splitlines() if line.startswith(f"{key} = ")), f"{key} not set")
        return f"{was}, now {changed.partition(' = ')[2]}"
    gone = next((line for line in old.splitlines() if line not in set(now)), "")
    return f"{gone}, now not set" if gone else ""
