from __future__ import annotations

import mmap
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.errors import EnvironmentProblem
from signspot.stores.features import BLOCK_ROWS, RowFile, _sums_path, row_blocks


def some_rows(n_rows: int, dim: int = 3) -> np.ndarray:
    return np.random.default_rng(n_rows).normal(size=(n_rows, dim)).astype(np.float32)


@given(st.lists(st.integers(0, 150), max_size=6), st.integers(1, 5), st.sampled_from([np.float16, np.float32]))
@settings(max_examples=60)
def test_rows_come_back_in_order_whatever_the_portions(portions: list[int], dim: int, dtype: type) -> None:
    parts = [some_rows(n_rows, dim) for n_rows in portions]
    expected = np.concatenate([np.empty((0, dim), np.float32), *parts]).astype(dtype)
    with RowFile(dim, dtype) as rows:
        for part in parts:
            rows.append(part)
        assert len(rows) == len(expected)
        mapped = rows.mapped()
    assert mapped.dtype == dtype
    np.testing.assert_array_equal(mapped, expected)  # also after the file is closed


def test_a_map_cannot_be_written() -> None:
    with RowFile(3) as rows:
        rows.append(some_rows(5))
        with pytest.raises(ValueError, match="read-only"):
            rows.mapped()[0] = 1


def written(path: Path, n_rows: int = 5 * BLOCK_ROWS + 7) -> np.ndarray:
    """What a run leaves that is cut short after `n_rows` rows."""
    with RowFile(3, path=path) as rows:
        rows.append(some_rows(n_rows))
    return some_rows(n_rows)


@pytest.mark.parametrize("missing_bytes", [0, 1, 12, 3 * 64 * 12, 10**6])
@pytest.mark.parametrize("cut", ["rows", "sums"])
def test_another_run_goes_on_after_sound_blocks(tmp_path: Path, cut: str, missing_bytes: int) -> None:
    path = tmp_path / "a.rows"
    expected = written(path)
    damaged = path if cut == "rows" else _sums_path(path)
    damaged.write_bytes(damaged.read_bytes()[: max(0, damaged.stat().st_size - missing_bytes)])
    with RowFile(3, path=path) as rows:
        n_kept = len(rows)
        assert n_kept % BLOCK_ROWS == 0 and n_kept <= 4 * BLOCK_ROWS
        rows.append(expected[n_kept:])
        np.testing.assert_array_equal(rows.mapped(), expected)
    if not missing_bytes:
        assert n_kept == 4 * BLOCK_ROWS


@pytest.mark.parametrize("at", [0, 64 * 12 * 2 + 5])
def test_what_follows_a_flipped_bit_is_computed_again(tmp_path: Path, at: int) -> None:
    path = tmp_path / "a.rows"
    expected = written(path)
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)
    with RowFile(3, path=path) as rows:
        assert len(rows) == max(0, at // (64 * 12) - 1) * BLOCK_ROWS
        rows.append(expected[len(rows) :])
        np.testing.assert_array_equal(rows.mapped(), expected)


def test_two_writers_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.rows"
    with RowFile(3, path=path), pytest.raises(BlockingIOError):
        RowFile(3, path=path)
    RowFile(3, path=path).close()


def test_a_full_disk_is_explained(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with RowFile(3, path=tmp_path / "a.rows") as rows:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            with pytest.raises(EnvironmentProblem, match=r"a.rows: the disk is full: free some space"):
                rows.append(some_rows(1000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_closing_says_nothing_new_about_a_full_disk(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(EnvironmentProblem, match="the disk is full"), RowFile(3, path=tmp_path / "a.rows") as rows:
            rows.append(some_rows(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_blocks_are_all_rows_and_leave_the_memory() -> None:
    def resident_mb() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE / 2**20

    with RowFile(256) as file:
        for _ in range(40):
            file.append(some_rows(1000, 256))
        rows = file.mapped()
    before, most, total = resident_mb(), 0.0, 0.0
    for block in row_blocks(rows):
        total += float(block.sum(dtype=np.float64))
        most = max(most, resident_mb())
    assert total == pytest.approx(40 * float(some_rows(1000, 256).sum(dtype=np.float64)))
    assert rows.nbytes > 35 * 2**20
    assert most < before + 15
