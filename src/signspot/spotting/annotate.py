"""The best consistent explanation of subtitles by signs: exact, over all candidates of a video together.

Every mention of a word in a subtitle has candidates, each a span of frames with a score. Chosen are those of the
highest total score such that no two spans share a frame and no mention is explained twice; candidates that score
nothing or less are never chosen.

Without the mentions this would be the scheduling of intervals, which one pass solves. So every mention gets a price
that each of its candidates pays, and the price rises where a mention is taken twice. The priced schedule is never worse
than the truth: candidates that cannot belong to anything better than what is known already are struck out. Among the
few that remain, a dynamic programme in the order of starts finds the best: a state is when the last span ended and
which mentions, among those with candidates to come, are explained. It is exact while there are at most 2,000 states; in
larger tangles the least promising are let go.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from signspot.domain.results import Spotting
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray
from signspot.evaluation.ranking import Floats

_ROUNDS = 120  # of pricing
_MOST_STATES = 2000  # more are not followed up: only tangles of hundreds of candidates have as many
_EQUAL = 1e-9  # scores that differ by less are equal


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a mention may be signed."""

    mention: int  # which mention it would explain
    span: FrameSpan
    score: float  # above 0 to be worth choosing


@dataclass(frozen=True, slots=True)
class _State:
    """An explanation of what lies before: `chain` is the last choice and, within, those before it."""

    following: int  # the first candidate that starts after its end
    score: float
    paid: float  # the prices of its mentions that have candidates to come
    chain: tuple[int, object] | None


@dataclass(frozen=True, slots=True)
class _Schedule:
    """Candidates by start, what each pays, and the best that can be made of those from each place on."""

    ones: Sequence[Candidate]
    following: Sequence[int]  # of each: the first that starts after its end
    price: dict[int, float]  # of each mention
    onwards: Sequence[float]  # (n + 1,) the highest priced score of candidates from a place on

    @classmethod
    def priced(cls, ones: Sequence[Candidate], price: dict[int, float]) -> _Schedule:
        """Solve the schedule under prices."""
        starts = [one.span.start for one in ones]
        following = [bisect_left(starts, one.span.stop) for one in ones]
        onwards = [0.0] * (len(ones) + 1)
        for place in range(len(ones) - 1, -1, -1):
            gain = ones[place].score - price[ones[place].mention]
            onwards[place] = max(onwards[place + 1], gain + onwards[following[place]])
        return cls(ones, following, price, onwards)

    @property
    def bound(self) -> float:
        """No explanation scores more."""
        return self.onwards[0] + sum(self.price.values())

    def chosen(self) -> list[int]:
        """The candidates of the best priced schedule."""
        places, place = [], 0
        while place < len(self.ones):
            if self.onwards[place] > self.onwards[place + 1]:
                places.append(place)
                place = self.following[place]
            else:
                place += 1
        return places

    def reach(self) -> list[float]:
        """The most that an explanation with each candidate in it could score."""
        # The best that can be made of candidates that end before a time, by the ends.
        ends = sorted({one.span.stop for one in self.ones})
        best_until = dict.fromkeys(ends, 0.0)
        before = [0.0] * len(self.ones)
        by_end = sorted(range(len(self.ones)), key=lambda place: self.ones[place].span.stop)
        position, running = 0, 0.0
        for end in ends:
            while position < len(by_end) and self.ones[by_end[position]].span.stop == end:
                place = by_end[position]
                one = self.ones[place]
                at = bisect_right(ends, one.span.start) - 1
                before[place] = best_until[ends[at]] if at >= 0 else 0.0
                running = max(running, before[place] + one.score - self.price[one.mention])
                position += 1
            best_until[end] = running
        prices = sum(self.price.values())
        return [
            prices + before[place] + one.score - self.price[one.mention] + self.onwards[self.following[place]]
            for place, one in enumerate(self.ones)
        ]


def best_explanation(candidates: Sequence[Candidate]) -> tuple[int, ...]:
    """Which candidates are chosen, as their places in the sequence, in order of time."""
    useful = [place for place, one in enumerate(candidates) if one.score > 0 and len(one.span)]
    useful.sort(key=lambda place: (candidates[place].span, candidates[place].mention, place))
    chosen: list[int] = []
    for part in _independent(useful, candidates):
        chosen += _explained(part, candidates)
    return tuple(sorted(chosen, key=lambda place: candidates[place].span))


def _independent(useful: Sequence[int], candidates: Sequence[Candidate]) -> Iterator[list[int]]:
    """Stretches of candidates that share neither time nor a mention with those of other stretches."""
    last_of = {candidates[place].mention: number for number, place in enumerate(useful)}
    part: list[int] = []
    busy_until, linked_until = 0, -1
    for number, place in enumerate(useful):
        one = candidates[place]
        if part and one.span.start >= busy_until and number > linked_until:
            yield part
            part = []
        part.append(place)
        busy_until = max(busy_until, one.span.stop)
        linked_until = max(linked_until, last_of[one.mention])
    if part:
        yield part


def _explained(part: Sequence[int], candidates: Sequence[Candidate]) -> list[int]:
    """The best choice within one stretch."""
    ones = [candidates[place] for place in part]
    schedule, known = _priced(ones)
    least = sum(ones[place].score for place in known)
    if schedule.bound <= least + _EQUAL:
        return [part[place] for place in known]
    left = [place for place, most in enumerate(schedule.reach()) if most > least + _EQUAL]
    better = _searched(_Schedule.priced([ones[place] for place in left], schedule.price), least)
    return [part[place] for place in known] if better is None else [part[left[place]] for place in better]


