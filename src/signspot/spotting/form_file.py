"""A judge of forms as a file: a table of numbers, read without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from signspot.atomic import atomic_output
from signspot.errors import FormatError
from signspot.evaluation.presence import Logistic
from signspot.spotting.form_judge import MEANS, N_EVIDENCE, N_SHARES, PARTS, FormJudge

SHIPPED = Path(__file__).parent / "shipped" / "forms-v1.safetensors"  # made by experiments/friends/learn.py
_LARGEST = 10_000_000  # bytes
_AXES = "axes."
_TABLES = {"expected": (2, 6, 2), "usual": (N_SHARES,), "usual_parts": (len(PARTS),)}
_LOGISTIC = ("centre", "scale", "weights")


def write_judge(judge: FormJudge, path: Path, *, overwrite: bool = False) -> None:
    """Write a judge."""
    numbers: dict[str, npt.NDArray[Any]] = {_AXES + name: axes for name, axes in judge.axes.items()}
    numbers |= {name: getattr(judge, name) for name in _TABLES} | {"bias": np.array([judge.logistic.bias])}
    numbers |= {name: np.array(getattr(judge.logistic, name)) for name in _LOGISTIC}
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(save({name: np.ascontiguousarray(values) for name, values in numbers.items()}))


def read_judge(path: Path = SHIPPED) -> FormJudge:
    """Read a judge; the shipped one learned from made-up signing (experiments/friends)."""
    again = "make it again with experiments/friends/learn.py"
    try:
        if path.stat().st_size > _LARGEST:
            raise FormatError(path, "is too large for a judge of forms", again)
        numbers = load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise FormatError(path, f"no judge of forms can be read from it ({error})", again) from error
    try:
        axes = {name: numbers[_AXES + name].astype(np.float32) for name in MEANS}
        centre, scale, weights = (tuple(numbers[name].tolist()) for name in _LOGISTIC)
        logistic = Logistic(centre, scale, weights, float(numbers["bias"][0]))
        tables = {name: numbers[name].reshape(shape) for name, shape in _TABLES.items()}
        judge = FormJudge(axes=axes, logistic=logistic, **tables)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise FormatError(path, f"is no judge of forms ({error})", again) from error
    if not all(_fits(judge, name) for name in MEANS) or len(logistic.weights) != N_EVIDENCE:
        raise FormatError(path, "is a judge of other parts", again)
    if not all(np.isfinite(table).all() and table.min() > 0 for table in tables.values()):
        raise FormatError(path, "is a judge of impossible differences", again)
    return judge


def _fits(judge: FormJudge, name: str) -> bool:
    axes, numbers = judge.axes[name], MEANS[name]
    return axes.ndim == 2 and len(axes) == numbers.stop - numbers.start and bool(np.isfinite(axes).all())
