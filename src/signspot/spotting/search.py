"""The one search: the vectors of a video and the clips of some words in, findings out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Dictionary, Subtitle, Word
from signspot.domain.results import Provenance, Spotting, WordAnswer
from signspot.domain.time import MillisSpan
from signspot.domain.tracks import (
    Bools,
    EmbeddingTrack,
    EntryVectors,
    FloatArray,
    SimilarityTrack,
    Vectors,
    lengths_of,
    rates_of,
    unit,
)
from signspot.evaluation.calibration import Calibration
from signspot.spotting.peaks import Refinement, limited_to, peaking_inside, spottings_at
from signspot.spotting.presence import Candidates, Judge, candidates_of, standing

Mentions = Mapping[Word, tuple[Subtitle, ...]]


@dataclass(frozen=True, slots=True)
class Query:
    """The words to look for, each with the vectors of its entries, ready for any number of videos."""

    words: tuple[EntryVectors, ...]
    dictionary: Dictionary
    n_views: int = 1  # rows that each entry has in a word's vectors, one behind the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What counts as found: cosines from `threshold`, or with a calibration, probabilities."""

    threshold: float
    calibration: Calibration | None = None  # None: cosines only
    least_presence: float | None = None  # lowest probability; None: the cosine decides
    refine: bool = True  # a finding lasts as long as the sign; False: as the window of 16 frames
    compete: bool = True  # a moment is given to the word it resembles most

    @property
    def lowest(self) -> float:
        """The lowest cosine that is looked at: with a calibration, signs that are not shown may be there, too."""
        return self.threshold if self.calibration is None else self.calibration.lowest

    def lowest_cosine(self, answers: Sequence[WordAnswer]) -> float:
        """The lowest cosine that counted as found; where probabilities decide, that of the findings."""
        if self.least_presence is None:
            return self.threshold
        found = (spotting.cosine for answer in answers for spotting in answer.spottings)
        return min(found, default=self.threshold)


def search(
    track: EmbeddingTrack,
    query: Query,
    rule: Rule,
    provenance: Provenance,
    mentions: Mentions | None = None,
    padding_ms: int = 0,
) -> tuple[WordAnswer, ...]:
    """Look for every word of a query: everywhere, or only up to `padding_ms` around subtitles that mention it."""
    read = mentions is not None
    asked = [entries for entries in query.words if not read or entries.word in (mentions or ())]
    searched = {one.word: around((mentions or {}).get(one.word, ()), padding_ms) for one in query.words if read}
    compared = list(compare(track, query))
    inside = {one.word: windows_inside(one, searched[one.word]) for one in compared if read}
    limited = [limited_to(one, inside[one.word]) if read else one for one in compared]
    judge = None if rule.calibration is None else Judge.of(rule.calibration, track, asked, is_read=read)
    found = [candidates_of(one, rule.lowest) for one in limited]
    if rule.compete:
        found = list(standing(found, query.words))
    answers = [_answer(one, own, rule, judge, provenance) for one, own in zip(found, query.words, strict=True)]
    if mentions is None:
        return tuple(answers)
    return tuple(
        replace(
            answer,
            searched_ms=searched[one.word],
            spottings=attributed(peaking_inside(answer.spottings, one, inside[one.word]), mentions.get(one.word, ())),
        )
        for answer, one in zip(answers, compared, strict=True)
    )


def compare(track: EmbeddingTrack, query: Query) -> Iterator[SimilarityTrack]:
    """The similarity of every window with every entry, word by word; of several views of an entry the best counts."""
    for compared in similarities(track, query.words):
        if query.n_views == 1:
            yield compared
            continue
        n_entries = len(compared.entries) // query.n_views
        cosine = compared.cosine.reshape(len(compared.grid), n_entries, query.n_views).max(axis=2)
        yield replace(compared, entries=compared.entries[:: query.n_views], cosine=cosine)


