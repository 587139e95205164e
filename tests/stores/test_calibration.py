from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from signspot.domain.recordings import Word
from signspot.errors import FormatError, OutputExists
from signspot.evaluation.calibration import EVIDENCE, Calibration, PresenceFit, fit_presence
from signspot.stores.calibration import read_calibration, write_calibration


def fit(seed: int, *, isotonic: bool) -> PresenceFit:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(400, len(EVIDENCE)))
    return fit_presence(columns, columns[:, 0] + rng.normal(size=400) > 0, word_hours=2.5, isotonic=isotonic)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    cohort = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    return Calibration(
        model="landmark é",
        fingerprint="abc",
        plain=replace(fit(0, isotonic=False), usual=0.4, usual_alarms=3.0),
        read=fit(1, isotonic=True),
        cohort=cohort,
        cohort_words=tuple(Word(name) for name in ("apple", "tree", "eau", "ice-cream", "apple")),
        fitted_on="3 videos",
        lowest=0.25,
    )


def test_what_is_written_is_read_and_gives_the_same_probabilities(calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "m.calibration"
    write_calibration(calibration, path)
    again = read_calibration(path)
    evidence = np.random.default_rng(3).normal(size=(50, len(EVIDENCE)))
    assert again.name == calibration.name
    assert (again.model, again.fingerprint, again.fitted_on) == ("landmark é", "abc", "3 videos")
    assert again.cohort_words == calibration.cohort_words
    assert (again.cohort == calibration.cohort).all()
    assert (again.lowest, again.plain.usual) == (calibration.lowest, calibration.plain.usual) == (0.25, 0.4)
    assert (again.plain.usual_alarms, again.fit_for(is_read=True).usual_alarms) == (3.0, None)
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


def said_by(calibration: Calibration) -> object:
    """All that a calibration holds, to be compared."""
    assert calibration.read is not None and calibration.read.isotonic is not None
    curve = (calibration.read.isotonic.log_odds.tolist(), calibration.read.isotonic.probability.tolist())
    fits = [(one.logistic, one.alarms.tolist(), one.word_hours) for one in (calibration.plain, calibration.read)]
    return calibration.name, calibration.cohort.tolist(), calibration.cohort_words, fits, curve


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
        assert said_by(again) == said_by(calibration)  # a blank of the padding


@pytest.mark.parametrize("change", [{"version": 2}, {"format": "another"}])
def test_a_file_of_a_later_version_is_not_guessed_at(
    calibration: Calibration, change: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "m.calibration"
    write_calibration(calibration, path)
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["signspot"])
    save_file(load_file(path), path, metadata={"signspot": json.dumps(header | change)})
    with pytest.raises(FormatError, match="of a version that is not read here: run `signspot calibrate` again"):
        read_calibration(path)


def test_halves_are_kept_as_such_and_read_as_any_other_numbers(calibration: Calibration, tmp_path: Path) -> None:
    halves = replace(calibration, cohort=calibration.cohort.astype(np.float16).astype(np.float32))
    write_calibration(halves, tmp_path / "halves.calibration")
    write_calibration(calibration, tmp_path / "whole.calibration")
    kept = {name: load_file(tmp_path / f"{name}.calibration")["cohort"].dtype for name in ("halves", "whole")}
    assert kept == {"halves": np.float16, "whole": np.float32}
    again = read_calibration(tmp_path / "halves.calibration").cohort
    assert again.dtype == np.float32 and (again == halves.cohort).all()


def test_a_file_that_judges_by_other_evidence_is_not_used(calibration: Calibration, tmp_path: Path) -> None:
    """As those of version 0.2 and before: their weights belong to other columns."""
    path = tmp_path / "old.calibration"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("signspot.stores.calibration.EVIDENCE", EVIDENCE[:4])
        write_calibration(calibration, path)
    with pytest.raises(FormatError, match="judged findings by other numbers: run `signspot calibrate` again"):
        read_calibration(path)


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "film.calibration"
    with path.open("wb") as file:
        file.truncate(64_000_001)
    with pytest.raises(FormatError, match=r"larger than 64 MB.*run `signspot calibrate` again"):
        read_calibration(path)


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"{}", b"PK\x03\x04" + b"x" * 50])
def test_a_file_that_is_no_calibration_is_said_to_be_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.calibration"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="is damaged or no calibration"):
        read_calibration(path)
