from __future__ import annotations

import collections
import datetime
import decimal
import io
import pickle
import uuid
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from signspot.files.pickles.door import inspect
from signspot.files.pickles.scan import Kind, Refused, open_container


class Recorder(pickle.Unpickler):
    """The oracle: what the unpickler of the standard library really asks for."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))
        self.names: list[str] = []

    def find_class(self, module: str, name: str) -> object:
        self.names.append(f"{module}.{name}")
        return super().find_class(module, name)


OBJECTS = [
    collections.Counter("abc"),
    collections.OrderedDict(a=1),
    [datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3), datetime.timedelta(1)],
    [decimal.Decimal("1.5"), decimal.Decimal("2.5")],
    {"a": np.arange(3), "b": np.float64(2), "c": np.arange(3)},
    [PurePosixPath("a/b"), uuid.UUID(int=5), uuid.UUID(int=6), frozenset({1})],
    [io.BytesIO, str.upper, len, getattr],
    {"system": "posix", "posix": ["system", len]},
    [*(i / 3 for i in range(2500)), *range(0, 10**6, 333), len, 1.5, getattr, "builtins", 3, str.upper],
]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_the_scan_lists_exactly_the_names_unpickling_asks_for(value: object, protocol: int) -> None:
    content = pickle.dumps(value, protocol)
    recorder = Recorder(content)
    recorder.load()
    found = open_container(io.BytesIO(content), len(content)).scan()
    assert set(found.names) == set(recorder.names)


@given(st.binary(min_size=1, max_size=300) | st.binary(max_size=300).map(lambda tail: b"\x80\x04" + tail))
def test_no_bytes_make_the_scan_fail(content: bytes) -> None:
    try:
        container = open_container(io.BytesIO(content), len(content))
        container.scan().refuse_unknown(container.kind)
    except Refused as refused:
        assert str(refused)


@given(st.data())
def test_no_damage_makes_looking_into_a_file_fail(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = data.draw(st.sampled_from(_whole_files()))
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = Path(tmp_path_factory.getbasetemp()) / "damaged.pth"
    path.write_bytes(damaged[: data.draw(st.integers(1, len(damaged)))])
    report = inspect(path)
    assert len(report.sha256) == 64 and (report.kind is not None or report.refusal)


def _whole_files() -> list[bytes]:
    made = [pickle.dumps({"words": ["apple"], "x": np.arange(3)}, protocol) for protocol in (0, 2, 4, 5)]
    for is_zip in (True, False):
        buffer = io.BytesIO()
        torch.save({"state_dict": {"w": torch.ones(3)}}, buffer, _use_new_zipfile_serialization=is_zip)
        made.append(buffer.getvalue())
    return made


def test_tensors_are_counted_without_reading_them(tmp_path: Path) -> None:
    path = tmp_path / "model.pth"
    torch.save({f"layer.{i}": torch.ones(2) for i in range(11)}, path)
    report = inspect(path)
    assert (report.kind, report.n_tensors, report.refusal) == (Kind.ZIP, 11, "")


def test_a_stream_of_countless_instructions_is_cut_short() -> None:
    buffer = io.BytesIO()
    torch.save({}, buffer, _use_new_zipfile_serialization=False)
    start = buffer.getvalue()[:17]
    content = start + b"\x80\x02" + b"]" * 1_100_000
    found = open_container(io.BytesIO(content), len(content)).scan()
    assert "more instructions" in found.strange