def best_only(compared: SimilarityTrack) -> SimilarityTrack:
    """The curve of the highest cosine over all entries, under the name of the one that is highest anywhere."""
    if len(compared.entries) < 2 or not len(compared.grid):
        return compared
    best = compared.entries[int(compared.cosine.max(axis=0).argmax())]
    return replace(compared, entries=(best,), cosine=compared.best[:, None])


def around(subtitles: Sequence[Subtitle], padding_ms: int) -> tuple[MillisSpan, ...]:
    """The time of subtitles, and as much again before and after them."""
    return tuple(subtitle.span_ms.padded(padding_ms, padding_ms) for subtitle in subtitles)


def windows_inside(compared: SimilarityTrack, spans: Sequence[MillisSpan]) -> Bools:
    """Which windows have their time in one of the spans. (n_windows,)"""
    inside = np.zeros(len(compared.grid), dtype=bool)
    for span in spans:
        start, stop = np.searchsorted(compared.times_ms, (span.start, span.stop))
        inside[start:stop] = True
    return inside


def attributed(
    spottings: Sequence[Spotting], mentions: Sequence[Subtitle], reach_ms: int | None = None
) -> tuple[Spotting, ...]:
    """The findings with the subtitle whose middle lies closest, among those within reach; None: all are."""

    def nearest_to(span: MillisSpan) -> Subtitle | None:
        near = mentions
        if reach_ms is not None:
            near = [one for one in mentions if one.span_ms.padded(reach_ms, reach_ms).overlaps(span)]
        middle = span.start + span.stop
        return min(near, key=lambda one: abs(one.span_ms.start + one.span_ms.stop - middle), default=None)

    return tuple(
        replace(one, provenance=replace(one.provenance, subtitle=nearest_to(one.span_ms))) for one in spottings
    )


def _answer(
    candidates: Candidates, entries: EntryVectors, rule: Rule, judge: Judge | None, provenance: Provenance
) -> WordAnswer:
    """The findings of a word, and how probable it is that it is there at all."""
    how = Refinement() if rule.refine else None
    similarity = candidates.similarity
    if judge is None:
        return WordAnswer(similarity, spottings_at(similarity, candidates.windows, provenance, how))
    judged, least = judge(candidates, entries), rule.least_presence
    shown = candidates.cosine >= rule.threshold if least is None else judged.probability >= least
    return WordAnswer(similarity, judged.spottings(shown, provenance, how), presence=judged.anywhere)


# The cosine of every window of a video with every entry of a word (psi of Paper 3.1).

_ROWS_AT_ONCE = 4096  # a track of hours lies on the disk, and is never held whole
_ENTRIES_AT_ONCE = 256
_NEARLY = 0.05  # of a cosine: a length that is so much less alike counts a third of the best
_SHORTEST = 1e-6  # a vector shorter than this has no direction


def similarity(track: EmbeddingTrack, entries: EntryVectors) -> SimilarityTrack:
    """Compare all windows with all entries; vectors that are zero or not finite score -inf and can never win.

    Where a track has windows of several lengths, the most similar length counts.
    """
    (compared,) = similarities(track, (entries,))
    return compared


def similarities(track: EmbeddingTrack, words: Sequence[EntryVectors]) -> Iterator[SimilarityTrack]:
    """The same for many words, in order; the windows are read once for every 256 entries."""
    if not track.unit_rows:
        raise ValueError(f"{track.video_id}: vectors of a trunk are compared after the head, not before it")
    for some in _shelves(words):
        for one in some:
            if one.fingerprint != track.fingerprint:
                what = f"windows by {track.fingerprint!r}, entries by {one.fingerprint!r}"
                raise ValueError(f"{track.video_id}: {what}")
        yield from _compared(track, some)


