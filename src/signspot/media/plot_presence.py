"""Figures of trust: whether probabilities keep their promise, false alarms asked for and counted, subtitles and lag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from signspot.atomic import atomic_output
from signspot.errors import InputError
from signspot.media import drawing
from signspot.media.drawing import COLOURS, FAINT_INK, FOUND, INK, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 140
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LagFigure:
    """How far each sign lies behind the subtitle that mentions it, and the line through all."""

    times_ms: Floats  # (n,) rising
    lags_ms: Floats  # (n,)
    line_ms: Floats  # (n,) not numbers where no line was drawn


@dataclass(frozen=True, slots=True, eq=False)
class ReliabilityFigure:
    """Promised and observed frequency in bins that are not empty."""

    promised: Floats  # (B,)
    observed: Floats  # (B,)
    counts: npt.NDArray[np.int64]  # (B,)
    expected_error: float


@dataclass(frozen=True, slots=True, eq=False)
class AlarmFigure:
    """False alarms in an hour, for each word, that were asked for and that were counted."""

    asked: Floats  # (n,)
    counted: Floats  # (n,)


def plot_lag(lag: LagFigure, title: str, path: Path, *, overwrite: bool = False) -> None:
    """Draw the lag of every sign and the line through them, over media time."""
    figure = drawing.blank_figure(9, 4, _DPI)
    axes = figure.add_axes((0.09, 0.14, 0.88, 0.72))
    seconds = lag.times_ms / 1000
    axes.plot(seconds, lag.lags_ms / 1000, "o", color=FOUND, markersize=4, alpha=0.6, markeredgewidth=0)
    if len(lag.line_ms) and np.isfinite(lag.line_ms).all():
        axes.plot(seconds, lag.line_ms / 1000, color=INK, linewidth=1.8)
    axes.axhline(0, color=FAINT_INK, linewidth=0.8)
    axes.set_xlabel("media time (s)", color=FAINT_INK, fontsize=9)
    axes.set_ylabel("sign after subtitle (s)", color=FAINT_INK, fontsize=9)
    _plain(axes)
    write_text(figure, 0.09, 0.93, drawing.shortened(title, 90), size=10, color=FAINT_INK)
    _write(figure, path, overwrite)


def plot_calibration(
    reliabilities: Mapping[str, ReliabilityFigure],
    alarms: Mapping[str, AlarmFigure],
    path: Path,
    *,
    overwrite: bool = False,
) -> None:
    """Draw reliability on the left and false alarms on the right, one line for each name."""
    figure = drawing.blank_figure(10, 4.6, _DPI)
    left, right = figure.add_axes((0.07, 0.13, 0.4, 0.78)), figure.add_axes((0.57, 0.13, 0.4, 0.78))
    left.plot([0, 1], [0, 1], color=FAINT_INK, linewidth=0.8)
    for colour, (name, one) in zip(COLOURS, reliabilities.items(), strict=False):
        label = f"{name}: expected error {one.expected_error:.3f}"
        left.plot(one.promised, one.observed, "o-", color=colour, label=label, markersize=5)
    _named(left, "promised probability", "share that is right")
    for colour, (name, each) in zip(COLOURS, alarms.items(), strict=False):
        right.loglog(each.asked, np.maximum(each.counted, 1e-3), "o-", color=colour, label=name, markersize=5)
    asked = np.concatenate([each.asked for each in alarms.values()]) if alarms else np.ones(1)
    ends = np.array([asked.min(), asked.max()])
    right.plot(ends, ends, color=FAINT_INK, linewidth=0.8)
    right.fill_between(ends, ends / 1.5, ends * 1.5, color=FAINT_INK, alpha=0.15, linewidth=0)
    _named(right, "false alarms asked for, an hour and word", "counted")
    _write(figure, path, overwrite)


def _named(axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(across, color=FAINT_INK, fontsize=9)
    axes.set_ylabel(up, color=FAINT_INK, fontsize=9)
    axes.legend(fontsize=8, frameon=False)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.tick_params(labelsize=9, color=FAINT_INK, labelcolor=FAINT_INK)
    axes.spines[["top", "right"]].set_visible(False)


def _write(figure: Figure, path: Path, overwrite: bool) -> None:
    if path.suffix.lower() != ".png":
        raise InputError(path, "is no name of a picture", "use a name that ends in .png")
    with atomic_output(path, overwrite=overwrite) as temporary:
        figure.savefig(temporary, format="png", dpi=_DPI)
