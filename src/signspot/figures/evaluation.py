"""Figures of an evaluation: how high the right word ranks, where it is found, what a search finds, single cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from signspot.domain.results import WordAnswer
from signspot.domain.time import FRAME_MS, MillisSpan, Tolerance, clock
from signspot.domain.tracks import FloatArray, Floats, Ints, Pixels
from signspot.errors import InputError
from signspot.figures import drawing
from signspot.figures.drawing import COLOURS, FAINT_INK, FOUND, FOUND_ALPHA, INK, NOT_FOUND, write_text
from signspot.files.atomic import atomic_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 110
_LEAST_RANGE = 0.02  # of the cosine axis
_MOST_FRAMES = 150  # of the histogram of offsets, either way


@dataclass(frozen=True, slots=True, eq=False)
class CaseFigure:
    """Similarity over one passage."""

    centres: Ints  # (n_windows,) frames
    own: FloatArray  # (n_windows, m) cosine with each entry of the annotated word
    other: FloatArray | None  # (n_windows,) cosine with the best entry of another word
    label_frame: int
    tolerance: Tolerance = Tolerance()

    def png(self) -> bytes:
        """The curves of a passage, the annotated time as a bar, the highest point as a circle."""
        figure = drawing.blank_figure(9.0, 2.7, _DPI)
        axes = figure.add_axes((0.075, 0.19, 0.70, 0.75))
        seconds = self.centres * FRAME_MS / 1000
        peaks = self.own.max(axis=0, initial=-np.inf)
        drawn = np.sort(np.argsort(-peaks, kind="stable")[: len(COLOURS)])
        for place, column in enumerate(drawn):
            line = drawing.with_gaps(self.own[:, column])
            axes.plot(seconds, line, color=COLOURS[place], linewidth=1.5, label=f"v{column + 1}")
        if self.other is not None:
            line = drawing.with_gaps(self.other)
            axes.plot(seconds, line, color=FAINT_INK, linewidth=1.1, linestyle=drawing.DASHES, label="other word")
        near = self.tolerance.around(self.label_frame)
        start, stop = near.start * FRAME_MS / 1000, (near.stop - 1) * FRAME_MS / 1000
        axes.axvspan(start, stop, color=FOUND, alpha=FOUND_ALPHA, linewidth=0)
        axes.axvline(self.label_frame * FRAME_MS / 1000, color=FOUND, linewidth=1.2)
        best = self.own.max(axis=1, initial=-np.inf)
        if np.isfinite(best).any():
            top = int(best.argmax())
            axes.plot(seconds[top], best[top], "o", color=INK, markersize=6, markerfacecolor="white", zorder=5)
        if len(seconds) > 1:
            axes.set_xlim(seconds[0], seconds[-1])
        _flatten(axes)
        _dress(axes, "media time", "cosine")
        axes.xaxis.set_major_formatter(lambda value, _: clock(1000 * value, 1))
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
    _plain(axes, 8)
    axes.spines[["left", "bottom"]].set_color(FAINT_INK)


def _flatten(axes: Axes) -> None:
    """Curves that hardly differ are drawn as flat as they are."""
    low, high = axes.get_ylim()
    spare = max(0.0, _LEAST_RANGE - (high - low)) / 2
    axes.set_ylim(low - spare, high + spare)


def _png(figure: Figure) -> bytes:
    written = BytesIO()
    figure.savefig(written, format="png", dpi=_DPI, metadata={"Software": None})
    return written.getvalue()


# The figure of one example: the sign as it was filmed, its dictionary clip, and similarity over time per method. As in
# the paper's figures, a curve stands for a dictionary clip of the word, and a bar marks where the word is signed.

# In inches.
_WIDTH, _LEFT, _RIGHT, _TOP, _STRIP, _PANEL, _GAP, _BOTTOM = 9.0, 0.65, 0.7, 0.3, 0.85, 1.25, 0.52, 0.5


@dataclass(frozen=True, slots=True)
class Panel:
    """The curves of one method."""

    name: str
    word: WordAnswer


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One word in one stretch of a video."""

    span_ms: MillisSpan  # what is shown
    truth_ms: tuple[MillisSpan, ...]  # where the word is signed
    panels: tuple[Panel, ...]
    strips: tuple[tuple[str, Pixels], ...]  # pictures (H, W, 3) with their captions

    def png(self) -> bytes:
        n_strips, n_panels = len(self.strips), len(self.panels)
        height = _TOP + n_strips * (_STRIP + _GAP) + n_panels * (_PANEL + _GAP) + _BOTTOM - _GAP
        figure = drawing.blank_figure(_WIDTH, height, _DPI)
        top = height - _TOP
        for caption, pixels in self.strips:
            _show_strip(figure, caption, pixels, top / height)
            top -= _STRIP + _GAP
        for panel in self.panels:
            box = (_LEFT / _WIDTH, (top - _PANEL) / height, (_WIDTH - _LEFT - _RIGHT) / _WIDTH, _PANEL / height)
            _paint(figure.add_axes(box), panel, self)
            top -= _PANEL + _GAP
        return _png(figure)


