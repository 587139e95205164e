from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from experiments.lib.bags import Bags, infonce_bags, paper_bags, released_bags
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from signspot.learning.batches import Minibatch
from signspot.learning.losses import _ANCHORS, Anchor, Paper, Released, _draw_positives, discard_relation
from tests.learning.minibatches import FRIEND, LANGUAGE, NAME, SPEAK, WHAT, figure, minibatches, numbers, relations


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


Pair = tuple[int, int]
Bag = tuple[frozenset[Pair], frozenset[Pair]]


class Told:
    """The text of Paper App. C.2 in sets and loops: what a minibatch says, item by item."""

    def __init__(self, batch: Minibatch, discard: Tensor | None = None, *, once: bool = False) -> None:
        self.item_of_segment = batch.segment_item.tolist()
        self.label = batch.segment_word.tolist()
        self.segments = range(len(self.label))
        self.word = batch.row_word.tolist()
        self.item_of_row = batch.row_item.tolist()
        self.entry = batch.row_entry.tolist()
        self.rows = range(len(self.word))
        self.once = once
        self.background: dict[int, set[int]] = {item: set() for item in range(batch.n_items)}
        self.mentioned: dict[int, set[int]] = {item: set() for item in range(batch.n_items)}
        for row in self.rows:
            self.mentioned[self.item_of_row[row]].add(self.word[row])
            if not batch.row_is_foreground[row]:
                self.background[self.item_of_row[row]].add(self.word[row])
        for segment in self.segments:
            if self.label[segment] >= 0:
                self.mentioned[self.item_of_segment[segment]].add(self.label[segment])
        pairs = [] if discard is None else (discard.nonzero() if discard.dtype == torch.bool else discard).tolist()
        self.synonyms = {(a, b) for a, b in pairs if a != b} | {(b, a) for a, b in pairs if a != b}

    def shown(self, segment: int) -> set[int]:
        label = self.label[segment]
        return {label} if label >= 0 else self.background[self.item_of_segment[segment]]

    def excluded(self, word: int, among: set[int]) -> bool:
        return word not in among and not any((word, other) in self.synonyms for other in among)

    def own_rows(self, item: int, words: set[int]) -> list[int]:
        found = [r for r in self.rows if self.item_of_row[r] == item and self.word[r] in words]
        return [r for r in found if not self.once or not any(self.entry[q] == self.entry[r] for q in found if q < r)]

    def all_rows(self) -> list[int]:
        return [r for r in self.rows if not self.once or self.entry.index(self.entry[r]) == r]

    def against_segment(self, segment: int) -> frozenset[Pair]:
        return frozenset((segment, r) for r in self.all_rows() if self.excluded(self.word[r], self.shown(segment)))

    def against_rows(self, item: int, word: int, rows: list[int]) -> frozenset[Pair]:
        cannot = []
        for segment in self.segments:
            own = self.item_of_segment[segment] == item
            among = self.shown(segment) if own else self.mentioned[self.item_of_segment[segment]]
            if self.excluded(word, among):
                cannot.append(segment)
        return frozenset((segment, row) for segment in cannot for row in rows)

    def unlabelled(self, item: int) -> list[int]:
        return [s for s in self.segments if self.label[s] < 0 and self.item_of_segment[s] == item]

    def bags(self, anchor: Anchor, *, each_word: bool = False) -> list[Bag]:
        bags: list[Bag] = []
        if anchor.endswith("foreground") or (anchor == "segment-background" and not each_word):
            for s in self.segments:
                if (self.label[s] >= 0) != anchor.endswith("foreground"):
                    continue
                rows = self.own_rows(self.item_of_segment[s], self.shown(s))
                negative = self.against_segment(s)
                if anchor == "dictionary-foreground":
                    negative = self.against_rows(self.item_of_segment[s], self.label[s], rows)
                bags.append((frozenset((s, r) for r in rows), negative))
        else:
            for item, words in self.background.items():
                for word in words:
                    rows, segments = self.own_rows(item, {word}), self.unlabelled(item)
                    negative = self.against_rows(item, word, rows)
                    if anchor == "segment-background":
                        negative = frozenset().union(*(self.against_segment(s) for s in segments))
                    bags.append((frozenset((s, r) for s in segments for r in rows), negative))
        return [bag for bag in bags if bag[0]]


