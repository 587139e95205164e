"""The best consistent explanation of subtitles by signs: exact, over all candidates of a video together.

Every mention of a word in a subtitle has candidates, each a span of frames with a score. Chosen are those of the
highest total score such that no two spans share a frame and no mention is explained twice; candidates that score
nothing or less are never chosen.

It is an integer programme, solved to the optimum however long that takes: one variable for each candidate, and at most
one candidate of each mention and at each moment. Candidates that exclude each other neither directly nor through others
are separate programmes. Where totals are equal the answer is the same everywhere: a candidate counts up to 1e-8 more
the earlier it comes, by its span and then by its mention.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from signspot.domain.results import Spotting
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray, Floats

_EARLIER = 1e-8  # of a score: breaks ties
_UNIT = 1e-6  # of a score: what the solver counts in
_EXACT = {"mip_rel_gap": 0.0}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a mention may be signed."""

    mention: int  # which mention it would explain
    span: FrameSpan
    score: float  # above 0 to be worth choosing


def best_explanation(candidates: Sequence[Candidate]) -> tuple[int, ...]:
    """Which candidates are chosen, as their places in the sequence, in order of time."""
    from scipy.sparse.csgraph import connected_components  # only here: it loads slowly

    useful = [place for place, one in enumerate(candidates) if one.score > 0 and len(one.span)]
    useful.sort(key=lambda place: (candidates[place].span, candidates[place].mention, place))
    if not useful:
        return ()
    rows, columns = _exclusions([candidates[place] for place in useful])
    n_rows, scores = int(rows.max()) + 1, np.array([candidates[place].score for place in useful])
    labels = connected_components(_table(rows + len(useful), columns, (n_rows + len(useful),) * 2), directed=False)[1]
    table = _table(rows, columns, (n_rows, len(useful)))
    members = labels[: len(useful)]
    order = np.argsort(members, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(members[order])) + 1)
    chosen = np.concatenate([part[_best(scores[part], table[:, part])] for part in parts])
    return tuple(useful[place] for place in np.sort(chosen))


def _exclusions(ones: Sequence[Candidate]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Which candidates exclude each other, as pairs of a row and a candidate: a row for each mention and each start.

    Spans that share a frame share the later of their starts.
    """
    mentions, mention = np.unique([one.mention for one in ones], return_inverse=True)
    starts = np.unique([one.span.start for one in ones])
    first, stop = (np.searchsorted(starts, [getattr(one.span, end) for one in ones]) for end in ("start", "stop"))
    busy = [np.arange(a, b) + len(mentions) for a, b in zip(first, stop, strict=True)]
    columns = np.arange(len(ones))
    return np.concatenate([mention, *busy]), np.concatenate([columns, np.repeat(columns, stop - first)])


def _table(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], shape: tuple[int, int]) -> Any:
    from scipy.sparse import csc_array

    return csc_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _best(scores: Floats, table: Any) -> npt.NDArray[np.bool_]:
    """Of candidates in order (n,), those of the highest total, at most one in each row of the table (rows, n)."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    if len(scores) == 1:
        return np.ones(1, np.bool_)
    value = scores + _EARLIER * np.exp(-np.arange(len(scores)) / len(scores))
    at_most_one = LinearConstraint(table[table.sum(axis=1) > 1], -np.inf, 1)
    # The solver lets go what gains less than 1e-6: larger units make that next to nothing.
    answer = milp(-value / _UNIT, constraints=at_most_one, integrality=1, bounds=Bounds(0, 1), options=_EXACT)
    if answer.status != 0:
        raise RuntimeError(f"no best choice among {len(scores)} candidates: {answer.message}")
    return np.asarray(answer.x > 0.5)


# Which word a moment belongs to, where several words are known to be signed, as those of one subtitle. Alone, a word is
# where it is most similar. Among others, a moment that resembles another word as much says little: *eat* is in *lunch*,
# too, and before the face many signs look alike. Each moment is therefore shared among the words by how similar they
# are (experiments/landmark_model/places.py says what that brings).

_SOFTNESS = 0.2  # of a cosine: a word that is so much less similar has a third of the share


def shares(cosine: FloatArray) -> FloatArray:
    """The share of each word in each moment: (n_windows, n_words), rows add up to 1; none where nothing was compared.

    >>> shares(np.array([[0.5, 0.5], [0.5, -np.inf], [-np.inf, -np.inf]], np.float32)).tolist()
    [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]
    """
    known = np.isfinite(cosine)
    level = np.where(known, cosine, -1)
    weight = np.exp((level - level.max(axis=1, keepdims=True)) / _SOFTNESS) * known
    share: FloatArray = (weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-9)).astype(np.float32)
    return share


def likely_windows(cosine: FloatArray) -> npt.NDArray[np.int64]:
    """Of cosines (n_windows, n_words), the window where each word is, if it is anywhere: (n_words,)."""
    windows: npt.NDArray[np.int64] = ((np.where(np.isfinite(cosine), cosine, -1) + 1) * shares(cosine)).argmax(axis=0)
    return windows


# How far signing lies behind its subtitles, and whether that changes in the course of a video. The lag of a finding is
# the middle of the sign minus the middle of the subtitle that mentions it, positive where signing comes later. A sign
# lies anywhere in its sentence, so a single lag says little; the line through all of them, fitted so that a third of
# wrong findings does not move it, gives lag and drift.

FEWEST = 8  # findings; fewer draw no line
_MOST_PAIRS = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class SubtitleLag:
    """The lags of all findings, and the line through them."""

    times_ms: Floats  # (n,) of the subtitles' middles, rising
    lags_ms: Floats  # (n,)
    lag_ms: float | None  # in the middle of the video; None: too few findings
    drift: float | None  # lag gained per time passed, such as 0.001

    def line_ms(self, times_ms: Floats) -> Floats:
        """The fitted lag at any time; nothing where no line was fitted."""
        if self.lag_ms is None or self.drift is None:
            return np.full(len(times_ms), np.nan)
        return np.asarray(self.lag_ms + self.drift * (times_ms - _middle(self.times_ms)))

    @classmethod
    def of(cls, spottings: Iterable[Spotting]) -> Self:
        """The lag of the findings that came from a subtitle; the line is that of Theil and Sen."""
        spans = (
            (one.provenance.subtitle.span_ms, one.span_ms) for one in spottings if one.provenance.subtitle is not None
        )
        pairs = sorted(((said.start + said.stop) / 2, (signed.start + signed.stop) / 2) for said, signed in spans)
        times = np.array([time for time, _ in pairs], np.float64)
        lags = np.array([signed - time for time, signed in pairs], np.float64)
        if len(pairs) < FEWEST or times[0] == times[-1]:
            return cls(times, lags, None, None)
        drift = _median_slope(times, lags)
        lag = float(np.median(lags - drift * (times - _middle(times))))
        return cls(times, lags, lag, drift)


def _median_slope(times: Floats, lags: Floats) -> float:
    """The median of the slopes between all pairs of findings, or, of thousands, between evenly drawn ones."""
    first, second = np.triu_indices(len(times), 1)
    if len(first) > _MOST_PAIRS:
        drawn = np.linspace(0, len(first) - 1, _MOST_PAIRS).astype(np.int64)
        first, second = first[drawn], second[drawn]
    apart = times[second] - times[first]
    use = apart > 0
    return float(np.median((lags[second] - lags[first])[use] / apart[use]))


def _middle(times: Floats) -> float:
    return float((times[0] + times[-1]) / 2) if len(times) else 0.0
