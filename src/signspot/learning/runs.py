"""The folder of a training run: what was asked, on which data and machine, how it went, and what came out.

config.toml         every option, defaults included
data.json           checksums of what was learned from
environment.json    versions and the machine
curves.jsonl        one line per epoch
state.safetensors   all that is needed to continue
last.safetensors    the model after the last finished epoch
best.safetensors    the model that scored highest on the test set
results.json        at the end
bad_batch.json      the batch that broke the training, if one did
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as processes

from signspot.errors import EnvironmentProblem, InputError, OutputExists
from signspot.files.arrays import ArraysKind, load_arrays, save_arrays
from signspot.files.atomic import atomic_output, explained, names_in, take_lock
from signspot.files.json import read_json, write_json
from signspot.interrupts import undisturbed
from signspot.learning.config import as_toml
from signspot.models.checkpoints import weights_sha256

Start = Literal["new", "resume", "overwrite"]

# The config goes last when a run is replaced: as long as it is there, the folder is known as ours.
_FILES = ("data.json", "environment.json", "curves.jsonl", "results.json", "bad_batch.json", "config.toml")
_MODELS = ("state.safetensors", "last.safetensors", "best.safetensors")
_LOCK = ".lock"
_LOGS = "tensorboard"


class RunFolder:
    """The names of the files of a run, which the module describes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.data, self.bad_batch = path / "config.toml", path / "data.json", path / "bad_batch.json"
        self.curves, self.results, self.logs = path / "curves.jsonl", path / "results.json", path / _LOGS
        self.state, self.last, self.best = (path / name for name in _MODELS)

    def check(self, config: object, data: Mapping[str, str], start: Start) -> None:
        """Refuse a folder that is not free for this run; nothing is changed."""
        if not self.path.exists() or (self.path.is_dir() and not _content(self.path)):
            return
        if not self.config.is_file():
            raise OutputExists(self.path, "exists and is not a run folder", "name a new folder")
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
            write_json(_environment(), self.path / "environment.json", overwrite=True)
            yield

    def write_lines(self, path: Path, rows: list[dict[str, object]]) -> None:
        with atomic_output(path, overwrite=True) as temporary:
            temporary.write_text("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))

    def to_continue(self, start: Start) -> str:
        """For a run that is interrupted: what is saved, and how to go on."""
        options = {"new": " with --resume", "overwrite": " with --resume in place of --overwrite", "resume": ""}
        how = f"the same command{options[start]}"
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

    def read_results(self) -> dict[str, object] | None:
        if not self.results.is_file():
            return None
        results = read_json(self.results)
        if not isinstance(results, dict):
            raise InputError(self.results, "holds no results of a run", "train again with --overwrite")
        return results


FINISHED_BEFORE = "this run had finished: there is nothing left to train"


def _environment() -> dict[str, object]:
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


# The state of a training run on the disk: one .safetensors file. Tensors lie in it as they are, so that a run continues
# to the bit; everything else (counters, curves) is JSON in the header. One checksum covers both.

_KEY = "signspot-state"  # a single one: the order of several would differ from run to run
_STATE = ArraysKind("saved state", "start the run again with --overwrite", max_bytes=64_000_000_000)
WEIGHTS = "weights."
# What an optimiser remembers of each parameter, by its own name: SGD's momentum; AdamW's two means and its counter.
_REMEMBERED = ("momentum_buffer", "exp_avg", "exp_avg_sq", "step")
_MANY_THREADS = 4096  # beyond it lies damage


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop; its state is saved."""


class StepGuard:
    """Whether what a run would save belongs together: a step that was cut in two does not."""

    def __init__(self) -> None:
        self.is_consistent = True

    @contextmanager
    def update(self) -> Iterator[None]:
        """A block that changes the state of a run; signals wait for its end, an error leaves it inconsistent."""
        with undisturbed():
            self.is_consistent = False
            yield
            self.is_consistent = True


@dataclass(frozen=True, slots=True, eq=False)
class SavedState:
    """Where a run stands, to go on from."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, object]  # what JSON can hold

    def save(self, path: Path) -> None:
        text = json.dumps(self.facts, sort_keys=True, allow_nan=False)
        header = json.dumps({"facts": text, "sha256": _checksum(self.tensors, text)})
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in self.tensors.items()}
        save_arrays(arrays, {_KEY: header}, path, overwrite=True)

    @classmethod
    def load(cls, path: Path) -> Self:
        metadata, arrays = load_arrays(path, _STATE)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        try:
            signed = json.loads(metadata[_KEY])
            facts = json.loads(signed["facts"])
            if signed["sha256"] != _checksum(tensors, signed["facts"]) or not isinstance(facts, dict):
                raise ValueError("its checksum does not match")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _STATE.damaged(path, error) from error
        return cls(tensors, facts)


def threads_of(configured: int, saved: SavedState | None) -> int:
    """As the config says, or as many as the run began with (the fact `threads` of its state); 0: torch chooses."""
    begun = saved.facts.get("threads") if saved is not None and not configured else configured
    return begun if isinstance(begun, int) and 0 < begun <= _MANY_THREADS else 0


