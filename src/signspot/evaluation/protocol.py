"""The paper's benchmark: continuous passages looked up in a dictionary (Paper 4.2), and the dictionary in passages.

What the paper leaves open, and what is done here:

Query and gallery. A query is a continuous test passage with its one annotation; the gallery is every dictionary entry
given. The score of an entry is its highest cosine over the windows of the passage. An entry is right when its word is
the annotated word AND the frame of its maximum lies from 20 frames before to 5 frames after the annotated frame.
Average precision and recall are computed per passage, averaged per word, then over the words. The opposite direction,
an entry as the query over all passages, stands beside it.

Time. The frame of a window is its centre (start + 8). Of equal cosines the first window counts.

Ties. Entries of equal score keep the order of the gallery, passages their own order. Entries with the same vector, bit
for bit, have the same score, and so have equal windows of a passage: they are compared once. Cosines are float32 and
carry its rounding: scores that differ in the last bit are no ties.

Denominators. The average precision of a passage is over all entries of its word in the gallery ("relevant"): an entry
that is placed at the wrong time is a miss as well as a false alarm, so placing one wrongly never raises the score.
Recall is the share of the word's entries that are right and among the first k (Paper 4.2: "the percentage of dictionary
clips of s_i that appear in the first 5"), of k where a word has more than k. A passage without a right entry scores 0.
A passage whose word the gallery lacks can have no right answer: it is left out and named.

Vectors that are zero or not finite are compared with nothing: their score is -inf and they are never right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
import numpy.typing as npt

from signspot.domain.time import Tolerance
from signspot.domain.tracks import Bools, FloatArray, Floats, Ints
from signspot.errors import InputError
from signspot.evaluation import measures as ranking
from signspot.evaluation.localisation import is_near
from signspot.evaluation.measures import (
    BootstrapOptions,
    ClassMeans,
    Interval,
    class_interval,
    class_means,
    mean_interval,
    ranks,
    unit_interval,
)

FIRST = 5  # Paper 4.2: R@5


def _recall_among_first(right_ranks: npt.ArrayLike, n_relevant: int, k: int = FIRST) -> float:
    """The share of the relevant items that are right and rank among the first `k`; 0 where nothing is relevant.

    Where there are more than `k` relevant items, `k` of them are all that fit, and count as all.
    """
    if not n_relevant:
        return 0.0
    return int((np.asarray(right_ranks, dtype=np.int64) <= k).sum()) / min(k, n_relevant)


def _chance_recall_among_first(n_items: int, n_relevant: int, hit_rate: float = 1.0, k: int = FIRST) -> float:
    """The expected `recall_among_first` of a random order."""
    if not n_relevant:
        return 0.0
    return min(k, n_items) * hit_rate * n_relevant / n_items / min(k, n_relevant)


_UNIT = 0.01  # how far from 1 the length of a vector stored in half precision may be
_SHORTEST = 1e-6  # a vector shorter than this has no direction
_CELLS = 8_000_000  # cosines in memory at once


@dataclass(frozen=True, slots=True, eq=False)
class TestPassage:
    """A stretch of continuous signing with one annotated sign, embedded."""

    __test__ = False  # a name that pytest would collect

    passage_id: str
    word: int
    label_frame: int  # counted like the centres
    centres: Ints  # (n_windows,) the frame of each window
    vectors: FloatArray  # (n_windows, d) unit rows
    signer: str = ""

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.centres.shape != (len(self.vectors),):
            shapes = f"vectors of shape {self.vectors.shape}, centres of shape {self.centres.shape}"
            raise InputError(self.passage_id, shapes, "give one row and one centre for each window")


@dataclass(frozen=True, slots=True, eq=False)
class Gallery:
    """The dictionary entries a passage is looked up in, in a fixed order."""

    words: Ints  # (E,)
    vectors: FloatArray  # (E, d) unit rows

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.words.shape != (len(self.vectors),):
            shapes = f"vectors of shape {self.vectors.shape}, words of shape {self.words.shape}"
            raise InputError("gallery", shapes, "give one row and one word for each entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolOptions:
    """What may be varied; the defaults are the paper's."""

    tolerance: Tolerance = Tolerance()  # Paper 4.2: -20 to +5 frames
    k: int = FIRST
    keep_cosine: bool = False  # whether the scores carry the table of cosines: 4 bytes for each passage and entry
    n_listed: int | None = None  # decisions to keep beside those about the word: the first so many; None: keep none

    def __post_init__(self) -> None:
        if self.k < 1 or (self.n_listed or 0) < 0:
            raise InputError("protocol", f"k {self.k}, n_listed {self.n_listed}", "see ProtocolOptions")


