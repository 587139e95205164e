"""The figure of one example: the sign as it was filmed, its dictionary clip, and similarity over time per method.

As in the paper's figures, a curve stands for a dictionary clip of the word, and a bar marks where the word is signed.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from signspot.domain.results import WordAnswer
from signspot.domain.spans import MillisSpan
from signspot.domain.tracks import Pixels
from signspot.media import drawing
from signspot.media.drawing import FAINT_INK, FOUND, FOUND_ALPHA, INK, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 110
_LEAST_RANGE = 0.02  # of the cosine axis
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


def example_png(example: Example) -> bytes:
    """The figure as PNG; the same bytes for the same example."""
    n_strips, n_panels = len(example.strips), len(example.panels)
    height = _TOP + n_strips * (_STRIP + _GAP) + n_panels * (_PANEL + _GAP) + _BOTTOM - _GAP
    figure = drawing.blank_figure(_WIDTH, height, _DPI)
    top = height - _TOP
    for caption, pixels in example.strips:
        _show_strip(figure, caption, pixels, top / height)
        top -= _STRIP + _GAP
    for panel in example.panels:
        box = (_LEFT / _WIDTH, (top - _PANEL) / height, (_WIDTH - _LEFT - _RIGHT) / _WIDTH, _PANEL / height)
        _paint(figure.add_axes(box), panel, example)
        top -= _PANEL + _GAP
    written = BytesIO()
    figure.savefig(written, format="png", dpi=_DPI, metadata={"Software": None})
    return written.getvalue()


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
    low, high = axes.get_ylim()
    spare = max(0.0, _LEAST_RANGE - (high - low)) / 2  # curves that hardly differ are drawn as flat as they are
    axes.set_ylim(low - spare, high + spare)
    axes.set_xlim(start, stop)
    axes.set_ylabel("cosine", fontsize=8, color=FAINT_INK)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=8, frameon=False, handlelength=1.4)
    axes.tick_params(labelsize=8, color=FAINT_INK, labelcolor=FAINT_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT_INK)
    axes.xaxis.set_major_formatter(lambda value, _: drawing.clock(value))
    write_text(axes, 0, 1.05, panel.name, size=10, weight="bold", transform=axes.transAxes)
