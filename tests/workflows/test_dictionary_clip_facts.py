from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from signspot.domain.time import FrameSpan, MillisSpan
from signspot.media.copies import SIGNATURE_SHAPE
from signspot.workflows.dictionary import _ClipFacts, _read_clip_facts, _write_clip_facts


def facts() -> _ClipFacts:
    signature = np.random.default_rng(0).normal(size=SIGNATURE_SHAPE).astype(np.float32)
    signature[1] = 0
    signature[0] /= np.linalg.norm(signature[0])
    return _ClipFacts(
        n_frames=78,
        kept=FrameSpan(11, 67),
        kept_ms=MillisSpan.of(440, 2680),
        remarks=("partial, 0:01 of 0:02",),
        n_tiles=6,
        tile_width=171,
        signature=signature,
    )


def test_facts_come_back_and_a_signature_in_bytes_is_nearly_the_same(tmp_path: Path) -> None:
    made = facts()
    _write_clip_facts(made, tmp_path / "a.json")
    read = _read_clip_facts(tmp_path / "a.json")
    assert read is not None
    for name in ("n_frames", "kept", "kept_ms", "remarks", "n_tiles", "tile_width"):
        assert getattr(read, name) == getattr(made, name)
    assert float(read.signature[0] @ made.signature[0]) > 0.999
    assert np.linalg.norm(read.signature, axis=1).tolist() == pytest.approx([1, 0], abs=1e-5)


def test_facts_that_are_damaged_or_missing_count_as_none(tmp_path: Path) -> None:
    _write_clip_facts(facts(), tmp_path / "a.json")
    whole = (tmp_path / "a.json").read_bytes()
    assert _read_clip_facts(tmp_path / "no.json") is None
    damaged = [whole[:size] for size in range(0, len(whole), 97)]
    damaged += [whole.replace(b"11", b"99"), whole.replace(b'"signature": "', b'"signature": "A'), b"[]", b"\0" * 50]
    for content in damaged:
        (tmp_path / "b.json").write_bytes(content)
        assert _read_clip_facts(tmp_path / "b.json") is None
