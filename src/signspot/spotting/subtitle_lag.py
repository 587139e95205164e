"""How far signing lies behind its subtitles, and whether that changes in the course of a video.

The lag of a finding is the middle of the sign minus the middle of the subtitle that mentions it, positive where signing
comes later. A sign lies anywhere in its sentence, so a single lag says little; the line through all of them, fitted so
that a third of wrong findings does not move it, gives lag and drift.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from signspot.domain.results import Spotting
from signspot.evaluation.ranking import Floats

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


def subtitle_lag(spottings: Iterable[Spotting]) -> SubtitleLag:
    """The lag of the findings that came from a subtitle; the line is that of Theil and Sen."""
    pairs = sorted(
        (_middle_ms(subtitle.span_ms.start, subtitle.span_ms.stop), _middle_ms(one.span_ms.start, one.span_ms.stop))
        for one in spottings
        if (subtitle := one.provenance.subtitle) is not None
    )
    times = np.array([time for time, _ in pairs], np.float64)
    lags = np.array([signed - time for time, signed in pairs], np.float64)
    if len(pairs) < FEWEST or times[0] == times[-1]:
        return SubtitleLag(times, lags, None, None)
    drift = _median_slope(times, lags)
    lag = float(np.median(lags - drift * (times - _middle(times))))
    return SubtitleLag(times, lags, lag, drift)


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


def _middle_ms(start: int, stop: int) -> float:
    return (start + stop) / 2
