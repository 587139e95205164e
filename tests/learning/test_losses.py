from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from experiments.lib.bags import Bags, infonce_bags, mil_nce, paper_bags, released_bags
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from signspot.learning.batches import BACKGROUND, Minibatch
from signspot.learning.losses import (
    _ANCHORS,
    Anchor,
    Formulation,
    Paper,
    Released,
    _classification,
    _draw_positives,
    _foreground_only,
    _infonce,
    _watch_lookup,
    watch_read_lookup,
)
from signspot.models.head import unit_rows
from tests.learning.minibatches import FRIEND, LANGUAGE, cosines, figure, minibatches, numbers, relations

PAPERS = st.builds(
    Paper,
    anchors=st.lists(st.sampled_from(_ANCHORS), min_size=1, unique=True).map(tuple),
    segment_background=st.sampled_from(["each-segment", "each-word"]),
    average=st.sampled_from(["bags", "anchors"]),
    repeats=st.sampled_from(["rows", "entries"]),
)
RELEASED = st.builds(
    Released,
    cross_item=st.sampled_from(["numerator", "nowhere", "both"]),
    same_subtitle=st.sampled_from(["negative", "neither"]),
    count=st.sampled_from(["runs", "words"]),
)
TEMPERATURES = st.sampled_from([1.0, 0.07, 0.01])
LOSSES: dict[str, Callable[[Minibatch], Tensor]] = {
    "paper": watch_read_lookup,
    "each word": lambda batch: watch_read_lookup(batch, Paper(segment_background="each-word", average="anchors")),
    "released": lambda batch: watch_read_lookup(batch, "released"),
    "released, both": lambda batch: watch_read_lookup(batch, Released(cross_item="both", same_subtitle="neither")),
    "watch-lookup": _watch_lookup,
    "infonce": lambda batch: _infonce(batch, torch.Generator().manual_seed(3)),
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def reference(batch: Minibatch, formulation: Paper | Released, temperature: float, discard: Tensor | None) -> Tensor:
    """The loss from masks."""
    if isinstance(formulation, Released):
        terms = [mil_nce(cosines(batch), released_bags(batch, formulation, discard), temperature)]
    else:
        bags = paper_bags(batch, formulation, discard)
        terms = [mil_nce(cosines(batch), bags[anchor], temperature) for anchor in formulation.anchors]
        if formulation.average == "anchors":
            terms = [costs.mean(dim=0, keepdim=True) for costs in terms if len(costs)]
    every = torch.cat(terms) if terms else torch.zeros(0)
    return every.mean() if len(every) else cosines(batch).sum() * 0.0


def with_gradients(batch: Minibatch) -> Minibatch:
    return batch.with_vectors(batch.segments.clone().requires_grad_(), batch.entries.clone().requires_grad_())


def gradients(loss: Tensor, batch: Minibatch) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, (batch.segments, batch.entries))


def assert_same_loss(
    loss: Callable[[Minibatch], Tensor], other: Callable[[Minibatch], Tensor], batch: Minibatch
) -> None:
    batch = with_gradients(batch)
    got, expected = loss(batch), other(batch)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(gradients(got, batch), gradients(expected, batch), rtol=1e-7, atol=1e-8)


@given(minibatches(), PAPERS | RELEASED, TEMPERATURES, relations())
def test_the_fast_loss_is_the_loss_of_the_masks(
    batch: Minibatch, formulation: Paper | Released, temperature: float, discard: Tensor | None
) -> None:
    assert_same_loss(
        lambda b: watch_read_lookup(b, formulation, temperature, discard),
        lambda b: reference(b, formulation, temperature, discard),
        batch,
    )


@given(minibatches(), st.sampled_from(["both", "segment", "dictionary"]), TEMPERATURES, relations())
def test_watch_lookup_is_the_loss_of_the_foreground_alone(
    batch: Minibatch, side: str, temperature: float, discard: Tensor | None
) -> None:
    anchors: tuple[Anchor, ...] = ("segment-foreground", "dictionary-foreground")
    chosen = {"both": anchors, "segment": anchors[:1], "dictionary": anchors[1:]}[side]
    assert_same_loss(
        lambda b: _watch_lookup(b, "paper", temperature, side, discard),  # type: ignore[arg-type]
        lambda b: reference(_foreground_only(b), Paper(anchors=chosen), temperature, discard),
        batch,
    )


