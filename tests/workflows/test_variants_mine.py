from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from signspot.domain.recordings import Rights, normalise
from signspot.errors import FormatError
from signspot.workflows.variants import _MinedExample, _read_mined, _write_mined

EXAMPLE = _MinedExample(
    word=normalise("apple"), file="clips/1.mp4", rank=1, cosine=0.75, start_ms=40, stop_ms=680, spotting_id="spot:1",
    video_id="=news", entry_id="apple_1.mp4", variant="1", signer="S1", language="bfi",
    rights=Rights(holder="BBC", may_train=False, expires=date(2031, 1, 1)),
)  # fmt: skip


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    rows = (EXAMPLE, replace(EXAMPLE, accepted=True, rank=2), replace(EXAMPLE, accepted=False, file="", remark="no"))
    _write_mined(rows, tmp_path / "mined.csv")
    assert _read_mined(tmp_path / "mined.csv") == rows


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("accepted,word,file\nperhaps,apple,a.mp4\n", "neither yes nor no"),
        ("accepted,file\nyes,a.mp4\n", "no column word"),
        ("accepted,word,file,start_ms\nyes,apple,a.mp4,soon\n", "start_ms is 'soon'"),
        ("accepted,word,file,may_train\nyes,apple,a.mp4,maybe\n", "rights"),
        ("accepted,word,file\nyes,apple,a.mp4,1,2\n", "5 cells under 3 columns"),
    ],
)
def test_a_row_that_cannot_be_understood_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "mined.csv").write_text(text)
    with pytest.raises(FormatError, match=complaint):
        _read_mined(tmp_path / "mined.csv")