@dataclass(frozen=True, slots=True, eq=False)
class _Retrieval:
    """How well each query of one direction found what belongs to it."""

    words: Ints  # (Q,) the word of the query
    ap: Floats  # (Q,) average precision
    recall: Floats  # (Q,) among the first k
    n_relevant: Ints  # (Q,)
    n_right: Ints  # (Q,)

    @property
    def class_ap(self) -> ClassMeans:
        return class_means(self.ap, self.words)

    @property
    def class_recall(self) -> ClassMeans:
        return class_means(self.recall, self.words)


@dataclass(frozen=True, slots=True, eq=False)
class ProtocolScores:
    """What `score_passages` found; arrays over passages have P rows, in the order given."""

    options: ProtocolOptions
    passage_ids: tuple[str, ...]
    signers: tuple[str, ...]
    passages: _Retrieval  # passages looked up in the gallery: the paper's direction
    entries: _Retrieval  # entries looked up in the passages: the opposite direction
    entry_rows: Ints  # (Q,) the place in the gallery of each query of `entries`
    is_localised: Bools  # (P,) whether the best entry of the known word has its maximum at the right time
    found_frame: Ints  # (P,) the frame of that maximum; -1 where no window or entry of the word is usable
    label_frame: Ints  # (P,)
    hit_rate: Floats  # (P,) the share of windows at the right time: what a blind guess of the frame would score
    n_entries: int
    left_out: tuple[str, ...]  # passages whose word the gallery lacks
    cosine: FloatArray | None = field(default=None, repr=False)  # (P, E) the highest over the windows, if kept
    decisions: Decisions | None = field(default=None, repr=False)  # if kept

    @property
    def mean_ap(self) -> float:
        """mAP of the paper: over passages, then words."""
        return self.passages.class_ap.mean

    @property
    def recall_at_k(self) -> float:
        return self.passages.class_recall.mean

    @property
    def recall_at_5(self) -> float:
        """R@5 of the paper; refused where another k was asked for."""
        if self.options.k != FIRST:
            raise InputError("protocol", f"the scores are for k = {self.options.k}", "read recall_at_k")
        return self.recall_at_k

    @property
    def localisation(self) -> float:
        """The share of passages whose sign is found at the right time when its word is known (Paper 4.4)."""
        return float(self.is_localised.mean())

    @property
    def chance_mean_ap(self) -> float:
        """What `mean_ap` is expected to be for vectors that know nothing."""
        each = zip(self.passages.n_relevant, self.hit_rate, strict=True)
        chance = [ranking.chance_average_precision(self.n_entries, int(n), float(rate)) for n, rate in each]
        return class_means(chance, self.passages.words).mean

    @property
    def chance_recall_at_k(self) -> float:
        """What `recall_at_k` is expected to be for vectors that know nothing."""
        each = zip(self.passages.n_relevant, self.hit_rate, strict=True)
        k = self.options.k
        chance = [_chance_recall_among_first(self.n_entries, int(n), float(rate), k) for n, rate in each]
        return class_means(chance, self.passages.words).mean

    @property
    def chance_localisation(self) -> float:
        """What `localisation` is expected to be for vectors that know nothing."""
        return float(self.hit_rate.mean())

    def intervals(self, options: BootstrapOptions = BootstrapOptions()) -> ProtocolIntervals:
        """How far the figures would be off with other words, and with other signers.

        Signers are drawn only where every passage names its signer; the opposite direction has words alone.
        """
        passages, entries = self.passages, self.entries
        signers = self.signers if all(self.signers) else ("",) * len(self.signers)

        def both(values: Floats) -> _BothIntervals:
            by_signer = unit_interval(values, passages.words, signers, options)
            return _BothIntervals(class_interval(values, passages.words, options), by_signer)

        return ProtocolIntervals(
            mean_ap=both(passages.ap),
            recall_at_k=both(passages.recall),
            localisation=_BothIntervals(
                mean_interval(self.is_localised, passages.words, options),
                mean_interval(self.is_localised, signers, options),
            ),
            entries_mean_ap=class_interval(entries.ap, entries.words, options),
            entries_recall_at_k=class_interval(entries.recall, entries.words, options),
        )