@given(minibatches(), st.integers(0, 99), TEMPERATURES, relations())
def test_infonce_is_the_loss_of_its_masks(
    batch: Minibatch, seed: int, temperature: float, discard: Tensor | None
) -> None:
    def masks(batch: Minibatch) -> Tensor:
        batch = _foreground_only(batch)
        bags = infonce_bags(batch, _draw_positives(batch, torch.Generator().manual_seed(seed)), discard)
        terms = mil_nce(cosines(batch), bags, temperature)
        return terms.mean() if len(terms) else cosines(batch).sum() * 0.0

    assert_same_loss(lambda b: _infonce(b, torch.Generator().manual_seed(seed), temperature, discard), masks, batch)


def test_eq_1_by_hand() -> None:
    cosine = torch.tensor([[0.5, -0.25, 0.1], [0.0, 0.9, 0.3]], dtype=torch.float64)
    positive = torch.tensor([[[True, False, False], [False, True, False]]])
    negative = torch.tensor([[[False, False, True], [False, False, False]]])
    above = math.exp(0.5 / 0.2) + math.exp(0.9 / 0.2)
    expected = -math.log(above / (above + math.exp(0.1 / 0.2)))
    assert mil_nce(cosine, Bags(positive, negative), 0.2).tolist() == pytest.approx([expected])


def one_item(n_others: int, dtype: torch.dtype = torch.float64) -> Minibatch:
    """A labelled segment, one entry of its word and `n_others` of other words, all with the same vector."""
    n_entries = 1 + n_others
    return Minibatch(
        n_items=1,
        segments=torch.ones(1, 3, dtype=dtype),
        segment_item=numbers([0]),
        segment_word=numbers([0]),
        entries=torch.ones(n_entries, 3, dtype=dtype),
        entry_word=torch.arange(n_entries),
        row_entry=torch.arange(n_entries),
        row_item=torch.zeros(n_entries, dtype=torch.int64),
        row_is_foreground=torch.arange(n_entries) == 0,
    )


@pytest.mark.parametrize("n_others", [0, 1, 9])
def test_one_positive_among_k_equals_costs_log_k(n_others: int) -> None:
    paper = Paper(anchors=("segment-foreground",))
    assert watch_read_lookup(one_item(n_others), paper).item() == pytest.approx(math.log(1 + n_others))


@given(minibatches(), PAPERS, TEMPERATURES, relations())
def test_the_loss_of_the_paper_is_never_below_zero(
    batch: Minibatch, paper: Paper, temperature: float, discard: Tensor | None
) -> None:
    assert watch_read_lookup(batch, paper, temperature, discard) >= 0


@given(minibatches(), PAPERS, relations())
def test_discarding_words_never_costs(batch: Minibatch, paper: Paper, discard: Tensor | None) -> None:
    assert watch_read_lookup(batch, paper, 0.07, discard) <= watch_read_lookup(batch, paper) + 1e-12


def shuffled(batch: Minibatch, seed: int, *, rows_too: bool) -> Minibatch:
    random = torch.Generator().manual_seed(seed)
    segment, entry = (torch.randperm(len(of), generator=random) for of in (batch.segments, batch.entries))
    row = torch.randperm(len(batch.row_entry), generator=random) if rows_too else torch.arange(len(batch.row_entry))
    item = torch.randperm(batch.n_items, generator=random)
    return Minibatch(
        n_items=batch.n_items,
        segments=batch.segments[segment],
        segment_item=item[batch.segment_item[segment]],
        segment_word=batch.segment_word[segment],
        entries=batch.entries[entry],
        entry_word=batch.entry_word[entry],
        row_entry=entry.argsort()[batch.row_entry[row]],
        row_item=item[batch.row_item[row]],
        row_is_foreground=batch.row_is_foreground[row],
    )


@given(minibatches(), PAPERS | RELEASED, st.integers(0, 99))
def test_the_order_of_rows_and_items_does_not_matter(
    batch: Minibatch, formulation: Paper | Released, seed: int
) -> None:
    by_runs = isinstance(formulation, Released) and formulation.count == "runs"  # only runs are made of an order
    other = shuffled(batch, seed, rows_too=not by_runs)
    expected = watch_read_lookup(batch, formulation)
    torch.testing.assert_close(watch_read_lookup(other, formulation), expected, rtol=1e-9, atol=1e-9)


