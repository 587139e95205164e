"""A calibration as one file, NAME.calibration: what turns the cosines of one model into probabilities.

Inside it is a safetensors file: arrays, and a header of JSON that names the model, its fingerprint and the fits, with a
checksum of it all. It holds vectors of dictionary clips (the cohort), so it may be shared as those may.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from signspot.domain.tracks import Embedder
from signspot.domain.words import Word
from signspot.errors import FormatError, InputError, readable_size
from signspot.evaluation.calibration import Calibration, Isotonic, Logistic, PresenceFit
from signspot.files.atomic import atomic_output
from signspot.files.intake import require_file
from signspot.files.json import Node, parse_json


def check_fingerprint(calibration: Calibration, model: Embedder) -> None:
    """Refuse a calibration that was fitted for another model."""
    if calibration.fingerprint != model.fingerprint:
        what = f"was fitted for another model than {model.name!r}: its probabilities would mean nothing"
        raise InputError(f"calibration {calibration.name}", what, "run `signspot calibrate` for this model")


CALIBRATION_SUFFIX = ".calibration"
_FORMAT = "signspot-calibration"
_HEADER = "signspot"
_MAX_BYTES = 64_000_000
_FIX = "run `signspot calibrate` again"

_Arrays = dict[str, npt.NDArray[Any]]


def write_calibration(calibration: Calibration, path: Path, *, overwrite: bool = False) -> None:
    """Write a calibration, the same bytes for the same calibration."""
    fits = {"plain": calibration.plain} | ({"read": calibration.read} if calibration.read is not None else {})
    arrays: _Arrays = {"cohort": np.ascontiguousarray(calibration.cohort, np.float32)}
    for name, fit in fits.items():
        arrays[f"{name}.alarms"] = np.ascontiguousarray(fit.alarms, np.float64)
        if fit.isotonic is not None:
            arrays[f"{name}.isotonic"] = np.stack([fit.isotonic.log_odds, fit.isotonic.probability])
    content = {
        "model": calibration.model,
        "fingerprint": calibration.fingerprint,
        "fitted_on": calibration.fitted_on,
        "cohort_words": list(calibration.cohort_words),
        "fits": {name: _fit_fields(fit) for name, fit in fits.items()},
    }
    header = {"format": _FORMAT, "version": 1, "sha256": _checksum(content, arrays), "calibration": content}
    with atomic_output(path, overwrite=overwrite) as temporary:
        try:
            save_file(arrays, temporary, metadata={_HEADER: json.dumps(header)})
        except SafetensorError as error:  # it hides the reason of the operating system
            raise OSError(str(error)) from error


def read_calibration(path: Path) -> Calibration:
    """Read a calibration; every bit is checked."""
    require_file(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            what = f"is larger than {readable_size(_MAX_BYTES)}"
            raise FormatError(path, what, "name a file of `signspot calibrate`")
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays: _Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise FormatError(path, f"is no calibration ({error})", "name a file of `signspot calibrate`") from error
    header = Node(path, parse_json(metadata.get(_HEADER, "").encode(), path), "header")
    if (kind := header.member("format").value) != _FORMAT or header.member("version").value != 1:
        raise FormatError(path, f"holds {str(kind)[:40]!r} of a version that is not read here", _FIX)
    content = header.member("calibration")
    if header.member("sha256").value != _checksum(content.value, arrays):
        raise FormatError(path, "is damaged: its checksum does not match", _FIX)
    try:
        return _calibration(content, arrays)
    except (ValueError, KeyError, IndexError) as error:
        raise FormatError(path, f"does not fit together ({error})", _FIX) from error


def _fit_fields(fit: PresenceFit) -> dict[str, object]:
    logistic = fit.logistic
    return {
        "centre": list(logistic.centre),
        "scale": list(logistic.scale),
        "weights": list(logistic.weights),
        "bias": logistic.bias,
        "word_hours": fit.word_hours,
    }


def _calibration(content: Node, arrays: _Arrays) -> Calibration:
    fits = {name: _fit(node, name, arrays) for name, node in content.member("fits").members().items()}
    return Calibration(
        model=content.member("model").text(),
        fingerprint=content.member("fingerprint").text(),
        plain=fits["plain"],
        read=fits.get("read"),
        cohort=arrays["cohort"],
        cohort_words=tuple(Word(node.text()) for node in content.member("cohort_words").rows()),
        fitted_on=content.member("fitted_on").text(),
    )


def _fit(node: Node, name: str, arrays: _Arrays) -> PresenceFit:
    centre, scale, weights = (
        tuple(number.number() for number in node.member(key).rows()) for key in ("centre", "scale", "weights")
    )
    knots = arrays.get(f"{name}.isotonic")
    return PresenceFit(
        logistic=Logistic(centre, scale, weights, node.member("bias").number()),
        isotonic=None if knots is None else Isotonic(knots[0], knots[1]),
        alarms=arrays[f"{name}.alarms"],
        word_hours=node.member("word_hours").number(),
    )


def _checksum(content: object, arrays: _Arrays) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
