"""Where training computes, how precisely, and in which order sums are taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from signspot.errors import EnvironmentProblem

Precision = Literal["auto", "float32", "mixed"]


def usable_device(name: str) -> torch.device:
    """The device of that name; raises if this machine lacks it."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise EnvironmentProblem(name, f"cannot be used here ({reason})", "choose device = cpu") from error
    return device


def mixed_precision(device: torch.device, precision: Precision) -> torch.autocast:
    """A block in which a network computes in bfloat16 where that is asked for; its weights stay float32.

    bfloat16 has the range of float32, so that no gradient vanishes and none needs to be scaled.
    """
    is_mixed = precision == "mixed" or (precision == "auto" and computes_in_bfloat16(device))
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_mixed)


def computes_in_bfloat16(device: torch.device) -> bool:
    """Whether a device has fast arithmetic of half the size; CPUs are left in single precision."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "mps"


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