def training_tensors(network: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """All that training changes: parameters and counters of the network, and the optimiser's memory of each one."""
    tensors = {f"{WEIGHTS}{name}": tensor for name, tensor in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        memory = optimiser.state.get(parameter, {})
        tensors |= {f"{key}.{name}": memory[key] for key in _REMEMBERED if isinstance(memory.get(key), Tensor)}
    return tensors


def restore_training(network: nn.Module, optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `training_tensors` gave; raises ValueError if it belongs to another network."""
    weights = {key.removeprefix(WEIGHTS): value for key, value in tensors.items() if key.startswith(WEIGHTS)}
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:  # torch, for tensors that do not fit
        raise ValueError(str(error).splitlines()[0]) from error
    for name, parameter in network.named_parameters():
        for key in _REMEMBERED:
            if (memory := tensors.get(f"{key}.{name}")) is None:
                continue
            if memory.shape != (torch.Size() if key == "step" else parameter.shape):
                raise ValueError(f"{key} of {name} has the shape {tuple(memory.shape)}")
            # torch keeps counters on the processor.
            optimiser.state[parameter][key] = memory if key == "step" else memory.to(parameter.device)


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    return hashlib.sha256(f"{weights_sha256(tensors)}\0{text}".encode()).hexdigest()


# Where training computes, how precisely, and in which order sums are taken.

_Precision = Literal["auto", "float32", "mixed"]


def usable_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise EnvironmentProblem(name, f"cannot be used here ({reason})", "choose device = cpu") from error
    return device


def mixed_precision(device: torch.device, precision: _Precision) -> torch.autocast:
    """A block in which a network computes in bfloat16 where that is asked for; its weights stay float32.

    bfloat16 has the range of float32, so that no gradient vanishes and none needs to be scaled.
    """
    is_mixed = precision == "mixed"
    if precision == "auto":  # CPUs are left in single precision
        has_fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        is_mixed = bool(has_fast) or device.type == "mps"
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_mixed)


@contextmanager
def repeatable(n_threads: int, device: torch.device) -> Iterator[int]:
    """A block with this many threads (0: as many as before) and, on a CPU, sums in a fixed order; gives the number."""
    before, was_fixed = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    try:
        torch.set_num_threads(n_threads or before)
        torch.use_deterministic_algorithms(was_fixed or device.type == "cpu")
        yield n_threads or before
    finally:
        torch.set_num_threads(before)
        torch.use_deterministic_algorithms(was_fixed)


# Training by several processes that act as one (torchrun): gloo on CPUs, NCCL on GPUs.
#
# All processes draw the same minibatch. Each embeds its share of the rows; the embeddings of all are gathered, with
# gradient, so that everyone computes the loss of the joint batch with all its negatives. A process then holds the
# gradient of its own rows only, and the sum over processes is the gradient that one process would have computed alone.

_PATIENCE = timedelta(hours=4)  # the others wait while the leader evaluates


@dataclass(frozen=True, slots=True)
class Team:
    """The processes that train together, and which of them this is."""

    rank: int = 0
    size: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def share(self, n_rows: int) -> slice:
        """The rows this process embeds; the shares of all together are all rows, in order."""
        per_process = math.ceil(n_rows / self.size)
        return slice(min(self.rank * per_process, n_rows), min((self.rank + 1) * per_process, n_rows))

    def gathered(self, rows: Tensor, n_rows: int) -> Tensor:
        """The shares of all (this one's: `rows`) -> (n_rows, d); the gradient flows back into this one's."""
        return rows if self.size == 1 else _Gather.apply(rows, n_rows, self)  # type: ignore[no-untyped-call]

    def sum_gradients(self, network: nn.Module, *, stop: bool = False) -> bool:
        """Add up everyone's gradients in place; whether anyone wants to stop."""
        if self.size == 1:
            return stop
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in network.parameters()]
        wish = torch.tensor([float(stop)], device=gradients[0].device)
        joined = torch.cat([gradient.reshape(-1) for gradient in (*gradients, wish)])
        processes.all_reduce(joined)
        sizes = [gradient.numel() for gradient in gradients]
        for parameter, part in zip(network.parameters(), torch.split(joined[:-1], sizes), strict=True):
            parameter.grad = part.view_as(parameter).clone()
        return bool(joined[-1] > 0)

    def wait(self) -> None:
        if self.size > 1:
            processes.barrier()


@contextmanager
def join_team(environment: Mapping[str, str], device: str = "cpu") -> Iterator[Team]:
    """The team torchrun started, as its environment variables say; otherwise a team of one."""
    size = _number(environment, "WORLD_SIZE", 1)
    if size == 1:
        yield Team()
        return
    team = Team(_number(environment, "RANK", 0), size)
    backend = "nccl" if device.startswith("cuda") else "gloo"
    try:
        processes.init_process_group(backend, rank=team.rank, world_size=size, timeout=_PATIENCE)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise EnvironmentProblem("torchrun", f"the processes did not meet ({reason})", "start them again") from error
    try:
        yield team
    finally:
        processes.destroy_process_group()


def own_device(device: str, environment: Mapping[str, str]) -> str:
    """Each process of a machine takes its own GPU.

    >>> own_device("cuda", {"LOCAL_RANK": "1"}), own_device("cuda:3", {}), own_device("cpu", {"LOCAL_RANK": "1"})
    ('cuda:1', 'cuda:3', 'cpu')
    """
    return f"cuda:{_number(environment, 'LOCAL_RANK', 0)}" if device == "cuda" else device


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, rows: Tensor, n_rows: int, team: Team) -> Tensor:
        ctx.share = team.share(n_rows)  # type: ignore[attr-defined]
        # All send equally many rows; only the last shares are short, so what fills them up ends behind n_rows.
        padded = rows.new_zeros((math.ceil(n_rows / team.size), *rows.shape[1:]))
        padded[: len(rows)] = rows
        received = [torch.empty_like(padded) for _ in range(team.size)]
        processes.all_gather(received, padded)
        return torch.cat(received)[:n_rows]

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> tuple[Tensor, None, None]:
        # Everyone computes the same loss: the gradient of this share is complete without asking the others.
        return gradients[0][ctx.share], None, None  # type: ignore[attr-defined]


def _number(environment: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environment.get(name, str(otherwise))
    if not text.isdecimal():
        raise EnvironmentProblem(name, f"is {text!r}, not a number", "start the processes with torchrun")
    return int(text)
