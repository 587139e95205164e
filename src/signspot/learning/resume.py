"""The state of a training run on the disk: one .safetensors file, whole or not at all, checked when it is read again.

Tensors lie in it as they are, so that a run continues to the bit; everything else (counters, curves) is JSON in the
header. One checksum covers both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as bytes_from_tensors
from torch import Tensor, nn

from signspot.atomic import atomic_output
from signspot.errors import InputError
from signspot.interrupts import undisturbed
from signspot.models.checkpoints import weights_sha256

_KEY = "signspot-state"  # a single one: the order of several would differ from run to run
_DAMAGED = "start the run again with --overwrite"
WEIGHTS = "weights."
# What an optimiser remembers of each parameter, by its own name: SGD's momentum; AdamW's two means and its counter.
_REMEMBERED = ("momentum_buffer", "exp_avg", "exp_avg_sq", "step")
_MANY_THREADS = 4096  # beyond it lies damage


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop; its state is saved."""


class Whole:
    """Whether what a run would save belongs together: a step that was cut in two does not."""

    def __init__(self) -> None:
        self.is_true = True

    @contextmanager
    def change(self) -> Iterator[None]:
        """A block that changes the state of a run; signals wait for its end, and what else cuts it leaves it untrue."""
        with undisturbed():
            self.is_true = False
            yield
            self.is_true = True


@dataclass(frozen=True, slots=True, eq=False)
class SavedState:
    """What `save_state` wrote."""

    tensors: dict[str, Tensor]
    facts: dict[str, object]  # what JSON can hold


def save_state(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, object]) -> None:
    """Write tensors and facts, in place of an older state."""
    kept = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(facts, sort_keys=True, allow_nan=False)
    header = json.dumps({"facts": text, "sha256": _checksum(kept, text)})
    with atomic_output(path, overwrite=True) as temporary:
        temporary.write_bytes(bytes_from_tensors(kept, {_KEY: header}))


def load_state(path: Path) -> SavedState:
    """Read a state; a damaged one is refused."""
    try:
        with safe_open(path, "pt") as file:
            signed = json.loads((file.metadata() or {})[_KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        facts = json.loads(signed["facts"])
        if signed["sha256"] != _checksum(tensors, signed["facts"]) or not isinstance(facts, dict):
            raise ValueError("its checksum is another")
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror or error})", "name the folder of a run") from error
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(path, f"the saved state is damaged ({reason})", _DAMAGED) from error
    return SavedState(tensors, facts)


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