def as_sets(bags: Bags) -> list[Bag]:
    def pairs(mask: Tensor) -> frozenset[Pair]:
        return frozenset((s, r) for s, r in mask.nonzero().tolist())

    return [(pairs(p), pairs(n)) for p, n in zip(bags.positive, bags.negative, strict=True)]


def ordered(bags: list[Bag]) -> list[tuple[list[Pair], list[Pair]]]:
    return sorted((sorted(positive), sorted(negative)) for positive, negative in bags)


def words_of(batch: Minibatch, pairs: frozenset[Pair]) -> set[tuple[int, int]]:
    """(segment, word) instead of (segment, row)."""
    return {(segment, int(batch.row_word[row])) for segment, row in pairs}


@given(minibatches(), relations(), st.sampled_from(["each-segment", "each-word"]), st.sampled_from(["rows", "entries"]))
def test_bags_are_those_the_appendix_describes(
    batch: Minibatch, discard: Tensor | None, how: str, repeats: str
) -> None:
    made = paper_bags(batch, Paper(segment_background=how, repeats=repeats), discard)  # type: ignore[arg-type]
    told = Told(batch, discard, once=repeats == "entries")
    for anchor in _ANCHORS:
        assert ordered(as_sets(made[anchor])) == ordered(told.bags(anchor, each_word=how == "each-word")), anchor


@given(minibatches(), relations())
def test_released_bags_are_those_the_facts_describe(batch: Minibatch, discard: Tensor | None) -> None:
    told = Told(batch, discard)
    expected = []
    runs = [w for r, w in enumerate(told.word) if r == 0 or told.word[r - 1] != w]
    for word in runs:
        positive, below = set(), set()
        for s in told.segments:
            for r in told.rows:
                in_row, in_column = word in told.shown(s), told.word[r] == word
                matches, own = told.word[r] in told.shown(s), told.item_of_segment[s] == told.item_of_row[r]
                synonym = any((told.word[r], other) in told.synonyms for other in told.shown(s))
                if in_row and in_column:
                    positive.add((s, r))
                if (in_row and in_column and own) or (
                    (in_row or in_column) and not (matches and not own) and not synonym
                ):
                    below.add((s, r))
        if positive:
            expected.append((frozenset(positive), frozenset(below)))
    bags = released_bags(batch, Released(), discard)
    assert bags.unpaid is not None
    paid = Bags(bags.positive, (bags.positive & ~bags.unpaid) | bags.negative)
    assert ordered(as_sets(paid)) == ordered(expected)


@settings(max_examples=40)
@given(
    minibatches(),
    relations(),
    st.sampled_from(["numerator", "nowhere", "both"]),
    st.sampled_from(["negative", "neither"]),
)
def test_no_pair_is_positive_and_negative(
    batch: Minibatch, discard: Tensor | None, cross_item: str, same_subtitle: str
) -> None:
    drawn = _draw_positives(batch, torch.Generator().manual_seed(0))
    released = Released(cross_item=cross_item, same_subtitle=same_subtitle)  # type: ignore[arg-type]
    every = [
        *paper_bags(batch, Paper(), discard).values(),
        paper_bags(batch, Paper(segment_background="each-word"), discard)["segment-background"],
        released_bags(batch, released, discard),
        infonce_bags(batch, drawn, discard),
    ]
    for bags in every:
        assert not (bags.positive & bags.negative).any()
        assert bags.positive.flatten(1).any(dim=1).all()


def test_the_figure_anchored_at_a_labelled_segment() -> None:
    batch = figure()
    first, second = as_sets(paper_bags(batch, Paper())["segment-foreground"])
    assert words_of(batch, first[0]) == {(0, FRIEND)}
    assert words_of(batch, first[1]) == {(0, NAME), (0, WHAT), (0, LANGUAGE), (0, SPEAK)}
    assert words_of(batch, second[0]) == {(3, LANGUAGE)}


