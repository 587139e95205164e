from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from signspot.errors import FormatError
from signspot.stores.corpus import SignedSign, read_truth, write_truth

SIGNS = (
    SignedSign(video_id="a", start_frame=3, stop_frame=12, word="tree", variant="1", form="f1", signer="s"),
    SignedSign(video_id="b", start_frame=0, stop_frame=9, word="œuf", variant="", form="f2", signer="t"),
)


def test_signs_come_back_as_they_were(tmp_path: Path) -> None:
    write_truth(iter(SIGNS), tmp_path / "truth.parquet")
    assert read_truth(tmp_path / "truth.parquet") == SIGNS


def test_no_signs_are_a_table_too(tmp_path: Path) -> None:
    write_truth([], tmp_path / "truth.parquet")
    assert read_truth(tmp_path / "truth.parquet") == ()


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    pq.write_table(pa.table({"word": ["tree"]}), tmp_path / "b.parquet")
    for name in ("a.parquet", "b.parquet", "missing.parquet"):
        with pytest.raises(FormatError, match=name):
            read_truth(tmp_path / name)
