"""The whole demo from pixels: what it promises about words that were never annotated, over three seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from signspot.workflows.demo import DemoRequest, demonstrate

_SEEDS = (0, 1, 2)
_COMPARED = ("chance", "watch-read-lookup")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_reading_is_clearly_above_chance_for_every_seed(tmp_path: Path) -> None:
    """Minutes for each seed. With a hundred passages to learn from, the methods themselves cannot be told apart."""
    tables = [demonstrate(DemoRequest(folder=tmp_path / str(seed), seed=seed)).table for seed in _SEEDS]
    chance, reading = ([row for table in tables for row in table if row.name == name] for name in _COMPARED)
    assert sum(row.mean_ap for row in reading) > 2 * sum(row.mean_ap for row in chance), tables
    for guessed, read in zip(chance, reading, strict=True):
        assert read.mean_ap > 1.5 * guessed.mean_ap, tables
        assert read.localisation > 1.5 * guessed.localisation, tables
