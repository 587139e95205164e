from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from signspot.domain.words import Word
from signspot.errors import FormatError, OutputExists
from signspot.evaluation.calibration import Calibration, PresenceFit, fit_presence
from signspot.stores.calibration import read_calibration, write_calibration


def fit(seed: int, *, isotonic: bool) -> PresenceFit:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(400, 4))
    return fit_presence(columns, columns[:, 0] + rng.normal(size=400) > 0, word_hours=2.5, isotonic=isotonic)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    cohort = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    return Calibration(
        model="landmark é",
        fingerprint="abc",
        plain=fit(0, isotonic=False),
        read=fit(1, isotonic=True),
        cohort=cohort,
        cohort_words=tuple(Word(name) for name in ("apple", "tree", "eau", "ice-cream", "apple")),
        fitted_on="3 videos",
    )


def test_what_is_written_is_read_and_gives_the_same_probabilities(calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "m.calibration"
    write_calibration(calibration, path)
    again = read_calibration(path)
    evidence = np.random.default_rng(3).normal(size=(50, 4))
    assert again.name == calibration.name
    assert (again.model, again.fingerprint, again.fitted_on) == ("landmark é", "abc", "3 videos")
    assert again.cohort_words == calibration.cohort_words
    assert (again.cohort == calibration.cohort).all()
    for is_read in (False, True):
        mine, theirs = calibration.fit_for(is_read=is_read), again.fit_for(is_read=is_read)
        assert (mine.probability(evidence) == theirs.probability(evidence)).all()
        assert mine.least_presence(1) == theirs.least_presence(1)


def test_the_same_calibration_gives_the_same_bytes_and_nothing_is_replaced_unasked(
    calibration: Calibration, tmp_path: Path
) -> None:
    write_calibration(calibration, tmp_path / "a.calibration")
    write_calibration(calibration, tmp_path / "b.calibration")
    assert (tmp_path / "a.calibration").read_bytes() == (tmp_path / "b.calibration").read_bytes()
    with pytest.raises(OutputExists, match="exists already"):
        write_calibration(calibration, tmp_path / "a.calibration")


def test_every_flipped_byte_is_noticed(calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "m.calibration"
    write_calibration(calibration, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), 60, replace=False).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            again = read_calibration(path)
        except FormatError:
            continue
        assert again.name == calibration.name  # a blank of the padding


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"{}", b"PK\x03\x04" + b"x" * 50])
def test_a_file_that_is_no_calibration_is_said_to_be_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.calibration"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="is damaged or no calibration"):
        read_calibration(path)
