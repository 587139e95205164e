"""Where calibrations are kept: beside the file of their model, or in a folder by the model's fingerprint."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from signspot.domain.tracks import Embedder
from signspot.errors import SignspotError
from signspot.evaluation.presence import Calibration
from signspot.formats.calibration_file import SUFFIX, read_calibration
from signspot.models.zoo import is_there, model_path, models_folder
from signspot.workflows.spot import check_fingerprint


def kept_at(model: Embedder, environment: Mapping[str, str]) -> Path:
    """Where `calibrate` keeps the calibration of a model: `calibrations/` beside the folder of imported models."""
    digest = hashlib.sha256(model.fingerprint.encode()).hexdigest()[:16]
    return models_folder(environment).with_name("calibrations") / f"{digest}{SUFFIX}"


def calibration_for(model: Embedder, named: Path | None, model_name: str) -> Calibration | None:
    """The calibration that was named, or the one beside the model's file, or the one that is kept; None: uncalibrated.

    A named one must fit; one of the others that is for another model is passed over.
    """
    if named is not None:
        calibration = read_calibration(named)
        check_fingerprint(calibration, model)
        return calibration
    for path in _places(model, model_name):
        if is_there(path):
            found = read_calibration(path)
            if found.fingerprint == model.fingerprint:
                return found
    return None


def _places(model: Embedder, model_name: str) -> tuple[Path, ...]:
    places: list[Path] = []
    with suppress(SignspotError):  # a built-in model has no file
        places.append(model_path(model_name).with_suffix(SUFFIX))
    with suppress(SignspotError):  # nor has everybody a home
        places.append(kept_at(model, os.environ))
    return tuple(places)
