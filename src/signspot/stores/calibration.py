"""A calibration as one file, NAME.calibration: what turns the cosines of one model into probabilities.

Inside it is a safetensors file: arrays, and a header of JSON that names the model, its fingerprint and the fits, with a
checksum of it all. It holds vectors of dictionary clips, or of the words that a model knows (the cohort), so it may be
shared as those may.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from signspot.domain.recordings import Word
from signspot.errors import FormatError, InputError
from signspot.evaluation.calibration import EVIDENCE, Calibration, Isotonic, Logistic, PresenceFit, SearchSizes
from signspot.files.arrays import Arrays, ArraysKind, read_arrays, write_arrays
from signspot.files.json import Node

CALIBRATION_SUFFIX = ".calibration"
_KIND = ArraysKind(
    what="calibration",
    fix="run `signspot calibrate` again",
    format="signspot-calibration",
    checked="calibration",
    max_bytes=64_000_000,
)


def check_fingerprint(calibration: Calibration, model: str, fingerprint: str) -> None:
    """Refuse a calibration that was fitted for another model."""
    if calibration.fingerprint != fingerprint:
        what = f"was fitted for another model than {model!r}: its probabilities would mean nothing"
        raise InputError(f"calibration {calibration.name}", what, "run `signspot calibrate` for this model")


def write_calibration(calibration: Calibration, path: Path, *, overwrite: bool = False) -> None:
    """Write a calibration, the same bytes for the same calibration."""
    fits = {"plain": calibration.plain} | ({"read": calibration.read} if calibration.read is not None else {})
    halves = calibration.cohort.astype(np.float16)  # where nothing is lost by it
    is_exact = bool((halves == calibration.cohort).all())
    arrays: Arrays = {"cohort": halves if is_exact else np.asarray(calibration.cohort, np.float32)}
    for name, fit in fits.items():
        arrays[f"{name}.alarms"] = np.asarray(fit.alarms, np.float64)
        if fit.searches is not None:
            arrays[f"{name}.alarm_words"] = fit.searches.alarm_words
            arrays[f"{name}.searches"] = np.stack([fit.searches.words, fit.searches.word_hours]).astype(np.float64)
        if fit.isotonic is not None:
            arrays[f"{name}.isotonic"] = np.stack([fit.isotonic.log_odds, fit.isotonic.probability])
    content = {
        "model": calibration.model,
        "fingerprint": calibration.fingerprint,
        "fitted_on": calibration.fitted_on,
        "evidence": list(EVIDENCE),
        "lowest": calibration.lowest,
        "cohort_words": list(calibration.cohort_words),
        "fits": {name: _fit_fields(fit) for name, fit in fits.items()},
    }
    write_arrays(arrays, content, path, _KIND, overwrite=overwrite)


def read_calibration(path: Path) -> Calibration:
    """Read a calibration; every bit is checked."""
    header, arrays = read_arrays(path, _KIND)
    judged_by = header.member("calibration").value
    if not isinstance(judged_by, dict) or judged_by.get("evidence") != list(EVIDENCE):
        raise FormatError(path, "is of another version of signspot, which judged findings by other numbers", _KIND.fix)
    try:
        return _calibration(header.member("calibration"), arrays)
    except (ValueError, KeyError, IndexError) as error:
        raise _KIND.damaged(path, error) from error


def _fit_fields(fit: PresenceFit) -> dict[str, object]:
    logistic = fit.logistic
    return {
        "centre": list(logistic.centre),
        "scale": list(logistic.scale),
        "weights": list(logistic.weights),
        "bias": logistic.bias,
        "word_hours": fit.word_hours,
        "usual": fit.usual,
        "usual_alarms": fit.usual_alarms,
    }


def _calibration(content: Node, arrays: Arrays) -> Calibration:
    fits = {name: _fit(node, name, arrays) for name, node in content.member("fits").members().items()}
    return Calibration(
        model=content.member("model").text(),
        fingerprint=content.member("fingerprint").text(),
        plain=fits["plain"],
        read=fits.get("read"),
        cohort=arrays["cohort"].astype(np.float32),
        cohort_words=tuple(Word(node.text()) for node in content.member("cohort_words").rows()),
        fitted_on=content.member("fitted_on").text(),
        lowest=content.member("lowest").number(),
    )


def _fit(node: Node, name: str, arrays: Arrays) -> PresenceFit:
    centre, scale, weights = (
        tuple(number.number() for number in node.member(key).rows()) for key in ("centre", "scale", "weights")
    )
    knots, searches = arrays.get(f"{name}.isotonic"), arrays.get(f"{name}.searches")
    return PresenceFit(
        logistic=Logistic(centre, scale, weights, node.member("bias").number()),
        isotonic=None if knots is None else Isotonic(knots[0], knots[1]),
        alarms=arrays[f"{name}.alarms"],
        word_hours=node.member("word_hours").number(),
        usual=node.member("usual").number(),
        usual_alarms=None if node.member("usual_alarms").value is None else node.member("usual_alarms").number(),
        searches=None
        if searches is None
        else SearchSizes(arrays[f"{name}.alarm_words"], searches[0].astype(np.int64), searches[1]),
    )