def _show_strip(figure: Figure, caption: str, pixels: Pixels, top: float) -> None:
    height = figure.get_figheight()
    width = min(_WIDTH - _LEFT - _RIGHT, _STRIP * pixels.shape[1] / pixels.shape[0])
    axes = figure.add_axes((_LEFT / _WIDTH, top - _STRIP / height, width / _WIDTH, _STRIP / height))
    axes.imshow(pixels, aspect="auto", interpolation="bilinear")
    axes.set_axis_off()
    write_text(figure, _LEFT / _WIDTH, top + 0.05 / height, caption, size=9, color=FAINT_INK)


def _paint(axes: Axes, panel: Panel, example: Example) -> None:
    """The curves between the ends of the example, the truth, and the highest point: what the method would answer."""
    similarity, start, stop = panel.word.similarity, example.span_ms.start / 1000, example.span_ms.stop / 1000
    times = similarity.times_ms / 1000
    shown = (times >= start) & (times < stop)
    for line in drawing.curves(panel.word):
        axes.plot(times[shown], line.cosine[shown], line.dashes, color=line.colour, linewidth=1.4, label=line.label)
    for span in example.truth_ms:
        axes.axvspan(span.start / 1000, span.stop / 1000, color=FOUND, alpha=FOUND_ALPHA, linewidth=0, zorder=0)
    best = np.where(shown, similarity.best, -np.inf)
    if np.isfinite(best.max(initial=-np.inf)):
        peak = int(best.argmax())
        axes.plot(times[peak], best[peak], "o", color=INK, markersize=5, markerfacecolor="white", zorder=5)
    _flatten(axes)
    axes.set_xlim(start, stop)
    axes.set_ylabel("cosine", fontsize=8, color=FAINT_INK)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=8, frameon=False, handlelength=1.4)
    _plain(axes, 8)
    axes.spines[["left", "bottom"]].set_color(FAINT_INK)
    axes.xaxis.set_major_formatter(lambda value, _: clock(1000 * round(value)))
    write_text(axes, 0, 1.05, panel.name, size=10, weight="bold", transform=axes.transAxes)


# Figures of trust: whether probabilities keep their promise, false alarms asked for and counted, subtitles and lag.

_PRESENCE_DPI = 140


@dataclass(frozen=True, slots=True, eq=False)
class LagFigure:
    """How far each sign lies behind the subtitle that mentions it, and the line through all."""

    times_ms: Floats  # (n,) rising
    lags_ms: Floats  # (n,)
    line_ms: Floats  # (n,) not numbers where no line was drawn

    def plot(self, title: str, path: Path, *, overwrite: bool = False) -> None:
        figure = drawing.blank_figure(9, 4, _PRESENCE_DPI)
        axes = figure.add_axes((0.09, 0.14, 0.88, 0.72))
        seconds = self.times_ms / 1000
        axes.plot(seconds, self.lags_ms / 1000, "o", color=FOUND, markersize=4, alpha=0.6, markeredgewidth=0)
        if len(self.line_ms) and np.isfinite(self.line_ms).all():
            axes.plot(seconds, self.line_ms / 1000, color=INK, linewidth=1.8)
        axes.axhline(0, color=FAINT_INK, linewidth=0.8)
        axes.set_xlabel("media time (s)", color=FAINT_INK, fontsize=9)
        axes.set_ylabel("sign after subtitle (s)", color=FAINT_INK, fontsize=9)
        _plain(axes)
        write_text(figure, 0.09, 0.93, drawing.shortened(title, 90), size=10, color=FAINT_INK)
        _write(figure, path, overwrite)


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


def plot_calibration(
    reliabilities: Mapping[str, ReliabilityFigure],
    alarms: Mapping[str, AlarmFigure],
    path: Path,
    *,
    overwrite: bool = False,
) -> None:
    figure = drawing.blank_figure(10, 4.6, _PRESENCE_DPI)
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


def _plain(axes: Axes, size: int = 9) -> None:
    axes.tick_params(labelsize=size, color=FAINT_INK, labelcolor=FAINT_INK)
    axes.spines[["top", "right"]].set_visible(False)


def _write(figure: Figure, path: Path, overwrite: bool) -> None:
    if path.suffix.lower() != ".png":
        raise InputError(path, "is not the name of a picture", "use a name that ends in .png")
    with atomic_output(path, overwrite=overwrite) as temporary:
        figure.savefig(temporary, format="png", dpi=_PRESENCE_DPI)