def _priced(ones: Sequence[Candidate]) -> tuple[_Schedule, list[int]]:
    """Prices under which the schedule promises little more than what is known to be possible, and that."""
    price = {one.mention: 0.0 for one in ones}
    best = schedule = _Schedule.priced(ones, price)
    known: list[int] = []
    least, pace = 0.0, 1.0
    for _ in range(_ROUNDS):
        chosen = schedule.chosen()
        possible = _repaired(chosen, ones)
        if (score := sum(ones[place].score for place in possible)) > least:
            known, least = possible, score
        if schedule.bound < best.bound:
            best = schedule
        else:
            pace *= 0.8
        taken = Counter(ones[place].mention for place in chosen)
        slope = {
            mention: taken[mention] - 1
            for mention in price
            if taken[mention] != 1 and (taken[mention] or price[mention])
        }
        if best.bound <= least + _EQUAL or not slope:
            break
        step = pace * (best.bound - least) / sum(count * count for count in slope.values())
        price = {mention: max(0.0, paid + step * slope.get(mention, 0)) for mention, paid in price.items()}
        schedule = _Schedule.priced(ones, price)
    return best, known


def _repaired(chosen: Sequence[int], ones: Sequence[Candidate]) -> list[int]:
    """A consistent choice: the best of each mention among the chosen, then whatever else fits, the highest first."""
    kept: list[int] = []
    explained: set[int] = set()
    busy: list[tuple[int, int]] = []
    others = sorted(range(len(ones)), key=lambda place: -ones[place].score)
    for place in (*sorted(chosen, key=lambda place: -ones[place].score), *others):
        span = ones[place].span
        at = bisect_left(busy, (span.start, span.stop))
        is_free = (at == 0 or busy[at - 1][1] <= span.start) and (at == len(busy) or span.stop <= busy[at][0])
        if ones[place].mention not in explained and is_free:
            kept.append(place)
            explained.add(ones[place].mention)
            busy.insert(at, (span.start, span.stop))
    return sorted(kept)


def _searched(schedule: _Schedule, least: float) -> list[int] | None:
    """The best choice if it scores more than `least`; a state goes when even the priced schedule cannot save it."""
    ones, price = schedule.ones, schedule.price
    bits = {mention: 1 << number for number, mention in enumerate(dict.fromkeys(one.mention for one in ones))}
    last = {one.mention: place for place, one in enumerate(ones)}
    to_pay = sum(price[mention] for mention in bits)
    states: dict[int, list[_State]] = {0: [_State(0, 0.0, 0.0, None)]}
    best: _State | None = None
    for place, one in enumerate(ones):
        bit, own_price, is_last = bits[one.mention], price[one.mention], last[one.mention] == place
        to_pay -= own_price if is_last else 0.0
        grown: dict[int, list[_State]] = {}
        for used, fronts in states.items():
            for state in fronts:
                options = [state]
                if not used & bit and state.following <= place:
                    options.append(_taken(state, schedule, place))
                    if options[1].score > least + _EQUAL:
                        best, least = options[1], options[1].score
                for new, mentions in zip(options, (used, used | bit), strict=False):
                    if is_last and mentions & bit:
                        new, mentions = replace(new, paid=new.paid - own_price), mentions & ~bit
                    hope = schedule.onwards[max(new.following, place + 1)] + to_pay - new.paid
                    if new.score + hope > least + _EQUAL:
                        _keep(grown, mentions, new)
        states = grown if sum(map(len, grown.values())) <= _MOST_STATES else _promising(grown, schedule, place + 1)
    return None if best is None else list(_unrolled(best.chain))


def _promising(states: dict[int, list[_State]], schedule: _Schedule, place: int) -> dict[int, list[_State]]:
    """The states with the best prospects."""
    ranked = sorted(
        ((used, state) for used, fronts in states.items() for state in fronts),
        key=lambda pair: pair[1].paid - pair[1].score - schedule.onwards[max(pair[1].following, place)],
    )
    kept: dict[int, list[_State]] = {}
    for used, state in ranked[: _MOST_STATES // 2]:
        kept.setdefault(used, []).append(state)
    return kept


def _taken(state: _State, schedule: _Schedule, place: int) -> _State:
    one = schedule.ones[place]
    paid = state.paid + schedule.price[one.mention]
    return _State(schedule.following[place], state.score + one.score, paid, (place, state.chain))


def _keep(states: dict[int, list[_State]], used: int, new: _State) -> None:
    """Add a state unless one that is free earlier scores as much; drop those that it beats so."""
    fronts = states.setdefault(used, [])
    if any(old.following <= new.following and old.score >= new.score for old in fronts):
        return
    fronts[:] = [old for old in fronts if not (new.following <= old.following and new.score >= old.score)]
    fronts.append(new)


def _unrolled(chain: object) -> Iterator[int]:
    while isinstance(chain, tuple):
        place, chain = chain
        yield place


# Which word a moment belongs to, where several words are known to be signed, as those of one subtitle.
#
# Alone, a word is where it is most similar. Among others, a moment that resembles another word as much says little:
# *eat* is in *lunch*, too, and before the face many signs look alike. Each moment is therefore shared among the words
# by how similar they are (experiments/landmark_model/places.py says what that brings).


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


# How far signing lies behind its subtitles, and whether that changes in the course of a video.
#
# The lag of a finding is the middle of the sign minus the middle of the subtitle that mentions it, positive where
# signing comes later. A sign lies anywhere in its sentence, so a single lag says little; the line through all of them,
# fitted so that a third of wrong findings does not move it, gives lag and drift.


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
