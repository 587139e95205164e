"""What every picture of an answer shares: curves, colours, spans, letters and clocks.

matplotlib is imported inside the functions that draw, and used only through its object interface: no windows, no state
that figures share. Times inside the figures are seconds of media time.
"""

from __future__ import annotations

import logging
import os
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from signspot.domain.recordings import Entry
from signspot.domain.results import VideoAnswer, WordAnswer
from signspot.domain.tracks import FloatArray, Floats
from signspot.errors import EnvironmentProblem
from signspot.files.atomic import own_folder, refuse_unwritable
from signspot.interrupts import gone_at_the_end

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

_MAX_CURVES = 8  # more cannot be told apart
# Okabe and Ito's palette, which colour-blind readers can tell apart. Its green is kept for what was found.
COLOURS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00", "#333333")
FOUND, NOT_FOUND, OTHERS = "#009E73", "#D55E00", "#B8B8B8"
INK, FAINT_INK, UNSEARCHED = "#222222", "#666666", "#ECECEC"
FOUND_ALPHA = 0.28
DASHES = (0, (5, 3))  # of the threshold

_TICK_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)


@dataclass(frozen=True, slots=True)
class CosineRange:
    """The part of the cosine axis that is shown, the same for all words so that they compare."""

    low: float
    high: float

    @classmethod
    def of(cls, answer: VideoAnswer) -> CosineRange:
        """All curves and the threshold, with some room above."""
        finite = [answer.threshold, 0.0]
        for word in answer.words:
            usable = word.similarity.cosine[np.isfinite(word.similarity.cosine)]
            finite += [float(usable.min()), float(usable.max())] if usable.size else []
        room = 0.08 * (max(finite) - min(finite) or 1.0)
        return cls(min(finite) - room, max(finite) + room)


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """One line of a panel: the similarity with one entry, or the highest of those that get no line of their own."""

    label: str
    colour: str
    dashes: str
    cosine: Floats  # (n_windows,); NaN where nothing could be compared
    depth: float = 3  # higher lies in front


def entry_names(entries: Sequence[Entry]) -> tuple[str, ...]:
    """What the entries of a word are called in a picture: v and the variant, or # and a number where that is no name.

    The only entry of a word needs none.
    """
    if len(entries) == 1 and not entries[0].variant:
        return ("",)
    names: list[str] = []
    for number, entry in enumerate(entries, start=1):
        name = f"v{shortened(entry.variant, 10)}" if entry.variant else ""
        names.append(f"{name} #{number}".strip() if not name or name in names else name)
    return tuple(names)


def curves(answer: WordAnswer) -> list[_Curve]:
    """The lines of a word, one for each entry; of many the highest, and one line (such as +5) for the rest."""
    cosine, names = with_gaps(answer.similarity.cosine), entry_names(answer.similarity.entries)
    n_entries = cosine.shape[1]
    drawn = list(range(n_entries))
    if n_entries > _MAX_CURVES:
        peaks = answer.similarity.cosine.max(axis=0, initial=-np.inf)
        drawn = sorted(np.argsort(-peaks, kind="stable")[: _MAX_CURVES - 1].tolist())
    lines = [
        _Curve(names[entry], COLOURS[place % len(COLOURS)], "-" if place < len(COLOURS) else "-.", cosine[:, entry])
        for place, entry in enumerate(drawn)
    ]
    if len(drawn) < n_entries:
        rest = np.delete(answer.similarity.cosine, drawn, axis=1).max(axis=1)
        lines.append(_Curve(f"+{n_entries - len(drawn)}", OTHERS, "-", with_gaps(rest), depth=2.5))
    return lines


def pooled(times: Floats, values: Floats, n_columns: int) -> tuple[Floats, Floats]:
    """Thin a curve to `n_columns` points: of each stretch of time the highest value, so that peaks stay."""
    if len(times) <= 2 * n_columns:
        return times, values
    column = ((times - times[0]) / (np.ptp(times) or 1.0) * n_columns).astype(np.int64)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    # Within a column the highest comes last; a column without any usable value stays a gap.
    order = np.lexsort((np.where(np.isnan(values), -np.inf, values), column))
    highest = order[np.append(starts[1:], len(times)) - 1]
    return times[highest], values[highest]


def tick_step(seconds: float, at_most: int) -> float:
    """The round number of seconds between the ticks of an axis of `seconds` with at most that many."""
    return next((step for step in _TICK_STEPS if seconds / step <= at_most), seconds / at_most)