def test_the_figure_anchored_at_the_entries_of_the_label() -> None:
    batch = figure()
    friend, _ = as_sets(paper_bags(batch, Paper())["dictionary-foreground"])
    assert words_of(batch, friend[0]) == {(0, FRIEND)}
    assert words_of(batch, friend[1]) == {(s, FRIEND) for s in (1, 2, 3, 4, 5)}


def test_the_figure_anchored_at_the_background_one_word_at_a_time() -> None:
    """Caption (iii): *name* is positive, *friend, language, speak* are negative, *what* is grey."""
    batch = figure()
    name, what, _ = as_sets(paper_bags(batch, Paper(segment_background="each-word"))["segment-background"])
    assert words_of(batch, name[0]) == {(1, NAME), (2, NAME)}
    assert words_of(batch, what[0]) == {(1, WHAT), (2, WHAT)}
    for bag in (name, what):
        assert words_of(batch, bag[1]) == {(s, w) for s in (1, 2) for w in (FRIEND, LANGUAGE, SPEAK)}


def test_the_figure_anchored_at_one_background_segment() -> None:
    batch = figure()
    first, *_ = as_sets(paper_bags(batch, Paper())["segment-background"])
    assert words_of(batch, first[0]) == {(1, NAME), (1, WHAT)}
    assert words_of(batch, first[1]) == {(1, FRIEND), (1, LANGUAGE), (1, SPEAK)}


def test_the_figure_anchored_at_the_entries_of_a_background_word() -> None:
    batch = figure()
    name, _, speak = as_sets(paper_bags(batch, Paper())["dictionary-background"])
    assert words_of(batch, name[0]) == {(1, NAME), (2, NAME)}
    assert words_of(batch, name[1]) == {(s, NAME) for s in (0, 3, 4, 5)}
    assert words_of(batch, speak[1]) == {(s, SPEAK) for s in (0, 1, 2, 3)}


def test_synonyms_are_in_neither_set() -> None:
    batch = figure()
    bags = paper_bags(batch, Paper(), numbers([[SPEAK, FRIEND]]))
    seg_fore, *_ = as_sets(bags["segment-foreground"])
    assert words_of(batch, seg_fore[1]) == {(0, NAME), (0, WHAT), (0, LANGUAGE)}
    friend, _ = as_sets(bags["dictionary-foreground"])
    assert words_of(batch, friend[1]) == {(1, FRIEND), (2, FRIEND)}  # the whole other item mentions a synonym


def test_a_relation_between_all_words_and_its_pairs_say_the_same() -> None:
    words = numbers([-1, 2, 5, 7])
    matrix = torch.zeros(9, 9, dtype=torch.bool)
    matrix[7, 2] = matrix[5, 5] = matrix[8, 2] = True
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[1, 3] = expected[3, 1] = True
    assert torch.equal(discard_relation(words, matrix), expected)
    assert torch.equal(discard_relation(words, numbers([[7, 2], [5, 5], [8, 2]])), expected)


@pytest.mark.parametrize(
    ("discard", "message"),
    [
        (torch.zeros(3, 3, dtype=torch.bool), r"shape \(3, 3\) for a word 7"),
        (torch.zeros(9, 8, dtype=torch.bool), r"shape \(9, 8\)"),
        (torch.zeros(4, dtype=torch.int64), r"not of shape \(4,\)"),
        (torch.full((2, 2), -1), r"words to discard are \(n, 2\) word numbers"),
    ],
)
def test_a_relation_that_does_not_fit_the_words_is_refused(discard: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        discard_relation(numbers([2, 7]), discard)


@pytest.mark.parametrize(
    "options",
    [
        {"anchors": ()},
        {"anchors": ("segment",)},
        {"anchors": ("segment-foreground", "segment-foreground")},
        {"segment_background": "both"},
        {"average": "words"},
        {"repeats": "never"},
    ],
)
def test_an_unknown_option_of_the_paper_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} (are some|is one) of"):
        Paper(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cross_item", "same_subtitle", "count"])
def test_an_unknown_option_of_the_released_loss_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is one of"):
        Released(**{name: "no"})  # type: ignore[arg-type]
