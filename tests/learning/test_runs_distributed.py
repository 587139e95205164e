from __future__ import annotations

import os
import socket
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from signspot.errors import EnvironmentProblem, InputError
from signspot.learning.head import train_head
from signspot.learning.runs import RunFolder, Team, join_team
from tests.learning.gloo_process import CASES, loss_and_gradients
from tests.learning.small_runs import SMALL, run_in, small_setup

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two gloo processes, started by torchrun, wrote."""
    folder = tmp_path_factory.mktemp("gloo")
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    worker = ["--master-port", str(free_port()), "-m", "tests.learning.gloo_process", str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, *launcher, *worker]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.mark.parametrize("case", CASES)
def test_two_processes_have_the_loss_and_the_gradients_of_one(two_processes: Path, case: str) -> None:
    alone = loss_and_gradients(CASES[case], Team())
    for rank in (0, 1):
        together = load_file(two_processes / f"{case}-{rank}.safetensors")
        assert together.keys() == alone.keys()
        for name, tensor in alone.items():
            torch.testing.assert_close(together[name], tensor, rtol=1e-6, atol=1e-6)


def test_if_one_process_wants_to_stop_all_stop_at_the_same_step(two_processes: Path) -> None:
    assert (two_processes / "run" / "stopped-0").exists()
    assert (two_processes / "run" / "stopped-1").exists()


def test_a_run_of_two_processes_that_was_stopped_and_continued_learns_what_one_learns(
    two_processes: Path, tmp_path: Path
) -> None:
    together, alone = load_file(two_processes / "run" / "last.safetensors"), load_file(run_in(tmp_path / "run").last)
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name], tensor, rtol=1e-4, atol=1e-5)


def test_a_run_of_two_processes_cannot_be_continued_by_one(two_processes: Path, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.state.write_bytes((two_processes / "run" / "state.safetensors").read_bytes())
    with pytest.raises(InputError, match="was saved by 2 processes, this is 1: start as many as before"):
        train_head(SMALL, small_setup(), run)


@given(st.integers(0, 50), st.integers(1, 9))
def test_the_shares_of_all_are_all_rows_in_order(n_rows: int, size: int) -> None:
    rows = list(range(n_rows))
    shares = [rows[Team(rank, size).share(n_rows)] for rank in range(size)]
    assert list(chain.from_iterable(shares)) == rows


def test_without_torchrun_a_process_is_a_team_of_one() -> None:
    with join_team({}) as team:
        assert team == Team() and team.is_leader


def test_an_environment_that_torchrun_did_not_make_is_refused() -> None:
    with (
        pytest.raises(EnvironmentProblem, match="WORLD_SIZE: is 'two', not a number"),
        join_team({"WORLD_SIZE": "two"}),
    ):
        pass