@cache
def matplotlib_folder() -> Path:
    """Where matplotlib keeps its list of fonts: as the user says, else beside what we keep, else for this run only."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells of folders and of fonts
    if chosen := os.environ.get("MPLCONFIGDIR"):
        return Path(chosen)
    try:
        folder = own_folder(os.environ, "XDG_CACHE_HOME", ".cache") / "signspot" / "matplotlib"
        refuse_unwritable(folder)
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the store lies there too
    except (EnvironmentProblem, OSError):
        folder = Path(tempfile.mkdtemp(prefix="signspot-matplotlib-"))
        gone_at_the_end(folder)
    return folder


def blank_figure(width_inches: float, height_inches: float, dpi: float) -> Figure:
    os.environ["MPLCONFIGDIR"] = str(matplotlib_folder())
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width_inches, height_inches), dpi=dpi, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def write_text(parent: Axes | Figure, x: float, y: float, text: str, **style: Any) -> Text:
    """Write text as it is: no formulas, no line breaks, and a box for a letter that no font on the machine has."""
    families, drawable = _fonts_for(text)
    return parent.text(x, y, drawable, family=list(families), parse_math=False, **{"color": INK, **style})


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def paint_word(axes: Axes, word: WordAnswer, lines: list[_Curve], threshold: float, thickness: float = 1.5) -> None:
    """Draw everything of a word that lies inside the axes: spans, threshold and curves."""
    start, stop = axes.get_xlim()
    _shade(axes, _unsearched(word, start, stop), color=UNSEARCHED, zorder=0)
    _shade(axes, found_spans(word, start, stop), color=FOUND, alpha=FOUND_ALPHA, zorder=1)
    axes.axhline(threshold, color=FAINT_INK, linewidth=1, linestyle=DASHES, zorder=2)
    times = word.similarity.times_ms / 1000
    first, last = np.searchsorted(times, (start, stop))
    near = slice(max(0, int(first) - 8), int(last) + 8)  # lines go on beyond the edges
    n_columns = int(axes.get_window_extent().width)
    if len(times[near]) > 2 * n_columns:
        thickness /= 2
    for line in lines:
        when, cosine = pooled(times[near], line.cosine[near], n_columns)
        style: dict[str, Any] = {"color": line.colour, "zorder": line.depth}
        axes.plot(when, cosine, line.dashes, linewidth=thickness, label=line.label, **style)
        usable = np.pad(np.isfinite(cosine), 1)
        alone = usable[1:-1] & ~usable[:-2] & ~usable[2:]  # a line would not show a point without neighbours
        axes.plot(when[alone], cosine[alone], "o", markersize=2.5 * thickness, **style)


def _shade(axes: Axes, stretches: Iterable[tuple[float, float]], **style: Any) -> None:
    # A second of an hour is narrower than a pixel: two are the least that can be seen.
    least = 2 * float(np.ptp(axes.get_xlim())) / axes.get_window_extent().width
    bars = [(start, max(stop - start, least)) for start, stop in stretches]
    axes.broken_barh(bars, (0, 1), transform=axes.get_xaxis_transform(), linewidth=0, **style)


def found_spans(word: WordAnswer, start: float, stop: float) -> Iterator[tuple[float, float]]:
    """The found spans that can be seen between `start` and `stop`, all in seconds."""
    for spotting in word.spottings:
        span = spotting.span_ms
        if span.start / 1000 < stop and span.stop / 1000 > start:
            yield span.start / 1000, span.stop / 1000


def _unsearched(word: WordAnswer, start: float, stop: float) -> Iterator[tuple[float, float]]:
    """The gaps between the searched passages, in seconds."""
    if word.searched_ms is None:
        return
    for span in sorted(word.searched_ms):
        if span.start / 1000 > start:
            yield start, min(span.start / 1000, stop)
        start = max(start, span.stop / 1000)
    if start < stop:
        yield start, stop


def with_gaps(cosine: FloatArray) -> Floats:
    """NaN in place of what could not be compared: lines break there."""
    return np.where(np.isfinite(cosine), cosine, np.nan).astype(np.float64)


@lru_cache(maxsize=1024)
def _fonts_for(text: str) -> tuple[tuple[str, ...], str]:
    """The fonts to draw `text` with, and the text with a box in place of what none of them has."""
    families, drawable = ["DejaVu Sans"], ""
    for letter in text:
        is_visible = letter.isprintable() or unicodedata.category(letter) == "Co"
        family = _font_with(letter) if is_visible else None
        if family is not None and family not in families:
            families.append(family)
        drawable += letter if family is not None else "□"
    return tuple(families), drawable


@lru_cache(maxsize=4096)
def _font_with(letter: str) -> str | None:
    from matplotlib import get_data_path
    from matplotlib.font_manager import findfont, fontManager
    from matplotlib.ft2font import FT2Font

    if FT2Font(findfont("DejaVu Sans")).get_char_index(ord(letter)):
        return "DejaVu Sans"
    for font in fontManager.ttflist:
        # HamNoSys lives in the private-use area, where other fonts (matplotlib's symbols too) have other things.
        is_foreign = unicodedata.category(letter) == "Co" and "hamnosys" not in font.name.lower()
        if is_foreign or font.fname.startswith(get_data_path()):
            continue
        try:
            face = FT2Font(font.fname)
        except (OSError, RuntimeError):  # a damaged font file on the machine
            continue
        if face.scalable and face.get_char_index(ord(letter)):
            return str(font.name)
    return None
