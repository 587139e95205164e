"""Training by several processes that act as one (torchrun): gloo on CPUs, NCCL on GPUs.

All processes draw the same minibatch. Each embeds its share of the rows; the embeddings of all are gathered, with
gradient, so that everyone computes the loss of the joint batch with all its negatives. A process then holds the
gradient of its own rows only, and the sum over processes is the gradient that one process would have computed alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, nn
from torch import distributed as processes

from signspot.errors import EnvironmentProblem

# The others wait while the leader evaluates.
PATIENCE = timedelta(hours=4)


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
        """Until all are here."""
        if self.size > 1:
            processes.barrier()


@contextmanager
def joined_team(environment: Mapping[str, str], device: str = "cpu") -> Iterator[Team]:
    """The team torchrun started, as its environment variables say; otherwise a team of one."""
    size = _number(environment, "WORLD_SIZE", 1)
    if size == 1:
        yield Team()
        return
    team = Team(_number(environment, "RANK", 0), size)
    backend = "nccl" if device.startswith("cuda") else "gloo"
    try:
        processes.init_process_group(backend, rank=team.rank, world_size=size, timeout=PATIENCE)
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
