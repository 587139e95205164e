"""Small networks are fastest on one thread: on a busy machine, threads that wait for each other cost seconds."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)
