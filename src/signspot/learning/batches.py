"""The minibatches of Paper 3.2, drawn from trunk vectors on the disk.

Every minibatch depends on the seed, the epoch and the step alone: any step can be made again without those before it,
by any process.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from signspot.domain.recordings import Vocabulary, Word
from signspot.domain.time import Tolerance
from signspot.domain.tracks import CLIP_LENGTH, Bools, FloatArray, Ints
from signspot.errors import InputError
from signspot.interrupts import is_asked
from signspot.learning.material import Material, Passages, refuse_not_finite

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_SCHEDULE, _CLIPS = 0, 1  # what a stream of random numbers is for


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """What goes into a minibatch; the defaults are the paper's."""

    batch_size: int = 128  # passages (Paper 3.2)
    n_background: int = 10  # clips of each passage outside the labelled window (Paper 3.2)
    around: Tolerance = Tolerance()  # frames before and after the label (Paper 3.2)
    foreground: _Foreground = "inside"  # where the foreground clip lies: as a whole inside that window, or its centre
    min_confidence: float = 0.5  # of the labels (App. B.6)
    balanced: bool = True  # no word labels two passages of a minibatch (App. B.2)
    words: frozenset[Word] | None = None  # the training vocabulary; None: every word
    dictionary: Literal["full", "limited"] = "full"  # entries of all words, or of the training vocabulary (Tab. 3)
    prefetch: int = 2  # minibatches made ahead in the background; 0: none

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.n_background < 0 or self.prefetch < 0:
            raise ValueError(f"no minibatch of {self.batch_size} items with {self.n_background} background clips")
        if not 0 <= self.min_confidence <= 1:
            raise ValueError(f"a confidence of {self.min_confidence} is not between 0 and 1")
        if self.foreground == "inside" and self.around.before + self.around.after < CLIP_LENGTH:
            raise ValueError(f"a clip of {CLIP_LENGTH} frames does not fit inside {self.around}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchReport:
    """What a source of minibatches uses, and what it leaves out."""

    n_passages: int
    n_used: int
    n_labels: int  # different words that label a passage
    n_steps: int  # of an epoch
    n_items: int  # of a minibatch
    dropped: tuple[tuple[str, int], ...]  # why some passages are not used, and how many
    without_background_words: int  # passages used with their label's entries only
    without_background_clips: int  # passages used with their foreground clip only

    def lines(self) -> tuple[str, ...]:
        used = f"{self.n_used} of {self.n_passages} labelled passages, {self.n_labels} words"
        partly = (
            (self.without_background_words, "have no other subtitle word with a dictionary entry"),
            (self.without_background_clips, "have no room for background clips"),
        )
        return (
            f"{used}: {self.n_steps} minibatches of {self.n_items} in an epoch",
            *(f"{count} passages left out: {reason}" for reason, count in self.dropped),
            *(f"{count} passages {what}" for count, what in partly if count),
        )


class BatchSource:
    """Minibatches from `material`. Thread-safe; rows of tracks are read when a minibatch needs them."""

    def __init__(self, material: Material, options: BatchOptions, seed: int) -> None:
        material.check("training material")
        if seed < 0:
            raise InputError(f"seed {seed}", "is negative", "give a whole number from 0")
        self.options, self._material, self._seed = options, material, seed
        self._tracks = tuple(np.asarray(track) for track in material.tracks)  # plain arrays are quicker to index
        lengths = np.array([len(track) for track in self._tracks], np.int64)
        passages = material.passages
        self._windows = PassageWindows.of(passages, lengths[passages.track], options.around, options.foreground)
        self._entries = _Groups.of(np.arange(len(material.entry_word)), material.entry_word, len(material.vocabulary))
        is_training_word = _training_words(material.vocabulary, options.words)
        self._used, dropped = self._usable(lengths[passages.track], is_training_word)
        self._labels = passages.label[self._used]
        has_rows = self._entries.count > 0
        self._runs = _word_runs(passages, has_rows if options.dictionary == "full" else has_rows & is_training_word)
        self._shape = _EpochShape.of(self._labels, options.batch_size, balanced=options.balanced)
        self._schedule: tuple[int, Ints] = (-1, np.empty((0, 0), np.int64))
        self.report = _BatchReport(
            n_passages=len(passages),
            n_used=len(self._used),
            n_labels=len(np.unique(self._labels)),
            n_steps=self._shape.n_steps,
            n_items=self._shape.n_items,
            dropped=dropped,
            without_background_words=int((self._runs.count[self._used] == 1).sum()),
            without_background_clips=int((self._windows.n_background[self._used] == 0).sum()),
        )

    @property
    def steps_per_epoch(self) -> int:
        return self._shape.n_steps

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[Minibatch]:
        """The minibatches of an epoch from `first_step` on; the next ones are made while one is used."""
        steps = range(first_step, self.steps_per_epoch)
        return prefetch(partial(self.minibatch, epoch), steps, workers=1, ahead=self.options.prefetch)

    def minibatch(self, epoch: int, step: int) -> Minibatch:
        """One minibatch; the same for the same seed, epoch and step, whatever was asked for before."""
        if epoch < 0 or not 0 <= step < self.steps_per_epoch:
            raise ValueError(f"no step {step} of epoch {epoch}: an epoch has {self.steps_per_epoch} steps")
        passages = self._used[self._epoch(epoch)[step]]
        rng = self._rng(_CLIPS, epoch, step)
        foreground = self._windows.draw_foreground(passages, rng)[:, None]
        background = self._windows.draw_background(passages, self.options.n_background, rng)
        windows = np.concatenate([foreground, background], axis=1)
        label = self._material.passages.label[passages]
        is_clip = np.ones(windows.shape, np.bool_)
        is_clip[:, 1:] = self._windows.n_background[passages, None] > 0
        item, place = np.nonzero(is_clip)
        words = self._runs.joined(passages)
        word_item = np.repeat(np.arange(len(passages)), self._runs.count[passages])
        rows, row_item = self._entries.joined(words), np.repeat(word_item, self._entries.count[words])
        distinct, row_entry = np.unique(rows, return_inverse=True)
        row_word = self._material.entry_word[rows]
        return Minibatch(
            n_items=len(passages),
            segments=torch.from_numpy(self._clips(passages[item], windows[is_clip])),
            segment_item=torch.from_numpy(item),
            segment_word=torch.from_numpy(np.where(place == 0, label[item], BACKGROUND)),
            entries=torch.from_numpy(self._material.entry_vectors[distinct].astype(np.float32, copy=False)),
            entry_word=torch.from_numpy(self._material.entry_word[distinct]),
            row_entry=torch.from_numpy(row_entry.astype(np.int64, copy=False)),
            row_item=torch.from_numpy(row_item),
            row_is_foreground=torch.from_numpy(row_word == label[row_item]),
            passages=tuple(passages.tolist()),
        )

    def _clips(self, passages: Ints, windows: Ints) -> FloatArray:
        """The trunk vectors of one window of each passage: (n, d)."""
        track = self._material.passages.track[passages]
        vectors = np.empty((len(windows), self._material.entry_vectors.shape[1]), np.float32)
        order = np.argsort(track, kind="stable")
        for clips in np.split(order, np.flatnonzero(np.diff(track[order])) + 1):
            if len(clips):
                vectors[clips] = self._tracks[track[clips[0]]][windows[clips]]
        if not np.isfinite(vectors.sum()):  # one sum is ten times quicker than a test of each number
            names = self._material.passages.names
            clip_names = tuple(f"{names[p]}, window {w}" for p, w in zip(passages, windows, strict=True))
            refuse_not_finite(vectors, clip_names, "training material")
        return vectors

    def _epoch(self, epoch: int) -> Ints:
        """(n_steps, n_items) places in the list of used passages."""
        made_for, schedule = self._schedule
        if made_for != epoch:
            rng, labels, shape = self._rng(_SCHEDULE, epoch, 0), self._labels, self._shape
            if self.options.balanced:
                schedule = _balanced_epoch(labels, shape, rng)
            else:
                places = rng.permutation(len(labels))[: shape.n_steps * shape.n_items]
                schedule = places.reshape(shape.n_steps, shape.n_items)
            self._schedule = (epoch, schedule)
        return schedule

    def _rng(self, purpose: int, epoch: int, step: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(purpose, epoch, step)))

    def _usable(self, n_windows: Ints, is_training_word: Bools) -> tuple[Ints, tuple[tuple[str, int], ...]]:
        """Which passages can be used, and why the others cannot; the first reason counts."""
        passages, options = self._material.passages, self.options
        frame = passages.label_frame
        in_passage = (frame >= passages.start) & (frame < passages.stop)
        reasons = {
            f"labelled with a confidence below {options.min_confidence:g}": passages.confidence
            >= np.float32(options.min_confidence),
            "the label is not a training word": is_training_word[passages.label],
            "the dictionary has no entry for the label": self._entries.count[passages.label] > 0,
            "the label lies outside the passage or its video": in_passage & (frame < n_windows + CLIP_LENGTH - 1),
            f"shorter than {CLIP_LENGTH} frames": passages.stop - passages.start >= CLIP_LENGTH,
            "no clip around the label fits into the passage": self._windows.has_foreground,
        }
        is_used = np.ones(len(passages), np.bool_)
        dropped: list[tuple[str, int]] = []
        for reason, passes in reasons.items():
            if count := int((is_used & ~passes).sum()):
                dropped.append((reason, count))
            is_used &= passes
        if not is_used.any():
            why = "; ".join(f"{count}: {reason}" for reason, count in dropped) or "it has none"
            raise InputError("training material", f"no usable passage ({why})", "check the labels and the options")
        return np.flatnonzero(is_used), tuple(dropped)


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Numbers in groups: those of group g are values[start[g] : start[g] + count[g]]."""

    values: Ints
    start: Ints  # (G,)
    count: Ints  # (G,)

    @classmethod
    def of(cls, values: Ints, group: Ints, n_groups: int) -> _Groups:
        count = np.bincount(group, minlength=n_groups)
        return cls(values[np.argsort(group, kind="stable")], np.cumsum(count) - count, count)

    def joined(self, groups: Ints) -> Ints:
        return self.values[_ragged(self.start[groups], self.count[groups])]


def _word_runs(passages: Passages, is_shown: Bools) -> _Groups:
    """The words of each passage as a minibatch shows them; `is_shown` (W,) says which may stand beside a label.

    The label first, then the others as they are mentioned. A word that is mentioned again later comes again, as in the
    released sample batch; one that is repeated at once does not.
    """
    numbers = np.arange(len(passages))
    passage = np.repeat(numbers, np.diff(passages.word_offsets))
    is_kept = is_shown[passages.words] & (passages.words != passages.label[passage])
    passage = np.concatenate([numbers, passage[is_kept]])
    words = np.concatenate([passages.label, passages.words[is_kept]])
    order = np.argsort(passage, kind="stable")
    passage, words = passage[order], words[order]
    is_new = np.ones(len(words), np.bool_)
    is_new[1:] = (passage[1:] != passage[:-1]) | (words[1:] != words[:-1])
    return _Groups.of(words[is_new], passage[is_new], len(passages))


def _training_words(vocabulary: Vocabulary, words: frozenset[Word] | None) -> Bools:
    """(W,) bool; words that the vocabulary lacks are refused, since a slip would silently train on less."""
    if words is None:
        return np.ones(len(vocabulary), np.bool_)
    if unknown := sorted(word for word in words if word not in vocabulary):
        what = f"{len(unknown)} training words are not in the vocabulary of the material"
        raise InputError(unknown[0], what, "draw the split from this material")
    return np.array([word in words for word in vocabulary], np.bool_)


# One minibatch of Paper 3.2: segments of continuous signing and the dictionary entries of their subtitle words.
#
# Every dictionary entry is there once, however many items mention its word: `row_entry` says which entry each
# dictionary row shows. The released loss works on those rows; embedding the distinct entries is far less work.

BACKGROUND = -1  # the word of a segment that nobody labelled


@dataclass(frozen=True, slots=True, eq=False)
class Minibatch:
    """n_items passages; vectors are the trunk's before the head, and embeddings after `with_vectors`.

    Rows of one item stand together and items ascend, as in the released sample batch; nothing depends on it but which
    mentions of a word count as one run in the released formulation.
    """

    n_items: int
    segments: Tensor  # (S, d) continuous clips
    segment_item: Tensor  # (S,) int64
    segment_word: Tensor  # (S,) int64: the label of a foreground segment, else BACKGROUND
    entries: Tensor  # (E, d) distinct dictionary entries
    entry_word: Tensor  # (E,) int64
    row_entry: Tensor  # (R,) int64: the dictionary rows, in order
    row_item: Tensor  # (R,) int64
    row_is_foreground: Tensor  # (R,) bool: the entry's word is the label of the item
    passages: tuple[int, ...] = ()  # the passages of the items, to name them when something is wrong

    def __post_init__(self) -> None:
        for names in (
            "segments segment_item segment_word",
            "entries entry_word",
            "row_entry row_item row_is_foreground",
        ):
            lengths = {name: len(getattr(self, name)) for name in names.split()}
            if len(set(lengths.values())) > 1:
                raise ValueError(f"columns of different lengths: {lengths}")

    @property
    def segment_is_foreground(self) -> Tensor:
        return self.segment_word != BACKGROUND

    @property
    def row_word(self) -> Tensor:
        """(R,) int64: the word of every dictionary row."""
        return self.entry_word[self.row_entry]

    def with_vectors(self, segments: Tensor, entries: Tensor) -> Minibatch:
        return replace(self, segments=segments, entries=entries)


_Batch = TypeVar("_Batch", bound="DataclassInstance")


def on_device(batch: _Batch, device: torch.device | str) -> _Batch:
    values = ((item.name, getattr(batch, item.name)) for item in fields(batch))
    return replace(batch, **{name: value.to(device) for name, value in values if isinstance(value, Tensor)})


# Where the clips of a passage may lie: the foreground around its label, the background away from it.
#
# A window is named by its first frame, which is its row in the track. Ranges of windows are half-open.

_Foreground = Literal["inside", "centre"]


@dataclass(frozen=True, slots=True, eq=False)
class PassageWindows:
    """The windows of each passage, (P,) each; a range that ends at or before its start is empty."""

    foreground_start: Ints
    foreground_stop: Ints
    before_start: Ints  # background windows before the label
    n_before: Ints
    after_start: Ints  # background windows behind it
    n_after: Ints

    @classmethod
    def of(cls, passages: Passages, n_windows: Ints, around: Tolerance, foreground: _Foreground) -> PassageWindows:
        """The windows of passages whose tracks have `n_windows` (P,) rows.

        `inside`: the foreground clip lies in [label - before, label + after). `centre`: its centre frame lies from
        label - before to label + after. Background clips do not overlap [label - before, label + after + 16).
        """
        label, start = passages.label_frame, passages.start
        stop = np.minimum(passages.stop - CLIP_LENGTH + 1, n_windows)
        first, last = label - around.before, label + around.after - CLIP_LENGTH
        if foreground == "centre":
            first, last = first - CLIP_LENGTH // 2, label + around.after - CLIP_LENGTH // 2
        before_stop = label - around.before - CLIP_LENGTH + 1
        after_start = np.maximum(start, label + around.after + CLIP_LENGTH)
        return cls(
            foreground_start=np.maximum(start, first),
            foreground_stop=np.minimum(stop, last + 1),
            before_start=start,
            n_before=np.maximum(0, np.minimum(stop, before_stop) - start),
            after_start=after_start,
            n_after=np.maximum(0, stop - after_start),
        )

    @property
    def has_foreground(self) -> Bools:
        return self.foreground_start < self.foreground_stop

    @property
    def n_background(self) -> Ints:
        """(P,) how many different background clips a passage has."""
        return self.n_before + self.n_after

    def draw_foreground(self, passages: Ints, rng: np.random.Generator) -> Ints:
        """One window for each of these passages, all equally likely: (n,)."""
        return rng.integers(self.foreground_start[passages], self.foreground_stop[passages])

    def draw_background(self, passages: Ints, n_clips: int, rng: np.random.Generator) -> Ints:
        """(n, n_clips) windows, different ones where there are enough; meaningless where there is none."""
        number = _distinct_draws(self.n_background[passages], n_clips, rng)
        n_before = self.n_before[passages, None]
        after = self.after_start[passages, None] + number - n_before
        return np.where(number < n_before, self.before_start[passages, None] + number, after)


def _distinct_draws(counts: Ints, n_draws: int, rng: np.random.Generator) -> Ints:
    """For each count (n,), `n_draws` different numbers below it; all of them in turn where they are too few."""
    drawn = np.empty((len(counts), n_draws), np.int64)
    for place in range(n_draws):  # Floyd's method: every choice is equally likely
        last = np.maximum(counts - n_draws + place, 0)
        number = rng.integers(0, last + 1)
        is_taken = (drawn[:, :place] == number[:, None]).any(axis=1)
        drawn[:, place] = np.where(is_taken, last, number)
    at_least_one = np.maximum(counts, 1)
    in_turn = (rng.integers(0, at_least_one)[:, None] + np.arange(n_draws)) % at_least_one[:, None]
    return np.where(counts[:, None] < n_draws, in_turn, drawn)


# Which passages make up each minibatch of an epoch (Paper 3.2, "Minibatch sampling"; App. B.2).
#
# An epoch has as many minibatches as the passages fill: 78,211 passages at 128 are 611. Balanced, a minibatch never
# shows a word twice, so that every other item of it is a sure negative, and each passage comes once an epoch. But a
# word with more passages than there are minibatches shows a new random choice of them in every epoch, and the turns
# lost that way go to the rarest words; what does not fill a minibatch is left for other epochs.


@dataclass(frozen=True, slots=True)
class _EpochShape:
    """How many minibatches an epoch has, and how many items each of them."""

    n_steps: int
    n_items: int

    @classmethod
    def of(cls, labels: Ints, batch_size: int, *, balanced: bool) -> _EpochShape:
        n_items = min(batch_size, len(np.unique(labels)) if balanced else len(labels))
        return cls(max(1, len(labels) // n_items), n_items)


def _balanced_epoch(labels: Ints, shape: _EpochShape, rng: np.random.Generator) -> Ints:
    """Passages such that no minibatch has two of one label: (n_steps, n_items) places in `labels`."""
    words, counts = np.unique(labels, return_counts=True)
    turns = _turns(counts, shape, rng)
    order = rng.permutation(len(words))
    dealt = np.repeat(order, turns[order])  # (n_items * n_steps,): the turns of one word stand together
    turn = _ragged(np.zeros_like(turns), turns[order])
    shuffled = np.lexsort((rng.random(len(labels)), labels))
    passages = shuffled[(np.cumsum(counts) - counts)[dealt] + turn % counts[dealt]]
    epoch = np.empty((shape.n_steps, shape.n_items), np.int64)
    by_item = dealt.reshape(shape.n_items, shape.n_steps)
    steps = np.empty(0, np.int64)
    for item, mine in enumerate(by_item):
        # A word whose turns began as the item before may not come again in the minibatches that have it.
        taken = steps[by_item[item - 1] == mine[0]] if item else steps
        steps = _steps_avoiding(taken, int((mine == mine[0]).sum()), rng.permutation(shape.n_steps), rng)
        epoch[steps, item] = passages.reshape(by_item.shape)[item]
    return epoch


def _ragged(starts: Ints, lengths: Ints) -> Ints:
    """starts[0], starts[0] + 1, ... for lengths[0] numbers, then the same from starts[1], and so on.

    >>> ragged(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    shift: Ints = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return shift + np.arange(len(shift))


def _turns(counts: Ints, shape: _EpochShape, rng: np.random.Generator) -> Ints:
    """How often the turn of each word comes: (n_words,), at most n_steps each, n_steps * n_items in all."""
    total = shape.n_steps * shape.n_items

    def raised(level: int) -> Ints:
        return np.clip(counts, level, shape.n_steps)

    level = max(0, bisect_right(range(shape.n_steps + 1), total, key=lambda level: int(raised(level).sum())) - 1)
    turns = raised(level)
    missing = total - int(turns.sum())
    if missing > 0:
        turns[rng.choice(np.flatnonzero(turns == level), missing, replace=False)] += 1
    elif missing < 0:
        left_out = rng.choice(np.repeat(np.arange(len(turns)), turns), -missing, replace=False)
        turns = turns - np.bincount(left_out, minlength=len(turns))
    return turns


def _steps_avoiding(taken: Ints, n_first: int, steps: Ints, rng: np.random.Generator) -> Ints:
    """Reorder `steps` at random so that the first `n_first` are not among the `taken`."""
    if not len(taken):
        return steps
    is_taken = np.isin(steps, taken)
    ordered = np.concatenate([steps[~is_taken], steps[is_taken]])
    ordered[n_first:] = rng.permutation(ordered[n_first:])
    return ordered


# Making the next things in the background while one is used.

_Made = TypeVar("_Made")


def prefetch(make: Callable[[int], _Made], steps: range, *, workers: int, ahead: int) -> Iterator[_Made]:
    """make(step) of every step in order, up to `ahead` of them early by so many threads; without either, just so."""
    if not workers or not ahead:
        yield from map(make, steps)
        return
    waiting: deque[Future[_Made]] = deque()
    pool = ThreadPoolExecutor(workers, "made-ahead")
    try:
        for step in steps:
            waiting.append(pool.submit(make, step))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=not is_asked(), cancel_futures=True)
