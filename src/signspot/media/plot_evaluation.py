"""Figures of an evaluation: how high the right word ranks, where it is found, what a search finds, single cases."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from signspot.domain.spans import FRAME_MS, Tolerance
from signspot.domain.tracks import FloatArray
from signspot.media import drawing
from signspot.media.drawing import COLOURS, FAINT_INK, FOUND, FOUND_ALPHA, INK, NOT_FOUND, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 110
_LEAST_RANGE = 0.02  # of the cosine axis
_MOST_FRAMES = 150  # of the histogram of offsets, either way
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CaseFigure:
    """Similarity over one passage."""

    centres: Ints  # (n_windows,) frames
    own: FloatArray  # (n_windows, m) cosine with each entry of the annotated word
    other: FloatArray | None  # (n_windows,) cosine with the best entry of another word
    label_frame: int
    tolerance: Tolerance = Tolerance()


def case_png(case: CaseFigure) -> bytes:
    """The curves of a passage, the annotated time as a bar, the highest point as a circle."""
    figure = drawing.blank_figure(9.0, 2.7, _DPI)
    axes = figure.add_axes((0.075, 0.19, 0.70, 0.75))
    seconds = case.centres * FRAME_MS / 1000
    peaks = case.own.max(axis=0, initial=-np.inf)
    drawn = np.sort(np.argsort(-peaks, kind="stable")[: len(COLOURS)])
    for place, column in enumerate(drawn):
        line = _with_gaps(case.own[:, column])
        axes.plot(seconds, line, color=COLOURS[place], linewidth=1.5, label=f"v{column + 1}")
    if case.other is not None:
        line = _with_gaps(case.other)
        axes.plot(seconds, line, color=FAINT_INK, linewidth=1.1, linestyle=drawing.DASHES, label="other word")
    near = case.tolerance.around(case.label_frame)
    axes.axvspan(
        near.start * FRAME_MS / 1000, (near.stop - 1) * FRAME_MS / 1000, color=FOUND, alpha=FOUND_ALPHA, linewidth=0
    )
    axes.axvline(case.label_frame * FRAME_MS / 1000, color=FOUND, linewidth=1.2)
    best = case.own.max(axis=1, initial=-np.inf)
    if np.isfinite(best).any():
        top = int(best.argmax())
        axes.plot(seconds[top], best[top], "o", color=INK, markersize=6, markerfacecolor="white", zorder=5)
    if len(seconds) > 1:
        axes.set_xlim(seconds[0], seconds[-1])
    low, high = axes.get_ylim()
    spare = max(0.0, _LEAST_RANGE - (high - low)) / 2  # curves that hardly differ are drawn as flat as they are
    axes.set_ylim(low - spare, high + spare)
    _dress(axes, "media time", "cosine")
    axes.xaxis.set_major_formatter(lambda value, _: drawing.clock(value, tenths=True))
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.03), fontsize=8, frameon=False, handlelength=1.8)
    return _png(figure)


def ranking_png(best_rank: Ints, offset: Ints, n_entries: int, tolerance: Tolerance = Tolerance()) -> bytes:
    """How often the annotated word is among the first k entries (P,), and where it was found from its label (P,)."""
    figure = drawing.blank_figure(9.0, 3.2, _DPI)
    left, right = figure.add_axes((0.08, 0.17, 0.38, 0.7)), figure.add_axes((0.58, 0.17, 0.38, 0.7))
    k = np.arange(1, max(2, n_entries) + 1)
    left.step(k, [100 * float((best_rank <= one).mean()) for one in k], where="post", color=COLOURS[0], linewidth=1.6)
    left.set_xscale("log")
    left.set_xlim(1, k[-1])
    left.set_ylim(0, 102)
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _dress(left, "among the first k entries", "% of passages")
    write_text(left, 0, 1.05, "the annotated word", size=10, weight="bold", transform=left.transAxes)
    shown = np.clip(offset, -_MOST_FRAMES, _MOST_FRAMES)
    right.hist(shown, bins=list(range(-_MOST_FRAMES, _MOST_FRAMES + 6, 5)), color=COLOURS[0])
    right.axvspan(-tolerance.before, tolerance.after, color=FOUND, alpha=FOUND_ALPHA, linewidth=0)
    _dress(right, "found minus annotated frame (green: right)", "passages")
    write_text(right, 0, 1.05, "the word is known: where is it?", size=10, weight="bold", transform=right.transAxes)
    return _png(figure)


def search_png(precision: Floats, recall: Floats, alarms_per_hour: Floats) -> bytes:
    """Precision over recall, and recall over false alarms an hour; all (T,), from the strictest threshold down."""
    figure = drawing.blank_figure(9.0, 3.2, _DPI)
    left, right = figure.add_axes((0.08, 0.17, 0.38, 0.7)), figure.add_axes((0.58, 0.17, 0.38, 0.7))
    left.plot(100 * recall, 100 * precision, color=COLOURS[0], linewidth=1.6)
    left.set_xlim(0, 102)
    left.set_ylim(0, 102)
    _dress(left, "recall, %", "precision, %")
    write_text(left, 0, 1.05, "precision and recall", size=10, weight="bold", transform=left.transAxes)
    right.plot(np.maximum(alarms_per_hour, 0.1), 100 * recall, color=NOT_FOUND, linewidth=1.6)
    right.set_xscale("log")
    right.set_ylim(0, 102)
    right.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _dress(right, "false alarms an hour, all words together", "recall, %")
    write_text(right, 0, 1.05, "false alarms", size=10, weight="bold", transform=right.transAxes)
    return _png(figure)


def _dress(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=8.5, color=FAINT_INK)
    axes.set_ylabel(y, fontsize=8.5, color=FAINT_INK)
    axes.tick_params(labelsize=8, color=FAINT_INK, labelcolor=FAINT_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT_INK)


def _with_gaps(cosine: FloatArray) -> Floats:
    return np.where(np.isfinite(cosine), cosine, np.nan).astype(np.float64)


def _png(figure: Figure) -> bytes:
    written = BytesIO()
    figure.savefig(written, format="png", dpi=_DPI, metadata={"Software": None})
    return written.getvalue()