@given(minibatches(), RELEASED | st.just(Paper()))
def test_a_repeated_entry_is_as_good_as_another_entry_with_the_same_vector(
    batch: Minibatch, formulation: Formulation
) -> None:
    unmerged = replace(
        batch,
        entries=batch.entries[batch.row_entry],
        entry_word=batch.row_word,
        row_entry=torch.arange(len(batch.row_entry)),
    )
    expected = watch_read_lookup(unmerged, formulation)
    torch.testing.assert_close(watch_read_lookup(batch, formulation), expected, rtol=1e-9, atol=1e-9)


@given(minibatches(), st.integers(1, 3))
def test_repeats_change_nothing_where_entries_are_counted_once(batch: Minibatch, times: int) -> None:
    once = Paper(repeats="entries")
    again = replace(
        batch,
        row_entry=batch.row_entry.repeat(times),
        row_item=batch.row_item.repeat(times),
        row_is_foreground=batch.row_is_foreground.repeat(times),
    )
    torch.testing.assert_close(watch_read_lookup(again, once), watch_read_lookup(batch, once), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_the_length_of_vectors_does_not_matter(name: str) -> None:
    batch = figure()
    longer = batch.with_vectors(batch.segments * 7, batch.entries * torch.arange(1, 10)[:, None])
    assert LOSSES[name](longer).item() == pytest.approx(LOSSES[name](batch).item())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_are_those_of_finite_differences(name: str, seed: int) -> None:
    batch = figure(seed)
    batch = replace(  # with repeats, in another item too
        batch,
        row_entry=torch.cat([batch.row_entry, numbers([2, 3, 5])]),
        row_item=torch.cat([batch.row_item, numbers([1, 1, 1])]),
        row_is_foreground=torch.cat([batch.row_is_foreground, torch.tensor([False, False, True])]),
    )
    vectors = (batch.segments.clone().requires_grad_(), batch.entries.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda s, e: LOSSES[name](batch.with_vectors(s, e)), vectors)


@pytest.mark.parametrize("formulation", ["paper", "released"])
@pytest.mark.parametrize("temperature", [1e-3, 0.07, 100.0])
def test_float32_is_stable_at_any_temperature(formulation: Formulation, temperature: float) -> None:
    exact = figure()
    batch = with_gradients(exact.with_vectors(exact.segments.float(), exact.entries.float()))
    loss = watch_read_lookup(batch, formulation, temperature)
    assert loss.item() == pytest.approx(watch_read_lookup(exact, formulation, temperature).item(), rel=1e-4)
    assert all(torch.isfinite(gradient).all() for gradient in gradients(loss, batch))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_vectors_are_compared_in_float32(dtype: torch.dtype) -> None:
    batch = figure()
    half = batch.with_vectors(batch.segments.to(dtype), batch.entries.to(dtype))
    exact = half.with_vectors(half.segments.float(), half.entries.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(watch_read_lookup(half), watch_read_lookup(exact))


def emptied(batch: Minibatch, *, segments: bool = False, rows: bool = False, entries: bool = False) -> Minibatch:
    if segments:
        batch = replace(batch, **{f: getattr(batch, f)[:0] for f in ("segments", "segment_item", "segment_word")})
    if rows or entries:
        batch = replace(batch, **{f: getattr(batch, f)[:0] for f in ("row_entry", "row_item", "row_is_foreground")})
    if entries:
        batch = replace(batch, entries=batch.entries[:0], entry_word=batch.entry_word[:0])
    return batch


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("empty", ["segments", "rows", "entries"])
def test_a_minibatch_without_any_bag_costs_nothing(name: str, empty: str) -> None:
    batch = with_gradients(emptied(figure(), **{empty: True}))
    loss = LOSSES[name](batch)
    assert loss.item() == 0
    assert all((gradient == 0).all() for gradient in gradients(loss, batch))


@pytest.mark.parametrize("name", LOSSES)
def test_a_vector_that_is_not_a_number_is_noticed(name: str) -> None:
    batch = figure()
    spoilt = batch.segments.clone()
    spoilt[0, 0] = math.nan  # of a labelled segment
    assert torch.isnan(LOSSES[name](batch.with_vectors(spoilt, batch.entries)))


def large_batch() -> Minibatch:
    """32 items of 11 segments and 8 words with 3 entries; words are shared between items."""
    random = torch.Generator().manual_seed(0)
    n_items, n_words = 32, 60
    words = torch.stack([torch.randperm(n_words, generator=random)[:8] for _ in range(n_items)])
    label = torch.full((n_items, 11), BACKGROUND)
    label[:, 0] = words[:, 0]
    return Minibatch(
        n_items=n_items,
        segments=unit_rows(torch.randn(n_items * 11, 64, generator=random)),
        segment_item=torch.arange(n_items).repeat_interleave(11),
        segment_word=label.flatten(),
        entries=unit_rows(torch.randn(n_words * 3, 64, generator=random)),
        entry_word=torch.arange(n_words).repeat_interleave(3),
        row_entry=(words[:, :, None] * 3 + torch.arange(3)).flatten(),
        row_item=torch.arange(n_items).repeat_interleave(24),
        row_is_foreground=(torch.arange(24) < 3).repeat(n_items),
    )


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_can_be_repeated_bit_by_bit(name: str) -> None:
    torch.set_num_threads(2)
    try:
        runs = []
        for _ in range(5):
            batch = with_gradients(large_batch())
            loss = LOSSES[name](batch)
            runs.append((loss, *gradients(loss, batch)))
    finally:
        torch.set_num_threads(1)
    assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(runs[0], run, strict=True))


def test_every_entry_of_the_word_is_drawn_about_as_often() -> None:
    batch = figure()
    random = torch.Generator().manual_seed(0)
    drawn = torch.stack([_draw_positives(batch, random) for _ in range(1000)])
    assert (drawn[:, [1, 2, 4, 5]] == -1).all()  # unlabelled segments draw nothing
    for segment, rows in ((0, (0, 1)), (3, (5, 6))):
        counts = torch.bincount(drawn[:, segment], minlength=9)
        assert counts.sum() == counts[list(rows)].sum()
        assert counts[list(rows)].min() > 430  # 4.4 standard deviations


def test_the_same_generator_draws_the_same() -> None:
    first, second = (_draw_positives(large_batch(), torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first, second)


def naive_cross_entropy(logits: Tensor, classes: list[int]) -> float:
    costs = [
        math.log(sum(math.exp(x) for x in row)) - row[k]
        for row, k in zip(logits.tolist(), classes, strict=True)
        if k >= 0
    ]
    return sum(costs) / len(costs)


def test_classification_weighs_both_domains_alike() -> None:
    batch = figure()
    random = torch.Generator().manual_seed(0)
    segment_logits = torch.randn(6, 5, generator=random, dtype=torch.float64)
    entry_logits = torch.randn(9, 5, generator=random, dtype=torch.float64)
    expected = (
        naive_cross_entropy(segment_logits, [FRIEND, -1, -1, LANGUAGE, -1, -1])
        + naive_cross_entropy(entry_logits, batch.entry_word.tolist())
    ) / 2
    assert _classification(batch, segment_logits, entry_logits).item() == pytest.approx(expected)


def test_classification_without_any_known_word_costs_nothing() -> None:
    segment_logits, entry_logits = torch.ones(6, 2, requires_grad=True), torch.ones(9, 2, requires_grad=True)
    batch = replace(figure(), segment_word=torch.full((6,), -1), entry_word=torch.full((9,), -1))
    loss = _classification(batch, segment_logits, entry_logits)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0
    assert segment_logits.grad is not None
    assert not segment_logits.grad.any()


def test_a_classifier_with_too_few_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="class 3 for a classifier of 2 classes"):
        _classification(figure(), torch.zeros(6, 2), torch.zeros(9, 2))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match=r"a temperature of .* is not above 0"):
        watch_read_lookup(figure(), "paper", temperature)


def test_an_unknown_formulation_is_refused() -> None:
    with pytest.raises(ValueError, match="a formulation is 'paper' or 'released', not 'mine'"):
        watch_read_lookup(figure(), "mine")  # type: ignore[arg-type]


def test_the_anchors_of_the_released_loss_cannot_be_separated() -> None:
    with pytest.raises(ValueError, match="cannot be separated"):
        _watch_lookup(figure(), "released", 0.07, "segment")
    with pytest.raises(ValueError, match="not 'left'"):
        _watch_lookup(figure(), "paper", 0.07, "left")  # type: ignore[arg-type]
