"""The figure of an answer for a talk or a paper: similarity over media time, one panel per word."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from signspot.domain.results import Spotting, VideoAnswer, WordAnswer
from signspot.domain.time import clock
from signspot.errors import InputError
from signspot.figures import drawing
from signspot.figures.drawing import FAINT_INK, FOUND, INK, shortened, write_text
from signspot.files.atomic import atomic_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_MAX_PANELS = 30
SUFFIXES = (".png", ".svg", ".pdf")
_DATELESS: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_DPI = 160
# In inches.
_WIDTH, _LEFT, _RIGHT = 11.0, 0.75, 0.95
_TOP, _HEADER, _PANEL, _GAP, _BOTTOM = 0.4, 0.62, 1.75, 0.3, 0.75


def plot_answer(answer: VideoAnswer, path: Path, *, overwrite: bool = False) -> None:
    """Write the figure of an answer as PNG, SVG or PDF, by the suffix of `path`."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(path, "is not the name of a picture", f"use a name that ends in {', '.join(SUFFIXES)}")
    with atomic_output(path, overwrite=overwrite) as temporary:
        figure = _answer_figure(answer)
        from matplotlib import rc_context

        # Without a salt of its own every SVG gets random ids, and the same answer other bytes.
        with rc_context({"svg.hashsalt": "signspot"}):
            figure.savefig(temporary, format=suffix[1:], dpi=_DPI, metadata=_DATELESS[suffix])


def _answer_figure(answer: VideoAnswer) -> Figure:
    shown = answer.words[:_MAX_PANELS]
    height = _TOP + len(shown) * (_HEADER + _PANEL) + max(0, len(shown) - 1) * _GAP + _BOTTOM
    figure = drawing.blank_figure(_WIDTH, height, _DPI)
    span_seconds = (0.0, max(answer.duration_ms, 40) / 1000)
    cosines = drawing.CosineRange.of(answer)
    for place, word in enumerate(shown):
        top = height - _TOP - place * (_HEADER + _PANEL + _GAP) - _HEADER
        box = (_LEFT / _WIDTH, (top - _PANEL) / height, (_WIDTH - _LEFT - _RIGHT) / _WIDTH, _PANEL / height)
        axes = figure.add_axes(box, xlim=span_seconds, ylim=(cosines.low, cosines.high))
        drawing.paint_word(axes, word, drawing.curves(word), answer.threshold)
        _annotate_panel(axes, word, answer.threshold)
        _set_ticks(axes, span_seconds[1], is_last=place == len(shown) - 1)
    _title(figure, answer, height)
    _key(figure, height, answer.threshold, has_gaps=any(word.searched_ms is not None for word in shown))
    return figure


def _annotate_panel(axes: Axes, word: WordAnswer, threshold: float) -> None:
    write_text(axes, 0, 1.2, shortened(word.word, 60), size=13, weight="bold", va="bottom", transform=axes.transAxes)
    verdict = _verdict(word, threshold)
    colour = FOUND if word.spottings else drawing.NOT_FOUND
    write_text(axes, 1, 1.22, verdict, size=10, color=colour, ha="right", va="bottom", transform=axes.transAxes)
    axes.set_ylabel("cosine", fontsize=9, color=FAINT_INK)
    if any(drawing.entry_names(word.similarity.entries)):
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.005, 1.03), "borderaxespad": 0}
        axes.legend(**beside, fontsize=8, frameon=False, handlelength=1.6, labelspacing=0.3)
    ranked = sorted(word.spottings, key=lambda spotting: -spotting.cosine)
    peaks = [_peak_seconds(word, spotting) for spotting in ranked]
    heights = [spotting.cosine for spotting in ranked]
    axes.plot(peaks, heights, "o", color=INK, markersize=4.5, markerfacecolor="white", zorder=5)
    taken: list[Bbox] = []
    for spotting in ranked[:200]:  # of more, hardly one would find room
        _label_peak(axes, word, spotting, taken)


def _label_peak(axes: Axes, word: WordAnswer, spotting: Spotting, taken: list[Bbox]) -> None:
    """Label a peak above the panel, unless that would cover the label of a higher one."""
    seconds = _peak_seconds(word, spotting)
    share = seconds / axes.get_xlim()[1]
    side = "left" if share < 0.08 else "right" if share > 0.92 else "center"
    named = dict(zip(word.similarity.entry_ids, drawing.entry_names(word.similarity.entries), strict=True))
    variant = named.get(spotting.entry_id, shortened(spotting.entry_id, 18))
    said = " ".join((*f"{shortened(word.word, 18)} {variant}".split(), f"{spotting.cosine:.2f}"))
    label = write_text(axes, seconds, 1.03, said, size=8.5, ha=side, va="bottom", transform=axes.get_xaxis_transform())
    extent = label.get_window_extent().padded(6)
    if extent.count_overlaps(taken):
        label.remove()
        return
    taken.append(extent)
    low, high = axes.get_ylim()
    axes.axvline(seconds, (spotting.cosine - low) / (high - low), 1, color=FAINT_INK, linewidth=0.7, zorder=2)


def _verdict(word: WordAnswer, threshold: float) -> str:
    best = word.best_cosine
    if best is None:
        return "not found: nothing could be compared"
    if not word.spottings:
        return f"not found: highest cosine {best:.2f}, threshold {threshold:.2f}"
    return f"found {len(word.spottings)}×, highest cosine {best:.2f}"


def _peak_seconds(word: WordAnswer, spotting: Spotting) -> float:
    axis = word.similarity.axis
    if 0 <= spotting.frame < len(axis):
        return axis.time_of(spotting.frame) / 1000
    return (spotting.span_ms.start + spotting.span_ms.stop) / 2000


def _set_ticks(axes: Axes, seconds: float, *, is_last: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

    step = drawing.tick_step(seconds, 14)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: clock(1000 * value, int(step < 1))))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(labelsize=9, color=FAINT_INK, labelcolor=FAINT_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT_INK)
    if is_last:
        axes.set_xlabel("media time", fontsize=9, color=FAINT_INK)


def _title(figure: Figure, answer: VideoAnswer, height: float) -> None:
    more = f" · {_MAX_PANELS} of {len(answer.words)} words shown" if len(answer.words) > _MAX_PANELS else ""
    partial = f" · {answer.partial}" if answer.partial else ""
    models = dict.fromkeys(spotting.provenance.model for spotting in answer)
    by = f" · model {shortened(', '.join(models), 40)}" if models else ""
    said = f"{shortened(answer.video_id, 80)} · {clock(1000 * round(answer.duration_ms / 1000))}{by}{partial}{more}"
    write_text(figure, _LEFT / _WIDTH, 1 - 0.12 / height, said, size=10, color=FAINT_INK, va="top")


def _key(figure: Figure, height: float, threshold: float, *, has_gaps: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    signs: list[Any] = [
        Patch(color=FOUND, alpha=drawing.FOUND_ALPHA, linewidth=0, label="found"),
        Line2D([], [], color=FAINT_INK, linewidth=1, linestyle=drawing.DASHES, label=f"threshold {threshold:.2f}"),
    ]
    if has_gaps:
        signs.append(Patch(color=drawing.UNSEARCHED, linewidth=0, label="not searched"))
    anchor = (1 - _RIGHT / _WIDTH, 0.1 / height)
    figure.legend(handles=signs, loc="lower right", bbox_to_anchor=anchor, ncols=3, fontsize=9, frameon=False)