def score_passages(
    passages: Iterable[TestPassage], gallery: Gallery, options: ProtocolOptions = ProtocolOptions()
) -> ProtocolScores:
    """Look every passage up in the gallery and every entry in the passages; few passages are in memory at once."""
    comparison = _Comparison.of(gallery)
    left_out: list[str] = []

    def known() -> Iterator[TestPassage]:
        for passage in passages:
            if passage.word in comparison.rows_of:
                yield passage
            else:
                left_out.append(passage.passage_id)

    judged = list(comparison.judge(known(), options))
    if not judged:
        fix = "check that both use the same word numbers"
        raise InputError("protocol", "no passage shows a word of the gallery", fix)
    cosine = np.stack([one.cosine for one in judged])
    entry_rows, entries = _entries_as_queries(judged, cosine, gallery, options)
    return ProtocolScores(
        options=options,
        passage_ids=tuple(one.passage_id for one in judged),
        signers=tuple(one.signer for one in judged),
        passages=_retrieval(((one.word, one.ranks, one.is_right) for one in judged), options),
        entries=entries,
        entry_rows=entry_rows,
        is_localised=np.array([one.is_localised for one in judged]),
        found_frame=np.array([one.found_frame for one in judged], dtype=np.int64),
        label_frame=np.array([one.label_frame for one in judged], dtype=np.int64),
        hit_rate=np.array([one.hit_rate for one in judged]),
        n_entries=len(gallery.words),
        left_out=tuple(left_out),
        cosine=cosine if options.keep_cosine else None,
        decisions=Decisions.joined([one.listed for one in judged]) if options.n_listed is not None else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """One passage against the gallery; arrays over the m entries of its word, in gallery order."""

    passage_id: str
    signer: str
    word: int
    label_frame: int
    cosine: FloatArray  # (E,) of all entries: the highest over the windows
    rows: Ints  # (m,) which entries are of the word
    ranks: Ints  # (m,)
    is_right: Bools  # (m,)
    found_frame: int
    is_localised: bool
    hit_rate: float
    listed: Decisions


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """A gallery made ready: each distinct vector once, entries filed by word."""

    distinct: FloatArray  # (d, U), unusable ones zero
    usable: Bools  # (U,)
    column: Ints  # (E,) where the vector of an entry stands in `distinct`
    rows_of: dict[int, Ints]

    @classmethod
    def of(cls, gallery: Gallery) -> _Comparison:
        vectors, usable = _checked(gallery.vectors, "gallery", gallery.vectors.shape[1])
        first, column = _distinct(vectors)
        words, start = np.unique(np.sort(gallery.words), return_index=True)
        groups = np.split(np.argsort(gallery.words, kind="stable"), start[1:])
        rows_of = {int(word): rows for word, rows in zip(words, groups, strict=False)}
        return cls(np.ascontiguousarray(vectors[first].T), usable[first], column, rows_of)

    def judge(self, passages: Iterable[TestPassage], options: ProtocolOptions) -> Iterator[_Judged]:
        for block in _blocks(passages, max(1, _CELLS // max(1, len(self.usable)))):
            checked = [_checked(passage.vectors, passage.passage_id, len(self.distinct)) for passage in block]
            windows = np.concatenate([vectors for vectors, _ in checked])
            first, place = _distinct(windows)
            cosine = windows[first] @ self.distinct
            if len(first) < len(place):
                cosine = cosine[place]
            cosine[~np.concatenate([usable for _, usable in checked])] = -np.inf
            cosine[:, ~self.usable] = -np.inf
            stops = np.cumsum([len(vectors) for vectors, _ in checked])
            for passage, part in zip(block, np.split(cosine, stops[:-1]), strict=True):
                yield self._judged(passage, part, options)

    def _judged(self, passage: TestPassage, cosine: FloatArray, options: ProtocolOptions) -> _Judged:
        """Judge from the cosine (n_windows, U) of the windows with the distinct vectors."""
        rows, tolerance = self.rows_of[passage.word], options.tolerance
        scores = cosine.max(axis=0, initial=-np.inf)[self.column]
        rank = ranks(scores)
        near = is_near(passage.centres, passage.label_frame, tolerance)
        listed = np.union1d(rows, np.flatnonzero(rank <= options.n_listed)) if options.n_listed else rows
        frames = self._frames(passage, cosine, listed)
        is_relevant = np.isin(listed, rows)
        is_right = is_relevant & (scores[listed] > -np.inf) & is_near(frames, passage.label_frame, tolerance)
        best = int(np.searchsorted(listed, rows[scores[rows].argmax()]))
        return _Judged(
            passage_id=passage.passage_id,
            signer=passage.signer,
            word=passage.word,
            label_frame=passage.label_frame,
            cosine=scores,
            rows=rows,
            ranks=rank[rows],
            is_right=is_right[is_relevant],
            found_frame=int(frames[best]),
            is_localised=bool(is_right[best]),
            hit_rate=float(near.mean()) if len(near) else 0.0,
            listed=Decisions(listed * 0, listed, rank[listed], scores[listed], frames, is_relevant, is_right),
        )

    def _frames(self, passage: TestPassage, cosine: FloatArray, listed: Ints) -> Ints:
        """The frame of the maximum of each listed entry; -1 where there is none."""
        if not len(cosine):
            return np.full(len(listed), -1, dtype=np.int64)
        columns = cosine[:, self.column[listed]]
        return np.where(columns.max(axis=0) > -np.inf, passage.centres[columns.argmax(axis=0)], -1)


def _blocks(passages: Iterable[TestPassage], n_windows: int) -> Iterator[list[TestPassage]]:
    """Several passages at a time, as many as `n_windows` hold, at least one."""
    # Many small matrix products wait for each other's threads on a busy machine; a few large ones do not.
    block: list[TestPassage] = []
    held = 0
    for passage in passages:
        if block and held + len(passage.centres) > n_windows:
            yield block
            block, held = [], 0
        block.append(passage)
        held += len(passage.centres)
    if block:
        yield block


def _distinct(vectors: FloatArray) -> tuple[Ints, Ints]:
    """The first row of each set of equal rows, and of every row the place of its set among those."""
    # Equal vectors must tie, and a matrix product rounds the same row differently at another place.
    places: dict[bytes, int] = {}
    place = np.array([places.setdefault(row.tobytes(), len(places)) for row in vectors], dtype=np.int64)
    return np.unique(place, return_index=True)[1], place


def _checked(vectors: FloatArray, where: str, dim: int) -> tuple[FloatArray, Bools]:
    """Rows with those that have no direction set to zero, and which rows are usable."""
    if vectors.shape[1] != dim:
        sizes = f"vectors of {vectors.shape[1]} numbers, the gallery's have {dim}"
        raise InputError(where, sizes, "embed both with the same model")
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    usable: Bools = np.isfinite(length) & (length > _SHORTEST)
    if (np.abs(length[usable] - 1) > _UNIT).any():
        raise InputError(where, "the vectors do not have length 1", "divide each by its length")
    return np.where(usable[:, None], vectors, 0).astype(np.float32, copy=False), usable


def _retrieval(queries: Iterable[tuple[int, Ints, Bools]], options: ProtocolOptions) -> _Retrieval:
    """Judge queries given as (word, ranks of the relevant, which of those are right)."""
    lines = [(word, len(place), place[right]) for word, place, right in queries]
    return _Retrieval(
        words=np.array([word for word, *_ in lines], dtype=np.int64),
        ap=np.array([ranking.average_precision(right_ranks, n) for _, n, right_ranks in lines], np.float64),
        recall=np.array([_recall_among_first(found, n, options.k) for _, n, found in lines], np.float64),
        n_relevant=np.array([n for _, n, _ in lines], dtype=np.int64),
        n_right=np.array([len(right_ranks) for *_, right_ranks in lines], dtype=np.int64),
    )


def _entries_as_queries(
    judged: list[_Judged], cosine: FloatArray, gallery: Gallery, options: ProtocolOptions
) -> tuple[Ints, _Retrieval]:
    """The opposite direction, for every entry whose word some passage shows, in gallery order."""
    passages_of: dict[int, list[int]] = {}
    for place, one in enumerate(judged):
        passages_of.setdefault(one.word, []).append(place)
    entry_rows = np.flatnonzero(np.isin(gallery.words, list(passages_of)))

    def queries() -> Iterator[tuple[int, Ints, Bools]]:
        for row in entry_rows:
            shown = passages_of[int(gallery.words[row])]
            right = [judged[place].is_right[np.searchsorted(judged[place].rows, row)] for place in shown]
            yield int(gallery.words[row]), ranks(cosine[:, row])[shown], np.array(right)

    return entry_rows, _retrieval(queries(), options)


@dataclass(frozen=True, slots=True)
class _BothIntervals:
    """The same figure with other words and with other signers."""

    by_class: Interval
    by_signer: Interval


@dataclass(frozen=True, slots=True)
class ProtocolIntervals:
    """The figures of `ProtocolScores` with their intervals."""

    mean_ap: _BothIntervals
    recall_at_k: _BothIntervals
    localisation: _BothIntervals
    entries_mean_ap: Interval
    entries_recall_at_k: Interval


# Every pair of a passage and an entry that somebody may want to look at, and the passages most worth a look. Listed are
# all entries of the annotated word, and whatever else ranks among the first. The margin of a passage is the highest
# cosine of its own word minus the highest of any other word: positive where the right word comes first.

CaseKind = Literal["clear", "just beaten", "wrong time", "missed"]


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """D pairs, passage by passage, entries in gallery order."""

    passage: Ints  # (D,) the place of the passage among those scored
    entry_row: Ints  # (D,) the place of the entry in the gallery
    rank: Ints  # (D,) of the entry among all, from 1
    cosine: FloatArray  # (D,) the highest over the windows; -inf where nothing could be compared
    found_frame: Ints  # (D,) of that window; -1 where nothing could be compared
    is_relevant: Bools  # (D,) whether the entry's word is the annotated one
    is_right: Bools  # (D,) relevant, and found at the right time

    def __len__(self) -> int:
        return len(self.passage)

    @classmethod
    def joined(cls, parts: Sequence[Decisions]) -> Decisions:
        """Several, one after the other, each about the passage of its place in `parts`."""
        columns = {one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)}
        columns["passage"] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return cls(**columns)


@dataclass(frozen=True, slots=True)
class Case:
    """A passage worth a look, with the best entry of any other word."""

    kind: CaseKind
    passage: int  # its place among those scored
    other_row: int | None  # of the gallery; None: the gallery has no other word
    margin: float


def _margins(cosine: FloatArray, passage_words: Ints, gallery_words: Ints) -> tuple[Floats, Ints]:
    """Of every passage the margin (P,), and the gallery row of the best entry of another word (-1: none).

    `cosine` (P, E) is the highest of each passage and entry. What could not be compared counts as -2, below every
    cosine.
    """
    if cosine.shape != (len(passage_words), len(gallery_words)) or not cosine.size:
        raise InputError("margins", f"cosines of shape {cosine.shape}", "give one row a passage, one column an entry")
    comparable = np.maximum(cosine, np.float32(-2)).astype(np.float64)
    is_own = passage_words[:, None] == gallery_words
    own = np.where(is_own, comparable, -np.inf).max(axis=1)
    other = np.where(is_own, -np.inf, comparable)
    has_other = ~is_own.all(axis=1)
    return own - np.where(has_other, other.max(axis=1), -2.0), np.where(has_other, other.argmax(axis=1), -1)


def choose_cases(
    cosine: FloatArray, passage_words: Ints, gallery_words: Ints, is_localised: Bools, each: int = 2
) -> tuple[Case, ...]:
    """The passages most worth a look, at most `each` of every kind and one of every word and kind.

    clear: the right word first, at the right time, by the largest margin. just beaten: found at the right time, but
    another word scores a little higher. wrong time: the right word first, yet surest elsewhere. missed: neither word
    nor time, by the largest margin.
    """
    margin, other_row = _margins(cosine, passage_words, gallery_words)
    is_first = margin > 0
    kinds: tuple[tuple[CaseKind, Bools, Floats], ...] = (
        ("clear", is_first & is_localised, -margin),
        ("just beaten", ~is_first & is_localised, -margin),
        ("wrong time", is_first & ~is_localised, -margin),
        ("missed", ~is_first & ~is_localised, margin),
    )
    cases: list[Case] = []
    for kind, belongs, order in kinds:
        shown: set[int] = set()
        for place in np.argsort(order, kind="stable"):
            word = int(passage_words[place])
            if belongs[place] and word not in shown and len(shown) < each:
                shown.add(word)
                other = int(other_row[place])
                one = Case(kind, int(place), None if other < 0 else other, float(margin[place]))
                cases.append(one)
    return tuple(cases)


# Which words a protocol trains on and tests, and what it compares: pure choices on arrays. Paper 4.2 trains on all 1064
# words or on 800 of them, and tests on the other 264 either way ("seen", "unseen"). How the 264 were chosen is not
# said: here they are drawn evenly over the range of frequencies, by a seed.

_N_UNSEEN = 264  # Paper 4.2
TEST_CONFIDENCE = 0.9  # Paper 4.1: of the automatic labels that passages are tested on


def draw_unseen_words(frequency: Ints, n_unseen: int = _N_UNSEEN, *, seed: int = 0) -> Ints:
    """Choose the words to test, ascending, from the `frequency` (n_words,) of every word in the annotations.

    Words are ordered by frequency and cut into `n_unseen` runs of nearly equal length; one word is drawn of each. Words
    that were never annotated cannot be tested and are not drawn.
    """
    annotated = np.flatnonzero(frequency > 0)
    if not 0 < n_unseen <= len(annotated):
        what = f"{n_unseen} unseen words of {len(annotated)} that have annotations"
        raise InputError("split", what, "ask for fewer words, or annotate more")
    by_frequency = annotated[np.argsort(-frequency[annotated], kind="stable")]
    rng = np.random.default_rng(seed)
    return np.sort([rng.choice(run) for run in np.array_split(by_frequency, n_unseen)])