def _compared(track: EmbeddingTrack, words: Sequence[EntryVectors]) -> Iterator[SimilarityTrack]:
    references, usable = _unit_rows(np.concatenate([one.vectors for one in words]))
    n_windows, lengths = len(track.vectors), np.array(lengths_of(track), np.float32)
    stops = np.cumsum([len(one.entries) for one in words]).tolist()
    slices = [slice(stop - len(one.entries), stop) for one, stop in zip(words, stops, strict=True)]
    cosine = np.empty((len(references), n_windows), np.float32)
    frames = np.empty((len(words), n_windows), np.float32)
    for first in range(0, n_windows, _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        rates = np.stack([_cosines(vectors[rows], references) for vectors in rates_of(track)])
        rates[:, ~usable] = -np.inf
        cosine[:, rows] = rates.max(axis=0)
        if len(lengths):
            for own, entries in zip(frames, slices, strict=True):
                own[rows] = _length(rates[:, entries], cosine[entries, rows], lengths)
    for one, own, entries in zip(words, frames, slices, strict=True):
        part = np.ascontiguousarray(cosine[entries].T)
        known = own if len(lengths) else None
        yield SimilarityTrack(one.word, track.video_id, track.grid, track.axis, one.entries, part, known)


def _length(rates: FloatArray, best: FloatArray, lengths: FloatArray) -> FloatArray:
    """How many frames look like a word: of cosines (rates, n_entries, n), the mean length at the best entry (n,).

    Neighbouring lengths look nearly the same, so each counts by how near it comes to the `best` (n_entries, n).
    """
    if not len(best):
        return np.full(best.shape[1], lengths[0])
    entry = best.argmax(axis=0)
    cosine = rates[:, 0] if len(best) == 1 else np.take_along_axis(rates, entry[None, None], axis=1)[:, 0]
    cosine = np.maximum(cosine, -1)  # -inf: nobody is seen
    weight = np.exp((cosine - cosine.max(axis=0)) / _NEARLY)
    mean: FloatArray = lengths @ weight / weight.sum(axis=0)
    return mean


def _cosines(vectors: Vectors, references: FloatArray) -> FloatArray:
    """(n_entries, n_windows); -inf in the columns of unusable windows."""
    windows, usable = _unit_rows(vectors)
    cosine: FloatArray = np.clip(references @ windows.T, -1.0, 1.0)
    cosine[:, ~usable] = -np.inf
    return cosine


def _shelves(words: Sequence[EntryVectors]) -> Iterator[list[EntryVectors]]:
    """Words in groups of up to 256 entries."""
    some, n_entries = list[EntryVectors](), 0
    for one in words:
        if some and n_entries + len(one.entries) > _ENTRIES_AT_ONCE:
            yield some
            some, n_entries = [], 0
        some.append(one)
        n_entries += len(one.entries)
    if some:
        yield some


def _unit_rows(vectors: Vectors) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Rows of length 1, and which of them are usable; the others are zero."""
    finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(vectors).all(axis=1))
    rows = np.where(finite[:, None], vectors, 0).astype(np.float64)
    length = np.linalg.norm(rows, axis=1)
    usable: npt.NDArray[np.bool_] = finite & (length > _SHORTEST)
    return (rows / np.where(usable, length, 1)[:, None] * usable[:, None]).astype(np.float32), usable


# What a sign is looked for by, where several clips show it (experiments/queries).


def drawn_together(rows: FloatArray, groups: Sequence[Hashable | None], share: float) -> FloatArray:
    """Rows (n, n_views, d) of length 1, each drawn towards the mean of its group, view by view; None has no group.

    The mean leaves out what one person's clip has by chance, each clip says what the mean blurs: in between is better
    than either. A `share` of 0 leaves the clips, a large one brings all to their mean.
    """
    places: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        if group is not None and np.isfinite(rows[place]).all() and rows[place].any():
            places.setdefault(group, []).append(place)
    drawn = rows.astype(np.float32)
    for some in places.values():
        if share and len(some) > 1:
            drawn[some] = unit(drawn[some] + share * unit(drawn[some].mean(axis=0)))
    return drawn
